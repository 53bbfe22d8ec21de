//! The private registry: modules and providers that an organization publishes, and the keys that its publishers sign with.

pub(crate) mod gpg_keys;
pub(crate) mod module_archives;
pub(crate) mod module_downloads;
pub(crate) mod module_uses;
pub(crate) mod module_versions;
pub(crate) mod provider_archive;
pub(crate) mod provider_downloads;
pub(crate) mod provider_uploads;
pub(crate) mod provider_versions;
pub(crate) mod registry_blobs;
pub(crate) mod registry_modules;
pub(crate) mod registry_providers;

use taco_boxed::boxed;
use taco_domain::name::NameKey;
use taco_domain::permission::Action;

use crate::caller::{Caller, RequestInfo};
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::signed_url_token::SignedUrlToken;

#[boxed]
impl ControlPlane {
    /// The organization that an address of a module or a provider begins with. The engines write it in lower case.
    pub(crate) async fn organization_of_namespace(
        &self,
        caller: &Caller,
        namespace: &str,
        what: &'static str,
    ) -> Result<OrganizationSnapshot, Error> {
        let entry = caller.site.organizations.by().name.first(&NameKey::of(namespace));
        let id = entry.map(|entry| entry.id).ok_or(Error::NotFound(what))?;
        let org = self.authorized_organization(caller, id.organization_prefix(), what).await?;
        caller.require(Action::DownloadModules, org.resource(), what)?;
        Ok(org)
    }

    /// An organization whose registry the caller may read.
    pub(crate) async fn organization_with_registry(
        &self,
        caller: &Caller,
        organization: &str,
        what: &'static str,
    ) -> Result<OrganizationSnapshot, Error> {
        let org = self.organization_named(caller, organization).await?;
        caller.require(Action::DownloadModules, org.resource(), what)?;
        Ok(org)
    }

    /// Checks that whoever a signed URL was issued to may still do this in the organization.
    pub(crate) fn check_holder_in_organization(
        &self,
        pass: &SignedUrlToken,
        org: &OrganizationSnapshot,
        action: Action,
        what: &'static str,
    ) -> Result<(), Error> {
        let gone = || Error::NotFound(what);
        let holder = self.current_holder(pass, org, what)?.ok_or_else(gone)?;
        // One error for all that can be wrong with a token.
        holder.require(action, org.resource(), what).map_err(|_| gone())
    }

    /// Audit entry in the name of whoever a signed URL was issued to.
    pub(crate) fn holder_intent(pass: &SignedUrlToken, action: &'static str) -> taco_ledger::Intent {
        let author = pass.holder.as_ref().map_or(taco_domain::Author::Taco, |holder| holder.author);
        taco_ledger::Intent { actor: author.to_string(), action, request: RequestInfo::default().id }
    }
}
