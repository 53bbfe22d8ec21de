//! Private keys with which runs fetch modules.

use serde::Deserialize;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::permission::{Action, Resource};
use taco_domain::ssh_key::{SshKey, SshKeyId, SshKeyName};
use taco_domain::workspace::Workspace;
use taco_ledger::Transaction;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::idempotency::idempotent;
use crate::page::{Listed, PageRequest};

const WHAT: &str = "SSH key";
const LARGEST: usize = 64 * 1024;

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
        let organization = self.organization_named(caller, organization).await?;
        let name: SshKeyName = patch.name.as_deref().unwrap_or_default().parse()?;
        let value = patch.value.filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| Error::invalid("value", "Value can't be blank"))?;
        if value.len() > LARGEST {
            return Err(Error::invalid("value", format!("Value is too long (maximum is {LARGEST} bytes)")));
        }
        let id = SshKeyId::within(organization.id().organization_prefix(), self.random());
        let key = SshKey { id, name, sealed_value: self.seal(&id.to_string(), &value), created_at: self.now() };
        let asker = caller.clone();
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            require(&asker, tx.state())?;
            check_unique(tx.state(), &key)?;
            tx.put(&key);
            Ok(key.clone())
        };
        organization.commit(caller.intent("ssh-key.create"), idempotent(caller, self.now(), decide)).await
    }

    /// An organization's keys by name. Members may know which there are; nobody sees a key itself.
    pub async fn ssh_keys(
        &self,
        caller: &Caller,
        organization: &str,
        page: PageRequest,
    ) -> Result<Listed<SshKey>, Error> {
        let organization = self.organization_named(caller, organization).await?;
        caller.require(Action::ReadDirectory, organization.resource(), "organization")?;
        let keys = &organization.state.ssh_keys;
        let by_name = keys.by().name.iter();
        Ok(Listed::from_all(by_name, page).cloned())
    }

    pub async fn ssh_key(&self, caller: &Caller, id: SshKeyId) -> Result<SshKey, Error> {
        let organization = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        caller.require(Action::ReadDirectory, organization.resource(), WHAT)?;
        organization.state.ssh_keys.get(&id).cloned().ok_or(Error::NotFound(WHAT))
    }

    pub async fn update_ssh_key(&self, caller: &Caller, id: SshKeyId, patch: SshKeyPatch) -> Result<SshKey, Error> {
        let organization = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        let name: Option<SshKeyName> = patch.name.as_deref().map(str::parse).transpose()?;
        let caller = caller.clone();
        let intent = caller.intent("ssh-key.update");
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            require(&caller, tx.state())?;
            let key = tx.state().ssh_keys.get(&id).cloned().ok_or(Error::NotFound(WHAT))?;
            let key = SshKey { name: name.clone().unwrap_or(key.name), ..key };
            check_unique(tx.state(), &key)?;
            tx.put(&key);
            Ok(key)
        };
        organization.commit(intent, decide).await
    }

    /// Deletes a key; workspaces that used it go on without.
    pub async fn delete_ssh_key(&self, caller: &Caller, id: SshKeyId) -> Result<(), Error> {
        let organization = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        let asker = caller.clone();
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            require(&asker, tx.state())?;
            if !tx.state().ssh_keys.contains(&id) {
                return Err(Error::NotFound(WHAT));
            }
            let workspaces = &tx.state().workspaces;
            let users = workspaces.by().ssh_key.get(&id);
            let users: Vec<Workspace> = users.cloned().collect();
            for workspace in users {
                tx.put(&Workspace { ssh_key: None, ..workspace });
            }
            tx.delete::<SshKey>(&id);
            Ok(())
        };
        organization.commit(caller.intent("ssh-key.delete"), idempotent(caller, self.now(), decide)).await
    }
}

fn require(caller: &Caller, state: &OrganizationState) -> Result<(), Error> {
    caller.require(Action::ManageVcsSettings, Resource::Organization(state), WHAT)
}

fn check_unique(state: &OrganizationState, key: &SshKey) -> Result<(), Error> {
    match state.ssh_keys.by().name.first(&key.name.key()) {
        Some(other) if other.id != key.id => Err(Error::name_taken("name", "Name")),
        _ => Ok(()),
    }
}
