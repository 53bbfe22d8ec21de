//! Progress of walks: any server takes the next steps, in one commit with the runs that follow from them. Taken twice, they
//! change nothing more.

use jiff::Timestamp;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::id::RunId;
use taco_domain::new_run::NewRun;
use taco_domain::run::{Run, RunOptions, RunSource};
use taco_domain::run_queue::confirmed;
use taco_domain::run_status::RunEvent;
use taco_domain::walks::steps::{Advanced, RunCommand, advance};
use taco_domain::walks::walk::{Walk, WalkId, WalkNode};
use taco_domain::walks::words::WalkKind;
use taco_ledger::Transaction;

use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::privileged::Privileged;
use crate::run_flow::put_run_and_follow_up;
use crate::walks::nodes_of;
use crate::walks::walk_units::{WalkUnits, configuration_of};

/// Maximum number of steps in one commit that follow from each other.
const MAX_STEPS_AT_ONCE: usize = 8;

/// Takes steps of walks within transactions.
#[derive(Clone)]
pub(crate) struct WalkStepper {
    plane: ControlPlane,
    key: [u8; 32],
}

impl WalkStepper {
    fn next(&self, state: &OrganizationState, walk: &Walk, now: Timestamp) -> Advanced {
        let nodes: Vec<&WalkNode> = nodes_of(state, walk.id).collect();
        advance(walk, &nodes, &WalkUnits { state, plane: &self.plane, key: self.key, now })
    }

    /// Takes all steps of a walk that can be taken now.
    pub(crate) fn advance(
        &self,
        tx: &mut Transaction<OrganizationState>,
        id: WalkId,
        now: Timestamp,
    ) -> Result<(), Error> {
        for _ in 0..MAX_STEPS_AT_ONCE {
            let Some(walk) = tx.state().walks.get(&id).cloned() else { return Ok(()) };
            let advanced = self.next(tx.state(), &walk, now);
            if advanced.is_empty() {
                return Ok(());
            }
            advanced.nodes.iter().for_each(|node| tx.put(node));
            if let Some(walk) = &advanced.walk {
                tx.put(walk);
            }
            for command in advanced.commands {
                execute(tx, &walk, &command, now)?;
            }
        }
        Ok(())
    }
}

fn execute(
    tx: &mut Transaction<OrganizationState>,
    walk: &Walk,
    command: &RunCommand,
    now: Timestamp,
) -> Result<(), Error> {
    let state = tx.state();
    let known = |run: &RunId| state.runs.get(run);
    let changed = match command {
        RunCommand::Start { run, workspace, preview } => {
            let node = nodes_of(state, walk.id).find(|node| node.workspace == *workspace);
            Ok(node.filter(|_| known(run).is_none()).and_then(|node| new_run(state, walk, node, *run, preview, now)))
        }
        RunCommand::Confirm { run, by } => known(run).map(|run| confirmed(state, run, *by, now)).transpose(),
        RunCommand::Discard { run, by } => known(run).map(|run| run.after(RunEvent::Discarded, now, *by)).transpose(),
        RunCommand::Cancel { run, by } => known(run).map(|run| run.canceled(*by, now)).transpose(),
    };
    match changed {
        Ok(Some(run)) => put_run_and_follow_up(tx, run, now).map(|_| ()),
        Ok(None) => Ok(()),
        // Somebody was quicker; the next step sees what came of it.
        Err(refused) => {
            tracing::debug!(walk = %walk.id, ?command, %refused, "a step of a walk came too late");
            Ok(())
        }
    }
}

/// The run of a node.
fn new_run(
    state: &OrganizationState,
    walk: &Walk,
    node: &WalkNode,
    id: RunId,
    preview: &Option<String>,
    now: Timestamp,
) -> Option<Run> {
    let workspace = state.workspaces.get(&node.workspace)?;
    let configuration = configuration_of(state, node)?;
    let options = RunOptions {
        message: match preview {
            Some(preview) => format!("Walk {}, preview: {preview}", walk.id),
            None => format!("Walk {}", walk.id),
        },
        plan_only: walk.kind == WalkKind::Plan || configuration.speculative,
        // The walk confirms it, after it has looked whether its plan is still right.
        auto_apply: false,
        is_destroy: walk.kind == WalkKind::Destroy,
        engine: workspace.engine,
        terraform_version: workspace.terraform_version.clone(),
        ..RunOptions::default()
    };
    let new = NewRun {
        id,
        configuration,
        options,
        source: RunSource::Api,
        structured_output: workspace.structured_run_output_enabled,
        by: walk.carrier(),
        now,
    };
    Some(Run { preview: preview.clone(), ..new.into_run(state) })
}

#[boxed]
impl ControlPlane {
    pub(crate) fn walk_stepper(&self, org: &OrganizationSnapshot) -> WalkStepper {
        WalkStepper { plane: self.clone(), key: self.output_key(org) }
    }
}

/// Verbs without permission checks, for the server itself.
#[boxed]
impl Privileged {
    /// Takes the next steps of an organization's walks. Where there is nothing to do the bucket is asked for nothing.
    pub async fn advance_walks(&self, org: &OrganizationSnapshot) -> Result<(), Error> {
        let mut org = org.clone();
        org.state = org.last_seen();
        if org.state.walks.by().open.iter().next().is_none() {
            return Ok(());
        }
        // What ended a moment ago tells what units hold now.
        let org = self.control_plane().with_evidence(org).await?;
        let (state, stepper) = (org.last_seen(), self.walk_stepper(&org));
        let open: Vec<Walk> = state.walks.by().open.iter().cloned().collect();
        for walk in open {
            self.read_announced(&org, &walk).await?;
            let (state, now) = (org.last_seen(), self.now());
            if stepper.next(&state, &walk, now).is_empty() {
                continue;
            }
            let stepper = stepper.clone();
            let (intent, id) = (ControlPlane::own_intent("walk.advance"), walk.id);
            org.commit(intent, move |tx| stepper.advance(tx, id, now)).await?;
            // A plan that has ended just now may let others begin.
            if self.read_announced(&org, &walk).await? {
                let (stepper, intent) = (self.walk_stepper(&org), ControlPlane::own_intent("walk.advance"));
                org.commit(intent, move |tx| stepper.advance(tx, id, now)).await?;
            }
        }
        Ok(())
    }
}
