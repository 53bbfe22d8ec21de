//! Time and chance are arguments: tests move the one and seed the other.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

/// Tells the wall-clock time. Durations and time-outs go through tokio's timer, which tests can pause.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the machine for the time")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A source of randomness that several tasks share.
#[derive(Clone)]
pub struct SharedRng(Arc<Mutex<StdRng>>);

impl SharedRng {
    /// Seeded by the operating system.
    pub fn from_system() -> Self {
        Self::seeded_with(StdRng::try_from_rng(&mut rand::rngs::SysRng).expect("the operating system has randomness"))
    }

    /// The same seed gives the same numbers.
    pub fn from_seed(seed: u64) -> Self {
        Self::seeded_with(StdRng::seed_from_u64(seed))
    }

    fn seeded_with(generator: StdRng) -> Self {
        Self(Arc::new(Mutex::new(generator)))
    }

    /// A fraction between 0 and 1.
    pub fn fraction(&self) -> f64 {
        self.with(|generator| generator.random())
    }

    /// 128 random bits as hexadecimal text: unique for as long as anyone cares.
    pub fn unique(&self) -> String {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        hex::encode(bytes)
    }

    pub fn fill(&self, bytes: &mut [u8]) {
        self.with(|generator| generator.fill_bytes(bytes));
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut StdRng) -> T) -> T {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for SharedRng {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SharedRng")
    }
}
