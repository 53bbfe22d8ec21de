//! Findings: what the examination of a unit's newest state and plans has found, and what follows from it for the unit's
//! dependencies. Rules of when a unit counts as having consumed an output are here, and nowhere else.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use taco_words::graph::{ConsumedBy, Grade};

use crate::OrganizationState;
use crate::author::Author;
use crate::bound_value::BoundVariable;
use crate::graph::bound_edges::observe_bindings;
use crate::graph::consumption::{Consumption, EXAMINER, EffectiveApply, OwnInputs};
use crate::graph::dependency::{
    Consumed, ConsumedOutput, Dependency, DependencyId, MAX_LISTED_USERS, Observation, Producer,
};
use crate::graph::output_commit::{OutputCommitNumber, UsedOutputs};
use crate::graph::token::{HeldTokens, Token, ValueTokens};
use crate::id::{RunId, StateVersionId, WorkspaceId};
use crate::output::OutputDigest;

/// What was found in a unit's newest state and in its plans that were not examined yet.
#[derive(Clone, Default, Debug)]
pub struct Findings {
    pub state: Option<StateFindings>,
    /// Oldest first.
    pub plans: Vec<PlanFindings>,
    /// Numbers of the unit's runs that were over when this was found.
    pub over: BTreeSet<u64>,
}

/// What a state tells of the states that it was made from.
#[derive(Clone, Debug)]
pub struct StateFindings {
    pub version: StateVersionId,
    pub at: Timestamp,
    pub by: Author,
    /// The run that wrote it; `None` for a client that ran the engine itself.
    pub run: Option<RunId>,
    /// False if it was restored or rescued: such a state is no proof that anything was consumed.
    pub is_apply: bool,
    /// `Err` says why it cannot be read.
    pub reads: Result<Vec<StateRead>, String>,
}

/// A producer's outputs in a state: one data block, or several of the same producer together.
#[derive(Clone, Debug)]
pub struct StateRead {
    pub producer: Producer,
    pub data: Vec<String>,
    pub users: Vec<String>,
    pub user_count: u64,
    pub values: BTreeMap<String, ReadValue>,
    pub used: UsedOutputs,
    /// Outputs of which nothing tells whether they are used.
    pub maybe: BTreeSet<String>,
    /// Tokens that each resource holds that depends on what was read.
    pub held: Vec<HeldTokens>,
}

/// The value of an output as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadValue {
    pub digest: OutputDigest,
    pub detailed_type: String,
    pub tokens: ValueTokens,
}

/// What the plan of a run that is over tells.
#[derive(Clone, Debug)]
pub struct PlanFindings {
    pub run: RunId,
    pub ended_at: Timestamp,
    pub by: Author,
    pub outcome: PlanOutcome,
    pub own: Option<OwnInputs>,
    /// `None` if the run left no plan that can be read.
    pub reads: Option<Vec<PlanRead>>,
    /// What the run was given for bound variables.
    pub bound: Vec<BoundVariable>,
}

/// What became of a plan, as far as its unit's consumption is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanOutcome {
    /// All of it was applied.
    Applied,
    /// It found nothing to change.
    Unchanged,
    /// Everything was destroyed.
    Destroyed,
    /// It failed, or covered only a part.
    Incomplete,
}

/// A producer's outputs in a plan.
#[derive(Clone, Debug)]
pub struct PlanRead {
    pub producer: Producer,
    pub data: Vec<String>,
    pub users: Vec<String>,
    pub user_count: u64,
    pub used: UsedOutputs,
    /// Those that were read while planning.
    pub values: BTreeMap<String, ReadValue>,
}

impl PlanRead {
    /// A producer of which nothing is known yet.
    pub fn none_of(producer: Producer) -> Self {
        Self {
            producer,
            data: Vec::new(),
            users: Vec::new(),
            user_count: 0,
            used: UsedOutputs::Names(BTreeSet::new()),
            values: BTreeMap::new(),
        }
    }
}

/// What findings change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Examined {
    pub put: Vec<Dependency>,
    pub delete: Vec<DependencyId>,
    pub consumption: Consumption,
}

