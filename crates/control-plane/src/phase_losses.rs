//! Agents that went silent, and what becomes of their phases.

use taco_domain::phase_loss::after_loss;

use crate::control_plane::{ControlPlane, OpenOrganization};
use crate::error::Error;
use crate::phase_tokens::Attempt;
use crate::phase_uploads::log_id;
use crate::run_flow::settle_in;

impl ControlPlane {
    /// Takes a phase away from an agent that was not heard for too long. One that is over, or that another agent has
    /// by now, is left alone.
    pub async fn lose_phase(&self, open: &OpenOrganization, attempt: Attempt, why: String) -> Result<bool, Error> {
        let now = self.now();
        let log = log_id(attempt.run, attempt.kind);
        let logged = self.shared.logs.end(open.ledger.name(), &log, attempt.epoch).await;
        let logged = logged.map_err(taco_ledger::Error::from)?;
        open.commit(Self::own_intent("phase.lose"), move |tx| {
            let state = tx.state();
            let Some(run) = state.runs.get(&attempt.run).filter(|run| attempt.is_current_in(run)) else {
                return Ok(false);
            };
            let workspace = state.workspaces.get(&run.workspace).ok_or(Error::NotFound("workspace"))?;
            let (mut run, workspace) = after_loss(run, workspace, attempt.kind, &why, now)
                .map_err(|error| Error::Conflict(error.to_string()))?;
            run.phase_mut(attempt.kind).earlier_logs.push(logged);
            settle_in(tx, run, workspace, now)?;
            Ok(true)
        })
        .await
    }
}
