//! Guessing passwords takes long.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Attempts for one name from one address, in [`LOGIN_WINDOW`].
const MAX_ATTEMPTS_PER_NAME: u32 = 10;
/// Attempts from one address, whatever the name.
const MAX_ATTEMPTS_PER_ADDRESS: u32 = 100;
const LOGIN_WINDOW: Duration = Duration::from_secs(60);
/// More entries than this are cleared of those whose window is over.
const MAX_ENTRIES: usize = 10_000;

/// Counts attempts to log in. It forgets them with the process: that is a minute's worth.
#[derive(Default, Debug)]
pub(crate) struct LoginLimit(Mutex<Windows>);

/// By address, by address and name, and without address by the user whose session it is.
type Windows = HashMap<(String, Option<String>), Window>;

#[derive(Clone, Copy, Debug)]
struct Window {
    begun: Instant,
    attempts: u32,
}

impl LoginLimit {
    /// Counts an attempt; if there were too many, says how long to wait.
    pub(crate) fn attempt(&self, address: &str, name: &str) -> Result<(), Duration> {
        let name: String = name.trim().to_lowercase().chars().take(100).collect();
        let now = Instant::now();
        let mut windows = self.windows(now);
        // The address first: while it has to wait, the names that it tries leave nothing behind.
        count(&mut windows, (address.to_owned(), None), MAX_ATTEMPTS_PER_ADDRESS, now)?;
        count(&mut windows, (address.to_owned(), Some(name)), MAX_ATTEMPTS_PER_NAME, now)
    }

    /// Counts an attempt at the current password of someone who is logged in; if there were too many, says how long to
    /// wait.
    pub(crate) fn attempt_within_session(&self, user: &str) -> Result<(), Duration> {
        let now = Instant::now();
        count(&mut self.windows(now), ("session".to_owned(), Some(user.to_owned())), MAX_ATTEMPTS_PER_NAME, now)
    }

    fn windows(&self, now: Instant) -> MutexGuard<'_, Windows> {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() > MAX_ENTRIES {
            windows.retain(|_, window| now < window.begun + LOGIN_WINDOW);
        }
        windows
    }
}

fn count(windows: &mut Windows, key: (String, Option<String>), most: u32, now: Instant) -> Result<(), Duration> {
    let fresh = Window { begun: now, attempts: 0 };
    let window = windows.entry(key).or_insert(fresh);
    if now >= window.begun + LOGIN_WINDOW {
        *window = fresh;
    }
    window.attempts = window.attempts.saturating_add(1);
    if window.attempts > most { Err(window.begun + LOGIN_WINDOW - now) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn many_attempts_have_to_wait() {
        let limit = LoginLimit::default();
        for _ in 0..MAX_ATTEMPTS_PER_NAME {
            assert_eq!(limit.attempt("10.0.0.1", "ada"), Ok(()));
        }
        assert_eq!(limit.attempt("10.0.0.1", "Ada "), Err(LOGIN_WINDOW));
        assert_eq!(limit.attempt("10.0.0.1", "grace"), Ok(()), "another name");
        assert_eq!(limit.attempt("10.0.0.2", "ada"), Ok(()), "another address");
        tokio::time::advance(LOGIN_WINDOW).await;
        assert_eq!(limit.attempt("10.0.0.1", "ada"), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_cannot_try_all_names() {
        let limit = LoginLimit::default();
        for number in 0..MAX_ATTEMPTS_PER_ADDRESS {
            assert_eq!(limit.attempt("10.0.0.1", &number.to_string()), Ok(()));
        }
        assert!(limit.attempt("10.0.0.1", "one more").is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_has_to_wait_takes_no_more_memory() {
        let limit = LoginLimit::default();
        for number in 0..10 * MAX_ATTEMPTS_PER_ADDRESS {
            let allowed = limit.attempt("10.0.0.1", &number.to_string()).is_ok();
            assert_eq!(allowed, number < MAX_ATTEMPTS_PER_ADDRESS, "{number}");
        }
        let entries = limit.0.lock().expect("nobody panicked").len();
        assert_eq!(entries, MAX_ATTEMPTS_PER_ADDRESS as usize + 1, "the names that were allowed, and the address");
    }
}
