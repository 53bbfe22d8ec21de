//! Output contracts of runs: what a plan that ends breaks for others, and how a caller may see that.

use std::collections::BTreeMap;

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::graph::HIDDEN_UNIT;
use taco_domain::graph::broken_outputs::{OutputFate, fates};
use taco_domain::graph::local_references::LocalReferences;
use taco_domain::graph::output_contract::{ContractLog, OutputContract};
use taco_domain::graph::words::{BreakingChange, OutputUse};
use taco_domain::id::WorkspaceId;
use taco_domain::permission::{Action, Resource};
use taco_domain::phase::PhaseKind;
use taco_domain::phase_attempt::PhaseAttempt;
use taco_domain::run::Run;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::runs::RunView;
use crate::uploaded_plans::Files;

/// Changes of outputs that a plan announces, by name.
pub(crate) type OutputFates = BTreeMap<String, OutputFate>;

/// What a run's plan breaks for others, as a door shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputContractView {
    pub contract: OutputContract,
    pub broken: Vec<BrokenOutputView>,
    /// The changes in sentences.
    pub sentences: Vec<String>,
    /// The person who wanted it applied all the same.
    pub accepted_by: Option<String>,
}

/// An output that a plan removes or retypes, and who uses it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrokenOutputView {
    pub output: String,
    pub change: BreakingChange,
    pub certain: bool,
    pub consumers: Vec<AffectedConsumerView>,
    pub unlisted: u64,
}

/// A workspace that uses an output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AffectedConsumerView {
    /// `None` if the caller may not see it.
    pub id: Option<WorkspaceId>,
    pub name: String,
    pub how: OutputUse,
}

/// What workspaces are called, to a reader; `None` for one that they may not see.
fn names<'a>(state: &'a OrganizationState, reader: Option<&'a Caller>) -> impl Fn(WorkspaceId) -> Option<String> + 'a {
    move |id| {
        let workspace = state.workspaces.get(&id)?;
        let right = reader?.may(Action::ReadWorkspace, Resource::Workspace(state, workspace));
        right.allowed.then(|| workspace.name.to_string())
    }
}

impl RunView {
    /// What its plan breaks for others, as far as the caller may know.
    pub fn output_contract(&self, caller: &Caller) -> Option<OutputContractView> {
        let contract = self.run.output_contract.clone()?;
        let name = names(&self.org.state, Some(caller));
        let broken = contract.broken.iter().map(|broken| BrokenOutputView {
            output: broken.output.clone(),
            change: broken.change,
            certain: broken.is_certain(),
            consumers: broken
                .consumers
                .iter()
                .map(|consumer| {
                    let seen = name(consumer.workspace);
                    AffectedConsumerView {
                        id: seen.is_some().then_some(consumer.workspace),
                        name: seen.unwrap_or_else(|| HIDDEN_UNIT.to_owned()),
                        how: consumer.how,
                    }
                })
                .collect(),
            unlisted: broken.unlisted,
        });
        Some(OutputContractView {
            broken: broken.collect(),
            sentences: contract.sentences(&name),
            accepted_by: contract.accepted.map(|accepted| self.org.name_of(&accepted.by)),
            contract,
        })
    }
}

/// Text at the end of the log of a plan that breaks something for others; empty if it does not.
pub(crate) fn contract_text(state: &OrganizationState, run: &Run, kind: PhaseKind, reader: Option<&Caller>) -> String {
    let Some(contract) = run.output_contract.as_ref().filter(|_| kind == PhaseKind::Plan) else { return String::new() };
    let log = ContractLog {
        run: run.id,
        at: run.plan.ended_at.unwrap_or(run.created_at),
        structured: run.structured_output,
        auto_apply: run.options.auto_apply,
    };
    contract.log_text(&log, &names(state, reader))
}

#[boxed]
impl ControlPlane {
    /// What a plan that ends now does to outputs; empty if it was sent in no form that tells.
    pub(crate) async fn fates_of_outputs(
        &self,
        org: &OrganizationSnapshot,
        attempt: PhaseAttempt,
        files: Option<&Files>,
    ) -> Result<OutputFates, Error> {
        let state = org.last_seen();
        let Some(mut run) = state.runs.get(&attempt.run).cloned() else { return Ok(OutputFates::new()) };
        run.plan.files = files.cloned();
        let evidence = self.plan_evidence_with(org, &run, LocalReferences::default()).await?;
        Ok(evidence.map(|evidence| fates(&evidence.outputs)).unwrap_or_default())
    }
}
