//! Samples of how busy organizations are, for the pictures on their dashboards: one a minute since this server started.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use taco_domain::OrganizationState;
use taco_domain::agent::AgentPresence;
use taco_domain::id::OrganizationId;
use taco_domain::run_status::RunStatus;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::privileged::Privileged;

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
    fn of(state: &OrganizationState, agents: &[AgentPresence], at: Timestamp) -> Self {
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

impl Privileged {
    /// Notes how busy these organizations are, all that there are, unless that was done within the last minute.
    pub fn sample_load(&self, organizations: &[OrganizationSnapshot]) {
        let now = self.now();
        let mut sampled = self.shared.load_samples.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sampled.last.is_some_and(|last| now.duration_since(last) < SAMPLE_INTERVAL) {
            return;
        }
        sampled.last = Some(now);
        let agents = self.presence().agents();
        let mut before = std::mem::take(&mut sampled.by_organization);
        for org in organizations {
            let mut samples = before.remove(&org.id()).unwrap_or_default();
            if samples.len() == MAX_SAMPLES {
                samples.pop_front();
            }
            samples.push_back(LoadSample::of(&org.last_seen(), &agents, now));
            sampled.by_organization.insert(org.id(), samples);
        }
    }
}

impl ControlPlane {
    /// How busy an organization was since this server started, a sample a minute, the oldest first; the last one is of
    /// this moment.
    pub fn load_samples(&self, caller: &Caller, org: &OrganizationSnapshot) -> Vec<LoadSample> {
        let sampled = self.shared.load_samples.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = sampled.by_organization.get(&org.id()).into_iter().flatten().copied();
        let now = LoadSample::of(&org.state, &self.presence().agents(), self.now());
        let sees_all = caller.reads_all_runs(&org.state);
        let shown = |sample: LoadSample| LoadSample { waiting: sample.waiting.filter(|_| sees_all), ..sample };
        before.chain([now]).map(shown).collect()
    }
}
