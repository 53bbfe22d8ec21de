//! Precedence of variables in a run.

use std::collections::BTreeMap;
use std::fmt;

use crate::binding::{Binding, BindingId};
use crate::id::VariableId;
use crate::organization_state::OrganizationState;
use crate::variable::{StoredValue, Variable, VariableCategory, VariableOwner};
use crate::variable_set::{VariableSet, VariableSetScope};
use crate::workspace::Workspace;

/// Source of a variable, in the order of precedence of Terraform Cloud.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Precedence {
    PriorityGlobalSet,
    PriorityProjectSet,
    PriorityWorkspaceSet,
    /// `-var`, `-var-file` and `TF_VAR_…` of the person who started the run.
    Run,
    /// Its own variables, and those that are bound to an output: a key has one or the other.
    Workspace,
    WorkspaceSet,
    ProjectSet,
    GlobalSet,
}

impl Precedence {
    fn of_set(set: &VariableSet, workspace: &Workspace) -> Option<Self> {
        Some(match (set.scope_for(workspace)?, set.priority) {
            (VariableSetScope::Global, true) => Self::PriorityGlobalSet,
            (VariableSetScope::Project, true) => Self::PriorityProjectSet,
            (VariableSetScope::Workspace, true) => Self::PriorityWorkspaceSet,
            (VariableSetScope::Workspace, false) => Self::WorkspaceSet,
            (VariableSetScope::Project, false) => Self::ProjectSet,
            (VariableSetScope::Global, false) => Self::GlobalSet,
        })
    }
}

/// A variable that counts in a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EffectiveVariable {
    /// `None` for what only the run knows.
    pub id: Option<VariableId>,
    pub key: String,
    pub value: EffectiveValue,
    pub category: VariableCategory,
    /// The value is an expression, not a text.
    pub hcl: bool,
    pub precedence: Precedence,
}

/// The value of a variable that counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EffectiveValue {
    Stored(StoredValue),
    /// It is another workspace's output.
    Bound(BindingId),
}

impl EffectiveVariable {
    /// The variable with its stored value, decrypted by the caller.
    pub fn opened(self, value: String) -> JobVariable {
        JobVariable {
            sensitive: matches!(self.value, EffectiveValue::Stored(StoredValue::Sealed(_))),
            key: self.key,
            value,
            category: self.category,
            hcl: self.hcl,
            bound_to: None,
        }
    }
}

/// An effective variable with its decrypted value, as the executor of the run gets it.
#[derive(Clone, PartialEq, Eq)]
pub struct JobVariable {
    pub key: String,
    pub value: String,
    pub category: VariableCategory,
    pub hcl: bool,
    pub sensitive: bool,
    /// What it is bound to: that is the unit's own input, and not the value.
    pub bound_to: Option<String>,
}

/// The value may be secret.
impl fmt::Debug for JobVariable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "JobVariable({:?} {})", self.category, self.key)
    }
}

/// Finds out which of all variables count.
#[derive(Default)]
struct Contest<'a> {
    /// The smallest wins: by precedence, then by the name of the set.
    winners: BTreeMap<(String, VariableCategory), (Precedence, &'a str, EffectiveVariable)>,
}

impl<'a> Contest<'a> {
    fn enter(&mut self, set_name: &'a str, candidate: EffectiveVariable) {
        let place = (candidate.key.clone(), candidate.category);
        let rank = (candidate.precedence, set_name);
        if self.winners.get(&place).is_none_or(|(precedence, name, _)| rank < (*precedence, *name)) {
            self.winners.insert(place, (rank.0, rank.1, candidate));
        }
    }

    fn enter_record(&mut self, set_name: &'a str, precedence: Precedence, variable: &Variable) {
        let candidate = EffectiveVariable {
            id: Some(variable.id),
            key: variable.key.clone(),
            value: EffectiveValue::Stored(variable.value.clone()),
            category: variable.category,
            hcl: variable.hcl && variable.category == VariableCategory::Terraform,
            precedence,
        };
        self.enter(set_name, candidate);
    }

    fn enter_binding(&mut self, binding: &Binding) {
        let candidate = EffectiveVariable {
            id: None,
            key: binding.key.clone(),
            value: EffectiveValue::Bound(binding.id),
            category: binding.category,
            hcl: false,
            precedence: Precedence::Workspace,
        };
        self.enter("", candidate);
    }
}

