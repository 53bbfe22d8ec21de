//! Values of bound variables when a phase is handed out. Taking a phase is a transaction and reads nothing from the bucket,
//! so the states are read before it; if a producer has moved on meanwhile, it asks for the newer state, and is tried again.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::binding::Binding;
use taco_domain::bound_value::{BindingProblem, BoundVariable, OutputSource, bound_value, value_of_plan};
use taco_domain::graph::plan_evidence::{OutputAction, PlannedOutput, Unknown};
use taco_domain::id::{RunId, StateVersionId, WorkspaceId};
use taco_domain::phase::PhaseKind;
use taco_domain::run::Run;
use taco_domain::state_file::{Contents, Output, ResourceSummary, StateFile};
use taco_domain::state_version::StateVersionStatus;
use taco_domain::variable::VariableCategory;
use taco_domain::variable_precedence::{EffectiveValue, JobVariable, variables_for_run};
use taco_domain::workspace::Workspace;

use crate::bound_output_cache::StateOutputs;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::secret_reads::{Reader, SecretRead};

/// Outputs of states and plans that were read for a phase.
#[derive(Clone, Default)]
pub(crate) struct ReadOutputs {
    states: BTreeMap<StateVersionId, Arc<StateOutputs>>,
    /// `None` for a plan that nobody can read.
    plans: BTreeMap<RunId, Arc<Option<BTreeMap<String, PlannedOutput>>>>,
}

/// Outputs that have to be read before a phase can be taken.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct UnreadOutputs {
    states: Vec<StateVersionId>,
    plans: Vec<RunId>,
}

impl UnreadOutputs {
    fn is_empty(&self) -> bool {
        self.states.is_empty() && self.plans.is_empty()
    }
}

/// Bound variables as a run gets them, and what it remembers of them.
#[derive(Clone, Default)]
pub(crate) struct GivenVariables {
    pub(crate) variables: Vec<JobVariable>,
    pub(crate) bound: Vec<BoundVariable>,
}

/// Reason why a phase cannot have its bound variables now.
pub(crate) enum NotGiven {
    Unread(UnreadOutputs),
    /// The run fails with this.
    Problem(String),
}

/// What a binding leads to, as far as it was read.
enum Found<'a> {
    Output(OutputSource<'a>, Output),
    Unread,
}

/// The bound variables of a run's phase, from the state that its transaction sees.
pub(crate) struct BoundValues<'a> {
    pub(crate) state: &'a OrganizationState,
    pub(crate) workspace: &'a Workspace,
    pub(crate) run: &'a Run,
    /// The key of the organization's digests.
    pub(crate) key: &'a [u8; 32],
    pub(crate) read: &'a ReadOutputs,
}

