//! Bindings: variables of a workspace that take their values from other workspaces' outputs. What a run is given for them
//! is in `bound_value`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};
use taco_words::id_kinds;

use crate::attribute::{InvalidAttribute, shown};
use crate::author::Author;
use crate::bound_value::BindingProblem;
use crate::id::WorkspaceId;
use crate::organization_state::OrganizationState;
use crate::variable::{VariableCategory, VariableOwner, check_key};
use crate::variable_precedence::{EffectiveValue, variables_for_run};
use crate::workspace::Workspace;

/// Maximum number of bindings of a workspace: a run reads a state for each producer.
pub const MAX_BINDINGS: usize = 100;
const MAX_OUTPUT_NAME_BYTES: usize = 1024;

id_kinds! {
    /// A variable of a workspace that takes its value from another workspace's output.
    BindingId = "bnd";
}

/// A variable of a workspace that takes its value from another workspace's output when a plan begins.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Binding {
    pub id: BindingId,
    /// The consumer, whose variable it is.
    pub workspace: WorkspaceId,
    pub key: String,
    pub category: VariableCategory,
    /// `None` after it was deleted: then runs fail, until the variable is bound to another output or to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer: Option<WorkspaceId>,
    /// Name of the output.
    pub output: String,
    pub created_at: Timestamp,
    pub created_by: Author,
}

impl Record for Binding {
    const KIND: &'static str = "binding";
    const PART_OF: &'static [&'static str] = &["workspace"];
    type Id = BindingId;
    type Indexes = BindingIndexes;

    fn id(&self) -> &BindingId {
        &self.id
    }

    references! {
        "workspace": WorkspaceId, cascade(|bindings, id| bindings.by().variable.under(id));
        "producer": WorkspaceId, unlink(|bindings, id| bindings.by().producer.get(id), |binding| {
            binding.producer = None;
        });
    }
}

indexes! {
    pub struct BindingIndexes for Binding {
        /// By key within a workspace.
        pub variable: (WorkspaceId, String, VariableCategory), unique "key" => |binding| {
            [(binding.workspace, binding.key.clone(), binding.category)]
        };
        pub producer: WorkspaceId => |binding| binding.producer;
    }
}

/// An output as far as its workspace's records tell of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KnownOutput {
    There {
        sensitive: bool,
    },
    /// The workspace has no state.
    NeverApplied,
    /// These are all that there are.
    Missing(Vec<String>),
    /// The engine encrypted the state.
    Encrypted,
    /// There are too many outputs for the record to list them.
    Unlisted,
}

impl Binding {
    /// Checks the names that a request sends.
    pub fn check(&self) -> Result<(), InvalidAttribute> {
        check_key(&self.key, self.category)?;
        if self.output.is_empty() || self.output.len() > MAX_OUTPUT_NAME_BYTES {
            let detail = match self.output.is_empty() {
                true => "Output can't be blank: name an output of the producer".to_owned(),
                false => format!("Output is too long (maximum is {MAX_OUTPUT_NAME_BYTES} bytes)"),
            };
            return Err(InvalidAttribute::new("output", detail));
        }
        Ok(())
    }

    /// The variable as people write it, with `env` before one of the environment.
    pub fn variable_in_words(&self) -> String {
        variable_in_words(&self.key, self.category)
    }

    /// The words by which it counts among a unit's own inputs. The value does not: it is the producer's.
    pub fn own_input(&self) -> String {
        let producer = self.producer.map(|id| id.to_string()).unwrap_or_default();
        format!("{producer} {}", self.output)
    }
}

pub fn variable_in_words(key: &str, category: VariableCategory) -> String {
    match category {
        VariableCategory::Terraform => format!("var.{key}"),
        VariableCategory::Env => format!("env {key}"),
    }
}

impl OrganizationState {
    /// A workspace's bindings by key.
    pub fn bindings_of(&self, workspace: WorkspaceId) -> impl Iterator<Item = &Binding> {
        self.bindings.by().variable.under(&workspace)
    }

    /// The binding of a variable.
    pub fn binding_of(&self, workspace: WorkspaceId, key: &str, category: VariableCategory) -> Option<&Binding> {
        self.bindings.by().variable.first(&(workspace, key.to_owned(), category))
    }

    /// The bindings whose values reach runs of a workspace: all but those that a priority variable set overrides.
    pub fn counting_bindings(&self, workspace: &Workspace) -> Vec<&Binding> {
        // Most workspaces have none, and what counts takes a look at all variable sets.
        if self.bindings_of(workspace.id).next().is_none() {
            return Vec::new();
        }
        let effective = variables_for_run(self, workspace, &[]).into_iter();
        let bound = effective.filter_map(|variable| match variable.value {
            EffectiveValue::Bound(id) => self.bindings.get(&id),
            EffectiveValue::Stored(_) => None,
        });
        bound.collect()
    }

