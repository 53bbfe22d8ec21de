//! Data retention: policies of organizations and workspaces, what they would delete, and deleting it.
//!
//! Data goes in three steps, so that a server may die between any two: a commit that marks it as deleted, which nobody
//! can read any more; then its objects in the bucket; then a commit that says they are gone. What was left half done is
//! marked still, and the next sweep takes it up.

mod versions;

use serde::{Deserialize, Serialize};
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::configuration_version::{ConfigurationStatus, ConfigurationVersion};
use taco_domain::id::{ConfigurationVersionId, StateVersionId, WorkspaceId};
use taco_domain::organization::Organization;
use taco_domain::permission::Action;
use taco_domain::retention::RetentionPolicy;
use taco_domain::state_version::{StateVersion, StateVersionStatus};
use taco_domain::workspace::Workspace;
use taco_ledger::{Key, Transaction};
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::configuration_archives::{configuration_key, readme_key};
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::organizations::OrganizationView;
use crate::privileged::Privileged;
use crate::state_blobs::{json_state_key, state_key};
use crate::workspace_view::{WorkspaceRef, WorkspaceView};

/// Maximum number of states and of configurations of one workspace that a sweep deletes at a time.
const MAX_BATCH: usize = 50;

/// Data that a policy deletes: what its versions are, newest first.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct ExpiredData {
    pub states: Vec<StateVersionId>,
    pub configurations: Vec<ConfigurationVersionId>,
}

impl ExpiredData {
    fn is_empty(&self) -> bool {
        self.states.is_empty() && self.configurations.is_empty()
    }
}

#[boxed]
impl ControlPlane {
    /// Sets a workspace's own policy; `None` lets the organization's count.
    pub async fn set_workspace_retention(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        policy: Option<RetentionPolicy>,
    ) -> Result<WorkspaceView, Error> {
        let mut org = self.organization_with(caller, workspace).await?;
        let (wanted, now) = (workspace.clone(), self.now());
        let change = org.change(caller, "workspace.retention", now, move |tx| {
            let workspace = tx.workspace(&wanted, Action::DeleteStateForGood)?;
            let changed = Workspace { retention: policy, ..workspace };
            tx.put(&changed);
            Ok(changed)
        });
        let workspace = change.await?;
        Ok(WorkspaceView { workspace, org })
    }

    /// Sets the policy of an organization's workspaces that have none of their own; `None` keeps everything.
    pub async fn set_organization_retention(
        &self,
        caller: &Caller,
        organization: &str,
        policy: Option<RetentionPolicy>,
    ) -> Result<OrganizationView, Error> {
        let mut org = self.organization_named(caller, organization).await?;
        let change = org.change(caller, "organization.retention", self.now(), move |tx| {
            tx.require::<Organization>(Action::UpdateOrganization, tx.organization())?;
            let organization = tx.state().organization().ok_or(Error::NotFound(Organization::NOUN))?;
            let changed = Organization { retention: policy, ..organization.clone() };
            tx.put(&changed);
            Ok(())
        });
        change.await?;
        self.organization(caller, organization).await
    }

    /// Data of a workspace that a policy would delete now: the given one, or else the one that holds. Nothing is deleted.
    pub async fn preview_retention(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        policy: Option<RetentionPolicy>,
    ) -> Result<ExpiredData, Error> {
        let WorkspaceView { workspace, org } = self.workspace(caller, workspace).await?;
        let policy = policy.or_else(|| org.state.retention_of(&workspace));
        self.expired_data(&org, &workspace, policy).await
    }

    async fn expired_data(
        &self,
        org: &OrganizationSnapshot,
        workspace: &Workspace,
        policy: Option<RetentionPolicy>,
    ) -> Result<ExpiredData, Error> {
        let Some(cutoff) = policy.and_then(|policy| policy.cutoff(self.now())) else {
            return Ok(ExpiredData::default());
        };
        Ok(ExpiredData {
            states: self.expired_states(org, workspace, cutoff).await?,
            configurations: self.expired_configurations(org, workspace, cutoff).await?,
        })
    }
}