/// The variables of a run in a workspace, one for each key and category, by key. `run_variables` came with the run;
/// their values are expressions. Of two sets in the same place, the one whose name comes first wins.
pub fn variables_for_run(
    state: &OrganizationState,
    workspace: &Workspace,
    run_variables: &[(String, String)],
) -> Vec<EffectiveVariable> {
    let mut contest = Contest::default();
    for (key, value) in run_variables {
        let candidate = EffectiveVariable {
            id: None,
            key: key.clone(),
            value: EffectiveValue::Stored(StoredValue::Plain(value.clone())),
            category: VariableCategory::Terraform,
            hcl: true,
            precedence: Precedence::Run,
        };
        contest.enter("", candidate);
    }
    for variable in state.variables_of(VariableOwner::Workspace(workspace.id)) {
        contest.enter_record("", Precedence::Workspace, variable);
    }
    state.bindings_of(workspace.id).for_each(|binding| contest.enter_binding(binding));
    for set in state.variable_sets.iter() {
        let Some(precedence) = Precedence::of_set(set, workspace) else { continue };
        for variable in state.variables_of(VariableOwner::VariableSet(set.id)) {
            contest.enter_record(set.name.as_str(), precedence, variable);
        }
    }
    contest.winners.into_values().map(|(_, _, winner)| winner).collect()
}

/// A variable that reaches a workspace, whether it counts there or not.
#[derive(Clone, Copy, Debug)]
pub struct ReachingVariable<'a> {
    pub variable: &'a Variable,
    /// The set that it comes with; the workspace's own come with none.
    pub set: Option<&'a VariableSet>,
    /// The one that counts in its place.
    pub overridden_by: Option<Overriding<'a>>,
}

