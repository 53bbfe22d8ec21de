//! Bindings: list, create and delete variables that take their values from other workspaces' outputs. What a run is given
//! for them is in `bound_values`.

use serde::Deserialize;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::attribute::shown;
use taco_domain::binding::{Binding, BindingId, KnownOutput, MAX_BINDINGS, category_of};
use taco_domain::bound_value::BoundVariable;
use taco_domain::graph::dependency::Dependency;
use taco_domain::id::WorkspaceId;
use taco_domain::permission::{Action, Resource};
use taco_domain::variable::{VariableCategory, VariableOwner};
use taco_domain::workspace::Workspace;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::graph::dependencies::producer_named;
use crate::graph::graph_view::Eyes;
use crate::page::{Listed, PageRequest};
use crate::runs::RunView;
use crate::workspace_view::{WorkspaceRef, WorkspaceView};

/// Name of a producer that is not there any more.
const GONE_PRODUCER: &str = "a workspace that was deleted";
/// Maximum number of outputs that a refusal lists.
const LISTED_OUTPUTS: usize = 20;

/// A binding as a door shows it.
#[derive(Clone)]
pub struct BindingView {
    pub binding: Binding,
    pub org: OrganizationSnapshot,
    /// Name of the producer, to the caller.
    pub producer: String,
    pub sees_producer: bool,
    /// Reason why a run would get no value now.
    pub problem: Option<String>,
    /// A variable set with priority has the same key.
    pub is_overridden: bool,
}

/// The attributes of a request that binds a variable.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NewBinding {
    pub key: String,
    /// `terraform` or `env`.
    pub category: Option<String>,
    /// Name or id of the workspace whose output it is.
    pub producer: String,
    pub output: String,
}

impl BindingView {
    fn of(org: &OrganizationSnapshot, caller: &Caller, binding: &Binding) -> Self {
        let state = &org.state;
        let eyes = Eyes { state, caller };
        let consumer = state.workspaces.get(&binding.workspace);
        let counting = consumer.map(|consumer| state.counting_bindings(consumer)).unwrap_or_default();
        let sees_producer = binding.producer.is_some_and(|id| eyes.unit(id).is_some());
        let problem = consumer.and_then(|consumer| state.binding_problem(binding, consumer));
        Self {
            binding: binding.clone(),
            org: org.clone(),
            producer: binding.producer.map_or_else(|| GONE_PRODUCER.to_owned(), |id| eyes.name(id)),
            // A sentence about a producer names it.
            problem: problem
                .filter(|_| sees_producer || binding.producer.is_none())
                .map(|problem| capitalized(&problem.of(binding))),
            sees_producer,
            is_overridden: !counting.iter().any(|counting| counting.id == binding.id),
        }
    }
}

/// What a run was given for a bound variable, as a door shows it.
#[derive(Clone)]
pub struct GivenVariable {
    pub bound: BoundVariable,
    /// Name of the producer, to the caller.
    pub producer: String,
}

impl RunView {
    /// What its plan was given for bound variables, without the values.
    pub fn given_variables(&self, caller: &Caller) -> Vec<GivenVariable> {
        let eyes = Eyes { state: &self.org.state, caller };
        let name = |bound: &BoundVariable| match eyes.state.workspaces.contains(&bound.producer) {
            true => eyes.name(bound.producer),
            false => GONE_PRODUCER.to_owned(),
        };
        let given = |bound: &BoundVariable| GivenVariable { producer: name(bound), bound: bound.clone() };
        self.run.bound.iter().map(given).collect()
    }
}

impl WorkspaceView {
    /// Its bindings by key, if the caller may read its variables.
    pub fn bindings_seen_by(&self, caller: &Caller) -> Vec<BindingView> {
        if !caller.may(Action::ReadVariables, self.resource()).allowed {
            return Vec::new();
        }
        let bindings = self.org.state.bindings_of(self.workspace.id);
        bindings.map(|binding| BindingView::of(&self.org, caller, binding)).collect()
    }

    /// Names of other workspaces that the caller may see: the first ones.
    pub fn neighbours(&self, caller: &Caller, most: usize) -> Vec<String> {
        let eyes = Eyes { state: &self.org.state, caller };
        let others = self.org.state.workspaces_by_name().filter(|other| other.id != self.workspace.id);
        let seen = others.filter(|other| eyes.unit(other.id).is_some());
        seen.take(most).map(|other| other.name.to_string()).collect()
    }

    /// Reason why it should not be deleted without force: variables of others are bound to its outputs.
    pub fn bound_consumers_refusal(&self, caller: &Caller) -> Option<String> {
        check_nobody_is_bound(&self.org.state, caller, &self.workspace).err().map(|refusal| refusal.to_string())
    }
}

