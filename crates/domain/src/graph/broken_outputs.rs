//! Rules of output contracts: which policy counts for a workspace, and which of the outputs that a plan removes or retypes are
//! used by whom.

use std::collections::{BTreeMap, BTreeSet};

use taco_words::graph::{BreakingChange, ContractPolicy, OutputUse, WalkKind};

use crate::OrganizationState;
use crate::attribute::as_plain_text;
use crate::graph::dependency::Dependency;
use crate::graph::output_commit::UsedOutputs;
use crate::graph::output_contract::{
    AffectedConsumer, BrokenOutput, DEFAULT_POLICY, MAX_BROKEN_CONSUMERS, MAX_BROKEN_OUTPUTS, MAX_SHOWN_NAME,
    OutputContract,
};
use crate::graph::output_type::is_still_usable;
use crate::graph::plan_evidence::{OutputAction, PlannedOutput};
use crate::id::{ProjectId, WorkspaceId};
use crate::run::Run;
use crate::walks::walk::WalkNodeId;
use crate::workspace::Workspace;

/// What a plan says of an output that is not as before. Whether that breaks anything depends on what it is now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OutputFate {
    Removed,
    /// The type of its new value, in cty's notation.
    Typed(String),
}

/// What a plan does to outputs, without their values. What it leaves alone, and what is known only after the apply, is not
/// among them.
pub fn fates(planned: &BTreeMap<String, PlannedOutput>) -> BTreeMap<String, OutputFate> {
    let fate = |output: &PlannedOutput| match (output.action, &output.detailed_type) {
        (OutputAction::Removed, _) => Some(OutputFate::Removed),
        (OutputAction::Changed | OutputAction::Created, Some(kind)) => Some(OutputFate::Typed(kind.get().to_owned())),
        _ => None,
    };
    planned.iter().filter_map(|(name, output)| Some((name.clone(), fate(output)?))).collect()
}

impl OrganizationState {
    /// Policy of projects and workspaces that have none of their own.
    pub fn default_contract_policy(&self) -> ContractPolicy {
        self.organization().and_then(|organization| organization.output_contract).unwrap_or(DEFAULT_POLICY)
    }

    /// Policy of workspaces in a project that have none of their own.
    pub fn inherited_contract_policy(&self, project: ProjectId) -> ContractPolicy {
        let own = self.projects.get(&project).and_then(|project| project.output_contract);
        own.unwrap_or_else(|| self.default_contract_policy())
    }

    /// Policy for the plans of a workspace: its own, or else its project's, or else the organization's.
    pub fn contract_policy(&self, workspace: &Workspace) -> ContractPolicy {
        workspace.output_contract.unwrap_or_else(|| self.inherited_contract_policy(workspace.project))
    }

    /// True if a plan of the workspace could break something for others.
    pub fn has_output_contract(&self, workspace: &Workspace) -> bool {
        let mut edges = self.dependents_of(workspace.id).filter(|edge| edge.counts());
        self.contract_policy(workspace) != ContractPolicy::Off && edges.next().is_some()
    }

    /// What a run breaks whose plan does this to its outputs; `None` if nothing, or if nobody wants to know.
    pub fn broken_by(&self, run: &Run, planned: &BTreeMap<String, OutputFate>) -> Option<OutputContract> {
        let workspace = self.workspaces.get(&run.workspace)?;
        let policy = self.contract_policy(workspace);
        if policy == ContractPolicy::Off {
            return None;
        }
        let edges: Vec<&Dependency> = self
            .dependents_of(workspace.id)
            .filter(|edge| edge.counts() && !self.has_nothing_to_break(edge.consumer, run))
            .collect();
        contract_of(policy, &self.breaking_changes(run, planned), &edges)
    }

    /// A consumer that was destroyed, or is destroyed in the same walk.
    fn has_nothing_to_break(&self, consumer: WorkspaceId, run: &Run) -> bool {
        let node = self.walk_nodes.by().run.first(&run.id);
        let walk = node.and_then(|node| self.walks.get(&node.walk)).filter(|walk| walk.kind == WalkKind::Destroy);
        if walk.is_some_and(|walk| self.walk_nodes.get(&WalkNodeId::of(walk.id, consumer)).is_some()) {
            return true;
        }
        let current = self.workspaces.get(&consumer).and_then(|consumer| self.current_state_version(consumer));
        current.is_some_and(|state| !state.encrypted && state.resource_count == 0 && !state.has_outputs())
    }

    fn breaking_changes(&self, run: &Run, planned: &BTreeMap<String, OutputFate>) -> BTreeMap<String, BreakingChange> {
        let now = self.workspace_outputs.get(&run.workspace).map(|outputs| &outputs.outputs);
        let breaks = |(name, fate): (&String, &OutputFate)| match fate {
            OutputFate::Removed => Some((name.clone(), BreakingChange::Removed)),
            OutputFate::Typed(after) => {
                let before = now.and_then(|outputs| outputs.get(name))?;
                let is_usable = is_still_usable(&before.committed.detailed_type, after);
                (!is_usable).then(|| (name.clone(), BreakingChange::Retyped))
            }
        };
        let mut changes: BTreeMap<String, BreakingChange> = planned.iter().filter_map(breaks).collect();
        if run.options.is_destroy && run.options.target_addrs.is_empty() {
            let all = now.into_iter().flat_map(BTreeMap::keys);
            changes.extend(all.map(|name| (name.clone(), BreakingChange::Removed)));
        }
        changes
    }
}