impl OrganizationState {
    /// The unit's dependencies and consumption after these findings.
    pub fn examined(&self, workspace: WorkspaceId, findings: &Findings, now: Timestamp) -> Examined {
        let before: BTreeMap<DependencyId, Dependency> =
            self.dependencies_of(workspace).map(|edge| (edge.id, edge.clone())).collect();
        let known = self.consumptions.get(&workspace).cloned();
        let consumption = known.unwrap_or_else(|| Consumption::new(workspace));
        let mut examination =
            Examination { state: self, workspace, now, edges: before.clone(), consumption, knows_state: false };
        if let Some(state) = &findings.state {
            examination.take_in_state(state);
        }
        for plan in findings.plans.iter().filter(|plan| !self.has_examined(workspace, plan.run)) {
            examination.take_in_plan(plan, findings.state.as_ref());
        }
        examination.take_in_numbers(&findings.over);
        observe_bindings(self, workspace, &mut examination.edges);
        examination.consumption.examiner = EXAMINER;
        examination.take_in_readability(findings);
        let (forgotten, kept): (Vec<Dependency>, Vec<Dependency>) =
            examination.edges.into_values().partition(Dependency::is_forgotten);
        let delete = forgotten.into_iter().map(|edge| edge.id).filter(|id| before.contains_key(id));
        let put = kept.into_iter().filter(|edge| before.get(&edge.id).is_none_or(|old| differs(old, edge)));
        Examined { put: put.collect(), delete: delete.collect(), consumption: examination.consumption }
    }

    /// True if another server has examined this run meanwhile, and perhaps later ones.
    fn has_examined(&self, workspace: WorkspaceId, run: RunId) -> bool {
        let (examined, run) = (self.consumptions.get(&workspace), self.runs.get(&run));
        examined.zip(run).is_some_and(|(examined, run)| examined.has_examined(run))
    }

    /// The newest output commit of a unit after which its outputs were as they were read.
    pub fn matching_commit(
        &self,
        producer: WorkspaceId,
        used: &UsedOutputs,
        values: &BTreeMap<String, ConsumedOutput>,
    ) -> Option<OutputCommitNumber> {
        let current = self.workspace_outputs.get(&producer)?;
        let mut then: BTreeMap<&str, OutputDigest> =
            current.outputs.iter().map(|(name, output)| (name.as_str(), output.committed.digest)).collect();
        let mut number = current.number;
        loop {
            let names = values.keys().map(String::as_str).chain(then.keys().copied());
            let mut counting = names.filter(|name| used.includes(name));
            if counting.all(|name| values.get(name).map(|value| value.digest) == then.get(name).copied()) {
                return Some(number);
            }
            for (name, difference) in &self.output_commit(producer, number)?.changes {
                match &difference.before {
                    Some(before) => then.insert(name, before.digest),
                    None => then.remove(name.as_str()),
                };
            }
            number = number.checked_sub(1).filter(|number| *number > 0)?;
        }
    }
}

/// The time at which it was last seen is no news by itself.
fn differs(old: &Dependency, new: &Dependency) -> bool {
    let mut aged = new.clone();
    for (grade, seen) in &mut aged.observed {
        if let Some(before) = old.observed.get(grade) {
            seen.last = before.last;
            seen.state_version = before.state_version;
            seen.run = before.run;
        }
    }
    *old != aged
}

struct Examination<'a> {
    state: &'a OrganizationState,
    workspace: WorkspaceId,
    now: Timestamp,
    edges: BTreeMap<DependencyId, Dependency>,
    consumption: Consumption,
    /// The state was examined before: a run that was not, ended after that, whatever clocks say.
    knows_state: bool,
}

/// The parts of an observation that a read tells.
struct Seen<'a> {
    data: &'a [String],
    users: &'a [String],
    user_count: u64,
    used: &'a UsedOutputs,
    maybe: BTreeSet<String>,
    values: BTreeMap<String, OutputDigest>,
    state_version: Option<StateVersionId>,
    run: Option<RunId>,
}