#[boxed]
impl ControlPlane {
    /// A workspace's bindings by key.
    pub async fn bindings(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        page: PageRequest,
    ) -> Result<Listed<BindingView>, Error> {
        let view = self.workspace_with_variables(caller, workspace).await?;
        Ok(Listed::from_all(view.bindings_seen_by(caller), page))
    }

    pub async fn binding(&self, caller: &Caller, id: BindingId) -> Result<BindingView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), Binding::NOUN).await?;
        let binding: &Binding = org.get(&id)?;
        let consumer: &Workspace = org.get(&binding.workspace)?;
        caller.require(Action::ReadVariables, Resource::Workspace(&org.state, consumer), Binding::NOUN)?;
        Ok(BindingView::of(&org, caller, binding))
    }

    /// Binds a variable of a workspace to another's output. Repeating it leads to the same binding.
    pub async fn create_binding(
        &self,
        caller: &Caller,
        consumer: &WorkspaceRef,
        new: NewBinding,
    ) -> Result<BindingView, Error> {
        let mut org = self.organization_with(caller, consumer).await?;
        let category = category_of(new.category.as_deref())?;
        let (consumer, now) = (consumer.clone(), self.now());
        let id = BindingId::within(org.id().organization_prefix(), self.random());
        let change = org.change(caller, "binding.create", now, move |tx| {
            let consumer = tx.workspace(&consumer, Action::WriteVariables)?;
            let binding = Binding {
                id,
                workspace: consumer.id,
                key: new.key.trim().to_owned(),
                category,
                producer: None,
                output: new.output.trim().to_owned(),
                created_at: now,
                created_by: tx.caller().author(),
            };
            binding.check()?;
            let producer = producer_named(tx, new.producer.trim())?;
            let binding = Binding { producer: Some(producer), ..binding };
            let same = tx.state().binding_of(consumer.id, &binding.key, category);
            if let Some(same) = same.filter(|same| (same.producer, &same.output) == (Some(producer), &binding.output)) {
                return Ok(same.clone());
            }
            check_new(tx, &consumer, &binding)?;
            let binding = tx.put_unique(binding)?;
            follow_up(tx, consumer.id);
            Ok(binding)
        });
        let binding = change.await?;
        Ok(BindingView::of(&org, caller, &binding))
    }

    /// Lets a variable take its value from nowhere again.
    pub async fn delete_binding(&self, caller: &Caller, id: BindingId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), Binding::NOUN).await?;
        org.change(caller, "binding.delete", self.now(), move |tx| {
            let binding: Binding = tx.get(&id)?;
            let consumer = tx.workspace_of::<Binding>(&binding.workspace, Action::WriteVariables)?;
            tx.delete::<Binding>(&id)?;
            follow_up(tx, consumer.id);
            Ok(())
        })
        .await
    }
}

/// Makes the edges of the graph what the bindings say.
fn follow_up(tx: &mut Tx<'_>, consumer: WorkspaceId) {
    let (put, delete) = tx.state().rebound(consumer);
    put.iter().for_each(|edge| tx.put(edge));
    delete.iter().for_each(|id| (**tx).delete::<Dependency>(id));
}

fn check_new(tx: &Tx<'_>, consumer: &Workspace, binding: &Binding) -> Result<(), Error> {
    let state = tx.state();
    let (key, category) = (&binding.key, binding.category);
    if let Some(other) = state.binding_of(consumer.id, key, category) {
        let producer = other.producer.map(|id| Eyes { state, caller: tx.caller() }.name(id));
        let producer = producer.unwrap_or_else(|| GONE_PRODUCER.to_owned());
        let detail =
            format!("{key} is bound to the output {} of {producer} already: remove that binding first", other.output);
        return Err(Error::invalid("key", detail));
    }
    if state.has_variable(consumer.id, key, category) {
        let detail = format!(
            "{} has a variable {key} of its own, and a variable has one value: delete that first, or bind another key",
            consumer.name
        );
        return Err(Error::invalid("key", detail));
    }
    if state.bindings_of(consumer.id).count() >= MAX_BINDINGS {
        let detail = format!("A workspace has at most {MAX_BINDINGS} bindings: remove some, or bind one to an object");
        return Err(Error::invalid("key", detail));
    }
    let producer = binding.producer.and_then(|id| state.workspaces.get(&id)).ok_or(Error::NotFound(Workspace::NOUN))?;
    check_producer(tx, consumer, producer)?;
    check_output(tx, producer, binding)
}

