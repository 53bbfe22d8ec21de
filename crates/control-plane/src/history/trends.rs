//! Statistics over runs in history. They come from catalogs alone: bundles are for single records.

use taco_domain::id::{RunId, WorkspaceId};
use taco_domain::run_activity::RunActivity;
use taco_domain::run_outcome::RunOutcome;
use taco_history::{Catalog, Row, RowId};

use super::parts::PartName;
use super::rows::{Masked, nanoseconds};
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;

const NANOSECONDS: i64 = 1_000_000_000;

/// A run in history, as its catalog has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistoricRun {
    pub(crate) id: RunId,
    pub(crate) number: u64,
    pub(crate) outcome: RunOutcome,
    pub(crate) created_at: jiff::Timestamp,
}

impl HistoricRun {
    fn of(row: &Row<'_>) -> Option<Self> {
        Some(Self {
            id: RunId::from_bytes(row.id).ok()?,
            number: row.number,
            outcome: RunOutcome::of_word(row.status),
            created_at: jiff::Timestamp::from_nanosecond(row.at.into()).ok()?,
        })
    }
}

#[taco_boxed::boxed]
impl ControlPlane {
    /// Counts the runs in history that began since the first day. `sees` tells whether the runs of a workspace count.
    pub(crate) async fn add_historic_runs(
        &self,
        org: &OrganizationSnapshot,
        activity: &mut RunActivity,
        sees: &(dyn Fn(WorkspaceId) -> bool + Send + Sync),
    ) -> Result<(), Error> {
        let state = &org.state;
        let begins = nanoseconds(activity.begins());
        let is_old = |newest: jiff::Timestamp| nanoseconds(newest) < begins;
        if state.history_segments.iter().all(|segment| segment.runs() == 0 || segment.newest_run.is_some_and(is_old)) {
            return Ok(());
        }
        let masked = Masked::of(state);
        for catalog in self.history_of(org).catalogs(state, PartName::Runs).await? {
            let recent = catalog.times().partition_point(|at| *at >= begins);
            let is_masked = masked.concerns(&catalog);
            let seen = owners_seen(&catalog, recent, sees);
            for row in (0..recent).map(|index| catalog.row(index)) {
                let counts = seen.binary_search(&row.owner).is_ok() && !(is_masked && masked.is_row(&catalog, &row));
                if counts {
                    activity.add_second(row.at.div_euclid(NANOSECONDS), RunOutcome::of_word(row.status));
                }
            }
        }
        Ok(())
    }

    /// The newest runs of a workspace in history, newest first.
    pub(crate) async fn newest_historic_runs(
        &self,
        org: &OrganizationSnapshot,
        workspace: WorkspaceId,
        most: usize,
    ) -> Result<Vec<HistoricRun>, Error> {
        let state = &org.state;
        if most == 0 || !state.workspace_histories.contains(&workspace) {
            return Ok(Vec::new());
        }
        let masked = Masked::of(state);
        let mut runs = Vec::new();
        for catalog in self.history_of(org).catalogs(state, PartName::Runs).await? {
            let rows = catalog.of_owner(&workspace.to_bytes()).into_iter().map(|index| catalog.row(index as usize));
            // A catalog's rows are newest first.
            let rows = rows.filter(|row| !masked.is_row(&catalog, row)).take(most);
            runs.extend(rows.filter_map(|row| HistoricRun::of(&row)));
        }
        runs.sort_by_key(|run| std::cmp::Reverse(run.number));
        runs.truncate(most);
        Ok(runs)
    }
}

/// The owners of the newest rows whose runs count, sorted. Each is asked about once.
fn owners_seen(catalog: &Catalog, recent: usize, sees: &(dyn Fn(WorkspaceId) -> bool + Send + Sync)) -> Vec<RowId> {
    let is_seen = |owner: &&RowId| WorkspaceId::from_bytes(**owner).is_ok_and(sees);
    if recent == 0 { Vec::new() } else { catalog.owners().iter().filter(is_seen).copied().collect() }
}
