//! A limit on wrong tokens from one address. Requests from there with a valid one are accepted all the same: in an
//! office all share an address, and one script with an old token must not keep the others out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;
use crate::password_queue::{Asker, asker};

/// Wrong tokens from one address, in [`WINDOW`]; more are answered with 429.
const MAX_WRONG: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);

/// Nobody guesses a token that is as long as this: it may be looked at even from an address that sent many wrong ones.
const UNGUESSABLE: usize = 32;

/// More entries than this are cleared of those whose window is over.
const MAX_ENTRIES: usize = 10_000;

/// Counts wrong tokens. It forgets them with the process: that is a minute's worth.
#[derive(Default, Debug)]
pub(crate) struct TokenGuesses(Mutex<HashMap<Asker, Window>>);

#[derive(Clone, Copy, Debug)]
struct Window {
    begun: Instant,
    wrong: u32,
}

impl TokenGuesses {
    /// Refuses to look at a token that might be a guess, of those who have guessed enough.
    pub(crate) fn check(&self, address: Option<IpAddr>, token: &str) -> Result<(), Error> {
        let (Some(asker), now) = (asker(address), Instant::now()) else { return Ok(()) };
        let windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = windows.get(&Some(asker)).filter(|window| now < window.begun + WINDOW);
        match window {
            Some(window) if window.wrong >= MAX_WRONG && token.len() < UNGUESSABLE => Err(too_many(window, now)),
            _ => Ok(()),
        }
    }

    /// Counts a token that was refused; what to answer.
    pub(crate) fn count(&self, address: Option<IpAddr>, refusal: Error) -> Error {
        let (Some(asker), now) = (asker(address), Instant::now()) else { return refusal };
        if !matches!(refusal, Error::Unauthorized(_)) {
            return refusal;
        }
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() > MAX_ENTRIES {
            windows.retain(|_, window| now < window.begun + WINDOW);
        }
        let fresh = Window { begun: now, wrong: 0 };
        let window = windows.entry(Some(asker)).or_insert(fresh);
        if now >= window.begun + WINDOW {
            *window = fresh;
        }
        window.wrong = window.wrong.saturating_add(1);
        if window.wrong > MAX_WRONG { too_many(window, now) } else { refusal }
    }
}

fn too_many(window: &Window, now: Instant) -> Error {
    Error::TooManyRequests {
        detail: format!(
            "the token is not valid, and {MAX_WRONG} wrong ones came from this address within a minute: correct the \
             token, and wait a minute"
        ),
        retry_after: (window.begun + WINDOW).saturating_duration_since(now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_address_has_ten_wrong_tokens_in_a_minute() {
        let tokens = TokenGuesses::default();
        let (one, other) = (Some(IpAddr::from([10, 0, 0, 1])), Some(IpAddr::from([10, 0, 0, 2])));
        let count = |address| match tokens.count(address, Error::Unauthorized("wrong".to_owned())) {
            Error::Unauthorized(_) => 401,
            Error::TooManyRequests { .. } => 429,
            other => panic!("{other}"),
        };
        let long = "x".repeat(UNGUESSABLE);
        for _ in 0..MAX_WRONG {
            assert!(tokens.check(one, "short").is_ok());
            assert_eq!(count(one), 401);
        }
        assert_eq!((count(one), count(other), count(None)), (429, 401, 401));
        assert!(tokens.check(one, "short").is_err() && tokens.check(one, &long).is_ok());
        assert!(tokens.check(other, "short").is_ok() && tokens.check(None, "short").is_ok());
        assert!(matches!(tokens.count(one, Error::NotFound("run")), Error::NotFound(_)));
        tokio::time::advance(WINDOW).await;
        assert!(tokens.check(one, "short").is_ok());
        assert_eq!(count(one), 401);
    }
}