fn check_producer(tx: &Tx<'_>, consumer: &Workspace, producer: &Workspace) -> Result<(), Error> {
    let state = tx.state();
    if producer.id == consumer.id {
        let detail = "A variable cannot be bound to an output of its own workspace: name another one";
        return Err(Error::invalid("producer", detail));
    }
    check_may_read(tx, producer, Action::ReadOutputs, "producer")?;
    if let Some(way) = state.binding_circle(consumer.id, producer.id) {
        let eyes = Eyes { state, caller: tx.caller() };
        let names: Vec<String> = std::iter::once(consumer.id).chain(way).map(|id| eyes.name(id)).collect();
        let detail = format!(
            "Bindings would go in a circle, so that none of these could be planned first: {}",
            names.join(" uses ")
        );
        return Err(Error::invalid("producer", detail));
    }
    if !producer.shares_state_with(consumer) {
        let (producer, consumer) = (&producer.name, &consumer.name);
        let detail = format!(
            "{producer} does not share its state with {consumer}: add {consumer} to the workspaces that may read it in the settings of {producer}, or share it with all"
        );
        return Err(Error::invalid("producer", detail));
    }
    Ok(())
}

/// An output that is not there is a slip of the pen, unless there cannot be any yet.
fn check_output(tx: &Tx<'_>, producer: &Workspace, binding: &Binding) -> Result<(), Error> {
    let state = tx.state();
    let (name, output) = (&producer.name, shown(&binding.output));
    let is_secret = match state.known_output(producer, &binding.output) {
        KnownOutput::There { sensitive } => sensitive,
        // It may become one.
        KnownOutput::NeverApplied | KnownOutput::Unlisted => true,
        KnownOutput::Encrypted => {
            let detail = format!("The outputs of {name} cannot be read here: its engine encrypts its state");
            return Err(Error::invalid("output", detail));
        }
        KnownOutput::Missing(there) => {
            let detail = match listed(&there) {
                Some(there) => format!("{name} has no output {output}. It has {there}"),
                None => format!("{name} has no output {output}, and no other: add it and apply {name} first"),
            };
            return Err(Error::invalid("output", detail));
        }
    };
    if is_secret {
        check_may_read(tx, producer, Action::ReadState, "output")?;
    }
    Ok(())
}

/// Who binds a variable to an output has to be one who may read it. The request is about the consumer, so it is the
/// attribute that is wrong.
fn check_may_read(tx: &Tx<'_>, producer: &Workspace, action: Action, attribute: &'static str) -> Result<(), Error> {
    let decision = tx.caller().may(action, Resource::Workspace(tx.state(), producer));
    if decision.allowed {
        Ok(())
    } else {
        Err(Error::invalid(attribute, format!("{}: {}", producer.name, decision.reason)))
    }
}

fn listed(names: &[String]) -> Option<String> {
    let some: Vec<&str> = names.iter().take(LISTED_OUTPUTS).map(String::as_str).collect();
    match names.len().saturating_sub(LISTED_OUTPUTS) {
        _ if some.is_empty() => None,
        0 => Some(some.join(", ")),
        more => Some(format!("{} and {more} more", some.join(", "))),
    }
}

/// Refuses a variable of a workspace whose key is bound: a variable has one value.
pub(crate) fn check_not_bound(
    state: &OrganizationState,
    caller: &Caller,
    owner: VariableOwner,
    key: &str,
    category: VariableCategory,
) -> Result<(), Error> {
    let VariableOwner::Workspace(workspace) = owner else { return Ok(()) };
    let Some(binding) = state.binding_of(workspace, key, category) else { return Ok(()) };
    let producer = binding.producer.map(|id| Eyes { state, caller }.name(id));
    let producer = producer.unwrap_or_else(|| GONE_PRODUCER.to_owned());
    let detail = format!(
        "{key} is bound to the output {} of {producer}, and a variable has one value: remove the binding first",
        binding.output
    );
    Err(Error::invalid("key", detail))
}

/// Names of the workspaces whose variables are bound to a producer's outputs.
pub(crate) fn bound_consumers(state: &OrganizationState, caller: &Caller, producer: WorkspaceId) -> Vec<String> {
    let eyes = Eyes { state, caller };
    let consumers = state.bindings.by().producer.get(&producer).map(|binding| eyes.name(binding.workspace));
    let mut names: Vec<String> = consumers.collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Refuses a safe deletion of a workspace whose outputs others are bound to.
pub(crate) fn check_nobody_is_bound(
    state: &OrganizationState,
    caller: &Caller,
    workspace: &Workspace,
) -> Result<(), Error> {
    match listed(&bound_consumers(state, caller, workspace.id)) {
        None => Ok(()),
        Some(names) => Err(Error::Conflict(format!(
            "The workspace cannot be deleted safely: variables of {names} are bound to its outputs, and their runs would fail. Remove those bindings first, or delete it by force"
        ))),
    }
}

fn capitalized(sentence: &str) -> String {
    let mut characters = sentence.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + characters.as_str()
}
