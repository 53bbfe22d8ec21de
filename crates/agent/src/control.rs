//! Control signals to a running phase: stop, or that it no longer belongs to this agent.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::lease::Deadline;

/// The higher ones win.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) enum Stop {
    #[default]
    Run,
    /// Cancel of the run: an interrupt.
    Cancel,
    /// The agent is leaving: an interrupt, then by force.
    Leave,
    /// Force-cancel: the engine is killed at once.
    Kill,
    /// It is another's: kill it, and write nothing more.
    Lost,
}

/// A phase's end of it.
#[derive(Clone)]
pub(crate) struct Control {
    stop: watch::Receiver<Stop>,
    lease: watch::Receiver<Option<Deadline>>,
    /// Deadline of the phase.
    pub(crate) times_out_at: Instant,
}

impl Control {
    pub(crate) fn new(
        stop: watch::Receiver<Stop>,
        lease: watch::Receiver<Option<Deadline>>,
        timeout: Duration,
    ) -> Self {
        Self { stop, lease, times_out_at: Instant::now() + timeout }
    }

    pub(crate) fn stop(&self) -> Stop {
        match self.lease_is_over() {
            true => Stop::Lost,
            false => *self.stop.borrow(),
        }
    }

    pub(crate) fn deadline(&self) -> Option<Deadline> {
        *self.lease.borrow()
    }

    fn lease_is_over(&self) -> bool {
        self.deadline().is_some_and(|deadline| Instant::now() >= deadline.kill_at)
    }

    /// Something may have changed: what [`Control::stop`] or [`Control::deadline`] says.
    pub(crate) async fn changed(&mut self) {
        let over = async {
            match self.deadline() {
                Some(deadline) if Instant::now() < deadline.kill_at => tokio::time::sleep_until(deadline.kill_at).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            () = change(self.stop.clone()) => {}
            () = change(self.lease.clone()) => {}
            () = over => {}
        }
        self.stop.borrow_and_update();
        self.lease.borrow_and_update();
    }

    /// Returns when the phase is no longer this agent's.
    pub(crate) async fn lost(&mut self) {
        while self.stop() != Stop::Lost {
            self.changed().await;
        }
    }
}

/// A sender that is gone has nothing more to say.
async fn change<T>(mut receiver: watch::Receiver<T>) {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}
