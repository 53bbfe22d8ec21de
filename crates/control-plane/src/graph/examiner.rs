//! Examination of states and plans for evidence: which outputs of which other units they were made from. Any server does
//! it, in the background and before a question about the graph is answered; what was examined is noted in the same commit,
//! so that nobody does it twice. What lay in the bucket before there was a graph is taken in the same way.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures::{StreamExt as _, stream};
use serde_json::value::RawValue;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::graph::consumption::{Consumption, EXAMINER};
use taco_domain::graph::dependency::{Dependency, Producer};
use taco_domain::graph::echo::used_by_echo;
use taco_domain::graph::findings::{
    Findings, PlanFindings, PlanOutcome, PlanRead, ReadValue, StateFindings, StateRead,
};
use taco_domain::graph::local_references::LocalReferences;
use taco_domain::graph::output_commit::UsedOutputs;
use taco_domain::graph::plan_evidence::{PlanEvidence, UnreadablePlan};
use taco_domain::graph::producer_address::ProducerAddress;
use taco_domain::graph::state_evidence::{OutputRead, ReadVia, StateEvidence};
use taco_domain::graph::token::{Token, TokenKey};
use taco_domain::id::{OrganizationId, WorkspaceId};
use taco_domain::output::{OutputDigest, digest_value};
use taco_domain::run::Run;
use taco_domain::run_status::RunStatus;
use taco_domain::state_file::StateFileError;
use taco_domain::state_version::{StateOrigin, StateVersion, StateVersionStatus};
use taco_domain::workspace::Workspace;
use taco_ledger::Transaction;

use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::privileged::Privileged;
use crate::uploaded_plans::PlanForm;

/// A question examines so many units before it is answered; of the others it says that they were not examined yet.
const EXAMINED_BEFORE_ANSWER: usize = 64;
/// Units whose states are read at the same time.
const EXAMINED_AT_ONCE: usize = 4;
/// The newest runs of a unit that are looked at for plans when nothing is known of it.
const RUNS_LOOKED_AT: usize = 10;

/// The number of the newest commit up to which this server knows each organization to be examined.
#[derive(Default)]
pub(crate) struct ExaminedLedgers(Mutex<HashMap<OrganizationId, u64>>);

impl ExaminedLedgers {
    fn is_examined(&self, organization: OrganizationId, seq: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&organization).is_some_and(|known| *known >= seq)
    }

    fn note(&self, organization: OrganizationId, seq: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(organization, seq);
    }
}

#[boxed]
impl ControlPlane {
    /// The organization after its newest states and plans were examined, as far as that takes no longer than an answer may.
    /// If the bucket does not let it, the answer says what is not known.
    pub(crate) async fn with_evidence(&self, mut org: OrganizationSnapshot) -> Result<OrganizationSnapshot, Error> {
        match self.examine_some(&org, EXAMINED_BEFORE_ANSWER).await {
            Ok(0) => {}
            Ok(_) => org.state = org.last_seen(),
            Err(error) => tracing::warn!(
                event = "graph_not_examined", %error,
                "newest states could not be examined before a question about the graph"
            ),
        }
        Ok(org)
    }

