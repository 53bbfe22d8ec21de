//! A state as a request describes it before its bytes are read.

use serde::Deserialize;
use taco_domain::OrganizationState;
use taco_domain::id::{RunId, WorkspaceId};
use taco_domain::state_rules::StateDescription;

use crate::error::Error;

/// Attributes of a state that a request uploads or announces.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct NewState {
    pub serial: Option<u64>,
    pub md5: Option<String>,
    pub lineage: Option<String>,
    pub force: Option<bool>,
    #[serde(skip)]
    pub run: Option<RunId>,
}

impl NewState {
    pub(crate) fn description(&self) -> StateDescription<'_> {
        let lineage = self.lineage.as_deref().filter(|lineage| !lineage.is_empty());
        StateDescription { serial: self.serial, lineage, md5: self.md5.as_deref() }
    }
}

/// A state that a run wrote names a run of its own workspace.
pub(crate) fn check_run(state: &OrganizationState, workspace: WorkspaceId, run: Option<RunId>) -> Result<(), Error> {
    match run {
        Some(id) if state.runs.get(&id).is_none_or(|run| run.workspace != workspace) => Err(Error::Invalid {
            pointer: "/data/relationships/run".to_owned(),
            detail: format!("The run {id} does not exist in this workspace"),
        }),
        _ => Ok(()),
    }
}
