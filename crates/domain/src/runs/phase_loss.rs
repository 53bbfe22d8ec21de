//! Recovery of a run whose agent went silent, or whose engine was killed.
//!
//! A plan changes nothing, so it is retried on another agent, once. An apply may have changed anything, so it is never
//! retried: the run ends, and its workspace stays locked by it until a person, or the agent when it comes back,
//! resolves it. An agent resolves it by reporting that it has applied everything: its state came first. After any other
//! end a person has to look at what exists. The same holds for an apply whose agent is there and reports that the
//! engine did not end by itself: what it had created and not yet written is in no state.

use jiff::Timestamp;

use crate::attribute::as_plain_text;
use crate::author::Author;
use crate::lock::Lock;
use crate::phase::{PhaseKind, ResourceCounts};
use crate::run::Run;
use crate::run_queue::released;
use crate::run_status::{IllegalTransition, RunEvent};
use crate::workspace::Workspace;

/// A lost plan is given to another agent this often.
const SECOND_CHANCES: u32 = 1;
/// Maximum length of an error, in characters, in the reason of a lock. The run has all of it.
const LONGEST_REASON: usize = 300;

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

/// The run and its workspace after the agent that planned it has left and said so. That is no failure, so it is not
/// counted, and the plan waits for an agent again. `why` is for people.
pub fn after_return(
    run: &Run,
    workspace: &Workspace,
    why: &str,
    now: Timestamp,
) -> Result<(Run, Workspace), IllegalTransition> {
    let event = if run.cancel.is_some() { RunEvent::Canceled } else { RunEvent::PlanLost };
    let mut after = run.after(event, now, Author::Taco)?;
    if let Some(entry) = after.history.last_mut() {
        entry.description = Some(why.to_owned());
    }
    let workspace = match event {
        RunEvent::PlanLost => workspace.clone(),
        _ => released(workspace, &after),
    };
    Ok((after, workspace))
}

/// The run and its workspace after an apply whose engine did not end by itself. No matter who killed it, the operating
/// system or somebody who force-canceled the run: the next run must not begin with a state that may lack something.
/// `why` is for people.
pub fn after_incomplete_apply(
    run: &Run,
    workspace: &Workspace,
    canceled: bool,
    why: &str,
    now: Timestamp,
) -> Result<(Run, Workspace), IllegalTransition> {
    let mut after = match canceled {
        true => run.after(RunEvent::Canceled, now, run.cancel.as_ref().map_or(Author::Taco, |asked| asked.by))?,
        false => run.after(RunEvent::Failed, now, Author::Taco)?,
    };
    after.apply.error = Some(format!("Apply outcome unknown: {why}"));
    if let Some(entry) = after.history.last_mut() {
        entry.description = Some(why.to_owned());
    }
    let workspace = kept(workspace, &after, why, now);
    Ok((after, workspace))
}

