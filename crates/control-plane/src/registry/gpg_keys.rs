//! Public keys of those who sign an organization's providers.

use serde::Deserialize;
use taco_boxed::boxed;
use taco_domain::gpg_key::{GpgKey, GpgKeyId};
use taco_domain::permission::Action;
use taco_openpgp::PublicKeys;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::{Listed, PageRequest};

const WHAT: &str = GpgKey::NOUN;
const MAX_ARMOR_BYTES: usize = 64 * 1024;
const LONGEST_SOURCE: usize = 1_000;

/// A key as a door shows it.
#[derive(Clone)]
pub struct GpgKeyView {
    pub key: GpgKey,
    pub org: OrganizationSnapshot,
}

/// The attributes of a request that adds a key, spelled as on the wire.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NewGpgKey {
    pub namespace: Option<String>,
    pub ascii_armor: Option<String>,
    pub source: Option<String>,
    pub source_url: Option<String>,
    pub trust_signature: Option<String>,
}

impl GpgKeyView {
    /// Name of the organization whose providers it signs.
    pub fn namespace(&self) -> &str {
        self.org.entry().name.as_str()
    }
}

#[boxed]
impl ControlPlane {
    pub async fn create_gpg_key(&self, caller: &Caller, new: NewGpgKey) -> Result<GpgKeyView, Error> {
        let namespace = new.namespace.as_deref().unwrap_or_default();
        if namespace.is_empty() {
            return Err(Error::invalid("namespace", "Namespace can't be blank: it is the name of an organization"));
        }
        let mut org = self.organization_with_registry(caller, namespace, "organization").await?;
        caller.require(Action::ManageProviders, org.resource(), WHAT)?;
        let armor = new.ascii_armor.unwrap_or_default();
        let key_id = key_id_of(&armor)?;
        for text in [&new.source, &new.source_url, &new.trust_signature].into_iter().flatten() {
            if text.len() > LONGEST_SOURCE || text.chars().any(char::is_control) {
                return Err(Error::invalid("source", format!("Source can be at most {LONGEST_SOURCE} bytes of text")));
            }
        }
        let now = self.now();
        let key = GpgKey {
            id: GpgKeyId::within(org.id().organization_prefix(), self.random()),
            key_id,
            ascii_armor: armor,
            source: new.source.unwrap_or_default(),
            source_url: new.source_url.filter(|url| !url.is_empty()),
            trust_signature: new.trust_signature.unwrap_or_default(),
            created_at: now,
            updated_at: now,
        };
        let key = org.change(caller, "gpg-key.create", now, move |tx| {
            tx.require::<GpgKey>(Action::ManageProviders, tx.organization())?;
            tx.put_unique(key.clone())
        });
        let key = key.await?;
        Ok(GpgKeyView { key, org })
    }

    /// Keys of several organizations, one organization after the other.
    pub async fn gpg_keys(
        &self,
        caller: &Caller,
        namespaces: &[String],
        page: PageRequest,
    ) -> Result<Listed<GpgKeyView>, Error> {
        let mut all = Vec::new();
        for namespace in namespaces {
            let org = self.organization_with_registry(caller, namespace, "organization").await?;
            all.extend(
                org.state.gpg_keys.by().key_id.iter().map(|key| GpgKeyView { key: key.clone(), org: org.clone() }),
            );
        }
        Ok(Listed::from_all(all, page))
    }

    pub async fn gpg_key(&self, caller: &Caller, namespace: &str, key_id: &str) -> Result<GpgKeyView, Error> {
        let org = self.organization_with_registry(caller, namespace, WHAT).await?;
        let key = find_key(&org, key_id)?.clone();
        Ok(GpgKeyView { key, org })
    }

