//! What a run leads to: the state that it wrote, and the runs before and after it.

use taco_boxed::boxed;
use taco_domain::id::RunId;
use taco_domain::state_version::{StateVersion, StateVersionStatus};

use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::history::{HistoricKind, WorkspaceList};
use crate::runs::RunView;

/// The runs of the same workspace on either side of one.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RunNeighbours {
    pub earlier: Option<RunId>,
    pub later: Option<RunId>,
}

impl RunView {
    /// The last state that it wrote.
    pub fn written_state(&self) -> Option<&StateVersion> {
        let of_run = self.org.state.state_versions.by().run.get(&self.run.id);
        let has_arrived = |version: &&StateVersion| {
            !matches!(version.status, StateVersionStatus::Pending | StateVersionStatus::Discarded)
        };
        of_run.filter(has_arrived).max_by_key(|version| (version.serial, version.created_at))
    }
}

#[boxed]
impl ControlPlane {
    /// The runs before and after one. Catalogs of history are read only where memory does not have them.
    pub async fn run_neighbours(&self, view: &RunView) -> Result<RunNeighbours, Error> {
        let (state, own) = (&view.org.state, view.run.number);
        let mut found = RunNeighbours::default();
        for run in state.runs_of(view.run.workspace) {
            found.earlier = found.earlier.or((run.number + 1 == own).then_some(run.id));
            found.later = found.later.or((run.number == own + 1).then_some(run.id));
        }
        let has_newer = state.next_run_number(view.run.workspace) > own + 1;
        if (own <= 1 || found.earlier.is_some()) && (!has_newer || found.later.is_some()) {
            return Ok(found);
        }
        let list = WorkspaceList {
            workspace: view.run.workspace,
            kind: HistoricKind::Runs,
            fits: &|row, _| row.number + 1 == own || row.number == own + 1,
            searches_texts: false,
        };
        for (key, _) in self.keys_in_history(&view.org, &list).await? {
            let Ok(id) = RunId::from_bytes(key.id) else { continue };
            let is_earlier = u64::try_from(key.order).is_ok_and(|number| number < own);
            let place = if is_earlier { &mut found.earlier } else { &mut found.later };
            *place = place.or(Some(id));
        }
        Ok(found)
    }
}
