//! Consequences of a change of a run, in the same transaction: a run that is over releases its workspace, the next one
//! begins, and an apply starts runs in the workspaces that wait for it.

use jiff::Timestamp;
use taco_domain::OrganizationState;
use taco_domain::graph::dependency::Dependency;
use taco_domain::graph::output_commit::OutputCommit;
use taco_domain::id::WorkspaceId;
use taco_domain::new_run::RunsRefused;
use taco_domain::run::Run;
use taco_domain::run_queue::{advance, released};
use taco_domain::run_status::RunStatus;
use taco_domain::workspace::Workspace;
use taco_ledger::Transaction;
use taco_tables::Record as _;

use crate::error::Error;
use crate::find::find;

/// Puts a run as it is now, with all that follows from that.
pub(crate) fn put_run_and_follow_up(
    tx: &mut Transaction<OrganizationState>,
    run: Run,
    now: Timestamp,
) -> Result<Run, Error> {
    let workspace = find::<Workspace, _>(tx.state(), &run.workspace, Workspace::NOUN)?.clone();
    let workspace = if run.status.is_final() { released(&workspace, &run) } else { workspace };
    put_run_and_follow_up_in(tx, run, workspace, now)
}

/// The same, where someone has decided what becomes of the workspace.
pub(crate) fn put_run_and_follow_up_in(
    tx: &mut Transaction<OrganizationState>,
    run: Run,
    workspace: Workspace,
    now: Timestamp,
) -> Result<Run, Error> {
    let id = run.id;
    tx.put(&workspace);
    tx.put(&run);
    if run.status == RunStatus::Applied {
        start_triggered(tx, &run, &workspace, now);
    }
    advance_workspace(tx, run.workspace, now);
    // The run itself may be the one that began.
    find(tx.state(), &id, Run::NOUN).cloned()
}

/// Lets the first run of a workspace begin, if nothing is in its way. To be called after anything that might have
/// cleared it.
pub(crate) fn advance_workspace(tx: &mut Transaction<OrganizationState>, workspace: WorkspaceId, now: Timestamp) {
    let Some(workspace) = tx.state().workspaces.get(&workspace) else { return };
    if let Some((run, workspace)) = advance(tx.state(), workspace, now) {
        tx.put(&run);
        tx.put(&workspace);
    }
}

/// An apply starts a run in each workspace that waits for it and in which someone could start one.
fn start_triggered(tx: &mut Transaction<OrganizationState>, apply: &Run, source: &Workspace, now: Timestamp) {
    let triggers: Vec<_> = tx.state().run_triggers.by().source.get(&source.id).map(|record| record.id).collect();
    for trigger in triggers {
        let state = tx.state();
        let looks = state.run_triggers.get(&trigger).filter(|trigger| trigger.only_when_outputs_changed);
        if looks.is_some_and(|looks| !state.run_changed_outputs_of(source.id, apply.id, looks.workspace)) {
            tracing::debug!(%trigger, after = %apply.id, "no output changed that the workspace uses");
            continue;
        }
        match tx.state().triggered_run(trigger, apply, source, now) {
            Ok(Some(run)) => {
                tx.put(&run);
                advance_workspace(tx, run.workspace, now);
            }
            Ok(None) => {}
            Err(why) => tracing::info!(%trigger, after = %apply.id, %why, "a run trigger starts nothing"),
        }
    }
    if let Some(commit) = tx.state().last_commit_of_run(source.id, apply.id).cloned() {
        let state = tx.state();
        let changed = |edge: &&Dependency| state.run_changed_outputs_of(source.id, apply.id, edge.consumer);
        let edges: Vec<Dependency> = state.followers(source.id, |_| true).filter(changed).cloned().collect();
        start_followers(tx, &edges, &commit, now);
    }
}

/// Starts a run in each workspace that follows outputs by itself.
pub(crate) fn start_followers(
    tx: &mut Transaction<OrganizationState>,
    edges: &[Dependency],
    commit: &OutputCommit,
    now: Timestamp,
) {
    for edge in edges {
        match tx.state().following_run(edge, commit, now) {
            Ok(Some(run)) => {
                tx.put(&run);
                advance_workspace(tx, run.workspace, now);
            }
            Ok(None) => {}
            Err(why) => tracing::info!(edge = %edge.id, after = %commit.id, %why, "changed outputs start nothing"),
        }
    }
}

/// Refusal of a run that someone asked for.
pub(crate) fn runs_refused(why: RunsRefused) -> Error {
    match why {
        RunsRefused::LocalExecution => {
            Error::Invalid { pointer: "/data/relationships/workspace".to_owned(), detail: why.to_string() }
        }
        RunsRefused::TooManyOpen => Error::Conflict(why.to_string()),
    }
}