    /// Moves a key to another organization: added there first, then removed here, so that it is never nowhere.
    pub async fn move_gpg_key(
        &self,
        caller: &Caller,
        namespace: &str,
        key_id: &str,
        target: &str,
    ) -> Result<GpgKeyView, Error> {
        let view = self.gpg_key(caller, namespace, key_id).await?;
        caller.require(Action::ManageProviders, view.org.resource(), WHAT)?;
        if target == namespace {
            return Ok(view);
        }
        let not_authorized = || {
            Error::invalid("namespace", "namespace not authorized: name an organization whose providers you may manage")
        };
        let other = self.organization_with_registry(caller, target, WHAT).await.map_err(|_| not_authorized())?;
        if !caller.may(Action::ManageProviders, other.resource()).allowed {
            return Err(not_authorized());
        }
        check_signs_nothing(&view.org, &view.key.key_id)?;
        let moved = match find_key(&other, &view.key.key_id) {
            // Its first half was done already.
            Ok(key) if key.ascii_armor == view.key.ascii_armor => GpgKeyView { key: key.clone(), org: other },
            _ => {
                let key = view.key.clone();
                let new = NewGpgKey {
                    namespace: Some(target.to_owned()),
                    ascii_armor: Some(key.ascii_armor),
                    source: Some(key.source),
                    source_url: key.source_url,
                    trust_signature: Some(key.trust_signature),
                };
                self.create_gpg_key(caller, new).await?
            }
        };
        self.delete_gpg_key(caller, namespace, key_id).await?;
        Ok(moved)
    }

    /// Deletes a key that has signed nothing which is still there.
    pub async fn delete_gpg_key(&self, caller: &Caller, namespace: &str, key_id: &str) -> Result<(), Error> {
        let mut org = self.organization_with_registry(caller, namespace, WHAT).await?;
        let id = find_key(&org, key_id)?.id;
        let before = org.clone();
        org.change(caller, "gpg-key.delete", self.now(), move |tx| {
            tx.require::<GpgKey>(Action::ManageProviders, tx.organization())?;
            let key: GpgKey = tx.get(&id)?;
            if tx.state().provider_versions.by().key_id.first(&key.key_id).is_some() {
                check_signs_nothing(&before, &key.key_id)?;
                return Err(signs("a provider"));
            }
            tx.delete::<GpgKey>(&id)
        })
        .await
    }
}

fn signs(what: &str) -> Error {
    Error::Conflict(format!("The key has signed {what}, which could not be installed without it: delete that first"))
}

fn check_signs_nothing(org: &OrganizationSnapshot, key_id: &str) -> Result<(), Error> {
    let Some(version) = org.state.provider_versions.by().key_id.first(&key_id.to_owned()) else { return Ok(()) };
    let provider = org.state.registry_providers.get(&version.provider);
    let name = provider.map_or_else(String::new, |provider| provider.name.to_string());
    Err(signs(&format!("version {} of the provider {name}", version.version)))
}

/// The key with this id, in upper or lower case.
pub(crate) fn find_key<'a>(org: &'a OrganizationSnapshot, key_id: &str) -> Result<&'a GpgKey, Error> {
    org.state.gpg_keys.by().key_id.first(&key_id.to_ascii_uppercase()).ok_or(Error::NotFound(WHAT))
}

fn key_id_of(armor: &str) -> Result<String, Error> {
    let refuse = |what: String| Err(Error::invalid("ascii-armor", what));
    if armor.trim().is_empty() {
        return refuse("Ascii armor can't be blank: paste what `gpg --armor --export` prints".to_owned());
    }
    if armor.len() > MAX_ARMOR_BYTES {
        return refuse(format!("Ascii armor is too long (maximum is {MAX_ARMOR_BYTES} bytes)"));
    }
    let keys = match PublicKeys::parse(armor) {
        Ok(keys) => keys,
        Err(why) => return refuse(format!("Ascii armor {why}")),
    };
    match keys.primary_ids().as_slice() {
        [one] => Ok(one.clone()),
        several => refuse(format!("Ascii armor must have one key in it; it has {}", several.len())),
    }
}
