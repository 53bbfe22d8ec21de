//! Echoes: where no data block reads a producer, resources of its consumers still hold the values that it made. They are
//! looked for among all states of an organization when these have been quiet for a moment, and propose edges; they never
//! make a unit clean.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use taco_domain::OrganizationState;
use taco_domain::graph::dependency::{Dependency, DependencyId, Observation, Producer};
use taco_domain::graph::echo::{EchoEdge, EchoState, ambient_tokens, echo_edges};
use taco_domain::graph::output_commit::UsedOutputs;
use taco_domain::graph::state_evidence::EchoTokens;
use taco_domain::graph::token::{Token, ValueTokens};
use taco_domain::graph::words::Grade;
use taco_domain::id::{OrganizationId, StateVersionId, WorkspaceId};
use taco_domain::state_version::StateVersion;
use taco_ledger::Transaction;

use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;

/// An organization's states are compared no more often.
const COMPARED_AT_MOST_EVERY: SignedDuration = SignedDuration::from_secs(10);
/// States that are read at the same time.
const READ_AT_ONCE: usize = 4;
/// Budget for tokens in memory; states that do not fit take no part.
const MAX_TOKENS: usize = 8 * 1024 * 1024;

/// Tokens of the newest states that this server has read.
#[derive(Default)]
pub(crate) struct Echoes(Mutex<Known>);

#[derive(Default)]
struct Known {
    tokens: HashMap<WorkspaceId, (StateVersionId, Arc<EchoTokens>)>,
    size: usize,
    compared: HashMap<OrganizationId, Compared>,
}

/// The states that were compared last.
#[derive(Clone, Default)]
struct Compared {
    at: Timestamp,
    states: Arc<BTreeMap<WorkspaceId, StateVersionId>>,
    ambient: Arc<HashSet<Token>>,
}

impl Echoes {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the tokens of a workspace's newest state, if there is room.
    pub(crate) fn note(&self, version: &StateVersion, tokens: EchoTokens) {
        let mut known = self.known();
        let size = |tokens: &EchoTokens| tokens.held.len() + tokens.made.len() + 16;
        if let Some((_, old)) = known.tokens.remove(&version.workspace) {
            known.size -= size(&old);
        }
        if known.size + size(&tokens) <= MAX_TOKENS {
            known.size += size(&tokens);
            known.tokens.insert(version.workspace, (version.id, Arc::new(tokens)));
        }
    }

    fn of(&self, version: &StateVersion) -> Option<Arc<EchoTokens>> {
        let known = self.known();
        let (of, tokens) = known.tokens.get(&version.workspace)?;
        (*of == version.id).then(|| Arc::clone(tokens))
    }

    /// Tokens of values that are common among the organization's states.
    pub(crate) fn ambient(&self, organization: OrganizationId) -> Arc<HashSet<Token>> {
        self.known().compared.get(&organization).map(|compared| Arc::clone(&compared.ambient)).unwrap_or_default()
    }

    fn compared(&self, organization: OrganizationId) -> Compared {
        self.known().compared.get(&organization).cloned().unwrap_or_default()
    }
}

impl ControlPlane {
    /// Compares all states of an organization, if one has changed since this server did so last.
    pub(crate) async fn find_echoes(&self, org: &OrganizationSnapshot) -> Result<(), Error> {
        let (state, now) = (org.last_seen(), self.now());
        let last = self.shared.echoes.compared(org.id());
        if now.duration_since(last.at) < COMPARED_AT_MOST_EVERY {
            return Ok(());
        }
        let current = |workspace| state.current_state_version(workspace).cloned();
        let versions: Vec<StateVersion> = state.workspaces.iter().filter_map(current).collect();
        let states: BTreeMap<WorkspaceId, StateVersionId> =
            versions.iter().map(|version| (version.workspace, version.id)).collect();
        if versions.len() < 2 || *last.states == states {
            return Ok(());
        }
        self.read_tokens(org, &versions).await;
        let known: Vec<(WorkspaceId, Arc<EchoTokens>)> =
            versions.iter().filter_map(|version| Some((version.workspace, self.shared.echoes.of(version)?))).collect();
        let compared = tokio::task::spawn_blocking(move || {
            let states: Vec<EchoState<'_, WorkspaceId>> =
                known.iter().map(|(unit, tokens)| EchoState { unit: *unit, tokens }).collect();
            let (edges, ambient) = (echo_edges(&states), ambient_tokens(&states));
            (edges, ambient, known)
        });
        let compared = compared.await.map_err(|error| crate::blob_error::broken(error.to_string()))?;
        let (edges, ambient, tokens) = compared;
        let tokens: BTreeMap<WorkspaceId, Arc<EchoTokens>> = tokens.into_iter().collect();
        let changes = changed_edges(&state, &edges, &tokens, now);
        if !changes.is_empty() {
            let decide = move |tx: &mut Transaction<OrganizationState>| {
                for (id, observation) in &changes {
                    put_echo(tx, id, observation.as_ref(), now);
                }
                Ok(())
            };
            org.commit(Self::own_intent("graph.echoes"), decide).await?;
        }
        let compared = Compared { at: now, states: Arc::new(states), ambient: Arc::new(ambient) };
        self.shared.echoes.known().compared.insert(org.id(), compared);
        Ok(())
    }