/// The workspace, locked by a run whose apply has an unknown outcome. A lock that is another's by now stays theirs.
fn kept(workspace: &Workspace, run: &Run, why: &str, now: Timestamp) -> Workspace {
    if workspace.lock.as_ref().is_some_and(|lock| lock.holder != Author::Run(run.id)) {
        return workspace.clone();
    }
    let since = workspace.lock.as_ref().map_or(now, |lock| lock.since);
    let why = as_plain_text(why, LONGEST_REASON);
    let reason = format!(
        "apply outcome unknown: {why}. Compare the state with the real resources, then force-unlock the workspace"
    );
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

/// Outcome of a lost apply, as its agent reports it when it comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LateOutcome<'a> {
    Applied(ResourceCounts),
    Errored(&'a str),
    Canceled,
}

/// The run and its workspace after the agent of a lost apply has come back and told how it ended. What is final stays
/// so: the run is still errored, and says what is known now.
pub fn after_late_outcome(
    run: &Run,
    workspace: &Workspace,
    outcome: LateOutcome<'_>,
    now: Timestamp,
) -> (Run, Workspace) {
    let mut after = run.clone();
    let agent = run.apply.executor.as_ref().map_or("the agent", |executor| executor.agent_name.as_str());
    let (words, workspace) = match outcome {
        LateOutcome::Applied(counts) => {
            after.apply.counts = counts;
            (format!("{agent} came back: it applied everything"), released(workspace, run))
        }
        LateOutcome::Errored(message) => (format!("{agent} came back: {message}"), workspace.clone()),
        LateOutcome::Canceled => (format!("{agent} came back: it stopped the apply"), workspace.clone()),
    };
    // The agent has sent its whole log by now, and readers get all of it.
    let lost = usize::try_from(run.apply.epoch).unwrap_or(usize::MAX).saturating_sub(1);
    after.apply.earlier_logs.truncate(lost);
    after.note("agent_returned", Author::Taco, now);
    if let Some(entry) = after.history.last_mut() {
        entry.description = Some(words.clone());
    }
    after.apply.late_outcome = Some(words);
    (after, workspace)
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
    fn a_plan_whose_agent_left_waits_again_and_keeps_its_second_chance() {
        let (_, workspace) = given_state(&[]);
        let planning = Run { status: RunStatus::Planning, ..given_run(1) };
        let workspace = locked_by(&workspace, Author::Run(planning.id));
        let (again, workspace) = after_return(&planning, &workspace, "the agent one left", now()).expect("legal");
        assert_eq!((again.status, again.plan.losses), (RunStatus::PlanQueued, 0));
        assert!(workspace.lock.is_some(), "it still holds its workspace");
        let cancel = Some(CancelRequest { at: now(), by: Author::Taco, force: false });
        let canceled = Run { cancel, ..planning };
        let (over, workspace) = after_return(&canceled, &workspace, "the agent one left", now()).expect("legal");
        assert_eq!((over.status, workspace.lock), (RunStatus::Canceled, None));
        let applying = Run { status: RunStatus::Applying, ..given_run(1) };
        after_return(&applying, &given_state(&[]).1, "", now()).expect_err("nobody knows what it did");
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

    #[test]
    fn an_apply_whose_engine_was_killed_keeps_its_workspace_whoever_killed_it() {
        let (_, workspace) = given_state(&[]);
        let applying = Run { status: RunStatus::Applying, ..given_run(1) };
        let locked = locked_by(&workspace, Author::Run(applying.id));
        for (canceled, status) in [(false, RunStatus::Errored), (true, RunStatus::Canceled)] {
            let why = "terraform was killed by signal 9";
            let (over, after) = after_incomplete_apply(&applying, &locked, canceled, why, now()).expect("legal");
            assert_eq!(over.status, status);
            assert!(over.apply.error.is_some_and(|error| error == format!("Apply outcome unknown: {why}")));
            assert!(over.history.last().is_some_and(|entry| entry.description.as_deref() == Some(why)));
            let lock = after.lock.expect("it stays locked");
            assert_eq!((lock.holder, lock.since), (Author::Run(over.id), locked.lock.as_ref().expect("a lock").since));
            assert!(lock.reason.is_some_and(|reason| reason.contains(why) && reason.contains("force-unlock")));
        }
        let long = "x".repeat(5_000);
        let (_, after) = after_incomplete_apply(&applying, &workspace, false, &long, now()).expect("legal");
        let reason = after.lock.and_then(|lock| lock.reason).expect("also one that somebody had unlocked");
        assert!(reason.len() < 512, "everybody who meets the lock reads it: {reason}");
        let someone = locked_by(&workspace, Author::Taco);
        let (_, after) = after_incomplete_apply(&applying, &someone, false, "", now()).expect("legal");
        assert_eq!(after.lock, someone.lock, "another's lock is another's");
    }

    #[test]
    fn an_agent_that_comes_back_resolves_what_it_applied_wholly_and_nothing_else() {
        let applying = Run { status: RunStatus::Applying, ..given_run(1) };
        let (mut lost, workspace) = lose(&applying, PhaseKind::Apply);
        (lost.apply.epoch, lost.apply.earlier_logs) = (1, vec![7]);
        let counts = ResourceCounts { additions: 2, ..ResourceCounts::default() };
        for (outcome, words, is_free) in [
            (LateOutcome::Applied(counts), "came back: it applied everything", true),
            (LateOutcome::Errored("the engine failed"), "came back: the engine failed", false),
            (LateOutcome::Canceled, "came back: it stopped the apply", false),
        ] {
            let (run, after) = after_late_outcome(&lost, &workspace, outcome, now());
            assert_eq!((run.status, &run.apply.error), (RunStatus::Errored, &lost.apply.error), "what is final stays");
            assert!(run.apply.late_outcome.as_ref().is_some_and(|said| said.ends_with(words)), "{run:?}");
            assert_eq!(run.history.last().map(|entry| entry.action.as_str()), Some("agent_returned"));
            assert!(run.apply.earlier_logs.is_empty() && !run.apply.is_lost_for_good(), "its log is whole");
            assert_eq!(after.lock.is_none(), is_free, "{outcome:?}");
        }
        let someone = locked_by(&workspace, Author::Taco);
        let (_, after) = after_late_outcome(&lost, &someone, LateOutcome::Applied(counts), now());
        assert_eq!(after.lock, someone.lock, "another's lock is another's");
    }
}
