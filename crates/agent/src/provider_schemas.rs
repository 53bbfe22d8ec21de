//! Providers' schemas, which are needed to show a plan: kept by engine and lock file, because asking for them takes as
//! long as a plan. Each resource type is a file of its own: a provider can have a thousand, and a plan needs three.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::engine::InstalledEngine;

/// One type of resource, or of data source, of one provider.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TypeName {
    pub(crate) provider: String,
    pub(crate) is_data: bool,
    pub(crate) name: String,
}

/// Schemas as a redacted plan has them: of each provider those of its types that the plan has.
pub(crate) type Schemas = BTreeMap<String, ProviderSchemas>;

#[derive(serde::Serialize, Default)]
pub(crate) struct ProviderSchemas {
    pub(crate) resource_schemas: BTreeMap<String, Box<RawValue>>,
    pub(crate) data_source_schemas: BTreeMap<String, Box<RawValue>>,
}

/// The ones of one engine and one lock file.
pub(crate) struct SchemaStore {
    directory: PathBuf,
}

impl SchemaStore {
    pub(crate) fn new(root: &Path, engine: &InstalledEngine, lock: &[u8]) -> Self {
        let key =
            Sha256::new().chain_update(format!("{} {}\0", engine.engine, engine.version)).chain_update(lock).finalize();
        Self { directory: root.join(hex::encode(&key[..16])) }
    }

    pub(crate) fn has(&self, types: &BTreeSet<TypeName>) -> bool {
        types.iter().all(|wanted| self.path(wanted).is_file())
    }

    /// The schemas of these types, as far as they are known.
    pub(crate) fn get(&self, types: &BTreeSet<TypeName>) -> Schemas {
        let mut schemas = Schemas::new();
        for wanted in types {
            let text = fs::read_to_string(self.path(wanted)).ok();
            let Some(schema) = text.and_then(|text| RawValue::from_string(text).ok()) else { continue };
            let provider = schemas.entry(wanted.provider.clone()).or_default();
            match wanted.is_data {
                true => provider.data_source_schemas.insert(wanted.name.clone(), schema),
                false => provider.resource_schemas.insert(wanted.name.clone(), schema),
            };
        }
        schemas
    }

    /// Takes what `providers schema -json` has put into a file.
    pub(crate) fn put(&self, file: &Path) -> io::Result<()> {
        #[derive(Deserialize)]
        struct Document<'a> {
            #[serde(borrow, default)]
            provider_schemas: HashMap<String, Provider<'a>>,
        }
        #[derive(Deserialize)]
        struct Provider<'a> {
            #[serde(borrow, default)]
            resource_schemas: HashMap<String, &'a RawValue>,
            #[serde(borrow, default)]
            data_source_schemas: HashMap<String, &'a RawValue>,
        }
        let text = fs::read_to_string(file)?;
        let document: Document<'_> = serde_json::from_str(&text)?;
        fs::create_dir_all(&self.directory)?;
        for (provider, schemas) in document.provider_schemas {
            for (is_data, schemas) in [(false, schemas.resource_schemas), (true, schemas.data_source_schemas)] {
                for (name, schema) in schemas {
                    let path = self.path(&TypeName { provider: provider.clone(), is_data, name });
                    let fresh = tempfile::NamedTempFile::new_in(&self.directory)?;
                    fs::write(fresh.path(), schema.get())?;
                    fresh.persist(path)?;
                }
            }
        }
        Ok(())
    }

    /// Names come from a plan, so they are not used as paths.
    fn path(&self, wanted: &TypeName) -> PathBuf {
        let TypeName { provider, is_data, name } = wanted;
        let digest = Sha256::digest(format!("{provider}\0{is_data}\0{name}"));
        self.directory.join(format!("{}.json", hex::encode(&digest[..16])))
    }
}