impl Examination<'_> {
    fn edge(&mut self, producer: &Producer) -> &mut Dependency {
        let id = DependencyId::of(self.workspace, producer);
        let (workspace, now) = (self.workspace, self.now);
        self.edges.entry(id).or_insert_with(|| Dependency::new(workspace, producer, now))
    }

    fn observe(&mut self, producer: &Producer, grade: Grade, at: Timestamp, seen: Seen<'_>) {
        let edge = self.edge(producer);
        let first = edge.observed.get(&grade).map_or(at, |before| before.first.min(at));
        let listed = |all: &[String]| all.iter().take(MAX_LISTED_USERS).cloned().collect();
        let observation = Observation {
            first,
            last: at,
            used: seen.used.clone(),
            maybe: seen.maybe,
            data: listed(seen.data),
            users: listed(seen.users),
            user_count: seen.user_count,
            values: seen.values,
            tokens: BTreeMap::new(),
            state_version: seen.state_version,
            run: seen.run,
        };
        edge.observed.insert(grade, observation);
    }

    /// Forgets what was seen by this grade of producers that are not read any more.
    fn keep_observed<'p>(&mut self, grade: Grade, producers: impl Iterator<Item = &'p Producer>) {
        let kept: BTreeSet<DependencyId> =
            producers.map(|producer| DependencyId::of(self.workspace, producer)).collect();
        for edge in self.edges.values_mut().filter(|edge| !kept.contains(&edge.id)) {
            edge.observed.remove(&grade);
        }
    }

    fn take_in_numbers(&mut self, over: &BTreeSet<u64>) {
        let runs = self.state.runs.by().workspace.under(&self.workspace);
        let runs: BTreeSet<u64> = runs.map(|run| run.number).collect();
        let before = self.consumption.examined_runs.take().unwrap_or_default();
        self.consumption.examined_runs = Some(before.with(over, &runs));
    }

    fn take_in_state(&mut self, found: &StateFindings) {
        self.knows_state = self.consumption.state_version.replace(found.version) == Some(found.version);
        let Ok(reads) = &found.reads else { return };
        self.keep_observed(Grade::State, reads.iter().map(|read| &read.producer));
        for read in reads {
            let used = self.used_by_state(read);
            let seen = Seen {
                data: &read.data,
                users: &read.users,
                user_count: read.user_count,
                used: &used,
                maybe: read.maybe.clone(),
                values: read.values.iter().map(|(name, value)| (name.clone(), value.digest)).collect(),
                state_version: Some(found.version),
                run: found.run,
            };
            self.observe(&read.producer, Grade::State, found.at, seen);
            // What a run consumed, its plan tells.
            if found.is_apply && found.run.is_none() {
                self.consume_locally(found, read);
            }
        }
        if found.is_apply && found.run.is_none() && !self.knows_state {
            // A client that runs the engine itself is given nothing for bound variables, so nothing tells what it used.
            let read: BTreeSet<DependencyId> =
                reads.iter().map(|read| DependencyId::of(self.workspace, &read.producer)).collect();
            for edge in self.edges.values_mut().filter(|edge| !read.contains(&edge.id)) {
                let stays = |consumed: &Consumed| consumed.grade != Grade::Binding || consumed.at >= found.at;
                edge.consumed = edge.consumed.take().filter(stays);
            }
            let (at, by, state_version) = (found.at, found.by, Some(found.version));
            let newer_run = |effective: &EffectiveApply| effective.run.is_some() && effective.at >= at;
            if self.consumption.effective.as_ref().is_some_and(newer_run) {
                return;
            }
            self.consumption.effective = Some(EffectiveApply { at, by, run: None, state_version, own: None });
        }
    }

    /// The outputs of a read that resources hold. After a refresh they still hold those that were read before: then what
    /// was known to be used is so still.
    fn used_by_state(&self, read: &StateRead) -> UsedOutputs {
        let before = self.edges.get(&DependencyId::of(self.workspace, &read.producer));
        let known = before.and_then(|edge| Some((edge.observed.get(&Grade::State)?, edge.consumed.as_ref()?)));
        match (&read.used, known) {
            (UsedOutputs::All, Some((seen, consumed))) => match &seen.used {
                UsedOutputs::Names(names) if consumed.is_held(names, read) => seen.used.clone(),
                _ => UsedOutputs::All,
            },
            (used, _) => used.clone(),
        }
    }

    /// A state that a client wrote after running the engine itself. What it read is in it, and that proves nothing: a
    /// refresh reads, too. Its resources tell whether they took it.
    fn consume_locally(&mut self, found: &StateFindings, read: &StateRead) {
        let state = self.state;
        let edge = self.edge(&read.producer);
        let used = edge.used();
        let assumed = match &edge.consumed {
            None => !read.values.iter().any(|(name, value)| used.includes(name) && read.holds(&value.tokens)),
            Some(consumed) => match applied(consumed, read, &used) {
                LocalWrite::SameValues => {
                    let mut consumed = consumed.clone();
                    // What is not used may become so later.
                    for (name, value) in read.values.iter().filter(|(name, _)| !used.includes(name)) {
                        consumed.outputs.insert(name.clone(), value.into());
                    }
                    edge.consumed = Some(consumed);
                    return;
                }
                LocalWrite::ReadsOnly => return,
                LocalWrite::Applied => false,
                LocalWrite::Assumed => true,
            },
        };
        let outputs: BTreeMap<String, ConsumedOutput> =
            read.values.iter().map(|(name, value)| (name.clone(), value.into())).collect();
        let commit = edge.producer.and_then(|producer| state.matching_commit(producer, &used, &outputs));
        edge.consumed = Some(Consumed {
            how: ConsumedBy::Applied,
            grade: Grade::State,
            assumed,
            commit,
            outputs,
            at: found.at,
            by: found.by,
            run: None,
            state_version: Some(found.version),
            reason: None,
        });
    }

    fn take_in_plan(&mut self, found: &PlanFindings, state: Option<&StateFindings>) {
        self.consumption.run = Some(found.run);
        self.consumption.run_ended_at =
            Some(self.consumption.run_ended_at.unwrap_or(found.ended_at).max(found.ended_at));
        if found.outcome == PlanOutcome::Destroyed {
            self.keep_observed(Grade::Plan, std::iter::empty());
            for edge in self.edges.values_mut() {
                edge.consumed = None;
            }
            self.consumption.effective = None;
            return;
        }
        let own_state = state.filter(|state| state.run == Some(found.run));
        if let Some(reads) = &found.reads {
            self.keep_observed(Grade::Plan, reads.iter().map(|read| &read.producer));
            for read in reads {
                let seen = Seen {
                    data: &read.data,
                    users: &read.users,
                    user_count: read.user_count,
                    used: &read.used,
                    maybe: BTreeSet::new(),
                    values: read.values.iter().map(|(name, value)| (name.clone(), value.digest)).collect(),
                    state_version: None,
                    run: Some(found.run),
                };
                self.observe(&read.producer, Grade::Plan, found.ended_at, seen);
            }
        }
        let how = match found.outcome {
            PlanOutcome::Applied => ConsumedBy::Applied,
            PlanOutcome::Unchanged => ConsumedBy::Verified,
            PlanOutcome::Incomplete | PlanOutcome::Destroyed => return,
        };
        let is_overtaken = !self.knows_state
            && state.is_some_and(|state| state.is_apply && state.run.is_none() && state.at > found.ended_at);
        let bound = if is_overtaken { &[][..] } else { &found.bound };
        self.consume_by_run(found, bound, own_state, how);
        self.consumption.effective = Some(EffectiveApply {
            at: found.ended_at,
            by: found.by,
            run: Some(found.run),
            state_version: own_state.map(|state| state.version),
            own: found.own.clone(),
        });
    }

    /// A run that took in all that its plan had read. What was only read while applying is in the state that it wrote.
    fn consume_by_run(
        &mut self,
        found: &PlanFindings,
        bound: &[BoundVariable],
        own_state: Option<&StateFindings>,
        how: ConsumedBy,
    ) {
        let mut outputs: BTreeMap<Producer, (Grade, BTreeMap<String, ConsumedOutput>)> = BTreeMap::new();
        let in_state = own_state.and_then(|state| state.reads.as_ref().ok()).into_iter().flatten();
        for read in in_state {
            let values = read.values.iter().map(|(name, value)| (name.clone(), value.into()));
            outputs.insert(read.producer.clone(), (Grade::State, values.collect()));
        }
        for read in found.reads.iter().flatten() {
            let (grade, values) =
                outputs.entry(read.producer.clone()).or_insert_with(|| (Grade::Plan, BTreeMap::new()));
            *grade = Grade::Plan;
            values.extend(read.values.iter().map(|(name, value)| (name.clone(), value.into())));
        }
        for bound in bound {
            let producer = Producer::Unit(bound.producer);
            let (_, values) = outputs.entry(producer).or_insert_with(|| (Grade::Binding, BTreeMap::new()));
            values.entry(bound.output.clone()).or_insert_with(|| bound.into());
        }
        for (producer, (grade, outputs)) in outputs {
            // Nothing was read of it: the plan names it, and that is all.
            if outputs.is_empty() {
                continue;
            }
            let state = self.state;
            let edge = self.edge(&producer);
            let used = edge.used();
            let commit = edge.producer.and_then(|producer| state.matching_commit(producer, &used, &outputs));
            let given = bound.iter().filter(|bound| edge.producer == Some(bound.producer));
            let commit = commit.or_else(|| given.filter_map(|bound| bound.commit).max());
            edge.consumed = Some(Consumed {
                how,
                grade,
                assumed: false,
                commit,
                outputs,
                at: found.ended_at,
                by: found.by,
                run: Some(found.run),
                state_version: None,
                reason: None,
            });
        }
    }

    /// A state that cannot be read says nothing, unless a plan has told what it was made from.
    fn take_in_readability(&mut self, findings: &Findings) {
        let Some(state) = &findings.state else { return };
        let told = findings.plans.iter().any(|plan| state.run == Some(plan.run) && plan.reads.is_some());
        // The same state is looked at again when a run has ended.
        let was_told = self.state.consumptions.get(&self.workspace).is_some_and(|before| {
            before.examiner >= EXAMINER && before.state_version == Some(state.version) && before.unreadable.is_none()
        });
        self.consumption.unreadable = match &state.reads {
            Err(why) if !told && !was_told => Some(why.clone()),
            _ => None,
        };
    }
}

