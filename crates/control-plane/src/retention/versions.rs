//! A workspace's states and configurations, in memory and in history, as retention looks at them.

use std::cmp::Reverse;

use jiff::Timestamp;
use taco_boxed::boxed;
use taco_domain::configuration_version::ConfigurationStatus;
use taco_domain::id::{ConfigurationVersionId, StateVersionId};
use taco_domain::retention::{Version, replaced_before};
use taco_domain::state_version::{StateOrigin, StateVersion, StateVersionStatus};
use taco_domain::workspace::Workspace;

use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::history::{HistoricKind, WorkspaceList, stored_status};

#[boxed]
impl ControlPlane {
    /// States whose place a newer one took before the cutoff and that nothing needs, newest first.
    pub(super) async fn expired_states(
        &self,
        org: &OrganizationSnapshot,
        workspace: &Workspace,
        cutoff: Timestamp,
    ) -> Result<Vec<StateVersionId>, Error> {
        let state = &org.state;
        let mut versions: Vec<(u64, Version<StateVersionId>)> =
            state.state_versions_of(workspace.id).map(|version| (version.serial, version_of(version))).collect();
        for row in self.rows_in_history(org, workspace, HistoricKind::StateVersions).await? {
            let Ok(id) = StateVersionId::from_bytes(row.id) else { continue };
            let Some(status) = stored_status::<StateVersionStatus>(&row.status) else { continue };
            // A catalog does not tell where a state came from. One that was rescued stays in memory until its lock is gone.
            let replaces = counts(status);
            versions.push((row.number, Version { id, at: row.at, has_data: status.has_data(), replaces }));
        }
        versions.sort_by_key(|(serial, version)| (Reverse(version.at), Reverse(*serial)));
        let versions: Vec<_> = versions.into_iter().map(|(_, version)| version).collect();
        let mut due = replaced_before(&versions, cutoff);
        due.retain(|id| {
            workspace.current_state_version != Some(*id)
                && state.state_versions.get(id).is_none_or(|version| state.may_expire(workspace, version))
        });
        Ok(due)
    }

    /// The same for configurations.
    pub(super) async fn expired_configurations(
        &self,
        org: &OrganizationSnapshot,
        workspace: &Workspace,
        cutoff: Timestamp,
    ) -> Result<Vec<ConfigurationVersionId>, Error> {
        let state = &org.state;
        let in_memory = state.configurations_of(workspace.id).map(|version| {
            let has_data = version.status.has_data();
            let at = version.uploaded_at.unwrap_or(version.created_at);
            (version.number, Version { id: version.id, at, has_data, replaces: has_data && !version.speculative })
        });
        let mut versions: Vec<(u64, Version<ConfigurationVersionId>)> = in_memory.collect();
        for row in self.rows_in_history(org, workspace, HistoricKind::ConfigurationVersions).await? {
            let Ok(id) = ConfigurationVersionId::from_bytes(row.id) else { continue };
            let Some(status) = stored_status::<ConfigurationStatus>(&row.status) else { continue };
            let has_data = status.has_data();
            versions.push((row.number, Version { id, at: row.at, has_data, replaces: has_data }));
        }
        versions.sort_by_key(|(number, _)| Reverse(*number));
        let versions: Vec<_> = versions.into_iter().map(|(_, version)| version).collect();
        let mut due = replaced_before(&versions, cutoff);
        due.retain(|id| {
            state.configuration_versions.get(id).is_none_or(|version| state.may_expire_configuration(version))
        });
        Ok(due)
    }

    async fn rows_in_history(
        &self,
        org: &OrganizationSnapshot,
        workspace: &Workspace,
        kind: HistoricKind,
    ) -> Result<Vec<HistoricVersion>, Error> {
        let list = WorkspaceList { workspace: workspace.id, kind, fits: &|_, _| true, searches_texts: false };
        let rows = self.keys_in_history(org, &list).await?;
        let versions = rows.iter().map(|(_, row)| {
            let row = row.row();
            let at = Timestamp::from_nanosecond(row.at.into()).unwrap_or(Timestamp::MAX);
            HistoricVersion { id: row.id, at, number: row.number, status: row.status.to_owned() }
        });
        Ok(versions.collect())
    }
}

/// What a catalog says of a version.
struct HistoricVersion {
    id: [u8; 16],
    at: Timestamp,
    number: u64,
    status: String,
}

fn version_of(version: &StateVersion) -> Version<StateVersionId> {
    let replaces = counts(version.status) && version.origin != StateOrigin::Rescue;
    Version { id: version.id, at: version.created_at, has_data: version.status.has_data(), replaces }
}

/// True for a state that was current once.
fn counts(status: StateVersionStatus) -> bool {
    !matches!(status, StateVersionStatus::Pending | StateVersionStatus::Discarded)
}
