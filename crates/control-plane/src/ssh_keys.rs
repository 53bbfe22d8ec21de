//! Private keys with which runs fetch modules.

use serde::Deserialize;
use taco_boxed::boxed;
use taco_domain::permission::Action;
use taco_domain::ssh_key::{SshKey, SshKeyId, SshKeyName};
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::page::{Listed, PageRequest};

const MAX_KEY_BYTES: usize = 64 * 1024;

/// The attributes of a request that makes or changes a key, spelled as on the wire.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct SshKeyPatch {
    pub name: Option<String>,
    /// The private key. It cannot be changed later: make another.
    pub value: Option<String>,
}

#[boxed]
impl ControlPlane {
    pub async fn create_ssh_key(
        &self,
        caller: &Caller,
        organization: &str,
        patch: SshKeyPatch,
    ) -> Result<SshKey, Error> {
        let mut org = self.organization_named(caller, organization).await?;
        let name: SshKeyName = patch.name.as_deref().unwrap_or_default().parse()?;
        let value = patch.value.filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| Error::invalid("value", "Value can't be blank"))?;
        if value.len() > MAX_KEY_BYTES {
            return Err(Error::invalid("value", format!("Value is too long (maximum is {MAX_KEY_BYTES} bytes)")));
        }
        let id = SshKeyId::within(org.id().organization_prefix(), self.random());
        let key = SshKey { id, name, sealed_value: self.seal(&id.to_string(), &value), created_at: self.now() };
        org.change(caller, "ssh-key.create", self.now(), move |tx| {
            tx.require::<SshKey>(Action::ManageVcsSettings, tx.organization())?;
            tx.put_unique(key.clone())
        })
        .await
    }

    /// An organization's keys by name. Members may know which there are; nobody sees a key itself.
    pub async fn ssh_keys(
        &self,
        caller: &Caller,
        organization: &str,
        page: PageRequest,
    ) -> Result<Listed<SshKey>, Error> {
        let org = self.organization_named(caller, organization).await?;
        caller.require(Action::ReadDirectory, org.resource(), "organization")?;
        let keys = &org.state.ssh_keys;
        let by_name = keys.by().name.iter();
        Ok(Listed::from_all(by_name, page).cloned())
    }

    pub async fn ssh_key(&self, caller: &Caller, id: SshKeyId) -> Result<SshKey, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), SshKey::NOUN).await?;
        caller.require(Action::ReadDirectory, org.resource(), SshKey::NOUN)?;
        org.get(&id).cloned()
    }

    pub async fn update_ssh_key(&self, caller: &Caller, id: SshKeyId, patch: SshKeyPatch) -> Result<SshKey, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), SshKey::NOUN).await?;
        let name: Option<SshKeyName> = patch.name.as_deref().map(str::parse).transpose()?;
        org.change(caller, "ssh-key.update", self.now(), move |tx| {
            tx.require::<SshKey>(Action::ManageVcsSettings, tx.organization())?;
            let key: SshKey = tx.get(&id)?;
            tx.put_unique(SshKey { name: name.clone().unwrap_or(key.name), ..key })
        })
        .await
    }

    /// Deletes a key; workspaces that used it go on without.
    pub async fn delete_ssh_key(&self, caller: &Caller, id: SshKeyId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), SshKey::NOUN).await?;
        org.change(caller, "ssh-key.delete", self.now(), move |tx| {
            tx.require::<SshKey>(Action::ManageVcsSettings, tx.organization())?;
            tx.delete::<SshKey>(&id)
        })
        .await
    }
}
