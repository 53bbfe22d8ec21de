//! Consequences of a change of a run, in the same transaction: a run that is over releases its workspace, the next one
//! begins, and an apply starts runs in the workspaces that wait for it.

use jiff::Timestamp;
use taco_domain::configuration_version::ConfigurationVersion;
use taco_domain::execution::ExecutionMode;
use taco_domain::id::{RunId, WorkspaceId};
use taco_domain::run::{Run, RunOptions, RunSource};
use taco_domain::run_queue::{advance, released};
use taco_domain::run_status::RunStatus;
use taco_domain::workspace::Workspace;
use taco_domain::{Author, OrganizationState};
use taco_ledger::Transaction;

use crate::error::Error;
use crate::find::find;

/// So many runs of a workspace can be open at a time.
const MOST_OPEN: usize = 1000;

/// Puts a run as it is now, with all that follows from that.
pub(crate) fn put_run_and_follow_up(
    tx: &mut Transaction<OrganizationState>,
    run: Run,
    now: Timestamp,
) -> Result<Run, Error> {
    let workspace = tx.state().workspaces.get(&run.workspace).cloned().ok_or(Error::NotFound("workspace"))?;
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
    find(tx.state(), &id, "run").cloned()
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

/// A new run, in its place. The caller has checked that it is legal, and puts it with [`put_run_and_follow_up`].
pub(crate) fn new_run(
    state: &OrganizationState,
    id: RunId,
    configuration: &ConfigurationVersion,
    options: RunOptions,
    source: RunSource,
    by: Author,
    now: Timestamp,
) -> Run {
    let workspace = configuration.workspace;
    let beside = options.plan_only || options.save_plan;
    let run = Run {
        id,
        workspace,
        configuration_version: configuration.id,
        number: state.next_run_number(workspace),
        place: (!beside).then(|| state.last_place(workspace)),
        status: RunStatus::Pending,
        options,
        source,
        created_at: now,
        created_by: by,
        confirmed_by: None,
        plan: Default::default(),
        apply: Default::default(),
        has_changes: None,
        generated_configuration: false,
        structured_output: false,
        cancel: None,
        timestamps: Default::default(),
        history: Vec::new(),
        planned_serial: None,
        estimates_costs: state.organization().is_some_and(|organization| organization.cost_estimation_enabled),
    };
    run.created(now)
}

/// An apply starts a run in each workspace that waits for it and in which someone could start one. The ids follow from
/// the apply's, so that a repeated transaction makes the same runs.
fn start_triggered(tx: &mut Transaction<OrganizationState>, run: &Run, source: &Workspace, now: Timestamp) {
    let state = tx.state();
    let triggers: Vec<_> = state.run_triggers.by().source.get(&source.id).map(|record| record.id).collect();
    for id in triggers {
        let state = tx.state();
        let Some(trigger) = state.run_triggers.get(&id) else { continue };
        let Some(workspace) = state.workspaces.get(&trigger.workspace) else { continue };
        let Some(configuration) = state.usable_configuration(workspace.id) else { continue };
        if let Err(why) = check_workspace(state, workspace) {
            tracing::info!(workspace = %workspace.id, after = %run.id, %why, "a run trigger starts nothing");
            continue;
        }
        let options = RunOptions {
            message: format!("Triggered automatically from successful run {} in the workspace {}", run.id, source.name),
            auto_apply: workspace.auto_apply_run_trigger,
            engine: workspace.engine,
            terraform_version: workspace.terraform_version.clone(),
            ..RunOptions::default()
        };
        let new_id = RunId::derived(run.id.organization_prefix(), &format!("{id} {}", run.id));
        if state.runs.contains(&new_id) {
            continue;
        }
        let mut new = new_run(state, new_id, configuration, options, RunSource::RunTrigger, Author::Taco, now);
        new.structured_output = workspace.structured_run_output_enabled;
        let workspace = new.workspace;
        tx.put(&new);
        advance_workspace(tx, workspace, now);
    }
}

/// True if a workspace may have one more open run.
pub(crate) fn has_room(state: &OrganizationState, workspace: WorkspaceId) -> bool {
    state.runs.by().open.get(&workspace).count() < MOST_OPEN
}

/// Checks that runs can start in the workspace at all.
pub(crate) fn check_workspace(state: &OrganizationState, workspace: &Workspace) -> Result<(), Error> {
    if state.execution_of(workspace).mode == ExecutionMode::Local {
        let detail = "The workspace's execution mode is local: plan and apply on the client, or change the mode";
        let pointer = "/data/relationships/workspace".to_owned();
        return Err(Error::Invalid { pointer, detail: detail.to_owned() });
    }
    if !has_room(state, workspace.id) {
        let detail = format!("The workspace has {MOST_OPEN} open runs already: cancel some, or wait for them");
        return Err(Error::Conflict(detail));
    }
    Ok(())
}