    /// Reads the tokens of states that this server does not know yet. What cannot be read takes no part.
    async fn read_tokens(&self, org: &OrganizationSnapshot, versions: &[StateVersion]) {
        let unknown: Vec<StateVersion> =
            versions.iter().filter(|version| self.shared.echoes.of(version).is_none()).cloned().collect();
        let reading = self.reading(org);
        let reading = &reading;
        let mut read = stream::iter(unknown)
            .map(|version| async move {
                let evidence = self.state_evidence(reading, &version).await;
                (version, evidence)
            })
            .buffer_unordered(READ_AT_ONCE);
        while let Some((version, evidence)) = read.next().await {
            if let Ok(Ok(evidence)) = evidence {
                self.shared.echoes.note(&version, evidence.tokens);
            }
        }
    }
}

/// An edge by its ends.
type Ends = (WorkspaceId, WorkspaceId);

/// The edges whose echoes are not as they are recorded; `None` where there are none any more.
fn changed_edges(
    state: &OrganizationState,
    found: &[EchoEdge<WorkspaceId>],
    tokens: &BTreeMap<WorkspaceId, Arc<EchoTokens>>,
    now: Timestamp,
) -> Vec<(Ends, Option<Observation>)> {
    let found: BTreeMap<Ends, &BTreeSet<String>> =
        found.iter().map(|edge| ((edge.consumer, edge.producer), &edge.outputs)).collect();
    let recorded: BTreeMap<Ends, &Observation> = state
        .dependencies
        .iter()
        .filter_map(|edge| Some(((edge.consumer, edge.producer?), edge.observed.get(&Grade::Echo)?)))
        .collect();
    let all: BTreeSet<Ends> = found.keys().chain(recorded.keys()).copied().collect();
    let mut changes = Vec::new();
    for ends in all {
        let before = recorded.get(&ends).copied();
        let after = echo_between(state, ends, found.get(&ends).copied(), before, tokens, now);
        let is_same = match (before, &after) {
            (Some(before), Some(after)) => before.values == after.values && before.used == after.used,
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            changes.push((ends, after));
        }
    }
    changes
}

/// The echoes of a producer in a consumer: what is found now, and old values that the consumer still holds.
fn echo_between(
    state: &OrganizationState,
    (consumer, producer): Ends,
    found: Option<&BTreeSet<String>>,
    before: Option<&Observation>,
    tokens: &BTreeMap<WorkspaceId, Arc<EchoTokens>>,
    now: Timestamp,
) -> Option<Observation> {
    let outputs = state.workspace_outputs.get(&producer)?;
    let mut values = BTreeMap::new();
    let mut kept: BTreeMap<String, ValueTokens> = BTreeMap::new();
    for name in found.into_iter().flatten() {
        let Some(output) = outputs.outputs.get(name) else { continue };
        values.insert(name.clone(), output.committed.digest);
        if let Some(of_output) = tokens.get(&producer).and_then(|tokens| tokens.outputs.get(name)) {
            kept.insert(name.clone(), of_output.clone());
        }
    }
    if let (Some(before), Some(held)) = (before, tokens.get(&consumer)) {
        for (name, old) in &before.tokens {
            let still_held = old.distinctive.iter().any(|token| held.holds(*token));
            if let (true, false, Some(digest)) = (still_held, values.contains_key(name), before.values.get(name)) {
                values.insert(name.clone(), *digest);
                kept.insert(name.clone(), old.clone());
            }
        }
    }
    if values.is_empty() {
        return None;
    }
    Some(Observation {
        first: before.map_or(now, |before| before.first),
        last: now,
        used: UsedOutputs::Names(values.keys().cloned().collect()),
        maybe: BTreeSet::new(),
        data: Vec::new(),
        users: Vec::new(),
        user_count: 0,
        values,
        tokens: kept,
        state_version: None,
        run: None,
    })
}

fn put_echo(
    tx: &mut Transaction<OrganizationState>,
    (consumer, producer): &Ends,
    observation: Option<&Observation>,
    now: Timestamp,
) {
    let state = tx.state();
    if !state.workspaces.contains(consumer) || !state.workspaces.contains(producer) {
        return;
    }
    let producer = Producer::Unit(*producer);
    let id = DependencyId::of(*consumer, &producer);
    let mut edge = state.dependencies.get(&id).cloned().unwrap_or_else(|| Dependency::new(*consumer, &producer, now));
    match observation {
        Some(observation) => _ = edge.observed.insert(Grade::Echo, observation.clone()),
        None => _ = edge.observed.remove(&Grade::Echo),
    }
    if edge.is_forgotten() {
        tx.delete::<Dependency>(&id);
    } else {
        tx.put(&edge);
    }
}
