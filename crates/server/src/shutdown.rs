//! The way down: a signal, then readiness false, no new connections, and time for the requests under way.

use std::fmt;
use std::io;

use tokio::signal::unix::{self, SignalKind};
use tokio::sync::watch;

/// Progress of the shutdown of a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stage {
    Up,
    /// Nothing new begins.
    GoingDown,
    /// Nothing is under way any more.
    Quiet,
}

/// Tells all parts of a server that it goes down. Clones share one state.
#[derive(Clone, Debug)]
pub(crate) struct Shutdown(watch::Sender<Stage>);

impl Shutdown {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Stage::Up))
    }

    pub(crate) fn begin(&self) {
        self.raise(Stage::GoingDown);
    }

    pub(crate) fn has_begun(&self) -> bool {
        *self.0.borrow() >= Stage::GoingDown
    }

    /// Waits until it begins.
    pub(crate) async fn begun(&self) {
        self.wait_for(Stage::GoingDown).await;
    }

    /// All requests are answered, and the server's own agent is done.
    pub(crate) fn is_quiet(&self) {
        self.raise(Stage::Quiet);
    }

    /// Waits until nothing is under way any more. What requests and phases need goes on until then.
    pub(crate) async fn quiet(&self) {
        self.wait_for(Stage::Quiet).await;
    }

    fn raise(&self, stage: Stage) {
        self.0.send_modify(|now| *now = stage.max(*now));
    }

    async fn wait_for(&self, stage: Stage) {
        // It fails only when all senders are gone, and we hold one.
        self.0.subscribe().wait_for(|now| *now >= stage).await.ok();
    }
}

/// The signals that ask a process to stop.
pub(crate) struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
}

impl Signals {
    /// Listens for the signals; from now on they no longer end the process by themselves.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
        })
    }

    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal(SignalKind::terminate(), "SIGTERM"),
            _ = self.interrupt.recv() => Signal(SignalKind::interrupt(), "SIGINT"),
        }
    }
}

pub(crate) struct Signal(SignalKind, &'static str);

impl Signal {
    /// Exit code that a shell reports for a process that this signal ended.
    pub(crate) fn exit_code(&self) -> i32 {
        128 + self.0.as_raw_value()
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.1)
    }
}
