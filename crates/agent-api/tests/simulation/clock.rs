//! Clocks on the walls of servers: each is wrong in its own way, and is set now and then. Agents have none: what they
//! have to know of time they measure.

use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};
use taco_ledger::Clock;
use tokio::time::Instant;

/// Error of a clock that is not maintained.
const DRIFT: SignedDuration = SignedDuration::from_mins(5);
/// Distance by which a clock is set forward or back.
const JUMP: SignedDuration = SignedDuration::from_hours(1);

#[derive(Debug)]
pub(crate) struct WallClock {
    begun: Instant,
    ahead: Mutex<SignedDuration>,
}

impl WallClock {
    /// A right one.
    pub(crate) fn new(begun: Instant) -> Self {
        Self { begun, ahead: Mutex::new(SignedDuration::ZERO) }
    }

    /// Wrong by some minutes; `fraction` says by how many.
    pub(crate) fn drifted(begun: Instant, fraction: f64) -> Self {
        let clock = Self::new(begun);
        clock.set(DRIFT, fraction);
        clock
    }

    pub(crate) fn jump(&self, fraction: f64) {
        self.set(JUMP, fraction);
    }

    fn set(&self, most: SignedDuration, fraction: f64) {
        let ahead = SignedDuration::from_secs_f64(most.as_secs_f64() * (2.0 * fraction - 1.0));
        *self.ahead.lock().expect("no panic") = ahead;
    }
}

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let right = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_800_000_000) + self.begun.elapsed();
        right + *self.ahead.lock().expect("no panic")
    }
}