/// A variable that counts in the place of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overriding<'a> {
    Variable(&'a Variable),
    Binding(&'a Binding),
}

/// All variables that reach a workspace: its own by key, then those of its sets by the sets' names.
pub fn variables_reaching<'a>(state: &'a OrganizationState, workspace: &Workspace) -> Vec<ReachingVariable<'a>> {
    let winners = variables_for_run(state, workspace, &[]);
    let winners: BTreeMap<(String, VariableCategory), Overriding<'a>> = winners
        .into_iter()
        .filter_map(|winner| {
            let overriding = match (winner.value, winner.id) {
                (EffectiveValue::Bound(id), _) => Overriding::Binding(state.bindings.get(&id)?),
                (EffectiveValue::Stored(_), Some(id)) => Overriding::Variable(state.variables.get(&id)?),
                (EffectiveValue::Stored(_), None) => return None,
            };
            Some(((winner.key, winner.category), overriding))
        })
        .collect();
    let reaching = |variable: &'a Variable, set: Option<&'a VariableSet>| {
        let winner = winners.get(&(variable.key.clone(), variable.category)).copied();
        let overridden_by = winner.filter(|winner| *winner != Overriding::Variable(variable));
        ReachingVariable { variable, set, overridden_by }
    };
    let own = state.variables_of(VariableOwner::Workspace(workspace.id)).map(|variable| reaching(variable, None));
    let sets = state.variable_sets_by_name().filter(|set| set.scope_for(workspace).is_some());
    let shared = sets.flat_map(|set| {
        let variables = state.variables_of(VariableOwner::VariableSet(set.id));
        variables.map(move |variable| (variable, set))
    });
    own.chain(shared.map(|(variable, set)| reaching(variable, Some(set)))).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::id::{OrganizationId, OrganizationPrefix, ProjectId, VariableSetId, WorkspaceId};

    fn organization_prefix() -> OrganizationPrefix {
        OrganizationId::from_random([7; 16]).organization_prefix()
    }

    struct Scene {
        state: OrganizationState,
        workspace: Workspace,
    }

    impl Scene {
        fn new() -> Self {
            let project = ProjectId::within(organization_prefix(), [1; 16]);
            let id = WorkspaceId::within(organization_prefix(), [2; 16]);
            let workspace = Workspace::new(id, "web".parse().expect("legal"), project, Timestamp::UNIX_EPOCH);
            Self { state: OrganizationState::default(), workspace }
        }

        fn variable(&mut self, owner: VariableOwner, key: &str, value: &str, category: VariableCategory) {
            let id = VariableId::derived(organization_prefix(), &format!("{owner:?} {key} {category:?}"));
            let variable = Variable {
                id,
                owner,
                key: key.to_owned(),
                value: StoredValue::Plain(value.to_owned()),
                description: String::new(),
                category,
                hcl: false,
                version: 1,
                created_at: Timestamp::UNIX_EPOCH,
            };
            self.state.variables.put(&variable).expect("put");
        }

        /// A variable `key` whose value tells where it comes from: `run`, `workspace`, or a set such as
        /// `priority project b`.
        fn given(&mut self, place: &str) {
            if place == "workspace" {
                let owner = VariableOwner::Workspace(self.workspace.id);
                return self.variable(owner, "key", place, VariableCategory::Terraform);
            }
            let mut set = VariableSet::new(
                VariableSetId::derived(organization_prefix(), place),
                place.rsplit(' ').next().expect("a name").parse().expect("legal"),
                None,
                Timestamp::UNIX_EPOCH,
            );
            set.priority = place.starts_with("priority");
            set.global = place.contains("global");
            if place.contains("project") {
                set.projects.insert(self.workspace.project);
            }
            if place.contains("workspace") {
                set.workspaces.insert(self.workspace.id);
            }
            self.state.variable_sets.put(&set).expect("put");
            self.variable(VariableOwner::VariableSet(set.id), "key", place, VariableCategory::Terraform);
        }

        fn winner(&self, with_run: bool) -> String {
            let run = [("key".to_owned(), "run".to_owned())];
            let run = if with_run { &run[..] } else { &[] };
            let mut variables = variables_for_run(&self.state, &self.workspace, run);
            assert!(variables.len() <= 1, "{variables:?}");
            match variables.pop().map(|variable| variable.value) {
                Some(EffectiveValue::Stored(StoredValue::Plain(value))) => value,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn the_order_is_that_of_terraform_cloud() {
        let order = [
            "priority global a",
            "priority global b",
            "priority project a",
            "priority workspace a",
            "run",
            "workspace",
            "set for workspace a",
            "set for workspace b",
            "set for project a",
            "set for global a",
        ];
        for (place, stronger) in order.iter().enumerate() {
            for weaker in &order[place + 1..] {
                let mut scene = Scene::new();
                for given in [weaker, stronger].into_iter().filter(|given| **given != "run") {
                    scene.given(given);
                }
                let with_run = [weaker, stronger].contains(&&"run");
                assert_eq!(scene.winner(with_run), **stronger, "against {weaker}");
            }
        }
    }

    #[test]
    fn a_set_that_applies_twice_counts_where_it_is_strongest() {
        let mut scene = Scene::new();
        scene.given("set for project and workspace a");
        scene.given("set for workspace b");
        assert_eq!(scene.winner(false), "set for project and workspace a");
        scene.given("priority project and workspace c");
        scene.given("priority workspace a");
        assert_eq!(scene.winner(false), "priority project and workspace c");
    }

    #[test]
    fn whatever_reaches_a_workspace_says_what_overrides_it() {
        let mut scene = Scene::new();
        for given in ["workspace", "set for workspace a", "priority workspace b", "set for nobody"] {
            scene.given(given);
        }
        let value = |variable: &Variable| variable.shown_value().unwrap_or_default().to_owned();
        let winner_of = |winner: Overriding<'_>| match winner {
            Overriding::Variable(variable) => value(variable),
            Overriding::Binding(binding) => panic!("{binding:?}"),
        };
        let reaching = variables_reaching(&scene.state, &scene.workspace);
        let found: Vec<_> = reaching
            .iter()
            .map(|row| (value(row.variable), row.set.is_some(), row.overridden_by.map(winner_of)))
            .collect();
        let winner = Some("priority workspace b".to_owned());
        assert_eq!(
            found,
            [
                ("workspace".to_owned(), false, winner.clone()),
                ("set for workspace a".to_owned(), true, winner),
                ("priority workspace b".to_owned(), true, None),
            ]
        );
    }

    #[test]
    fn a_set_that_does_not_apply_gives_nothing() {
        let mut scene = Scene::new();
        scene.given("set for nobody");
        assert!(variables_for_run(&scene.state, &scene.workspace, &[]).is_empty());
    }

    #[test]
    fn keys_are_told_apart_by_category_and_case() {
        let mut scene = Scene::new();
        let owner = VariableOwner::Workspace(scene.workspace.id);
        for (key, category) in
            [("a", VariableCategory::Terraform), ("a", VariableCategory::Env), ("A", VariableCategory::Env)]
        {
            scene.variable(owner, key, "v", category);
        }
        let run = [("a".to_owned(), "\"run\"".to_owned())];
        let variables = variables_for_run(&scene.state, &scene.workspace, &run);
        let found: Vec<_> =
            variables.iter().map(|variable| (variable.key.as_str(), variable.category, variable.hcl)).collect();
        use VariableCategory as C;
        assert_eq!(found, [("A", C::Env, false), ("a", C::Terraform, true), ("a", C::Env, false)]);
    }
}
