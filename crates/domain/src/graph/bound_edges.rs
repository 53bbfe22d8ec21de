//! Edges of bound variables: a binding says which output its consumer uses, so no evidence has to be looked for. What a run
//! was given for it is what the unit consumed.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use taco_words::graph::Grade;

use crate::OrganizationState;
use crate::graph::dependency::{Dependency, DependencyId, MAX_LISTED_USERS, Observation, Producer};
use crate::graph::output_commit::UsedOutputs;
use crate::id::WorkspaceId;

impl OrganizationState {
    /// The unit's dependencies after its bindings changed: what to put, and what to delete.
    pub fn rebound(&self, workspace: WorkspaceId) -> (Vec<Dependency>, Vec<DependencyId>) {
        let before: BTreeMap<DependencyId, Dependency> =
            self.dependencies_of(workspace).map(|edge| (edge.id, edge.clone())).collect();
        let mut edges = before.clone();
        observe_bindings(self, workspace, &mut edges);
        let (forgotten, kept): (Vec<Dependency>, Vec<Dependency>) =
            edges.into_values().partition(Dependency::is_forgotten);
        let put = kept.into_iter().filter(|edge| before.get(&edge.id) != Some(edge)).collect();
        (put, forgotten.into_iter().map(|edge| edge.id).filter(|id| before.contains_key(id)).collect())
    }
}

/// Makes the observations of bindings what the bindings say now.
pub(crate) fn observe_bindings(
    state: &OrganizationState,
    workspace: WorkspaceId,
    edges: &mut BTreeMap<DependencyId, Dependency>,
) {
    let mut observed: BTreeMap<WorkspaceId, Observation> = BTreeMap::new();
    let unit = state.workspaces.get(&workspace);
    for binding in unit.map(|unit| state.counting_bindings(unit)).unwrap_or_default() {
        let Some(producer) = binding.producer else { continue };
        let at = binding.created_at;
        let seen = observed.entry(producer).or_insert_with(|| Observation::of_bindings(at));
        (seen.first, seen.last) = (seen.first.min(at), seen.last.max(at));
        if let UsedOutputs::Names(names) = &mut seen.used {
            names.insert(binding.output.clone());
        }
        seen.user_count += 1;
        if seen.users.len() < MAX_LISTED_USERS {
            seen.users.push(binding.variable_in_words());
        }
    }
    for edge in edges.values_mut() {
        if edge.producer.is_none_or(|producer| !observed.contains_key(&producer)) {
            edge.observed.remove(&Grade::Binding);
        }
    }
    for (producer, seen) in observed {
        let producer = Producer::Unit(producer);
        let edge = edges
            .entry(DependencyId::of(workspace, &producer))
            .or_insert_with(|| Dependency::new(workspace, &producer, seen.first));
        edge.observed.insert(Grade::Binding, seen);
    }
}

