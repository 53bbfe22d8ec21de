//! Downloads of modules, by the engines: at signed addresses, because the engines send no token there.

use taco_boxed::boxed;
use taco_domain::module_version::{ModuleVersion, ModuleVersionId};
use taco_domain::permission::Action;
use taco_ledger::blob::Stored;
use taco_ledger::bucket::Download;
use taco_tables::Record as _;

use crate::blob_error::{blob_error, proven_if_small};
use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::module_versions::ModuleVersionView;
use crate::registry_blobs::module_key;
use crate::registry_modules::{ModuleRef, ModuleView};
use crate::signed_url_token::{SignedUrlPurpose, SignedUrlToken};

const WHAT: &str = ModuleVersion::NOUN;

#[boxed]
impl ControlPlane {
    /// A module by the address that configurations call it by, of the private registry.
    pub async fn module_at(
        &self,
        caller: &Caller,
        namespace: &str,
        name: &str,
        provider: &str,
    ) -> Result<ModuleView, Error> {
        let org = self.organization_of_namespace(caller, namespace, "module").await?;
        let module = ModuleRef::private(org.entry().name.as_str(), name, provider).find_in(&org)?.clone();
        Ok(ModuleView { module, org })
    }

    /// A version of it that can be downloaded; without one, the latest.
    pub async fn module_version_at(
        &self,
        caller: &Caller,
        namespace: &str,
        name: &str,
        provider: &str,
        version: Option<&str>,
    ) -> Result<ModuleVersionView, Error> {
        let module = self.module_at(caller, namespace, name, provider).await?;
        let found = module.versions().into_iter().find(|it| version.is_some_and(|text| it.version.as_str() == text));
        let found = if version.is_some() { found } else { module.latest() };
        let found = found.filter(|version| version.usable().is_some()).cloned().ok_or(Error::NotFound(WHAT))?;
        Ok(ModuleVersionView { version: found, module })
    }

    /// The archive, for whoever has its address.
    pub async fn download_module(&self, pass: &SignedUrlToken) -> Result<Download, Error> {
        let id: ModuleVersionId = pass.object(SignedUrlPurpose::DownloadModule)?;
        let org = self.organization_unchecked(id.organization_prefix(), WHAT).await?;
        let version = org.get::<ModuleVersion>(&id)?;
        self.check_holder_in_organization(pass, &org, Action::DownloadModules, WHAT)?;
        let file = version.usable().ok_or(Error::NotFound(WHAT))?;
        let key = module_key(org.ledger.name(), &file.blob);
        let stored = Stored { size: file.size, sha256: file.sha256.clone(), md5: String::new() };
        proven_if_small(self.blobs().read_verified(&key, &stored).await.map_err(blob_error)?).await
    }
}
