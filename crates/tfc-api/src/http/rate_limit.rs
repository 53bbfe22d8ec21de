//! Rate limit: requests that a token may make in a second, where the site's operator wants a limit.
//!
//! Without one the headers are not sent either: go-tfe reads `x-ratelimit-limit` and slows down by itself.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, HeaderName, HeaderValue, RETRY_AFTER};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;

use crate::error::ApiError;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
/// Seconds: go-tfe takes them for a number, and ends the program if they are none.
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// More entries than this are cleared of those who have been quiet.
const ENTRIES: usize = 10_000;

/// A bucket that leaks for each token: as many requests at once as in a second, then one after the other.
#[derive(Clone, Debug)]
pub(crate) struct RateLimit {
    per_second: u32,
    hasher: RandomState,
    /// Times when the bucket of a token is empty again. Tokens themselves are not kept.
    empty_at: Arc<Mutex<HashMap<u64, Instant>>>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Verdict {
    Fine { remaining: u32 },
    Wait(Duration),
}

impl RateLimit {
    pub(crate) fn new(per_second: u32) -> Self {
        Self { per_second, hasher: RandomState::new(), empty_at: Arc::default() }
    }

    fn count(&self, token: &[u8], now: Instant) -> Verdict {
        let (second, drop) = (Duration::from_secs(1), Duration::from_secs(1) / self.per_second);
        let mut buckets = self.empty_at.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() > ENTRIES {
            buckets.retain(|_, empty_at| *empty_at > now);
        }
        let empty_at = buckets.entry(self.hasher.hash_one(token)).or_insert(now);
        let level = empty_at.saturating_duration_since(now) + drop;
        // A second divided and put together again may lack some nanoseconds.
        if level > second + drop / 2 {
            return Verdict::Wait(level - second);
        }
        *empty_at = now + level;
        let remaining = second.saturating_sub(level).as_secs_f64() / drop.as_secs_f64();
        Verdict::Fine { remaining: remaining.round() as u32 }
    }
}

/// Counts requests that come with a token; others have nothing to be counted by, and get little.
pub(crate) async fn enforce(State(limit): State<RateLimit>, request: Request, next: Next) -> Response {
    let verdict = match request.headers().get(AUTHORIZATION) {
        Some(token) => limit.count(token.as_bytes(), Instant::now()),
        None => Verdict::Fine { remaining: limit.per_second },
    };
    let (mut response, remaining, reset) = match verdict {
        Verdict::Fine { remaining } => (next.run(request).await, remaining, Duration::ZERO),
        Verdict::Wait(wait) => {
            let detail = format!("A token may make {} requests in a second; wait a little", limit.per_second);
            let refused = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too many requests", detail).into_response();
            (refused, 0, wait)
        }
    };
    let headers = response.headers_mut();
    headers.insert(LIMIT, limit.per_second.into());
    headers.insert(REMAINING, remaining.into());
    headers.insert(RESET, number(format!("{:.3}", reset.as_secs_f64())));
    if !reset.is_zero() {
        headers.insert(RETRY_AFTER, number(format!("{:.0}", reset.as_secs_f64().ceil())));
    }
    response
}

fn number(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("digits fit in a header")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_so_many_requests_and_then_gets_them_back_one_by_one() {
        let limit = RateLimit::new(3);
        let begun = Instant::now();
        let count = |token: &str, after: Duration| limit.count(token.as_bytes(), begun + after);
        let at_once = Duration::ZERO;
        for remaining in [2, 1, 0] {
            assert_eq!(count("a", at_once), Verdict::Fine { remaining });
        }
        let Verdict::Wait(wait) = count("a", at_once) else { panic!("a fourth request") };
        assert!(wait > Duration::from_millis(330) && wait < Duration::from_millis(335), "{wait:?}");
        assert_eq!(count("b", at_once), Verdict::Fine { remaining: 2 });
        assert_eq!(count("a", wait), Verdict::Fine { remaining: 0 });
        assert!(matches!(count("a", wait), Verdict::Wait(_)));
        assert_eq!(count("a", Duration::from_secs(5)), Verdict::Fine { remaining: 2 });
    }
}
