//! Writes snapshots and deltas, and removes those that nobody needs any more, beside the commits and never in their way:
//! one task for each ledger, one piece at a time, always of the newest state that is due.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use taco_tables::State;
use tokio::sync::watch;

use crate::bucket::{Bucket, BucketError, Created, Key};
use crate::delta;
use crate::error::Error;
use crate::head_object::CommitRef;
use crate::layout::LedgerName;
use crate::ledger::{Head, Options};
use crate::snapshot;
use crate::snapshot_chain::{self, Chain, ChainSize, Piece, Pieces};
use crate::snapshot_loader;

/// A delta may begin at any of so many states that are remembered. They share nearly all of their memory.
const MAX_BASES: usize = 6;

/// Maximum number of superseded pieces that are looked at after each that is written.
const MAX_REMOVALS: usize = 32;

/// Messages of a ledger to the task that writes its snapshots.
pub(crate) struct Snapshots<S> {
    due: watch::Sender<Option<Arc<Head<S>>>>,
    bases: Arc<Bases<S>>,
}

/// States at which a chain in the bucket ends, as far as this server knows.
struct Bases<S> {
    every: u64,
    heads: Mutex<VecDeque<Arc<Head<S>>>>,
}

impl<S> Bases<S> {
    fn remember(&self, head: &Arc<Head<S>>) {
        let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        if heads.iter().any(|known| known.seq == head.seq) {
            return;
        }
        heads.push_back(Arc::clone(head));
        if heads.len() > MAX_BASES {
            heads.pop_front();
        }
    }

    /// Older ones are of no use where a chain leads to this one.
    fn forget_before(&self, seq: u64) {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).retain(|head| head.seq >= seq);
    }

    fn all(&self) -> Vec<Arc<Head<S>>> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl<S: State> Snapshots<S> {
    /// Begins with the state that was loaded; `task` runs for as long as the ledger is open.
    pub(crate) fn of(loaded: &Arc<Head<S>>, every: u64) -> (Self, watch::Receiver<Option<Arc<Head<S>>>>) {
        let (due, receiver) = watch::channel(None);
        let bases = Arc::new(Bases { every, heads: Mutex::default() });
        if loaded.seq > 0 {
            bases.remember(loaded);
        }
        (Self { due, bases }, receiver)
    }

    /// Remembers a state of which some server writes a snapshot or a delta, so that the next delta can begin there.
    pub(crate) fn pass(&self, head: &Arc<Head<S>>) {
        if head.seq.is_multiple_of(self.bases.every) {
            self.bases.remember(head);
        }
    }

    /// Asks for a snapshot, or a delta, of this state. Where one is being written, the newest that was asked for is next.
    pub(crate) fn request(&self, head: Arc<Head<S>>) {
        self.bases.remember(&head);
        self.due.send_replace(Some(head));
    }

    pub(crate) fn task(&self, bucket: Arc<dyn Bucket>, name: LedgerName, unreadable: Vec<Piece>) -> SnapshotTask<S> {
        SnapshotTask { bucket, name, unreadable, bases: Arc::clone(&self.bases) }
    }
}

pub(crate) struct SnapshotTask<S> {
    bucket: Arc<dyn Bucket>,
    name: LedgerName,
    unreadable: Vec<Piece>,
    bases: Arc<Bases<S>>,
}

impl<S: State> SnapshotTask<S> {
    /// Writes what is due until nobody is left to ask.
    pub(crate) async fn run(
        self,
        mut due: watch::Receiver<Option<Arc<Head<S>>>>,
        #[cfg_attr(not(test), expect(unused_variables, reason = "only simulated faults use it"))] options: Options,
        #[cfg_attr(not(test), expect(unused_variables, reason = "only simulated faults use it"))]
        newest: watch::Receiver<Arc<Head<S>>>,
    ) {
        while due.changed().await.is_ok() {
            let Some(head) = due.borrow_and_update().clone() else { continue };
            #[cfg(test)]
            let head = crate::simulation::perhaps_tear(options.sabotage, &newest, head).await;
            let result = match self.write(head).await {
                Ok(Some(written)) => {
                    self.remove_superseded(written).await;
                    "ok"
                }
                Ok(None) => "ok",
                Err(why) => {
                    tracing::warn!(
                        event = "snapshot_failed", ledger = %self.name, why,
                        "a snapshot could not be written; the next one will be tried in its turn"
                    );
                    "failed"
                }
            };
            metrics::counter!("taco_ledger_snapshots_total", "result" => result).increment(1);
        }
    }

    async fn pieces(&self) -> Result<Pieces, BucketError> {
        let mut pieces = snapshot_loader::list(&*self.bucket, &self.name).await?;
        self.unreadable.iter().for_each(|piece| pieces.remove(*piece));
        Ok(pieces)
    }

