//! The graph as a caller may see it: units and edges, with what each is called there.

use std::collections::BTreeMap;

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::graph::dependency::Dependency;
use taco_domain::graph::output_commit::UsedOutputs;
use taco_domain::graph::status::EdgeState;
use taco_domain::id::WorkspaceId;
use taco_domain::name::TagKey;
use taco_domain::permission::{Action, Resource};
use taco_domain::workspace::Workspace;
use taco_graph_picture::{Edge, Graph, Unit};

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::graph::why::short_reason;

pub use taco_domain::graph::HIDDEN_UNIT;

#[boxed]
impl ControlPlane {
    /// The units that the caller may see, by name, and the edges that end at one of them.
    pub async fn graph(&self, caller: &Caller, organization: &str) -> Result<(OrganizationSnapshot, Graph), Error> {
        let org = self.organization_named(caller, organization).await?;
        caller.require(Action::ReadOrganization, org.resource(), "organization")?;
        let org = self.with_evidence(org).await?;
        let graph = Eyes { state: &org.state, caller }.graph();
        Ok((org, graph))
    }
}

/// An organization's graph through the eyes of a caller.
#[derive(Clone, Copy)]
pub(crate) struct Eyes<'a> {
    pub(crate) state: &'a OrganizationState,
    pub(crate) caller: &'a Caller,
}

impl<'a> Eyes<'a> {
    /// The workspace, if the caller may see it.
    pub(crate) fn unit(&self, id: WorkspaceId) -> Option<&'a Workspace> {
        let workspace = self.state.workspaces.get(&id)?;
        self.may(Action::ReadWorkspace, workspace).then_some(workspace)
    }

    pub(crate) fn may(&self, action: Action, workspace: &Workspace) -> bool {
        self.caller.may(action, Resource::Workspace(self.state, workspace)).allowed
    }

    /// What a unit is called, to the caller.
    pub(crate) fn name(&self, id: WorkspaceId) -> String {
        self.unit(id).map_or_else(|| HIDDEN_UNIT.to_owned(), |workspace| workspace.name.to_string())
    }

    /// What an edge's producer is called, to the caller: its name, or the address of one that is none here.
    pub(crate) fn producer(&self, edge: &Dependency) -> String {
        match (edge.producer, &edge.address) {
            (Some(id), _) => self.name(id),
            (None, Some(address)) => address.clone(),
            (None, None) => "a workspace that was deleted".to_owned(),
        }
    }

    /// True if the caller may know which outputs go over an edge.
    pub(crate) fn sees_outputs(&self, edge: &Dependency) -> bool {
        edge.producer.is_none_or(|id| self.unit(id).is_some())
    }

    fn graph(&self) -> Graph {
        let mut units = Vec::new();
        let mut edges = Vec::new();
        let projects: BTreeMap<_, _> =
            self.state.projects.iter().map(|project| (project.id, project.name.to_string())).collect();
        for workspace in self.state.workspaces_by_name() {
            let is_seen = self.may(Action::ReadWorkspace, workspace);
            if is_seen {
                let status = self.state.unit_status(workspace);
                let tag = |(key, value): (&TagKey, &String)| match value.as_str() {
                    "" => key.to_string(),
                    value => format!("{key}:{value}"),
                };
                units.push(Unit {
                    project: projects.get(&workspace.project).cloned().unwrap_or_default(),
                    activity: status.activity,
                    health: status.health,
                    id: workspace.id.to_string(),
                    tags: workspace.tags.iter().map(tag).collect(),
                    why: short_reason(self, workspace, status.freshness),
                    ..Unit::new(workspace.name.as_str(), status.freshness)
                });
            }
            for edge in self.state.dependencies_of(workspace.id) {
                let sees_producer = edge.producer.is_some_and(|id| self.unit(id).is_some());
                if is_seen || sees_producer {
                    edges.push(self.edge(edge, &self.state.edge_state(edge)));
                }
            }
        }
        Graph { units, edges }
    }

    /// An edge as it stands in the document.
    pub(crate) fn edge(&self, edge: &Dependency, state: &EdgeState) -> Edge {
        let grades = edge.grades();
        let sees_consumer = self.unit(edge.consumer).is_some();
        let sees_both = sees_consumer && edge.producer.is_some_and(|id| self.unit(id).is_some());
        let best = edge.observed.values().next().filter(|_| sees_consumer);
        Edge {
            outputs: if self.sees_outputs(edge) { self.used_outputs(edge) } else { Vec::new() },
            certain: state.certain,
            confirmed: grades.len() > 1,
            since: Some(edge.since().to_string()),
            users: best.map(|seen| seen.users.clone()).unwrap_or_default(),
            muted: edge.muted.is_some(),
            policy: Some(edge.policy),
            proposes_trigger: sees_both && self.state.proposes_trigger(edge),
            id: edge.id.to_string(),
            grades,
            ..Edge::new(self.name(edge.consumer), self.producer(edge), state.status)
        }
    }

    /// Names of the outputs that go over an edge. Where nothing tells which, it may be any.
    pub(crate) fn used_outputs(&self, edge: &Dependency) -> Vec<String> {
        match edge.used() {
            UsedOutputs::Names(names) => names.into_iter().collect(),
            UsedOutputs::All => {
                let outputs = edge.producer.and_then(|id| self.state.workspace_outputs.get(&id));
                let seen = edge.observed.values().flat_map(|seen| seen.values.keys().cloned());
                let mut names: Vec<String> =
                    seen.chain(outputs.into_iter().flat_map(|outputs| outputs.outputs.keys().cloned())).collect();
                names.sort_unstable();
                names.dedup();
                names
            }
        }
    }
}
