use std::time::Duration;

const FIRST_DELAY: Duration = Duration::from_millis(200);
const MAX_DELAY: Duration = Duration::from_secs(8);

/// Delay before the next attempt: twice as long each time, minus a random part of up to half, so that the agents of a
/// server that was away do not return all at once.
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(FIRST_DELAY)
    }

    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.0.mul_f64(rand::random_range(0.5..=1.0));
        self.0 = (self.0 * 2).min(MAX_DELAY);
        wait
    }
}
