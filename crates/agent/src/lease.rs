//! Lease of the phases of this agent.
//!
//! The lease counts from when the last heartbeat was *sent* that the server confirmed as known to all servers. It is
//! measured by the monotonic clock, so wall clocks do not matter. Engines are interrupted and then killed before it
//! ends, because the server may give the workspace to another run right after.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

const SAFETY_MARGIN: Duration = Duration::from_secs(2);

/// Time to stop, if nothing is heard until then.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Deadline {
    /// Let engines write their states and end.
    pub interrupt_at: Instant,
    /// Kill what is left, and write nothing more.
    pub kill_at: Instant,
}

#[derive(Default, Debug)]
pub struct Lease {
    duration: Duration,
    /// The oldest first.
    sent: VecDeque<(u64, Instant)>,
    counts_from: Option<Instant>,
}

impl Lease {
    /// The server has welcomed the agent that greeted it at `greeted_at`. A greeting is not published: what is running
    /// stays as old as it was.
    pub fn begin(&mut self, duration: Duration, greeted_at: Instant, is_idle: bool) {
        self.duration = duration;
        if is_idle || self.counts_from.is_none() {
            self.counts_from = self.counts_from.max(Some(greeted_at));
        }
    }

    /// A heartbeat was sent.
    pub fn sent(&mut self, number: u64, at: Instant) {
        self.sent.push_back((number, at));
    }

    /// The server says that all servers can know of a heartbeat, and so of those before it.
    pub fn published(&mut self, number: u64) {
        while let Some((_, at)) = self.sent.pop_front_if(|(sent, _)| *sent <= number) {
            self.counts_from = self.counts_from.max(Some(at));
        }
    }

    /// True if an engine may be started now.
    pub fn holds(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| now < deadline.interrupt_at)
    }

    /// `None` before the first welcome.
    pub fn deadline(&self) -> Option<Deadline> {
        let margin = SAFETY_MARGIN.min(self.duration / 10);
        let end = self.counts_from? + self.duration;
        Some(Deadline { interrupt_at: end - margin * 2, kill_at: end - margin })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_lease_counts_from_the_sending_of_the_last_published_heartbeat() {
        let start = Instant::now();
        let mut lease = Lease::default();
        assert_eq!(lease.deadline(), None);
        lease.begin(30 * SECOND, start, true);
        let kill_at = |lease: &Lease| lease.deadline().map(|deadline| deadline.kill_at - start);
        assert_eq!(kill_at(&lease), Some(28 * SECOND));
        for number in 1..=3 {
            lease.sent(number, start + SECOND * u32::try_from(number).unwrap_or_default());
        }
        assert_eq!(kill_at(&lease), Some(28 * SECOND), "sent is not published");
        lease.published(2);
        assert_eq!(kill_at(&lease), Some(30 * SECOND));
        lease.published(1);
        assert_eq!(kill_at(&lease), Some(30 * SECOND), "an older one changes nothing");
        lease.begin(30 * SECOND, start + 2 * SECOND, false);
        assert_eq!(kill_at(&lease), Some(30 * SECOND), "a new connection does not lengthen it");
        lease.published(3);
        assert_eq!(kill_at(&lease), Some(31 * SECOND));
        lease.begin(30 * SECOND, start + 9 * SECOND, true);
        assert_eq!(kill_at(&lease), Some(37 * SECOND), "unless there is nothing that it would lengthen");
    }

    #[test]
    fn a_short_lease_has_a_short_margin_and_engines_are_interrupted_before_they_are_killed() {
        let start = Instant::now();
        let mut lease = Lease::default();
        lease.begin(3 * SECOND, start, true);
        let deadline = lease.deadline().expect("a lease that has begun");
        assert_eq!(deadline.kill_at, start + Duration::from_millis(2_700));
        assert_eq!(deadline.interrupt_at, start + Duration::from_millis(2_400));
        assert!(lease.holds(start + Duration::from_millis(2_399)) && !lease.holds(deadline.interrupt_at));
        assert!(!Lease::default().holds(start), "nobody has promised anything");
    }
}