    /// True if the workspace has a variable of its own by this name, so that it cannot be bound.
    pub fn has_variable(&self, workspace: WorkspaceId, key: &str, category: VariableCategory) -> bool {
        let place = (VariableOwner::Workspace(workspace), key.to_owned(), category);
        self.variables.by().owner_and_key.first(&place).is_some()
    }

    /// What is known of an output without reading the state.
    pub fn known_output(&self, producer: &Workspace, output: &str) -> KnownOutput {
        let Some(version) = self.current_state_version(producer) else { return KnownOutput::NeverApplied };
        if version.encrypted {
            return KnownOutput::Encrypted;
        }
        if version.unlisted_outputs.is_some() {
            return KnownOutput::Unlisted;
        }
        let found = version.outputs.iter().find(|known| known.name == output);
        found.map_or_else(
            || KnownOutput::Missing(version.outputs.iter().map(|known| known.name.clone()).collect()),
            |known| KnownOutput::There { sensitive: known.sensitive },
        )
    }

    /// The producer of a binding that shares its outputs with the workspace.
    pub fn sharing_producer(&self, binding: &Binding, consumer: &Workspace) -> Result<&Workspace, BindingProblem> {
        let producer = binding.producer.and_then(|id| self.workspaces.get(&id)).ok_or(BindingProblem::ProducerGone)?;
        let shares = producer.shares_state_with(consumer);
        if shares { Ok(producer) } else { Err(BindingProblem::NotShared(producer.name.to_string())) }
    }

    /// Reason why a run would get no value from a binding, as far as records tell.
    pub fn binding_problem(&self, binding: &Binding, consumer: &Workspace) -> Option<BindingProblem> {
        let producer = match self.sharing_producer(binding, consumer) {
            Ok(producer) => producer,
            Err(problem) => return Some(problem),
        };
        let name = producer.name.to_string();
        match self.known_output(producer, &binding.output) {
            KnownOutput::There { .. } | KnownOutput::Unlisted => None,
            KnownOutput::NeverApplied => Some(BindingProblem::NeverApplied(name)),
            KnownOutput::Encrypted => Some(BindingProblem::Encrypted(name)),
            KnownOutput::Missing(there) => Some(BindingProblem::Missing { producer: name, there }),
        }
    }

    /// The way on which a consumer's outputs already reach this producer by bindings, the producer first: binding the
    /// consumer to it would close a circle.
    pub fn binding_circle(&self, consumer: WorkspaceId, producer: WorkspaceId) -> Option<Vec<WorkspaceId>> {
        let mut came_from: BTreeMap<WorkspaceId, WorkspaceId> = BTreeMap::new();
        let mut seen = BTreeSet::from([producer]);
        let mut queue = VecDeque::from([producer]);
        while let Some(unit) = queue.pop_front() {
            if unit == consumer {
                let way = std::iter::successors(Some(unit), |unit| came_from.get(unit).copied());
                let mut way: Vec<WorkspaceId> = way.collect();
                way.reverse();
                return Some(way);
            }
            for next in self.bindings_of(unit).filter_map(|binding| binding.producer) {
                if seen.insert(next) {
                    came_from.insert(next, unit);
                    queue.push_back(next);
                }
            }
        }
        None
    }
}