impl From<&ReadValue> for ConsumedOutput {
    fn from(value: &ReadValue) -> Self {
        Self { digest: value.digest, detailed_type: value.detailed_type.clone(), tokens: value.tokens.clone() }
    }
}

impl Consumed {
    /// True if resources that depend on what was read hold all of these outputs as they were consumed.
    fn is_held(&self, names: &BTreeSet<String>, read: &StateRead) -> bool {
        !names.is_empty()
            && names.iter().all(|name| self.outputs.get(name).is_some_and(|output| read.holds(&output.tokens)))
    }
}

impl From<&BoundVariable> for ConsumedOutput {
    fn from(bound: &BoundVariable) -> Self {
        let detailed_type = bound.detailed_type.clone();
        Self { digest: bound.digest, detailed_type, tokens: ValueTokens::default() }
    }
}

impl StateRead {
    /// True if a resource that depends on what was read holds one of these tokens.
    fn holds(&self, tokens: &ValueTokens) -> bool {
        self.held.iter().any(|held| tokens.all().any(|token| held.holds(token)))
    }
}

/// What a client's write of a state did with the outputs that had changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LocalWrite {
    /// None that it uses had changed.
    SameValues,
    /// Its resources took the new values.
    Applied,
    /// A resource still holds an old value alone: it was a refresh, or covered only a part.
    ReadsOnly,
    /// No resource shows either value.
    Assumed,
}