    /// Writes the piece that is due, unless some server has done so. Several that do so at once write the same.
    async fn write(&self, head: Arc<Head<S>>) -> Result<Option<Piece>, String> {
        let pieces = self.pieces().await.map_err(|error| error.to_string())?;
        if pieces.chain_to_newest_of([head.seq]).is_some() {
            return Ok(None);
        }
        let base = self.base_for(&pieces, head.seq).await.map_err(|error| error.to_string())?;
        let piece = match &base {
            Some(base) => Piece::Delta { from: base.seq, to: head.seq },
            None => Piece::Snapshot(head.seq),
        };
        let name = self.name.clone();
        let bytes = run_blocking(move || encode(&name, base.as_deref(), &head)).await?;
        metrics::counter!("taco_ledger_snapshot_bytes_total", "piece" => piece.word()).increment(bytes.len() as u64);
        create_idempotent(&*self.bucket, &piece.key(&self.name), bytes).await.map_err(|error| error.to_string())?;
        Ok(Some(piece))
    }

    /// The state that a delta begins at, or `None` where a whole state is due.
    async fn base_for(&self, pieces: &Pieces, seq: u64) -> Result<Option<Arc<Head<S>>>, BucketError> {
        let bases: Vec<_> = self.bases.all().into_iter().filter(|base| base.seq < seq).collect();
        let Some(chain) = pieces.chain_to_newest_of(bases.iter().map(|base| base.seq)) else { return Ok(None) };
        let end = chain.0.last().map_or(0, |last| last.end());
        self.bases.forget_before(end);
        let Some(size) = self.size_of(&chain, seq).await? else { return Ok(None) };
        if snapshot_chain::wants_snapshot(size, self.bases.every) {
            return Ok(None);
        }
        Ok(bases.into_iter().find(|base| base.seq == end))
    }

    /// `None` if a part of it has gone.
    async fn size_of(&self, chain: &Chain, seq: u64) -> Result<Option<ChainSize>, BucketError> {
        let mut size = ChainSize { snapshot_bytes: 0, delta_bytes: 0, commits: 0 };
        for piece in &chain.0 {
            let Some(bytes) = self.bucket.size(&piece.key(&self.name)).await? else { return Ok(None) };
            match piece {
                Piece::Snapshot(begin) => {
                    (size.snapshot_bytes, size.commits) = (bytes, seq - begin);
                }
                Piece::Delta { .. } => size.delta_bytes += bytes,
            }
        }
        Ok(Some(size))
    }

    /// Removes what nobody begins with any more, as old as it has to be by the bucket's own clock.
    async fn remove_superseded(&self, written: Piece) {
        if let Err(error) = self.try_to_remove_superseded(written).await {
            tracing::warn!(
                event = "snapshot_removal_failed", ledger = %self.name, %error,
                "old snapshots could not be removed; the next one that is written tries again"
            );
        }
    }

    async fn try_to_remove_superseded(&self, written: Piece) -> Result<(), Error> {
        let pieces = snapshot_loader::list(&*self.bucket, &self.name).await?;
        let superseded: Vec<_> = pieces.superseded().take(MAX_REMOVALS).collect();
        if superseded.is_empty() {
            return Ok(());
        }
        let Some(now) = self.bucket.stat(&written.key(&self.name)).await? else { return Ok(()) };
        for piece in superseded {
            let key = piece.key(&self.name);
            let Some(stat) = self.bucket.stat(&key).await? else { continue };
            if snapshot_chain::is_old_enough(stat.last_modified, now.last_modified) {
                self.bucket.delete(&key).await?;
                metrics::counter!("taco_ledger_snapshots_removed_total").increment(1);
            }
        }
        Ok(())
    }
}

fn encode<S: State>(name: &LedgerName, base: Option<&Head<S>>, head: &Head<S>) -> Result<Bytes, String> {
    match base {
        Some(base) => delta::encode(name, (base.named(), &base.state), (head.named(), &head.state)),
        None => snapshot::encode(name, head.seq, head.hash, &head.state),
    }
}

impl<S> Head<S> {
    fn named(&self) -> CommitRef {
        CommitRef { seq: self.seq, hash: self.hash }
    }
}

impl Piece {
    fn word(self) -> &'static str {
        match self {
            Self::Snapshot(_) => "snapshot",
            Self::Delta { .. } => "delta",
        }
    }
}

/// Does work that takes a while on a thread of its own, so that no task waits for it. Where there is but one thread, as in
/// simulations, in its turn.
pub(crate) async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::runtime::Handle::current().runtime_flavor() {
        tokio::runtime::RuntimeFlavor::CurrentThread => work(),
        _ => tokio::task::spawn_blocking(work).await.expect("it does not panic"),
    }
}

/// Creates an object whose content follows from its key: if it is there, it is there.
pub(crate) async fn create_idempotent(bucket: &dyn Bucket, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
    match bucket.create(key, bytes).await {
        Ok(Created::Now | Created::AlreadyThere) => Ok(()),
        Err(error) => Err(error),
    }
}