/// The words of a category in a request; `terraform` where none is sent.
pub fn category_of(word: Option<&str>) -> Result<VariableCategory, InvalidAttribute> {
    match word {
        None | Some("terraform") => Ok(VariableCategory::Terraform),
        Some("env") => Ok(VariableCategory::Env),
        Some(other) => {
            let detail = format!("Category must be \"terraform\" or \"env\"; it is {}", shown(other));
            Err(InvalidAttribute::new("category", detail))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::id::ProjectId;
    use crate::variable::{StoredValue, Variable};
    use crate::variable_set::VariableSet;

    pub(crate) fn unit(name: &str) -> Workspace {
        let id = WorkspaceId::from_random([name.as_bytes()[0]; 16]);
        let project = ProjectId::from_random([1; 16]);
        Workspace::new(id, name.parse().expect("legal"), project, Timestamp::UNIX_EPOCH)
    }

    pub(crate) fn bound(consumer: &Workspace, key: &str, producer: &Workspace, output: &str) -> Binding {
        Binding {
            id: BindingId::derived(consumer.id.organization_prefix(), &format!("{} {key}", consumer.id)),
            workspace: consumer.id,
            key: key.to_owned(),
            category: VariableCategory::Terraform,
            producer: Some(producer.id),
            output: output.to_owned(),
            created_at: Timestamp::UNIX_EPOCH,
            created_by: Author::Taco,
        }
    }

    pub(crate) fn state_of(units: &[&Workspace], bindings: &[&Binding]) -> OrganizationState {
        let mut state = OrganizationState::default();
        units.iter().for_each(|unit| _ = state.workspaces.put(unit).expect("put"));
        bindings.iter().for_each(|binding| _ = state.bindings.put(binding).expect("put"));
        state
    }

    #[test]
    fn a_circle_is_found_with_its_way() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(unit);
        let bindings = [bound(&b, "x", &a, "o"), bound(&c, "x", &b, "o"), bound(&c, "y", &d, "o")];
        let state = state_of(&[&a, &b, &c, &d], &bindings.iter().collect::<Vec<_>>());
        assert_eq!(state.binding_circle(a.id, c.id), Some(vec![c.id, b.id, a.id]));
        assert_eq!(state.binding_circle(a.id, a.id), Some(vec![a.id]));
        assert_eq!(state.binding_circle(a.id, d.id), None);
        assert_eq!(state.binding_circle(d.id, b.id), None);
    }

    #[test]
    fn a_binding_stands_where_a_variable_of_the_workspace_does() {
        let (network, web) = (unit("network"), unit("web"));
        let binding = bound(&web, "vpc_id", &network, "vpc_id");
        let mut state = state_of(&[&network, &web], &[&binding]);
        let mut in_set = |name: &str, priority: bool| {
            let prefix = web.id.organization_prefix();
            let id = crate::id::VariableSetId::derived(prefix, name);
            let mut set = VariableSet::new(id, name.parse().expect("legal"), None, Timestamp::UNIX_EPOCH);
            (set.global, set.priority) = (true, priority);
            state.variable_sets.put(&set).expect("put");
            let variable = Variable {
                id: crate::id::VariableId::derived(prefix, name),
                owner: VariableOwner::VariableSet(id),
                key: "vpc_id".to_owned(),
                value: StoredValue::Plain(name.to_owned()),
                description: String::new(),
                category: VariableCategory::Terraform,
                hcl: false,
                version: 1,
                created_at: Timestamp::UNIX_EPOCH,
            };
            state.variables.put(&variable).expect("put");
            state.counting_bindings(&web).len()
        };
        assert_eq!(in_set("defaults", false), 1);
        assert_eq!(in_set("enforced", true), 0);
        let sent = [("vpc_id".to_owned(), "\"mine\"".to_owned())];
        let plain = state_of(&[&network, &web], &[&binding]);
        let winners = variables_for_run(&plain, &web, &sent);
        assert!(matches!(winners[0].value, EffectiveValue::Stored(_)), "what comes with a run wins: {winners:?}");
    }

    #[test]
    fn what_keeps_a_value_from_a_run_is_told() {
        let (network, web) = (unit("network"), unit("web"));
        let binding = bound(&web, "vpc_id", &network, "vpc_id");
        let state = state_of(&[&network, &web], &[&binding]);
        assert_eq!(state.binding_problem(&binding, &web), Some(BindingProblem::NotShared("network".to_owned())));
        let shared = Workspace { remote_state_consumers: [web.id].into(), ..network.clone() };
        let state = state_of(&[&shared, &web], &[&binding]);
        assert_eq!(state.binding_problem(&binding, &web), Some(BindingProblem::NeverApplied("network".to_owned())));
        let lost = Binding { producer: None, ..binding };
        assert_eq!(state.binding_problem(&lost, &web), Some(BindingProblem::ProducerGone));
    }

    #[test]
    fn names_are_checked() {
        let (network, web) = (unit("network"), unit("web"));
        let binding = bound(&web, "vpc_id", &network, "vpc_id");
        assert_eq!(binding.check(), Ok(()));
        let refused = |binding: Binding| binding.check().expect_err("refused").attribute;
        assert_eq!(refused(Binding { key: "a b".to_owned(), ..binding.clone() }), "key");
        assert_eq!(refused(Binding { output: String::new(), ..binding.clone() }), "output");
        assert_eq!(refused(Binding { output: "x".repeat(1025), ..binding.clone() }), "output");
        assert_eq!(category_of(Some("policy")).expect_err("refused").attribute, "category");
    }
}
