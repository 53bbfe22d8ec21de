//! How long phases stay an agent's: by the rules of `taco-agent`.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

const MARGIN: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) interrupt_at: Instant,
    pub(crate) kill_at: Instant,
}

#[derive(Default)]
pub(crate) struct Lease {
    duration: Duration,
    sent: VecDeque<(u64, Instant)>,
    counts_from: Option<Instant>,
}

impl Lease {
    pub(crate) fn begin(&mut self, duration: Duration, greeted_at: Instant) {
        self.duration = duration;
        self.counts_from.get_or_insert(greeted_at);
    }

    pub(crate) fn sent(&mut self, number: u64, at: Instant) {
        self.sent.push_back((number, at));
    }

    pub(crate) fn published(&mut self, number: u64) {
        while let Some((_, at)) = self.sent.pop_front_if(|(sent, _)| *sent <= number) {
            self.counts_from = self.counts_from.max(Some(at));
        }
    }

    pub(crate) fn deadline(&self) -> Option<Deadline> {
        let margin = MARGIN.min(self.duration / 10);
        let end = self.counts_from? + self.duration;
        Some(Deadline { interrupt_at: end - margin * 2, kill_at: end - margin })
    }
}