/// The echo test.
fn applied(consumed: &Consumed, read: &StateRead, used: &UsedOutputs) -> LocalWrite {
    let names = consumed.outputs.keys().chain(read.values.keys()).collect::<BTreeSet<_>>();
    let changed: Vec<&String> = names
        .into_iter()
        .filter(|name| used.includes(name))
        .filter(|name| {
            let (old, new) = (consumed.outputs.get(*name), read.values.get(*name));
            old.map(|old| old.digest) != new.map(|new| new.digest)
        })
        .collect();
    if changed.is_empty() {
        return LocalWrite::SameValues;
    }
    let mut taken = false;
    for name in changed {
        let old = consumed.outputs.get(name).map(|old| old.tokens.to_set()).unwrap_or_default();
        let new = read.values.get(name).map(|new| new.tokens.to_set()).unwrap_or_default();
        let gone: Vec<Token> = old.difference(&new).copied().collect();
        let came: Vec<Token> = new.difference(&old).copied().collect();
        for held in &read.held {
            let (has_old, has_new) =
                (gone.iter().any(|token| held.holds(*token)), came.iter().any(|token| held.holds(*token)));
            if has_old && !has_new {
                return LocalWrite::ReadsOnly;
            }
            taken |= has_new;
        }
    }
    if taken { LocalWrite::Applied } else { LocalWrite::Assumed }
}
