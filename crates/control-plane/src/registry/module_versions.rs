//! Versions of modules: announce, read, deprecate, delete.

use serde::Deserialize;
use taco_boxed::boxed;
use taco_domain::module_version::{Deprecation, ModuleVersion, ModuleVersionId, ModuleVersionStatus};
use taco_domain::permission::Action;
use taco_domain::registry_module::RegistryModule;
use taco_domain::registry_version::RegistryVersion;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::registry_modules::{ModuleRef, ModuleView, delete_module, version_of};

const LONGEST_COMMIT: usize = 100;

/// One version of a module as a door shows it.
#[derive(Clone)]
pub struct ModuleVersionView {
    pub version: ModuleVersion,
    pub module: ModuleView,
}

/// The attributes of a request that announces a version, spelled as on the wire.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NewModuleVersion {
    pub version: Option<String>,
    pub commit_sha: Option<String>,
}

/// The attributes of a request that changes a version.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ModuleVersionPatch {
    pub deprecation: Option<DeprecationPatch>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct DeprecationPatch {
    /// `Deprecated`, or `Undeprecated` to take it back.
    pub deprecated_status: Option<String>,
    pub reason: Option<String>,
    pub link: Option<String>,
}

#[boxed]
impl ControlPlane {
    /// Announces a version whose archive will follow.
    pub async fn create_module_version(
        &self,
        caller: &Caller,
        wanted: &ModuleRef,
        new: NewModuleVersion,
    ) -> Result<ModuleVersionView, Error> {
        let mut org = self.organization_of_module(caller, wanted).await?;
        let module = wanted.find_in(&org)?.clone();
        let version: RegistryVersion = new.version.as_deref().unwrap_or_default().parse()?;
        let commit_sha = new.commit_sha.filter(|commit| !commit.is_empty());
        if commit_sha
            .as_ref()
            .is_some_and(|it| it.len() > LONGEST_COMMIT || !it.bytes().all(|b| b.is_ascii_alphanumeric()))
        {
            return Err(Error::invalid("commit-sha", "Commit sha must be the hexadecimal id of a commit"));
        }
        let (now, by) = (self.now(), caller.author());
        let version = ModuleVersion {
            id: ModuleVersionId::within(org.id().organization_prefix(), self.random()),
            module: module.id,
            version,
            status: ModuleVersionStatus::Pending,
            error: None,
            archive: None,
            commit_sha,
            deprecation: None,
            created_at: now,
            updated_at: now,
            created_by: by,
        };
        let version = org.change(caller, "module-version.create", now, move |tx| {
            tx.require::<RegistryModule>(Action::ManageModules, tx.organization())?;
            let module: RegistryModule = tx.get(&version.module)?;
            if module.namespace.is_some() {
                let what = "Versions of a module of the public registry come from there: only private modules are published here";
                return Err(Error::invalid("version", what));
            }
            tx.put_unique(version.clone())
        });
        let version = version.await?;
        Ok(ModuleVersionView { version, module: ModuleView { module, org } })
    }

    /// A module at a version; without one, the latest that can be downloaded.
    pub async fn module_version(
        &self,
        caller: &Caller,
        wanted: &ModuleRef,
        version: Option<&str>,
    ) -> Result<ModuleVersionView, Error> {
        let module = self.registry_module(caller, wanted).await?;
        let found = match version {
            Some(version) => version_of(&module.org.state, module.module.id, version)?.clone(),
            None => module.latest().ok_or(Error::NotFound(ModuleVersion::NOUN))?.clone(),
        };
        Ok(ModuleVersionView { version: found, module })
    }

    /// Deprecates a version, or takes that back.
    pub async fn update_module_version(
        &self,
        caller: &Caller,
        wanted: &ModuleRef,
        version: &str,
        patch: ModuleVersionPatch,
    ) -> Result<ModuleVersionView, Error> {
        let mut org = self.organization_of_module(caller, wanted).await?;
        let module = wanted.find_in(&org)?.clone();
        let id = version_of(&org.state, module.id, version)?.id;
        let now = self.now();
        let deprecation = match patch.deprecation {
            None => None,
            Some(patch) => Some(patch.deprecation(caller, now)?),
        };
        let version = org.change(caller, "module-version.deprecate", now, move |tx| {
            tx.require::<RegistryModule>(Action::ManageModules, tx.organization())?;
            let version: ModuleVersion = tx.get(&id)?;
            let Some(deprecation) = deprecation.clone() else { return Ok(version) };
            let says = |it: &Option<Deprecation>| it.as_ref().map(|it| (it.reason.clone(), it.link.clone()));
            if says(&deprecation) == says(&version.deprecation) {
                return Ok(version);
            }
            let version = ModuleVersion { deprecation, updated_at: now, ..version };
            tx.put(&version);
            Ok(version)
        });
        let version = version.await?;
        Ok(ModuleVersionView { version, module: ModuleView { module, org } })
    }

    /// Deletes a version; with its last version a module goes, too.
    pub async fn delete_module_version(&self, caller: &Caller, wanted: &ModuleRef, version: &str) -> Result<(), Error> {
        let mut org = self.organization_of_module(caller, wanted).await?;
        let module = wanted.find_in(&org)?.id;
        let version = version.to_owned();
        let blobs = org.change(caller, "module-version.delete", self.now(), move |tx| {
            tx.require::<RegistryModule>(Action::ManageModules, tx.organization())?;
            let found = version_of(tx.state(), module, &version)?.clone();
            if tx.state().module_versions.by().module.under(&module).nth(1).is_none() {
                return delete_module(tx, module);
            }
            tx.delete::<ModuleVersion>(&found.id)?;
            Ok(found.archive.into_iter().map(|archive| archive.blob).collect::<Vec<_>>())
        });
        let blobs = blobs.await?;
        self.remove_module_blobs(&org, &blobs).await;
        Ok(())
    }
}

impl DeprecationPatch {
    fn deprecation(self, caller: &Caller, now: jiff::Timestamp) -> Result<Option<Deprecation>, Error> {
        let status = self.deprecated_status.unwrap_or_else(|| "Deprecated".to_owned());
        match status.to_ascii_lowercase().as_str() {
            "undeprecated" => Ok(None),
            "deprecated" => {
                let reason = self.reason.unwrap_or_default();
                Ok(Some(Deprecation::new(&reason, self.link.as_deref(), caller.author(), now)?))
            }
            _ => Err(Error::invalid(
                "deprecation",
                "Deprecated status must be Deprecated, or Undeprecated to take it back",
            )),
        }
    }
}