impl BoundValues<'_> {
    /// What a plan takes is what producers say now. An apply gets what its plan had, whatever they say since.
    /// `run_variables` came with the run.
    pub(crate) fn give(
        &self,
        phase: PhaseKind,
        run_variables: &[(String, String)],
    ) -> Result<GivenVariables, NotGiven> {
        match phase {
            PhaseKind::Plan => self.for_plan(run_variables),
            PhaseKind::Apply => self.for_apply(),
        }
    }

    fn for_plan(&self, run_variables: &[(String, String)]) -> Result<GivenVariables, NotGiven> {
        let mut given = GivenVariables::default();
        let mut unread = UnreadOutputs::default();
        if self.state.bindings_of(self.workspace.id).next().is_none() {
            return Ok(given);
        }
        for variable in variables_for_run(self.state, self.workspace, run_variables) {
            let EffectiveValue::Bound(id) = variable.value else { continue };
            let Some(binding) = self.state.bindings.get(&id) else { continue };
            let found = self.find(binding, &mut unread).and_then(|found| match found {
                Found::Unread => Ok(None),
                Found::Output(source, output) => bound_value(self.key, binding, source, &output).map(Some),
            });
            match found {
                Ok(Some((bound, variable))) => {
                    given.bound.push(bound);
                    given.variables.push(variable);
                }
                Ok(None) => {}
                Err(problem) => return Err(NotGiven::Problem(problem.of(binding))),
            }
        }
        if unread.is_empty() { Ok(given) } else { Err(NotGiven::Unread(unread)) }
    }

    /// The output that a run's plan is given for a binding.
    fn find(&self, binding: &Binding, unread: &mut UnreadOutputs) -> Result<Found<'_>, BindingProblem> {
        let producer = self.state.sharing_producer(binding, self.workspace)?;
        let name = producer.name.as_str();
        let source = |state_version, announced_by| OutputSource {
            producer: producer.id,
            producer_name: name,
            commit: self.state.workspace_outputs.get(&producer.id).map(|outputs| outputs.number),
            state_version,
            announced_by,
        };
        // In a walk that only plans, what the producer's plan announces counts where it is known.
        if let Some(plan) = self.state.plan_shown_to(self.run.id, producer.id) {
            let Some(announced) = self.read.plans.get(&plan.id) else {
                unread.plans.push(plan.id);
                return Ok(Found::Unread);
            };
            match announced_output(announced.as_ref().as_ref(), &binding.output) {
                Announced::Value(output) => return Ok(Found::Output(source(None, Some(plan.id)), output)),
                Announced::Removed => return Err(BindingProblem::Removed(name.to_owned())),
                Announced::Nothing => {}
            }
        }
        if let Some(problem) = self.state.binding_problem(binding, self.workspace) {
            return Err(problem);
        }
        let version = producer.current_state_version.ok_or_else(|| BindingProblem::NeverApplied(name.to_owned()))?;
        let Some(outputs) = self.read.states.get(&version) else {
            unread.states.push(version);
            return Ok(Found::Unread);
        };
        match outputs.as_ref() {
            Err(why) => Err(BindingProblem::Unreadable { producer: name.to_owned(), why: why.clone() }),
            Ok(outputs) => match outputs.get(&binding.output) {
                Some(output) => Ok(Found::Output(source(Some(version), None), output.clone())),
                None => {
                    let there = outputs.keys().cloned().collect();
                    Err(BindingProblem::Missing { producer: name.to_owned(), there })
                }
            },
        }
    }

    fn for_apply(&self) -> Result<GivenVariables, NotGiven> {
        let mut given = GivenVariables { variables: Vec::new(), bound: self.run.bound.clone() };
        let mut unread = UnreadOutputs::default();
        for bound in &self.run.bound {
            let producer = self.state.workspaces.get(&bound.producer);
            let producer = producer.map_or("a workspace that was deleted", |producer| producer.name.as_str());
            let gone = || BindingProblem::Changed(producer.to_owned());
            let problem =
                |problem: BindingProblem| NotGiven::Problem(problem.about(&bound.key, bound.category, &bound.output));
            let Some(version) = bound.state_version else { return Err(problem(gone())) };
            match self.read.states.get(&version).map(Arc::as_ref) {
                None => unread.states.push(version),
                Some(outputs) => {
                    let output = outputs.as_ref().ok().and_then(|outputs| outputs.get(&bound.output));
                    let output = output.ok_or_else(|| problem(gone()))?;
                    given.variables.push(value_of_plan(self.key, bound, producer, output).map_err(problem)?);
                }
            }
        }
        if unread.is_empty() { Ok(given) } else { Err(NotGiven::Unread(unread)) }
    }
}

/// What a plan says of an output.
enum Announced {
    Value(Output),
    Removed,
    /// It stays as it is, or is known only after the apply.
    Nothing,
}

fn announced_output(planned: Option<&BTreeMap<String, PlannedOutput>>, name: &str) -> Announced {
    let Some(planned) = planned.and_then(|planned| planned.get(name)) else { return Announced::Nothing };
    match (planned.action, &planned.value, &planned.detailed_type) {
        (OutputAction::Removed, ..) => Announced::Removed,
        (OutputAction::Created | OutputAction::Changed, Some(value), Some(detailed_type))
            if planned.unknown == Unknown::Nothing =>
        {
            let (value, detailed_type) = (value.clone(), detailed_type.clone());
            Announced::Value(Output { value, detailed_type, sensitive: planned.sensitive })
        }
        _ => Announced::Nothing,
    }
}

/// The variables that a workspace's bindings stand for, without values: they count among its own inputs by what they are
/// bound to.
pub(crate) fn bound_variables_without_values(state: &OrganizationState, workspace: &Workspace) -> Vec<JobVariable> {
    let of = |binding: &Binding| JobVariable {
        key: binding.key.clone(),
        value: String::new(),
        category: binding.category,
        hcl: false,
        sensitive: true,
        bound_to: Some(binding.own_input()),
    };
    state.counting_bindings(workspace).into_iter().map(of).collect()
}

/// A job's variables with those that are bound: what is bound takes the place of what has the same key.
pub(crate) fn with_bound(mut variables: Vec<JobVariable>, bound: Vec<JobVariable>) -> Vec<JobVariable> {
    let is_bound = |key: &str, category: VariableCategory| {
        bound.iter().any(|bound| bound.key == key && bound.category == category)
    };
    variables.retain(|variable| !is_bound(&variable.key, variable.category));
    variables.extend(bound);
    variables.sort_by(|one, other| (&one.key, one.category).cmp(&(&other.key, other.category)));
    variables
}

