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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::CancelRequest;
    use crate::run::tests::given_run;
    use crate::run_queue::tests::{given_state, locked_by, now};
    use crate::run_status::RunStatus;

    fn lose(run: &Run, kind: PhaseKind) -> (Run, Workspace) {
        let (_, workspace) = given_state(&[]);
        let workspace = locked_by(&workspace, Author::Run(run.id));
        after_loss(run, &workspace, kind, "the agent one was not heard for 30 s", now()).expect("legal")
    }

    #[test]
    fn a_lost_plan_is_tried_once_more() {
        let planning = Run { status: RunStatus::Planning, ..given_run(1) };
        let (again, workspace) = lose(&planning, PhaseKind::Plan);
        assert_eq!((again.status, again.plan.losses), (RunStatus::PlanQueued, 1));
        assert!(workspace.lock.is_some(), "it still holds its workspace");
        let (over, workspace) = lose(&Run { status: RunStatus::Planning, ..again }, PhaseKind::Plan);
        assert_eq!((over.status, over.plan.losses), (RunStatus::Errored, 2));
        assert!(over.plan.error.is_some_and(|error| error.contains("lost 2 times")));
        assert_eq!(workspace.lock, None, "others can go on");
    }

    #[test]
    fn a_lost_plan_that_was_to_stop_has_stopped() {
        let cancel = Some(CancelRequest { at: now(), by: Author::Taco, force: false });
        let planning = Run { status: RunStatus::Planning, cancel, ..given_run(1) };
        let (over, workspace) = lose(&planning, PhaseKind::Plan);
        assert_eq!((over.status, workspace.lock), (RunStatus::Canceled, None));
    }

    #[test]
    fn a_lost_apply_is_never_repeated_and_keeps_its_workspace() {
        let applying = Run { status: RunStatus::Applying, ..given_run(1) };
        let (over, workspace) = lose(&applying, PhaseKind::Apply);
        assert_eq!(over.status, RunStatus::Errored);
        assert!(over.apply.error.is_some_and(|error| error.starts_with("Apply outcome unknown")));
        let lock = workspace.lock.expect("it stays locked");
        assert_eq!(lock.holder, Author::Run(over.id));
        assert!(lock.reason.is_some_and(|reason| reason.contains("not heard for 30 s")));
    }
}
