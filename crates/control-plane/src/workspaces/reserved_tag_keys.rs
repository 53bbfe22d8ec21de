//! Reserved tag keys: list, create, change, delete, and what they forbid workspaces.

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::permission::Action;
use taco_domain::reserved_tag_key::{
    MAX_RESERVED_TAG_KEYS, ReservedTagKey, ReservedTagKeyId, ReservedTagKeyPatch, check_overrides,
};
use taco_domain::tag::Tags;
use taco_domain::workspace::Workspace;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::page::{Listed, PageRequest};

/// Checks that a workspace which is about to be put overrides no reserved key. `before` are the tags that it carried.
pub(crate) fn check_reserved(state: &OrganizationState, before: &Tags, after: &Workspace) -> Result<(), Error> {
    let Some(project) = state.projects.get(&after.project) else { return Ok(()) };
    let reserved = |key: &_| state.reserved_tag_keys.by().key.first(key);
    Ok(check_overrides(reserved, &project.tags, before, &after.tags)?)
}

#[boxed]
impl ControlPlane {
    pub async fn create_reserved_tag_key(
        &self,
        caller: &Caller,
        organization: &str,
        patch: ReservedTagKeyPatch,
    ) -> Result<ReservedTagKey, Error> {
        let mut org = self.organization_named(caller, organization).await?;
        let key = patch.key()?.ok_or_else(|| Error::invalid("key", "Key can't be blank"))?;
        let (id, now) = (ReservedTagKeyId::within(org.id().organization_prefix(), self.random()), self.now());
        let disable_overrides = patch.disable_overrides.unwrap_or(false);
        let reserved = ReservedTagKey { id, key, disable_overrides, created_at: now, updated_at: now };
        org.change(caller, "reserved-tag-key.create", now, move |tx| {
            tx.require::<ReservedTagKey>(Action::UpdateOrganization, tx.organization())?;
            if tx.state().reserved_tag_keys.iter().count() >= MAX_RESERVED_TAG_KEYS {
                let detail =
                    format!("An organization reserves at most {MAX_RESERVED_TAG_KEYS} tag keys: delete one first");
                return Err(Error::invalid("key", detail));
            }
            tx.put_unique(reserved.clone())
        })
        .await
    }

    /// An organization's reserved keys, by key.
    pub async fn reserved_tag_keys(
        &self,
        caller: &Caller,
        organization: &str,
        page: PageRequest,
    ) -> Result<Listed<ReservedTagKey>, Error> {
        let org = self.organization_named(caller, organization).await?;
        caller.require(Action::ReadOrganization, org.resource(), "organization")?;
        Ok(Listed::from_all(org.state.reserved_tag_keys.by().key.iter(), page).cloned())
    }

    pub async fn update_reserved_tag_key(
        &self,
        caller: &Caller,
        id: ReservedTagKeyId,
        patch: ReservedTagKeyPatch,
    ) -> Result<ReservedTagKey, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), ReservedTagKey::NOUN).await?;
        let (key, now) = (patch.key()?, self.now());
        org.change(caller, "reserved-tag-key.update", now, move |tx| {
            tx.require::<ReservedTagKey>(Action::UpdateOrganization, tx.organization())?;
            let reserved: ReservedTagKey = tx.get(&id)?;
            let key = key.clone().unwrap_or_else(|| reserved.key.clone());
            let disable_overrides = patch.disable_overrides.unwrap_or(reserved.disable_overrides);
            tx.put_unique(ReservedTagKey { key, disable_overrides, updated_at: now, ..reserved })
        })
        .await
    }

    /// Lets a key go. Tags that have it stay where they are.
    pub async fn delete_reserved_tag_key(&self, caller: &Caller, id: ReservedTagKeyId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), ReservedTagKey::NOUN).await?;
        org.change(caller, "reserved-tag-key.delete", self.now(), move |tx| {
            tx.require::<ReservedTagKey>(Action::UpdateOrganization, tx.organization())?;
            tx.delete::<ReservedTagKey>(&id)
        })
        .await
    }
}