/// Changes of outputs, with those who use them; `None` if nobody does.
fn contract_of(
    policy: ContractPolicy,
    changes: &BTreeMap<String, BreakingChange>,
    edges: &[&Dependency],
) -> Option<OutputContract> {
    let mut consumers = BTreeSet::new();
    let (mut stops, mut unlisted) = (false, 0);
    let mut broken = Vec::new();
    for (name, change) in changes {
        let users = edges.iter().filter_map(|edge| {
            let how = use_of(edge, name)?;
            Some(AffectedConsumer { workspace: edge.consumer, how })
        });
        let mut users: Vec<AffectedConsumer> = users.collect();
        if users.is_empty() {
            continue;
        }
        users.sort_by_key(|user| (user.how, user.workspace));
        consumers.extend(users.iter().map(|user| user.workspace));
        // What only looks alike stops nothing.
        stops |= users.iter().any(|user| user.how != OutputUse::ProbablyUses);
        if broken.len() >= MAX_BROKEN_OUTPUTS {
            unlisted += 1;
            continue;
        }
        let more = users.len().saturating_sub(MAX_BROKEN_CONSUMERS) as u64;
        users.truncate(MAX_BROKEN_CONSUMERS);
        let output = as_plain_text(name, MAX_SHOWN_NAME);
        broken.push(BrokenOutput { output, change: *change, consumers: users, unlisted: more });
    }
    (!broken.is_empty()).then(|| OutputContract {
        policy,
        broken,
        unlisted,
        consumers: consumers.len() as u64,
        stops: stops && policy == ContractPolicy::Stop,
        accepted: None,
    })
}

/// How sure it is that an edge's consumer uses an output; `None` if it does not.
fn use_of(edge: &Dependency, output: &str) -> Option<OutputUse> {
    let is_known = edge.has_proof() || edge.declared.is_some();
    match edge.used() {
        _ if !is_known => edge.used().includes(output).then_some(OutputUse::ProbablyUses),
        UsedOutputs::All => Some(OutputUse::MayUse),
        UsedOutputs::Names(names) => names.contains(output).then_some(OutputUse::Uses),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use taco_words::graph::Grade;

    use super::*;
    use crate::author::Author;
    use crate::graph::dependency::{Declaration, Observation, Producer};

    fn unit(number: u8) -> WorkspaceId {
        WorkspaceId::from_random([number; 16])
    }

    fn names(names: &[&str]) -> UsedOutputs {
        UsedOutputs::Names(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn edge(consumer: u8, grade: Grade, used: UsedOutputs) -> Dependency {
        let now = Timestamp::UNIX_EPOCH;
        let mut edge = Dependency::new(unit(consumer), &Producer::Unit(unit(99)), now);
        if grade == Grade::Declared {
            edge.declared = Some(Declaration { used, by: Author::Taco, at: now, place: None });
            return edge;
        }
        let seen = Observation {
            first: now,
            last: now,
            used,
            maybe: BTreeSet::new(),
            data: Vec::new(),
            users: Vec::new(),
            user_count: 0,
            values: BTreeMap::new(),
            tokens: BTreeMap::new(),
            state_version: None,
            run: None,
        };
        edge.observed.insert(grade, seen);
        edge
    }

    fn removed(names: &[&str]) -> BTreeMap<String, BreakingChange> {
        names.iter().map(|name| ((*name).to_owned(), BreakingChange::Removed)).collect()
    }

    #[test]
    fn what_is_known_stops_and_what_only_looks_alike_warns() {
        for (grade, used, expected) in [
            (Grade::Plan, names(&["id"]), Some((OutputUse::Uses, true))),
            (Grade::Log, names(&["id"]), Some((OutputUse::Uses, true))),
            (Grade::State, names(&["id", "zone"]), Some((OutputUse::Uses, true))),
            (Grade::Plan, UsedOutputs::All, Some((OutputUse::MayUse, true))),
            (Grade::Declared, names(&["id"]), Some((OutputUse::Uses, true))),
            (Grade::Declared, UsedOutputs::All, Some((OutputUse::MayUse, true))),
            (Grade::Echo, names(&["id"]), Some((OutputUse::ProbablyUses, false))),
            (Grade::Echo, names(&["zone"]), None),
            (Grade::Plan, names(&["zone"]), None),
        ] {
            let edge = edge(1, grade, used.clone());
            let found = contract_of(ContractPolicy::Stop, &removed(&["id"]), &[&edge]);
            let told = found.as_ref().map(|contract| (contract.broken[0].consumers[0].how, contract.stops));
            assert_eq!(told, expected, "{grade} {used:?}");
            let warned = contract_of(ContractPolicy::Warn, &removed(&["id"]), &[&edge]);
            assert_eq!(warned.map(|contract| contract.stops), expected.map(|_| false), "a warning stops nothing");
        }
    }

    #[test]
    fn what_is_listed_is_bounded_and_what_is_counted_is_not() {
        let edges: Vec<Dependency> = (0..30).map(|number| edge(number, Grade::Plan, UsedOutputs::All)).collect();
        let edges: Vec<&Dependency> = edges.iter().collect();
        let many: Vec<String> = (0..50).map(|number| format!("{number:02}{}", "x".repeat(400))).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let contract = contract_of(ContractPolicy::Stop, &removed(&many), &edges).expect("broken");
        assert_eq!((contract.broken.len(), contract.unlisted, contract.consumers), (20, 30, 30));
        assert_eq!((contract.broken[0].consumers.len(), contract.broken[0].unlisted), (10, 20));
        assert_eq!(contract.broken[0].output.len(), MAX_SHOWN_NAME);
    }
}