#[boxed]
impl ControlPlane {
    /// Reads what is missing.
    pub(crate) async fn read_bound_outputs(
        &self,
        org: &OrganizationSnapshot,
        unread: UnreadOutputs,
        mut read: ReadOutputs,
    ) -> Result<ReadOutputs, Error> {
        let mut org = org.clone();
        org.state = org.last_seen();
        for id in unread.states {
            if let Entry::Vacant(entry) = read.states.entry(id) {
                entry.insert(self.outputs_of_state(&org, id).await?);
            }
        }
        for id in unread.plans {
            if let Entry::Vacant(entry) = read.plans.entry(id) {
                let evidence = match org.state.runs.get(&id) {
                    Some(run) => self.plan_evidence(&org, run).await?,
                    None => None,
                };
                entry.insert(Arc::new(evidence.map(|evidence| evidence.outputs)));
            }
        }
        Ok(read)
    }

    /// An error only where it is worth trying again: a run must not wait for what is gone for good.
    async fn outputs_of_state(
        &self,
        org: &OrganizationSnapshot,
        id: StateVersionId,
    ) -> Result<Arc<StateOutputs>, Error> {
        let known = self.shared.bound_outputs.get(id);
        if let Some(known) = known.filter(|_| is_stored(org, id)) {
            return Ok(known);
        }
        Ok(self.shared.bound_outputs.insert(id, self.read_outputs_of_state(org, id).await?))
    }

    async fn read_outputs_of_state(
        &self,
        org: &OrganizationSnapshot,
        id: StateVersionId,
    ) -> Result<StateOutputs, Error> {
        let org = self.with_history(org.clone(), id).await?;
        let Some(version) = org.state.state_versions.get(&id) else {
            return Ok(Err("its state version was deleted".to_owned()));
        };
        if version.status != StateVersionStatus::Finalized {
            return Ok(Err("the data of its state was deleted".to_owned()));
        }
        let file: Result<StateFile<_, ResourceSummary>, Error> = self.read_state(&org, version).await;
        match file {
            Ok(StateFile { contents: Contents::Plain(plain), .. }) => Ok(Ok(plain.outputs)),
            Ok(StateFile { contents: Contents::Encrypted, .. }) => Ok(Err("its engine encrypted it".to_owned())),
            Err(Error::Corrupt(error)) => {
                tracing::warn!(
                    event = "bound_outputs_unreadable", state_version = %id, %error,
                    "a state that others are bound to cannot be read"
                );
                Ok(Err("it is damaged; whoever runs this site finds the details in its log".to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    /// Tells the audit trail of sensitive outputs that a run is given, before it gets them.
    pub(crate) async fn record_given_secrets(&self, org: &OrganizationSnapshot, run: RunId, bound: &[BoundVariable]) {
        let mut reads: Vec<SecretRead> = Vec::new();
        for bound in bound.iter().filter(|bound| bound.sensitive) {
            let read = match (bound.announced_by, bound.state_version) {
                (Some(plan), _) => SecretRead::Plan(plan),
                (None, Some(version)) => SecretRead::Outputs(version),
                (None, None) => continue,
            };
            if !reads.contains(&read) {
                reads.push(read);
            }
        }
        for read in reads {
            let reader = Reader { actor: taco_domain::Author::Run(run).to_string(), token: None, request: None };
            self.record_secret_read(org, reader, read).await;
        }
    }
}

/// True if a state version in memory has its data.
fn is_stored(org: &OrganizationSnapshot, id: StateVersionId) -> bool {
    org.state.state_versions.get(&id).is_some_and(|version| version.status == StateVersionStatus::Finalized)
}

/// Reason why a unit of a walk cannot be planned: a bound variable has no value, and no plan in the walk announces one.
pub(crate) fn unplannable(
    state: &OrganizationState,
    workspace: &Workspace,
    announces: impl Fn(WorkspaceId, &str) -> bool,
) -> Option<String> {
    state.counting_bindings(workspace).into_iter().find_map(|binding| {
        let problem = state.binding_problem(binding, workspace)?;
        let is_announced = binding.producer.is_some_and(|producer| announces(producer, &binding.output));
        let about_outputs = matches!(problem, BindingProblem::NeverApplied(_) | BindingProblem::Missing { .. });
        let sentence = || match &problem {
            BindingProblem::NeverApplied(producer) => {
                format!("it cannot be planned before {producer} is applied: {}", problem.of(binding))
            }
            _ => format!("it cannot be planned: {}", problem.of(binding)),
        };
        (!(about_outputs && is_announced)).then(sentence)
    })
}
