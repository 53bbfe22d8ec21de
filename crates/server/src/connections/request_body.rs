//! Cleanup of a request's body that was not read to its end.
//!
//! The next request on a connection begins where the body ends. So the rest is read if it is small; otherwise the
//! response says that the connection closes, and the client does not send its next request in vain.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONNECTION, EXPECT, HeaderValue};
use axum::http::{Request, Response, StatusCode};
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::time::timeout;

use super::activity::Activity;

/// A rest of a body that is read and thrown away before the answer.
const MAX_DRAINED_BYTES: u64 = 256 * 1024;
/// Timeout for that.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Remainder of a body when its reader drops it.
enum Remainder {
    /// It is still being read.
    Nothing,
    /// It was read to its end.
    End,
    Rest(Incoming),
}

/// A body that comes back when it is dropped.
struct LoanedBody {
    /// `None` only while it is dropped.
    body: Option<Incoming>,
    ended: bool,
    left: Arc<Mutex<Remainder>>,
}

impl Drop for LoanedBody {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            let ended = self.ended || body.is_end_stream();
            let left = if ended { Remainder::End } else { Remainder::Rest(body) };
            *self.left.lock().unwrap_or_else(PoisonError::into_inner) = left;
        }
    }
}

impl HttpBody for LoanedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(None) = polled {
            self.ended = true;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

/// Lets a request be answered, and sees to the rest of its body.
pub(super) async fn answer_and_finish<A>(
    request: Request<Incoming>,
    activity: &Activity,
    answer: impl FnOnce(Request<Body>) -> A,
) -> Response<Body>
where
    A: Future<Output = Response<Body>>,
{
    if request.body().is_end_stream() {
        return answer(request.map(|_| Body::empty())).await;
    }
    // Reading would ask such a client to send the body.
    let waits_for_us = request.headers().contains_key(EXPECT);
    let left = Arc::new(Mutex::new(Remainder::Nothing));
    let lend = |body| Body::new(LoanedBody { body: Some(body), ended: false, left: Arc::clone(&left) });
    let mut response = answer(request.map(lend)).await;
    let left = std::mem::replace(&mut *left.lock().unwrap_or_else(PoisonError::into_inner), Remainder::Nothing);
    let finished = match left {
        Remainder::End => true,
        Remainder::Rest(body) => !waits_for_us && drain(body).await,
        Remainder::Nothing => false,
    };
    if !finished && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        activity.linger();
    }
    response
}

/// Reads a body to its end, if that is near.
async fn drain(mut body: Incoming) -> bool {
    if body.size_hint().lower() > MAX_DRAINED_BYTES {
        return false;
    }
    let reading = async {
        let mut count = 0;
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            let Ok(frame) = frame else { return false };
            count += frame.data_ref().map_or(0, |data| data.len() as u64);
            if count > MAX_DRAINED_BYTES {
                return false;
            }
        }
        true
    };
    timeout(DRAIN_TIMEOUT, reading).await.unwrap_or(false)
}