#[boxed]
impl Privileged {
    /// Deletes what the policies of the organizations that this server has open do not keep, a batch of each workspace.
    /// True if there is more.
    pub async fn delete_expired_data(&self) -> Result<bool, Error> {
        let mut more = false;
        for org in self.organizations_in_memory() {
            let governed: Vec<(Workspace, RetentionPolicy)> = org
                .state
                .workspaces
                .iter()
                .filter_map(|workspace| Some((workspace.clone(), org.state.retention_of(workspace)?)))
                .collect();
            for (workspace, policy) in governed {
                let mut expired = self.expired_data(&org, &workspace, Some(policy)).await?;
                more |= expired.states.len() > MAX_BATCH || expired.configurations.len() > MAX_BATCH;
                // The oldest go first.
                let oldest = expired.states.len().saturating_sub(MAX_BATCH);
                expired.states.drain(..oldest);
                let oldest = expired.configurations.len().saturating_sub(MAX_BATCH);
                expired.configurations.drain(..oldest);
                if !expired.is_empty() {
                    self.delete_data(&org, workspace.id, policy, expired).await?;
                }
            }
        }
        Ok(more)
    }

    async fn delete_data(
        &self,
        org: &OrganizationSnapshot,
        workspace: WorkspaceId,
        policy: RetentionPolicy,
        expired: ExpiredData,
    ) -> Result<(), Error> {
        let mut org = org.clone();
        for id in &expired.states {
            self.restore_unchecked(&org, (*id).into()).await?;
        }
        for id in &expired.configurations {
            self.restore_unchecked(&org, (*id).into()).await?;
        }
        let (id, due) = (workspace, expired.clone());
        let mark = move |tx: &mut Transaction<OrganizationState>| {
            let marked = still_due(tx.state(), id, policy, &due);
            put_status(
                tx,
                &marked,
                StateVersionStatus::BackingDataSoftDeleted,
                ConfigurationStatus::BackingDataSoftDeleted,
            );
            Ok::<_, Error>(marked)
        };
        let marked = org.commit(ControlPlane::own_intent("retention.mark"), mark).await?;
        org.state = org.last_seen();
        for key in objects_of(&org, &marked) {
            self.shared.state_cache.forget(&key);
            self.blobs().remove(&key).await.map_err(|error| crate::blob_error::blob_error(error.into()))?;
        }
        let done = move |tx: &mut Transaction<OrganizationState>| {
            let gone = still_due(tx.state(), id, policy, &marked);
            put_status(
                tx,
                &gone,
                StateVersionStatus::BackingDataPermanentlyDeleted,
                ConfigurationStatus::BackingDataPermanentlyDeleted,
            );
            Ok::<_, Error>(())
        };
        org.commit(ControlPlane::own_intent("retention.delete"), done).await
    }
}

/// Of what was due, what still is: somebody may have rolled back to it, or put the workspace on hold.
fn still_due(
    state: &OrganizationState,
    workspace: WorkspaceId,
    policy: RetentionPolicy,
    due: &ExpiredData,
) -> ExpiredData {
    let governed = |workspace: &&Workspace| state.retention_of(workspace) == Some(policy);
    let Some(workspace) = state.workspaces.get(&workspace).filter(governed) else { return ExpiredData::default() };
    let is_due_state =
        |id: &&StateVersionId| state.state_versions.get(id).is_some_and(|version| state.may_expire(workspace, version));
    let is_due_configuration = |id: &&ConfigurationVersionId| {
        state.configuration_versions.get(id).is_some_and(|version| state.may_expire_configuration(version))
    };
    ExpiredData {
        states: due.states.iter().filter(is_due_state).copied().collect(),
        configurations: due.configurations.iter().filter(is_due_configuration).copied().collect(),
    }
}

fn put_status(
    tx: &mut Transaction<OrganizationState>,
    data: &ExpiredData,
    of_states: StateVersionStatus,
    of_configurations: ConfigurationStatus,
) {
    for id in &data.states {
        if let Some(version) = tx.state().state_versions.get(id).cloned() {
            tx.put(&StateVersion { status: of_states, ..version });
        }
    }
    for id in &data.configurations {
        if let Some(version) = tx.state().configuration_versions.get(id).cloned() {
            tx.put(&ConfigurationVersion { status: of_configurations, ..version });
        }
    }
}

/// Objects of the bucket that belong to these versions alone.
fn objects_of(org: &OrganizationSnapshot, data: &ExpiredData) -> Vec<Key> {
    let mut keys = Vec::new();
    for version in data.states.iter().filter_map(|id| org.state.state_versions.get(id)) {
        keys.push(state_key(org, &version.blob));
        if version.has_json {
            keys.push(json_state_key(org, version));
        }
    }
    let configurations = data.configurations.iter().filter_map(|id| org.state.configuration_versions.get(id));
    for version in configurations.filter(|version| !version.blob.is_empty() && !version.shares_archive) {
        keys.push(configuration_key(org.ledger.name(), &version.blob));
        if version.has_readme {
            keys.push(readme_key(org.ledger.name(), &version.blob));
        }
    }
    keys
}
