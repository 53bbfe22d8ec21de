//! Detection of silent agents. An agent's phases are its own for a lease after the last heartbeat that all servers can
//! know of; it stops by itself before that is over. A server gives it up only a margin later, and counts from when it
//! saw the newest heartbeat itself: so no two clocks have to agree.

use std::collections::HashMap;
use std::time::Duration;

use taco_domain::agent::AgentPresence;
use taco_domain::id::AgentId;
use taco_domain::phase_attempt::PhaseAttempt;
use tokio::time::Instant;

/// Interval of publishing agents' heartbeats while nothing is executed: what two idle servers cost the bucket.
const IDLE_PUBLISH_INTERVAL: Duration = Duration::from_secs(20);

/// Minimum silence of a busy machine.
const MIN_SILENCE: Duration = Duration::from_secs(2);

/// Timeouts for silent agents.
#[derive(Clone, Copy, Debug)]
pub struct Leases {
    /// Lease promised to agents.
    pub lease: Duration,
    /// Additional time that servers wait.
    pub margin: Duration,
}

impl Leases {
    /// Servers wait half as long again.
    pub fn of(lease: Duration) -> Self {
        Self { lease, margin: lease / 2 }
    }

    /// Interval at which agents send heartbeats, and servers publish those they heard.
    pub fn heartbeat(&self) -> Duration {
        self.lease / 8
    }

    /// Silence after which an agent is given nothing: it is well, or it is gone without a message.
    pub(crate) fn suspect_after(&self) -> Duration {
        self.heartbeat() * 3
    }

    /// Silence after which a connection is as good as dead. An agent that is well comes back at once.
    pub fn silence(&self) -> Duration {
        (self.heartbeat() * 4).max(MIN_SILENCE)
    }

    /// Interval at which servers publish heartbeats while nothing is executed. A lease outlasts it, together with the
    /// age of the newest heartbeat: an idle agent that is given a phase can begin at once.
    pub(crate) fn idle_round(&self) -> Duration {
        IDLE_PUBLISH_INTERVAL.min(self.lease * 2 / 3)
    }
}

/// Heartbeats that one server remembers.
#[derive(Default, Debug)]
pub(crate) struct Watch {
    seen: HashMap<AgentId, Seen>,
    /// Since when this server knows that an attempt is under way, and when it saw it last. An agent may have been
    /// idle, and its heartbeats old, before.
    under_way: HashMap<PhaseAttempt, (Instant, Instant)>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    heartbeat: u64,
    at: Instant,
}

impl Watch {
    /// Notes what is heard now.
    pub(crate) fn note<'a>(&mut self, agents: impl Iterator<Item = &'a AgentPresence>, now: Instant) {
        for agent in agents {
            self.note_one(agent.agent, agent.heartbeat, now);
        }
    }

    fn note_one(&mut self, agent: AgentId, heartbeat: u64, now: Instant) {
        let seen = self.seen.entry(agent).or_insert(Seen { heartbeat, at: now });
        if heartbeat > seen.heartbeat {
            *seen = Seen { heartbeat, at: now };
        }
    }

    /// True if an agent was silent for longer than `leases` allow, since it has this attempt. One that this server
    /// never heard of is counted from now on: the server may have just started.
    pub(crate) fn is_lost(&mut self, agent: AgentId, attempt: PhaseAttempt, leases: &Leases, now: Instant) -> bool {
        let seen = self.seen.entry(agent).or_insert(Seen { heartbeat: 0, at: now });
        let (since, last) = self.under_way.entry(attempt).or_insert((now, now));
        *last = now;
        now.saturating_duration_since(seen.at.max(*since)) > leases.lease + leases.margin
    }

    /// Forgets attempts that are over, and agents that have no phases and were silent for long.
    pub(crate) fn forget_old(&mut self, leases: &Leases, now: Instant) {
        self.under_way.retain(|_, (_, last)| *last == now);
        self.seen.retain(|_, seen| now.duration_since(seen.at) < (leases.lease + leases.margin) * 4);
    }
}

#[cfg(test)]
mod tests {
    use taco_domain::id::RunId;
    use taco_domain::phase::PhaseKind;

    use super::*;

    #[test]
    fn an_agent_is_given_up_a_margin_after_its_lease() {
        let leases = Leases { lease: Duration::from_secs(30), margin: Duration::from_secs(15) };
        let agent = AgentId::from_random([1; 16]);
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut watch = Watch::default();
        let attempt = |epoch| PhaseAttempt { run: RunId::from_random([2; 16]), phase: PhaseKind::Plan, epoch };
        let is_lost = |watch: &mut Watch, epoch, now| watch.is_lost(agent, attempt(epoch), &leases, now);
        assert!(!is_lost(&mut watch, 1, start), "never heard of: counted from now on");
        assert!(!is_lost(&mut watch, 1, after(45)));
        assert!(is_lost(&mut watch, 1, after(46)));
        watch.note_one(agent, 7, after(50));
        assert!(!is_lost(&mut watch, 1, after(95)));
        watch.note_one(agent, 7, after(94));
        assert!(is_lost(&mut watch, 1, after(96)), "an old heartbeat again proves nothing");
        assert!(!is_lost(&mut watch, 2, after(96)), "an agent that was idle has its whole lease");
        assert!(is_lost(&mut watch, 2, after(142)));
    }
}
