//! The newest commit of a ledger, as a running server sees it: nothing is written after one that is gone or altered.
//!
//! A server holds the state in memory, so it would go on where a commit was deleted, and leave a hole that no server can
//! open. Before it writes, it makes sure that the commit before is still there. Where a size costs next to nothing it asks
//! each time; its bytes are read about once a second, together with a look where a network lies in between.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use taco_tables::State;
use tokio::time::Instant;

use crate::commit::Hash;
use crate::error::Error;
use crate::layout;
use crate::ledger::{Head, Shared};

/// Time for which a commit that was read, or written, counts as being there.
const CONFIRMATION_LIFETIME: Duration = Duration::from_secs(1);

/// Knowledge about the newest commit in the bucket.
#[derive(Default)]
pub(crate) struct Confirmation(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// This commit was there with its bytes, and when that was.
    confirmed: Option<(u64, Instant)>,
    damage: Option<Error>,
}

impl Confirmation {
    fn with<T>(&self, use_it: impl FnOnce(&mut Known) -> T) -> T {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn confirm(&self, seq: u64) {
        self.with(|known| *known = Known { confirmed: Some((seq, Instant::now())), damage: None });
    }

    fn is_fresh(&self, seq: u64) -> bool {
        let fresh = |(confirmed, at): (u64, Instant)| confirmed == seq && at.elapsed() < CONFIRMATION_LIFETIME;
        self.with(|known| known.confirmed.is_some_and(fresh))
    }

    fn refuse(&self, error: &Error) {
        let before = self.with(|known| {
            known.confirmed = None;
            known.damage.replace(error.clone())
        });
        if before.is_none() {
            tracing::error!(event = "newest_commit_damaged", %error, "the newest commit of a ledger is damaged: it takes no changes until it is restored");
            metrics::counter!("taco_ledger_newest_commit_damaged_total").increment(1);
        }
    }

    pub(crate) fn damage(&self) -> Option<Error> {
        self.with(|known| known.damage.clone())
    }
}

impl<S: State> Shared<S> {
    /// Makes sure that the newest commit is there as this server knows it, before another is written after it.
    pub(crate) async fn confirm_newest(&self, head: &Head<S>) -> Result<(), Error> {
        if head.seq == 0 {
            return Ok(());
        }
        if self.confirmation.is_fresh(head.seq) {
            let bucket = &self.environment.bucket;
            if !bucket.is_local() {
                return Ok(());
            }
            let size = bucket.size(&layout::commit(&self.name, head.seq)).await?;
            if size.is_some_and(|size| head.size.is_none_or(|known| known == size)) {
                return Ok(());
            }
        }
        self.read_newest(head).await
    }

    /// The same together with a look, so that a commit which follows soon need not wait for it.
    pub(crate) async fn confirm_ahead(&self, head: &Head<S>) {
        let is_due = head.seq > 0 && !self.environment.bucket.is_local() && !self.confirmation.is_fresh(head.seq);
        if is_due {
            // Damage is noted, and stops who writes. Those who read are served from memory; and a bucket that does not
            // answer is for the look to tell.
            let _ = self.read_newest(head).await;
        }
    }

    /// Reads the newest commit and compares it with what is known.
    pub(crate) async fn read_newest(&self, head: &Head<S>) -> Result<(), Error> {
        let key = layout::commit(&self.name, head.seq);
        let why = match self.fetch(head.seq).await? {
            None => "it is missing, though this server has read it: it was deleted".to_owned(),
            Some((_, bytes)) if Hash::of(&bytes) == head.hash => {
                self.confirmation.confirm(head.seq);
                return self.refuse_a_wrong_mac(&key, &bytes);
            }
            Some((_, bytes)) => {
                format!("its hash is {}, but it was written with {}: it was altered", Hash::of(&bytes), head.hash)
            }
        };
        let error = Error::corrupt(&key, why);
        self.confirmation.refuse(&error);
        Err(error)
    }
}
