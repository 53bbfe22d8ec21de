//! What becomes of a run whose agent went silent.
//!
//! A plan changes nothing, so another agent may try, once. An apply may have changed anything, so nobody repeats it:
//! the run ends, and its workspace stays locked by it until a person, or the agent when it comes back, resolves it.

use jiff::Timestamp;

use crate::author::Author;
use crate::lock::Lock;
use crate::phase::PhaseKind;
use crate::run::Run;
use crate::run_queue::released;
use crate::run_status::{IllegalTransition, RunEvent};
use crate::workspace::Workspace;

/// A lost plan is given to another agent this often.
const SECOND_CHANCES: u32 = 1;

/// The run and its workspace after the agent that had the phase was given up. `why` is for people.
pub fn after_loss(
    run: &Run,
    workspace: &Workspace,
    kind: PhaseKind,
    why: &str,
    now: Timestamp,
) -> Result<(Run, Workspace), IllegalTransition> {
    let canceled = run.cancel.is_some();
    let event = match kind {
        PhaseKind::Plan if canceled => RunEvent::Canceled,
        PhaseKind::Plan if run.plan.losses < SECOND_CHANCES => RunEvent::PlanLost,
        PhaseKind::Plan | PhaseKind::Apply => RunEvent::Failed,
    };
    let mut after = run.after(event, now, Author::Taco)?;
    let phase = after.phase_mut(kind);
    phase.losses += 1;
    if event == RunEvent::Failed {
        phase.error = Some(match kind {
            PhaseKind::Plan => format!("The plan was lost {} times: {why}", phase.losses),
            PhaseKind::Apply => format!("Apply outcome unknown: {why}"),
        });
    }
    if let Some(entry) = after.history.last_mut() {
        entry.description = Some(why.to_owned());
    }
    let workspace = match (kind, event) {
        (PhaseKind::Apply, _) => kept(workspace, &after, why, now),
        (_, RunEvent::PlanLost) => workspace.clone(),
        _ => released(workspace, &after),
    };
    Ok((after, workspace))
}

/// The workspace, locked by a run whose apply nobody knows the outcome of.
fn kept(workspace: &Workspace, run: &Run, why: &str, now: Timestamp) -> Workspace {
    let since = workspace.lock.as_ref().map_or(now, |lock| lock.since);
    let reason = format!("apply outcome unknown: {why}. Compare the state with what exists, then unlock by force");
    let lock = Lock {
        holder: Author::Run(run.id),
        holder_name: run.id.to_string(),
        since,
        reason: Some(reason),
        from: None,
        http: None,
    };
    Workspace { lock: Some(lock), ..workspace.clone() }
}
