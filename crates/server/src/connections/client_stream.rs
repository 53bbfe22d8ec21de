//! The bytes of one connection, which tell its activity what happens.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::activity::Arrival;
use super::head::HeadWatch;
use super::slots::Slot;
use super::wrong_protocol::CLIENT_HELLO;

/// Time to discard the rest of a request after a response to one that was not read to its end. Without that, the kernel
/// would tell the client that the connection broke, and the client would lose the response.
const LINGER_TIMEOUT: Duration = Duration::from_secs(5);
/// More than this of the rest is not even thrown away.
const MAX_LINGER_BYTES: usize = 64 * 1024 * 1024;

pub(super) struct ClientStream<S> {
    stream: S,
    /// Held until the stream has no owner any more, including one that took it over as a WebSocket.
    slot: Slot,
    head: HeadWatch,
    /// Since our side was closed: until when, and how much came.
    lingering: Option<(Pin<Box<Sleep>>, usize)>,
}

impl<S> ClientStream<S> {
    pub(super) fn new(stream: S, slot: Slot) -> Self {
        Self { stream, slot, head: HeadWatch::default(), lingering: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let Self { slot, head, .. } = &mut *self;
        let received = &buffer.filled()[before..];
        if !received.is_empty() {
            let arrival = slot.activity.received();
            if arrival == Arrival::NewHead {
                head.begin();
                if received[0] == CLIENT_HELLO {
                    slot.activity.note_client_hello();
                }
            }
            if arrival != Arrival::Elsewhere && head.look_at(received) {
                slot.activity.note_ambiguous_head();
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ClientStream<S> {
    fn note<T>(&self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &written {
            Poll::Ready(_) => self.slot.activity.sent(),
            Poll::Pending => self.slot.activity.cannot_send(),
        }
        written
    }

    /// Throws away what still comes.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (until, count) = self.lingering.get_or_insert_with(|| (Box::pin(sleep(LINGER_TIMEOUT)), 0));
        let mut scratch = [0; 8 * 1024];
        loop {
            if until.as_mut().poll(cx).is_ready() || *count > MAX_LINGER_BYTES {
                return Poll::Ready(());
            }
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => *count += buffer.filled().len(),
                Ok(()) | Err(_) => return Poll::Ready(()),
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        }
        if self.slot.activity.lingers() {
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}
