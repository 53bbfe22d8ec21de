//! The pace that the body of a request has to keep: a client that sends a byte now and then would otherwise keep a
//! connection, and the resources of an upload, for as long as it likes.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::error_document::error_document;

/// Time that we wait for a client, in which [`MIN_BYTES`] have to come. What we take to store them does not count.
const WINDOW: Duration = Duration::from_secs(30);

/// A KiB in a second: a modem of forty years ago was faster.
const MIN_BYTES: u64 = 30 * 1024;

/// Flag that a request's body came too slowly; `None` without a body.
pub(crate) struct Pace(Option<Arc<AtomicBool>>);

/// Gives up on bodies that come too slowly.
pub(crate) fn enforce(request: Request) -> (Request, Pace) {
    if request.body().is_end_stream() {
        return (request, Pace(None));
    }
    let too_slow = Arc::new(AtomicBool::new(false));
    let request = request.map(|body| Body::new(PacedBody::new(body, Arc::clone(&too_slow))));
    (request, Pace(Some(too_slow)))
}

impl Pace {
    /// The answer, unless it failed because the body came too slowly: then what the client can do about it.
    pub(crate) fn explain(self, response: Response) -> Response {
        let too_slow = self.0.is_some_and(|too_slow| too_slow.load(Ordering::Relaxed));
        if !too_slow || response.status().is_success() {
            return response;
        }
        let detail = format!(
            "The body came too slowly: within {} s, at least {} KiB have to come, or its end. Nothing was changed; send it again.",
            WINDOW.as_secs(),
            MIN_BYTES / 1024
        );
        error_document(StatusCode::REQUEST_TIMEOUT, "request timeout", &detail)
    }
}

struct PacedBody {
    body: Body,
    too_slow: Arc<AtomicBool>,
    /// Time waited in the current window.
    waited: Duration,
    bytes: u64,
    /// Since when we wait for the client, and when we stop.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl PacedBody {
    fn new(body: Body, too_slow: Arc<AtomicBool>) -> Self {
        Self { body, too_slow, waited: Duration::ZERO, bytes: 0, waiting: None }
    }

    /// Ends the window; whether enough came in it.
    fn is_fast_enough(&mut self) -> bool {
        let enough = self.bytes >= MIN_BYTES;
        (self.waited, self.bytes) = (Duration::ZERO, 0);
        enough
    }

    fn give_up(&mut self) -> axum::Error {
        self.too_slow.store(true, Ordering::Relaxed);
        // The task with the other half of the connection should not wait for a body that is not read.
        self.body = Body::empty();
        axum::Error::new("the body came too slowly")
    }
}

impl HttpBody for PacedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            if let Some((since, _)) = self.waiting.take() {
                self.waited += since.elapsed();
            }
            if let Some(Ok(frame)) = &frame {
                self.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                if self.waited >= WINDOW && !self.is_fast_enough() {
                    return Poll::Ready(Some(Err(self.give_up())));
                }
            }
            return Poll::Ready(frame);
        }
        loop {
            let rest = WINDOW.saturating_sub(self.waited);
            let (_, end) = self.waiting.get_or_insert_with(|| {
                let now = Instant::now();
                (now, Box::pin(sleep_until(now + rest)))
            });
            if end.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.waiting = None;
            if !self.is_fast_enough() {
                return Poll::Ready(Some(Err(self.give_up())));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{StreamExt as _, stream};
    use tokio::time::sleep;

    use super::*;

    /// Reads a body that comes in so many pieces of a size, with pauses before each, and a reader who dawdles.
    async fn is_read(pieces: usize, size: usize, pause: u64, reader: u64) -> bool {
        let pieces = stream::iter(0..pieces).then(move |_| async move {
            sleep(Duration::from_secs(pause)).await;
            Ok::<_, Infallible>(Bytes::from(vec![0; size]))
        });
        let too_slow = Arc::new(AtomicBool::new(false));
        let body = PacedBody::new(Body::from_stream(pieces), Arc::clone(&too_slow));
        let mut body = Body::new(body).into_data_stream();
        while let Some(piece) = body.next().await {
            if piece.is_err() {
                assert!(too_slow.load(Ordering::Relaxed));
                return false;
            }
            sleep(Duration::from_secs(reader)).await;
        }
        true
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_to_keep_a_pace_that_every_line_can_keep() {
        assert!(is_read(1000, 10 * 1024, 5, 0).await, "2 KiB in a second");
        assert!(is_read(20, 1, 1, 0).await, "a small one");
        assert!(is_read(100, 64 * 1024, 29, 0).await, "in bursts");
        assert!(!is_read(1000, 1, 10, 0).await, "a byte now and then");
        assert!(!is_read(2, 1024 * 1024, 31, 0).await, "silence");
        assert!(!is_read(1000, 1024, 2, 0).await, "half as fast as it should be");
        assert!(is_read(40, 512, 0, 60).await, "it is our own fault");
    }
}
