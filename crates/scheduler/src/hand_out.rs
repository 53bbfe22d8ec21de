//! Assignment of phases to agents.

use std::collections::HashSet;

use futures::future::join_all;
use jiff::Timestamp;
use taco_control_plane::{Error, OrganizationSnapshot, PhaseRequest, Privileged, View};
use taco_domain::global_queue::{AgentScope, QueuePick, Share, fair_turns, overdue_phase, ready_phases};
use taco_domain::organization_state::OrganizationState;
use taco_domain::run::Run;
use tokio::time::Instant;

use crate::agents::FreeAgent;
use crate::cancels::attempt_of;
use crate::scheduler::Scheduler;

/// One phase that one agent is to take. Which phase it is, the transaction decides: the one whose turn it is then.
struct Assignment {
    organization: OrganizationSnapshot,
    taker: PhaseRequest,
}

impl Scheduler {
    /// Gives phases to agents until there is no agent with room or no phase within reach. A failure in one organization
    /// does not keep agents from the phases of the others.
    pub(crate) async fn hand_out(&self) -> Result<(), Error> {
        let mut first_failure = Ok(());
        let mut failed = HashSet::new();
        loop {
            let mut before = self.agents.turn.lock().await;
            let free = self.agents.free(self.leases.suspect_after(), Instant::now());
            let mut organizations = self.handing_out();
            organizations.retain(|org| !failed.contains(&org.id()));
            let assignments = assign(&self.control_plane, free, &organizations, &mut before, self.control_plane.now());
            if assignments.is_empty() {
                return first_failure;
            }
            // At once, so that they share a commit. All are waited for: one that failed must not keep another agent from
            // hearing what it has.
            let sending = assignments.into_iter().map(|assignment| async {
                let organization = assignment.organization.id();
                (organization, self.take_and_send(assignment).await)
            });
            let taken = join_all(sending).await;
            let taken_any = taken.iter().any(|(_, taken)| matches!(taken, Ok(true)));
            if taken_any {
                // New leases begin: the agents' heartbeats should be known.
                self.publish_soon();
            }
            let (mut failed_any, mut bucket_is_silent) = (false, false);
            for (organization, error) in taken.into_iter().filter_map(|(id, taken)| Some((id, taken.err()?))) {
                failed.insert(organization);
                self.delay_after_failure(organization);
                failed_any = true;
                bucket_is_silent |= matches!(&error, Error::Unavailable(cause) if cause.is_transient());
                first_failure = first_failure.and(Err(error));
            }
            if bucket_is_silent || !(taken_any || failed_any) {
                return first_failure;
            }
        }
    }

    /// Makes room where a phase has ended at another server: an agent may send its outcome to any of them.
    pub(crate) fn forget_what_ended_elsewhere(&self) {
        // Looked at first: phases given later are not in question, and those given before are in the ledger.
        let occupied = self.agents.occupied();
        if occupied.is_empty() {
            return;
        }
        let states: Vec<_> = self.followed().iter().map(|org| self.control_plane.last_seen(org)).collect();
        for (agent, attempt) in occupied {
            let executes = |run: &Run| attempt_of(run) == Some(attempt);
            let has_it = states.iter().any(|state| {
                let mut runs = state.runs.by().executing.get(&agent);
                runs.any(executes)
            });
            if !has_it {
                self.agents.forget(agent, &attempt);
            }
        }
    }

    async fn take_and_send(&self, assignment: Assignment) -> Result<bool, Error> {
        let Assignment { organization, taker } = assignment;
        let (id, name) = (taker.executor.agent, taker.executor.agent_name.clone());
        let Some(phase) = self.control_plane.take_phase(&organization, taker).await? else {
            return Ok(false);
        };
        let attempt = phase.attempt;
        tracing::info!(run = %attempt.run, phase = %attempt.phase, epoch = attempt.epoch, agent = %id, "handed out");
        if !self.agents.send_phase(id, phase) {
            let why = format!("agent {name} left before it received it");
            self.control_plane.lose_phase(&organization, attempt, why).await?;
        }
        Ok(true)
    }
}

/// Pairs the phases that are ready, in the order of the global queue, with agents that have room. `before` counts what
/// was handed out.
fn assign(
    plane: &Privileged,
    mut free: Vec<FreeAgent>,
    organizations: &[OrganizationSnapshot],
    before: &mut u64,
    now: Timestamp,
) -> Vec<Assignment> {
    let mut assignments = Vec::new();
    let room: usize = free.iter().map(|agent| agent.room as usize).sum();
    if room == 0 {
        return assignments;
    }
    let places = places(plane, &free, organizations);
    let queues: Vec<_> = (places.iter())
        .map(|place| {
            let ready = ready_phases(&place.state, place.reach).take(room).map(|(key, _)| key);
            (place.share, ready.collect())
        })
        .collect();
    let mut first = fair_turns(&queues, now).map(|at| &places[at]);
    // One of each place: of who has least, and then longest first.
    let mut overdue: Vec<_> = (places.iter())
        .filter_map(|place| Some((place.share, overdue_phase(&place.state, place.reach, now)?.0, place)))
        .collect();
    overdue.sort_by_key(|(share, since, _)| (*share, *since));
    let mut overdue = overdue.into_iter().map(|(.., place)| place);
    while assignments.len() < room {
        let next = match QueuePick::after(*before) {
            QueuePick::Overdue => overdue.next().map(|place| (QueuePick::Overdue, place)),
            QueuePick::Head => None,
        };
        let next = next.or_else(|| first.next().map(|place| (QueuePick::Head, place)));
        let Some((turn, Place { reach, organization, .. })) = next else { break };
        let able = free.iter_mut().filter(|agent| agent.room > 0 && agent.taker.reach == *reach);
        let able = able.filter(|agent| agent.organization.as_ref().is_none_or(|own| own.id() == organization.id()));
        // The agent with most room is least busy.
        if let Some(agent) = able.max_by_key(|agent| agent.room) {
            agent.room -= 1;
            *before += 1;
            let taker = PhaseRequest { turn, ..agent.taker.clone() };
            assignments.push(Assignment { organization: (*organization).clone(), taker });
        }
    }
    assignments
}

/// Organization and scope in which phases may wait.
struct Place<'a> {
    reach: AgentScope,
    organization: &'a OrganizationSnapshot,
    state: View<OrganizationState>,
    share: Share,
}

/// Places with phases that may wait for one of the free agents.
fn places<'a>(plane: &Privileged, free: &[FreeAgent], organizations: &'a [OrganizationSnapshot]) -> Vec<Place<'a>> {
    let mut places = Vec::new();
    for organization in organizations {
        let state = plane.last_seen(organization);
        for reach in reaches(free, organization) {
            let share = Share::of(&state, reach);
            places.push(Place { reach, organization, state: state.clone(), share });
        }
    }
    places
}

/// Scopes of an organization that the free agents cover.
fn reaches(free: &[FreeAgent], organization: &OrganizationSnapshot) -> Vec<AgentScope> {
    let mut reaches = Vec::new();
    for agent in free {
        let works_here = agent.organization.as_ref().is_none_or(|own| own.id() == organization.id());
        if works_here && !reaches.contains(&agent.taker.reach) {
            reaches.push(agent.taker.reach);
        }
    }
    reaches
}
