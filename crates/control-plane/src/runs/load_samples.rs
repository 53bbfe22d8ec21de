//! Samples of how busy organizations are, for the pictures on their dashboards: one a minute since this server started.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use taco_domain::OrganizationState;
use taco_domain::agent::AgentPresence;
use taco_domain::id::OrganizationId;
use taco_domain::run_status::RunStatus;

/// Distance between two samples.
const SAMPLE_INTERVAL: SignedDuration = SignedDuration::from_secs(60);
/// Number of samples of an organization: four hours.
const MAX_SAMPLES: usize = 240;

/// How busy an organization was at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadSample {
    pub at: Timestamp,
    /// Runs that waited for their turn or for an agent; `None` for callers who may not see all runs.
    pub waiting: Option<u32>,
    /// Phases that the agents could execute at a time, and did.
    pub slots: u32,
    pub busy: u32,
}

impl LoadSample {
    pub(crate) fn of(state: &OrganizationState, agents: &[AgentPresence], at: Timestamp) -> Self {
        let waits = [RunStatus::Pending, RunStatus::Confirmed, RunStatus::PlanQueued, RunStatus::ApplyQueued];
        let waiting = state.runs.by().open.iter().filter(|run| waits.contains(&run.status)).count();
        let able = || agents.iter().filter(|agent| agent.pool.is_none_or(|pool| state.agent_pools.contains(&pool)));
        Self {
            at,
            waiting: Some(u32::try_from(waiting).unwrap_or(u32::MAX)),
            slots: able().fold(0, |slots, agent| slots.saturating_add(agent.concurrency)),
            busy: able().fold(0, |busy, agent| busy.saturating_add(agent.busy)),
        }
    }
}

/// The samples of all organizations. Clones share them.
#[derive(Clone, Default, Debug)]
pub(crate) struct LoadSamples(Arc<Mutex<Sampled>>);

#[derive(Default, Debug)]
struct Sampled {
    last: Option<Timestamp>,
    by_organization: HashMap<OrganizationId, VecDeque<LoadSample>>,
}

impl LoadSamples {
    /// Adds what `sample` says of each of these organizations, all that there are, unless that was done within the last minute.
    pub(crate) fn note<T>(
        &self,
        now: Timestamp,
        organizations: &[T],
        id: impl Fn(&T) -> OrganizationId,
        sample: impl Fn(&T) -> LoadSample,
    ) {
        let mut sampled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sampled.last.is_some_and(|last| now.duration_since(last) < SAMPLE_INTERVAL) {
            return;
        }
        sampled.last = Some(now);
        let mut before = std::mem::take(&mut sampled.by_organization);
        for org in organizations {
            let mut samples = before.remove(&id(org)).unwrap_or_default();
            if samples.len() == MAX_SAMPLES {
                samples.pop_front();
            }
            samples.push_back(sample(org));
            sampled.by_organization.insert(id(org), samples);
        }
    }

    /// Samples of an organization, the oldest first.
    pub(crate) fn of(&self, organization: OrganizationId) -> Vec<LoadSample> {
        let sampled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sampled.by_organization.get(&organization).into_iter().flatten().copied().collect()
    }
}
