//! Facts about units, as steps of walks need them, from the state that a transaction sees.

use jiff::Timestamp;
use taco_domain::OrganizationState;
use taco_domain::configuration_version::ConfigurationVersion;
use taco_domain::graph::dependency::Dependency;
use taco_domain::graph::own_inputs::own_inputs;
use taco_domain::id::{RunId, WorkspaceId};
use taco_domain::run::Run;
use taco_domain::walks::facts::{UnitFacts, UseFacts, WalkFacts, difference, moved_since, own_change};
use taco_domain::walks::walk::{SeenCommit, SeenCommits, WalkNode, WalkNodeId, seen_commit};
use taco_domain::walks::words::{OutputChange, WalkKind};
use taco_domain::workspace::Workspace;

use crate::bound_values::{bound_variables_without_values, unplannable, with_bound};
use crate::control_plane::ControlPlane;

/// An organization at one moment, for the steps of its walks.
pub(crate) struct WalkUnits<'a> {
    pub(crate) state: &'a OrganizationState,
    pub(crate) plane: &'a ControlPlane,
    /// The key of the organization's digests.
    pub(crate) key: [u8; 32],
    pub(crate) now: Timestamp,
}

/// The configuration that a run of a node uses.
pub(crate) fn configuration_of<'a>(state: &'a OrganizationState, node: &WalkNode) -> Option<&'a ConfigurationVersion> {
    match node.configuration_version {
        Some(id) => state.configuration_versions.get(&id).filter(|version| version.is_usable()),
        None => state.usable_configuration(node.workspace),
    }
}

impl WalkUnits<'_> {
    /// Name of the producer, or its address if it leads to no unit here.
    fn producer_name(&self, dependency: &Dependency) -> String {
        let unit = dependency.producer.and_then(|id| self.state.workspaces.get(&id));
        match (unit, &dependency.address) {
            (Some(unit), _) => unit.name.to_string(),
            (None, Some(address)) => address.clone(),
            (None, None) => "a workspace that is gone".to_owned(),
        }
    }

    fn counting(&self, unit: WorkspaceId) -> impl Iterator<Item = &Dependency> {
        self.state.dependencies_of(unit).filter(|edge| edge.counts())
    }

    fn refusal(
        &self,
        node: &WalkNode,
        workspace: &Workspace,
        configuration: Option<&ConfigurationVersion>,
    ) -> Option<String> {
        if let Err(refused) = self.state.check_runs_start(workspace) {
            return Some(refused.to_string());
        }
        if configuration.is_none() {
            return Some("The workspace has no configuration that a run could use: upload one".to_owned());
        }
        unplannable(self.state, workspace, |producer, output| self.is_announced(node, producer, output))
    }

    /// True if a plan of the walk, which only plans, tells the value that an output would have.
    fn is_announced(&self, node: &WalkNode, producer: WorkspaceId, output: &str) -> bool {
        let state = self.state;
        let only_plans = state.walks.get(&node.walk).is_some_and(|walk| walk.kind == WalkKind::Plan);
        let producer = state.walk_nodes.get(&WalkNodeId::of(node.walk, producer)).filter(|_| only_plans);
        let planned = producer.and_then(|producer| producer.planned_outputs.as_ref()?.get(output));
        planned.is_some_and(|planned| !planned.unknown && planned.change != OutputChange::Removed)
    }

    fn own_change(&self, workspace: &Workspace, configuration: Option<&ConfigurationVersion>) -> Option<String> {
        let effective = self.state.consumptions.get(&workspace.id).and_then(|examined| examined.effective.as_ref());
        let Some(effective) = effective else {
            return Some(match workspace.current_state_version {
                None => "it was never applied".to_owned(),
                Some(_) => "nothing tells when it was last applied as a whole".to_owned(),
            });
        };
        let Some(configuration) = configuration else { return Some("it has no configuration".to_owned()) };
        let variables = match self.plane.job_variables(self.state, workspace, &[]) {
            Ok(variables) => with_bound(variables, bound_variables_without_values(self.state, workspace)),
            Err(error) => return Some(format!("its variables cannot be read: {error}")),
        };
        let engine = (workspace.engine, workspace.terraform_version.as_str());
        match own_inputs(&self.key, workspace, configuration, &variables, engine) {
            Some(now) => own_change(&now, effective.own.as_ref()),
            None => Some("nothing tells whether its configuration changed".to_owned()),
        }
    }
}

impl WalkFacts for WalkUnits<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn unit(&self, node: &WalkNode) -> Option<UnitFacts> {
        let state = self.state;
        let workspace = state.workspaces.get(&node.workspace)?;
        let configuration = configuration_of(state, node);
        let uses = self.counting(workspace.id).map(|edge| {
            let producer_name = self.producer_name(edge);
            UseFacts {
                producer: edge.producer,
                used: edge.used(),
                difference: difference(&state.edge_state(edge), &producer_name),
                producer_name,
            }
        });
        let outputs = |edge: &Dependency| {
            let producer = edge.producer?;
            Some(SeenCommit { producer, number: state.workspace_outputs.get(&producer)?.number })
        };
        let current = state.current_state_version(workspace);
        Some(UnitFacts {
            is_examined: current.is_none() || state.is_examined(workspace),
            refusal: self.refusal(node, workspace, configuration),
            own_change: self.own_change(workspace, configuration),
            uses: uses.collect(),
            has_something: current
                .is_some_and(|current| current.encrypted || current.resource_count > 0 || current.has_outputs()),
            sees: self.counting(workspace.id).filter_map(outputs).collect(),
        })
    }

    fn moved_since(&self, unit: WorkspaceId, saw: &SeenCommits) -> Option<String> {
        self.counting(unit).find_map(|edge| {
            let producer = edge.producer?;
            let saw = seen_commit(saw, producer);
            // What values suggest since the plan was made is no reason to make it again.
            if saw.is_none() && !edge.is_told() {
                return None;
            }
            let outputs = self.state.workspace_outputs.get(&producer);
            moved_since(edge, &self.producer_name(edge), saw, outputs)
        })
    }

    fn run(&self, run: RunId) -> Option<&Run> {
        self.state.runs.get(&run)
    }
}