    /// Examines at most so many units, and tells how many had something new.
    async fn examine_some(&self, org: &OrganizationSnapshot, limit: usize) -> Result<usize, Error> {
        if self.shared.examined_ledgers.is_examined(org.id(), org.state.seq()) {
            return Ok(0);
        }
        let due: Vec<WorkspaceId> = due(&org.state).take(limit).collect();
        if due.is_empty() {
            self.shared.examined_ledgers.note(org.id(), org.state.seq());
            return Ok(0);
        }
        let examining = stream::iter(due).map(|workspace| async move {
            self.take_in_first_outputs(org, workspace).await?;
            self.examine(org, workspace).await
        });
        let outcomes: Vec<Result<(), Error>> = examining.buffer_unordered(EXAMINED_AT_ONCE).collect().await;
        let examined = outcomes.len();
        for outcome in outcomes {
            match outcome {
                // The workspace was deleted meanwhile.
                Ok(()) | Err(Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(examined)
    }

    /// Examines a unit's newest state, and the plans of its runs that ended since it was examined last.
    async fn examine(&self, org: &OrganizationSnapshot, workspace: WorkspaceId) -> Result<(), Error> {
        let mut org = org.clone();
        org.state = org.last_seen();
        let unit: &Workspace = org.get(&workspace)?;
        let examination = self.reading(&org);
        let state = match org.state.current_state_version(unit).cloned() {
            Some(version) => {
                self.take_in_outputs(&org, workspace).await?;
                Some(self.examine_state(&examination, &version).await?)
            }
            None => None,
        };
        let over = unexamined_runs_of(&org.state, workspace).map(|run| run.number).collect();
        let mut plans = Vec::new();
        for run in unexamined_runs(&org.state, workspace) {
            plans.push(self.examine_plan(&examination, &run).await?);
        }
        let (findings, now) = (Findings { state, plans, over }, self.now());
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            if !tx.state().workspaces.contains(&workspace) {
                return Ok(());
            }
            let examined = tx.state().examined(workspace, &findings, now);
            if tx.state().consumptions.get(&workspace) != Some(&examined.consumption) {
                tx.put(&examined.consumption);
            }
            examined.put.iter().for_each(|edge| tx.put(edge));
            examined.delete.iter().for_each(|id| tx.delete::<Dependency>(id));
            Ok(())
        };
        org.commit(Self::own_intent("graph.examine"), decide).await
    }

    pub(crate) fn reading<'a>(&'a self, org: &'a OrganizationSnapshot) -> Reading<'a> {
        let (key, hosts) = (self.output_key(org), &self.shared.hosts);
        Reading { org, key, tokens: TokenKey::of(&key), hosts, ambient: self.shared.echoes.ambient(org.id()) }
    }

    async fn examine_state(&self, reading: &Reading<'_>, version: &StateVersion) -> Result<StateFindings, Error> {
        let reads = match self.state_evidence(reading, version).await? {
            Ok(evidence) if evidence.encrypted => Err("its state is encrypted".to_owned()),
            Ok(evidence) => {
                let reads = reading.state_reads(&evidence);
                self.shared.echoes.note(version, evidence.tokens);
                Ok(reads)
            }
            Err(why) => Err(why),
        };
        let starter = version.run.and_then(|run| reading.org.state.runs.get(&run)).map(Run::person_behind);
        Ok(StateFindings {
            version: version.id,
            at: version.created_at,
            by: starter.unwrap_or(version.created_by),
            run: version.run,
            is_apply: matches!(version.origin, StateOrigin::Apply | StateOrigin::Push),
            reads,
        })
    }

    /// Evidence in a state; or why there will never be any.
    pub(crate) async fn state_evidence(
        &self,
        reading: &Reading<'_>,
        version: &StateVersion,
    ) -> Result<Result<StateEvidence, String>, Error> {
        if version.status != StateVersionStatus::Finalized {
            return Ok(Err("its state was deleted".to_owned()));
        }
        let key = reading.tokens;
        let read = self.read_state_with(reading.org, version, move |source| StateEvidence::read(source, &key)).await;
        match read {
            Ok(Ok(evidence)) => Ok(Ok(evidence)),
            Ok(Err(StateFileError::Read(error))) => Err(crate::blob_error::broken(error.to_string())),
            Ok(Err(error)) => Ok(Err(format!("its state cannot be read: {error}"))),
            Err(Error::Corrupt(error)) => {
                tracing::warn!(
                    event = "state_not_examined", workspace = %version.workspace, %error,
                    "a state that cannot be read tells nothing of what it was made from"
                );
                Ok(Err("its state is damaged".to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    async fn examine_plan(&self, reading: &Reading<'_>, run: &Run) -> Result<PlanFindings, Error> {
        let evidence = self.plan_evidence(reading.org, run).await?;
        Ok(PlanFindings {
            run: run.id,
            ended_at: run.entered_status_at(),
            by: run.person_behind(),
            outcome: outcome_of(&reading.org.state, run),
            own: run.own_inputs.clone(),
            reads: evidence.map(|evidence| reading.plan_reads(&evidence)),
            bound: run.bound.clone(),
        })
    }

    /// Evidence in a run's plan; `None` if it left none that can be read. Where the plan does not tell enough, the
    /// configuration's files are asked.
    pub(crate) async fn plan_evidence(
        &self,
        org: &OrganizationSnapshot,
        run: &Run,
    ) -> Result<Option<PlanEvidence>, Error> {
        let evidence = self.plan_evidence_with(org, run, LocalReferences::default()).await?;
        if !evidence.as_ref().is_some_and(|evidence| evidence.asks_for_files) {
            return Ok(evidence);
        }
        let locals = self.local_references(org, run).await?;
        if locals == LocalReferences::default() {
            return Ok(evidence);
        }
        self.plan_evidence_with(org, run, locals).await
    }

    pub(crate) async fn plan_evidence_with(
        &self,
        org: &OrganizationSnapshot,
        run: &Run,
        locals: LocalReferences,
    ) -> Result<Option<PlanEvidence>, Error> {
        let file = match self.plan_file(org, run, PlanForm::Json).await {
            Ok(Some(file)) => file,
            Ok(None) | Err(Error::Corrupt(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let read = self.read_download_with(file, move |source| PlanEvidence::read(source, &locals)).await;
        match read {
            Ok(Ok(evidence)) => Ok(Some(evidence)),
            Ok(Err(UnreadablePlan::Read(error))) => Err(crate::blob_error::broken(error.to_string())),
            Ok(Err(error)) => {
                tracing::info!(run = %run.id, %error, "a plan tells nothing of what it was made from");
                Ok(None)
            }
            Err(Error::Corrupt(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[boxed]
impl Privileged {
    /// Examines what is due in the organizations that this server has open, a batch of each. True if there is more.
    pub async fn examine_graphs(&self) -> Result<bool, Error> {
        let mut more = false;
        for org in self.organizations_in_memory() {
            more |= self.examine_some(&org, EXAMINED_BEFORE_ANSWER).await? > 0;
            more |= self.page_output_commits(&org).await?;
            if !more {
                self.find_echoes(&org).await?;
            }
        }
        Ok(more)
    }
}

/// The units with a newer state, or a run that ended later, than was examined.
fn due(state: &OrganizationState) -> impl Iterator<Item = WorkspaceId> {
    state.workspaces.iter().filter(|workspace| is_due(state, workspace)).map(|workspace| workspace.id)
}

fn is_due(state: &OrganizationState, workspace: &Workspace) -> bool {
    let has_evidence = || unexamined_runs_of(state, workspace.id).any(|run| is_evidence(state, run));
    let Some(examined) = state.consumptions.get(&workspace.id) else {
        return workspace.current_state_version.is_some() || has_evidence();
    };
    examined.examiner < EXAMINER || examined.state_version != workspace.current_state_version || has_evidence()
}

/// Runs of a unit that are over and were not examined, newest first.
fn unexamined_runs_of(state: &OrganizationState, workspace: WorkspaceId) -> impl Iterator<Item = &Run> {
    let examined = examined_by_these_rules(state, workspace);
    let below = examined.and_then(|examined| examined.examined_runs.as_ref()).map_or(0, |runs| runs.below);
    let runs = state.runs.by().workspace.under(&workspace).take_while(move |run| run.number >= below);
    runs.filter(move |run| run.status.is_final() && !examined.is_some_and(|examined| examined.has_examined(run)))
}

/// How far the unit was examined; `None` if it was not, or by older rules.
fn examined_by_these_rules(state: &OrganizationState, workspace: WorkspaceId) -> Option<&Consumption> {
    state.consumptions.get(&workspace).filter(|examined| examined.examiner >= EXAMINER)
}

/// Those of them that tell something, in the order in which they were made. Of a unit that was never examined, what came
/// before its last effective run tells nothing more.
fn unexamined_runs(state: &OrganizationState, workspace: WorkspaceId) -> Vec<Run> {
    let is_new = examined_by_these_rules(state, workspace).is_none();
    let mut runs: Vec<Run> = Vec::new();
    for run in unexamined_runs_of(state, workspace).filter(|run| is_evidence(state, run)) {
        let is_effective = outcome_of(state, run) != PlanOutcome::Incomplete;
        if is_effective || !is_new || runs.len() < RUNS_LOOKED_AT {
            runs.push(run.clone());
        }
        if is_new && is_effective {
            break;
        }
    }
    runs.reverse();
    runs
}

/// True if the run is over and has left a plan of what the unit is, or a state.
fn is_evidence(state: &OrganizationState, run: &Run) -> bool {
    if !plans_the_unit(state, run) {
        return false;
    }
    let has_plan = run.plan.files.as_ref().is_some_and(|files| files.contains_key(PlanForm::Json.blobs()));
    matches!(run.status, RunStatus::Applied | RunStatus::PlannedAndFinished) || (run.status.is_final() && has_plan)
}

/// False for a speculative plan of another configuration than the unit's: it tells of what may be one day.
fn plans_the_unit(state: &OrganizationState, run: &Run) -> bool {
    let usable = || state.usable_configuration(run.workspace);
    !run.options.plan_only || usable().is_some_and(|usable| usable.id == run.configuration_version)
}

/// What became of a run's plan, as far as its unit's consumption is concerned.
pub(crate) fn outcome_of(state: &OrganizationState, run: &Run) -> PlanOutcome {
    let options = &run.options;
    let covers_all = options.target_addrs.is_empty() && !options.refresh_only && run.preview.is_none();
    match run.status {
        RunStatus::Applied if covers_all && options.is_destroy => PlanOutcome::Destroyed,
        RunStatus::Applied if covers_all => PlanOutcome::Applied,
        RunStatus::PlannedAndFinished
            if covers_all && !options.is_destroy && run.has_changes == Some(false) && plans_the_unit(state, run) =>
        {
            PlanOutcome::Unchanged
        }
        _ => PlanOutcome::Incomplete,
    }
}

/// What is needed to make sense of evidence: where addresses lead, and what digests are made with.
pub(crate) struct Reading<'a> {
    pub(crate) org: &'a OrganizationSnapshot,
    pub(crate) key: [u8; 32],
    pub(crate) tokens: TokenKey,
    pub(crate) hosts: &'a [String],
    /// Tokens of values that are common among the organization's states.
    pub(crate) ambient: Arc<HashSet<Token>>,
}

impl Reading<'_> {
    /// The unit that an address leads to, or the address.
    pub(crate) fn producer(&self, address: &ProducerAddress) -> Producer {
        let name = address.workspace_name(self.hosts, self.org.entry().name.as_str());
        let unit = name.and_then(|name| self.org.state.workspace_named(&name));
        unit.map_or_else(|| Producer::Address(address.to_string()), |unit| Producer::Unit(unit.id))
    }

    /// Reads of a state, one for each producer.
    fn state_reads(&self, evidence: &StateEvidence) -> Vec<StateRead> {
        let mut reads: BTreeMap<Producer, Vec<usize>> = BTreeMap::new();
        for (index, read) in evidence.reads.iter().enumerate() {
            if let Some(address) = &read.producer {
                reads.entry(self.producer(address)).or_default().push(index);
            }
        }
        reads.into_iter().map(|(producer, indexes)| self.state_read(producer, evidence, &indexes)).collect()
    }

    fn state_read(&self, producer: Producer, evidence: &StateEvidence, indexes: &[usize]) -> StateRead {
        let together: Vec<&OutputRead> = indexes.iter().map(|index| &evidence.reads[*index]).collect();
        let mut values = BTreeMap::new();
        for read in &together {
            for (name, value) in &read.values {
                let detailed_type = value.detailed_type.as_deref().filter(|_| read.via == ReadVia::RemoteState);
                values.extend(
                    self.digest(&producer, name, &value.value, detailed_type).map(|found| (name.clone(), found)),
                );
            }
        }
        let users = evidence.users.iter().filter(|user| user.reads.iter().any(|read| indexes.contains(read)));
        let held: Vec<_> = users.map(|user| user.held.clone()).collect();
        let echoes = used_by_echo(evidence, indexes, &self.tokens, |token| self.ambient.contains(&token));
        let addresses: BTreeSet<&String> = together.iter().flat_map(|read| &read.users).collect();
        StateRead {
            producer,
            data: together.iter().map(|read| read.data.clone()).collect(),
            users: addresses.into_iter().cloned().collect(),
            user_count: held.len() as u64,
            values,
            used: if echoes.sure.is_empty() { UsedOutputs::All } else { UsedOutputs::Names(echoes.sure) },
            maybe: echoes.cannot_tell,
            held,
        }
    }

    fn plan_reads(&self, evidence: &PlanEvidence) -> Vec<PlanRead> {
        let mut reads: BTreeMap<Producer, PlanRead> = BTreeMap::new();
        for read in &evidence.reads {
            let Some(address) = &read.producer else { continue };
            let producer = self.producer(address);
            let known = reads.entry(producer.clone()).or_insert_with(|| PlanRead::none_of(producer));
            known.data.push(read.data.clone());
            known.users.extend(read.users.iter().cloned());
            known.user_count += read.user_count;
            known.used = known.used.clone().and(&read.used);
            for (name, value) in &read.values {
                let found = self.digest(&known.producer, name, &value.value, None);
                known.values.extend(found.map(|found| (name.clone(), found)));
            }
        }
        reads.into_values().collect()
    }

    /// The value of an output as its producer committed it, if it did so lately under any type; otherwise as it was read.
    /// Plans do not tell types, and the `tfe` provider guesses them.
    fn digest(
        &self,
        producer: &Producer,
        name: &str,
        value: &RawValue,
        detailed_type: Option<&RawValue>,
    ) -> Option<ReadValue> {
        let digest = |detailed_type: &RawValue| {
            let (digest, detailed_type) = digest_value(&self.key, detailed_type, value).ok()?;
            Some(ReadValue { digest, detailed_type, tokens: self.tokens.of_value(value) })
        };
        if let Some(detailed_type) = detailed_type {
            return digest(detailed_type);
        }
        let mut as_committed = self.committed_types(producer, name).into_iter();
        let committed = as_committed.find_map(|(detailed_type, known)| {
            let found = digest(&detailed_type)?;
            (found.digest == known).then_some(found)
        });
        let newest = || self.committed_types(producer, name).into_iter().next().and_then(|(newest, _)| digest(&newest));
        let dynamic = || digest(&RawValue::from_string("\"dynamic\"".to_owned()).ok()?);
        committed.or_else(newest).or_else(dynamic)
    }

    /// The types that an output of a producer has lately had, newest first, with its digests.
    fn committed_types(&self, producer: &Producer, name: &str) -> Vec<(Box<RawValue>, OutputDigest)> {
        let Producer::Unit(producer) = producer else { return Vec::new() };
        let state = &self.org.state;
        let current = state.workspace_outputs.get(producer).and_then(|outputs| outputs.outputs.get(name));
        let commits = state.output_commits.by().workspace.under(producer).rev();
        let earlier = commits.filter_map(|commit| commit.changes.get(name)?.before.as_ref());
        let all = current.map(|output| &output.committed).into_iter().chain(earlier);
        all.filter_map(|output| Some((RawValue::from_string(output.detailed_type.clone()).ok()?, output.digest)))
            .collect()
    }
}