impl Observation {
    fn of_bindings(at: Timestamp) -> Self {
        Self {
            first: at,
            last: at,
            used: UsedOutputs::Names(BTreeSet::new()),
            maybe: BTreeSet::new(),
            data: Vec::new(),
            users: Vec::new(),
            user_count: 0,
            values: BTreeMap::new(),
            tokens: BTreeMap::new(),
            state_version: None,
            run: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use taco_words::graph::{ConsumedBy, EdgeStatus, Freshness};

    use super::*;
    use crate::author::Author;
    use crate::binding::Binding;
    use crate::binding::tests::{bound, state_of, unit};
    use crate::bound_value::BoundVariable;
    use crate::graph::findings::{Findings, PlanFindings, PlanOutcome, StateFindings};
    use crate::graph::output_commit::{OutputSource, StateOutputs, next_output_commit};
    use crate::id::{RunId, StateVersionId};
    use crate::state_file::Output;
    use crate::workspace::Workspace;
    use serde_json::value::RawValue;

    const KEY: [u8; 32] = [7; 32];
    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn outputs(listed: &[(&str, &str)]) -> BTreeMap<String, Output> {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("JSON");
        let output = |value| Output { value: raw(value), detailed_type: raw("\"number\""), sensitive: false };
        listed.iter().map(|(name, value)| ((*name).to_owned(), output(value))).collect()
    }

    /// The network with a state that has these outputs.
    fn apply(state: &mut OrganizationState, network: &Workspace, listed: &[(&str, &str)]) {
        let before = state.workspace_outputs.get(&network.id).cloned();
        let number = before.as_ref().map_or(1, |before| before.number as u8 + 1);
        let state_version = StateVersionId::from_random([number; 16]);
        let source = OutputSource { state_version, at: NOW, by: Author::Taco, run: None };
        let new = StateOutputs::of(&KEY, &outputs(listed));
        let (commit, after) = next_output_commit(before.as_ref(), network.id, &new, source).expect("a change");
        state.output_commits.put(&commit).expect("put");
        state.workspace_outputs.put(&after).expect("put");
        let network = Workspace { current_state_version: Some(state_version), ..network.clone() };
        state.workspaces.put(&network).expect("put");
    }

    fn rebind(state: &mut OrganizationState, unit: WorkspaceId) {
        let (put, delete) = state.rebound(unit);
        put.iter().for_each(|edge| _ = state.dependencies.put(edge).expect("put"));
        delete.iter().for_each(|id| _ = state.dependencies.remove(id));
    }

    fn examine(state: &mut OrganizationState, unit: WorkspaceId, findings: &Findings) {
        let examined = state.examined(unit, findings, NOW);
        examined.put.iter().for_each(|edge| _ = state.dependencies.put(edge).expect("put"));
        state.consumptions.put(&examined.consumption).expect("put");
    }

    fn given(state: &OrganizationState, binding: &Binding) -> BoundVariable {
        let producer = binding.producer.expect("there");
        let known = &state.workspace_outputs.get(&producer).expect("outputs");
        let output = &known.outputs[&binding.output].committed;
        BoundVariable {
            key: binding.key.clone(),
            category: binding.category,
            producer,
            output: binding.output.clone(),
            commit: Some(known.number),
            digest: output.digest,
            detailed_type: output.detailed_type.clone(),
            sensitive: false,
            state_version: Some(known.state_version),
            announced_by: None,
        }
    }

    fn applied(bound: Vec<BoundVariable>, outcome: PlanOutcome) -> Findings {
        let run = RunId::from_random([9; 16]);
        // The run left no plan that can be read: what it was given is known all the same.
        let plan = PlanFindings { run, ended_at: NOW, by: Author::Taco, outcome, own: None, reads: None, bound };
        Findings { plans: vec![plan], ..Findings::default() }
    }

    struct Scene {
        state: OrganizationState,
        network: Workspace,
        web: Workspace,
        binding: Binding,
    }

    fn scene() -> Scene {
        let (network, web) = (unit("network"), unit("web"));
        let binding = bound(&web, "vpc", &network, "vpc_id");
        let mut state = state_of(&[&network, &web], &[&binding]);
        apply(&mut state, &network, &[("vpc_id", "1"), ("other", "1")]);
        rebind(&mut state, web.id);
        Scene { state, network, web, binding }
    }

    impl Scene {
        fn edge(&self) -> Dependency {
            self.state.dependencies_of(self.web.id).next().cloned().expect("an edge")
        }

        fn status(&self) -> EdgeStatus {
            self.state.edge_state(&self.edge()).status
        }
    }

    #[test]
    fn a_binding_is_an_edge_as_long_as_it_is_there() {
        let mut scene = scene();
        let edge = scene.edge();
        assert_eq!(
            (edge.grades(), edge.used()),
            (vec![Grade::Binding], UsedOutputs::Names(["vpc_id".to_owned()].into()))
        );
        assert_eq!(edge.observed[&Grade::Binding].users, ["var.vpc"]);
        assert_eq!(scene.status(), EdgeStatus::Unknown, "no run was given it yet");
        assert_eq!(scene.state.rebound(scene.web.id), (Vec::new(), Vec::new()), "twice changes nothing more");
        scene.state.bindings.remove(&scene.binding.id);
        rebind(&mut scene.state, scene.web.id);
        assert_eq!(scene.state.dependencies_of(scene.web.id).count(), 0);
    }

    #[test]
    fn a_unit_is_stale_when_what_it_was_given_changed_and_only_then() {
        let mut scene = scene();
        let (web, network) = (scene.web.id, scene.network.clone());
        let given_first = given(&scene.state, &scene.binding);
        examine(&mut scene.state, web, &applied(vec![given_first.clone()], PlanOutcome::Applied));
        assert_eq!(scene.status(), EdgeStatus::Fresh);
        let consumed = scene.edge().consumed.expect("consumed");
        assert_eq!((consumed.grade, consumed.commit, consumed.how), (Grade::Binding, Some(1), ConsumedBy::Applied));
        apply(&mut scene.state, &network, &[("vpc_id", "1"), ("other", "2")]);
        assert_eq!(scene.status(), EdgeStatus::Fresh, "the other output is not bound");
        apply(&mut scene.state, &network, &[("vpc_id", "2"), ("other", "2")]);
        let state = scene.state.edge_state(&scene.edge());
        assert_eq!((state.status, state.certain, state.freshness()), (EdgeStatus::Stale, true, Freshness::Stale));
        assert_eq!((state.moved[0].name.as_str(), state.moved[0].to), ("vpc_id", Some(3)));
        // A plan that was made before the change, and applied after it.
        examine(&mut scene.state, web, &applied(vec![given_first], PlanOutcome::Applied));
        assert_eq!(scene.status(), EdgeStatus::Stale);
        let given_now = given(&scene.state, &scene.binding);
        examine(&mut scene.state, web, &applied(vec![given_now.clone()], PlanOutcome::Incomplete));
        assert_eq!(scene.status(), EdgeStatus::Stale, "what covers a part proves nothing");
        examine(&mut scene.state, web, &applied(vec![given_now], PlanOutcome::Unchanged));
        assert_eq!(scene.status(), EdgeStatus::Fresh);
        apply(&mut scene.state, &network, &[("other", "2")]);
        assert_eq!(scene.status(), EdgeStatus::Missing);
    }

    #[test]
    fn a_client_that_runs_the_engine_itself_is_given_nothing() {
        let mut scene = scene();
        let web = scene.web.id;
        let bound = given(&scene.state, &scene.binding);
        examine(&mut scene.state, web, &applied(vec![bound.clone()], PlanOutcome::Applied));
        let version = |number| StateVersionId::from_random([number; 16]);
        let pushed = StateFindings {
            version: version(98),
            at: Timestamp::MAX,
            by: Author::Taco,
            run: None,
            is_apply: true,
            reads: Ok(Vec::new()),
        };
        let earlier = StateFindings { version: version(97), at: NOW, ..pushed.clone() };
        examine(&mut scene.state, web, &Findings { state: Some(earlier), ..Findings::default() });
        assert_eq!(scene.status(), EdgeStatus::Fresh, "the run came after it");
        examine(&mut scene.state, web, &Findings { state: Some(pushed.clone()), ..Findings::default() });
        assert_eq!(scene.status(), EdgeStatus::Unknown);
        let again = StateFindings { version: version(99), ..pushed };
        let with_run = || Findings { state: Some(again.clone()), ..applied(vec![bound.clone()], PlanOutcome::Applied) };
        examine(&mut scene.state, web, &with_run());
        assert_eq!(scene.status(), EdgeStatus::Unknown, "a run that ended before it");
        examine(&mut scene.state, web, &with_run());
        assert_eq!(scene.status(), EdgeStatus::Fresh, "a run that ended when the state was known, by a slow clock");
    }

    #[test]
    fn what_is_bound_is_used_beside_what_is_read() {
        let mut scene = scene();
        let mut edge = scene.edge();
        let names = |names: &[&str]| UsedOutputs::Names(names.iter().map(|name| (*name).to_owned()).collect());
        let read = Observation { used: names(&["other"]), ..Observation::of_bindings(NOW) };
        edge.observed.insert(Grade::Plan, read);
        assert_eq!(edge.used(), names(&["other", "vpc_id"]));
        scene.state.dependencies.put(&edge).expect("put");
        scene.state.bindings.remove(&scene.binding.id);
        rebind(&mut scene.state, scene.web.id);
        assert_eq!(scene.edge().used(), names(&["other"]), "what is read stays");
    }
}
