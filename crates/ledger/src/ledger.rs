//! One ledger: open it, read it, change it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use futures::{StreamExt, TryStreamExt, join, stream};
use jiff::SignedDuration;
use taco_tables::{LooseRecords, State};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::timeout;

use crate::bucket::Key;
use crate::commit::{self, Commit, Hash};
use crate::environment::Environment;
use crate::error::{CommitError, Error};
use crate::head_object::{self, CommitRef, FoundHead};
use crate::layout::{self, LedgerName};
use crate::newest_commit::Confirmation;
use crate::pace::Pace;
use crate::pack::PackCache;
use crate::packing;
use crate::seal::MasterKeys;
use crate::set_aside_report::SetAsideReport;
use crate::snapshot_loader::{self, Loaded};
use crate::snapshot_writer::Snapshots;
use crate::transaction::{Intent, Transaction};
use crate::writer::{self, Pending, Request};

/// Number of transactions that may wait for the writer before callers wait to enqueue.
const WRITER_QUEUE_CAPACITY: usize = 4096;

/// Number of commits that a server which is far behind reads at once.
const MAX_PREFETCHED_COMMITS: u64 = 64;

/// Number of commits that are read at once to look back.
const LOOK_BACK_CONCURRENCY: usize = 32;

/// Timeout for the task that writes heads; then the caller that closes the ledger writes the head.
const HEAD_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct Options {
    /// A snapshot, or a delta, is due after every so many commits.
    pub snapshot_every: u64,
    /// Commits and heads bear a keyed digest by the current one, and those that bear one are proven.
    pub keys: Option<Arc<MasterKeys>>,
    /// Number of commits that are packed together, and how old they have to be.
    pub pack_commits: u64,
    pub pack_after: SignedDuration,
    #[cfg(test)]
    pub(crate) sabotage: crate::simulation::Sabotage,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            snapshot_every: 1_000,
            keys: None,
            pack_commits: packing::PACK_COMMITS,
            pack_after: packing::PACK_AFTER,
            #[cfg(test)]
            sabotage: crate::simulation::Sabotage::None,
        }
    }
}

/// A handle on one ledger; clones share everything.
pub struct Ledger<S: State> {
    pub(crate) shared: Arc<Shared<S>>,
    requests: mpsc::Sender<Box<dyn Pending<S>>>,
}

impl<S: State> Clone for Ledger<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), requests: self.requests.clone() }
    }
}

impl<S: State> fmt::Debug for Ledger<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Ledger({} at {})", self.shared.name, self.shared.head().seq)
    }
}

/// State that the handles, the reader and the writer of a ledger share.
pub(crate) struct Shared<S> {
    pub(crate) environment: Environment,
    pub(crate) name: LedgerName,
    pub(crate) options: Options,
    pub(crate) pace: Pace,
    head: watch::Sender<Arc<Head<S>>>,
    pub(crate) snapshots: Snapshots<S>,
    packs: PackCache,
    /// Up to which commit the log is packed, as far as this server knows.
    pub(crate) packed: AtomicU64,
    /// The log is not looked at for settled commits before it has reached this number.
    pub(crate) packing_due: AtomicU64,
    probes_started: AtomicU64,
    probes_ended: AtomicU64,
    probe: Mutex<Probe>,
    pub(crate) confirmation: Confirmation,
    set_aside_report: SetAsideReport,
    /// The newest commit that this server wrote, for the ledger's head object.
    pub(crate) newest_own: watch::Sender<Option<CommitRef>>,
    /// The number that the last head object has which this server wrote.
    head_written: watch::Receiver<u64>,
}

/// The state after commit `seq`.
pub(crate) struct Head<S> {
    pub(crate) seq: u64,
    pub(crate) hash: Hash,
    /// Size of the commit in the bucket; `None` where only a snapshot tells of it.
    pub(crate) size: Option<u64>,
    pub(crate) state: S,
}

/// Result of the last finished probe.
struct Probe {
    number: u64,
    outcome: Result<(), Error>,
}

/// The state of a ledger at one moment. It never changes; ask the ledger for a newer one.
pub struct View<S>(Arc<Head<S>>);

impl<S> View<S> {
    /// The last commit it contains.
    pub fn seq(&self) -> u64 {
        self.0.seq
    }
}

impl<S: State> View<S> {
    /// The same moment, with further records in it: those that are kept elsewhere. Nothing of it reaches the ledger.
    pub fn with<'a>(&self, others: impl IntoIterator<Item = &'a LooseRecords>) -> Self {
        let Head { seq, hash, size, ref state } = *self.0;
        let mut state = state.clone();
        others.into_iter().for_each(|other| state.lay_over(other));
        Self(Arc::new(Head { seq, hash, size, state }))
    }
}

impl<S> Clone for View<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Deref for View<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0.state
    }
}

impl<S: State> Ledger<S> {
    /// Opens a ledger from its newest readable snapshot, the deltas that continue it and the commits after them. One that has no commit yet is empty.
    pub async fn open(environment: Environment, name: LedgerName, options: Options) -> Result<Self, Error> {
        // The head object before the log: what it names must be found afterwards.
        let (head_object, start) = join!(
            head_object::read(&*environment.bucket, &name, options.keys.as_deref()),
            snapshot_loader::load(&*environment.bucket, &name)
        );
        let (head_object, Loaded { head: start, unreadable }) = (head_object?, start?);
        let snapshot_seq = start.seq;
        let start = Arc::new(start);
        let (snapshots, due) = Snapshots::of(&start, options.snapshot_every);
        let snapshot_task = snapshots.task(Arc::clone(&environment.bucket), name.clone(), unreadable);
        let (newest_own, newest) = watch::channel(None);
        let (written, head_written) = watch::channel(0);
        let (bucket, keys) = (Arc::clone(&environment.bucket), options.keys.clone());
        let heads = head_object::write_heads(bucket, name.clone(), keys, newest, written);
        let shared = Arc::new(Shared {
            environment,
            name,
            options,
            pace: Pace::default(),
            head: watch::Sender::new(start),
            snapshots,
            packs: PackCache::default(),
            packed: AtomicU64::new(0),
            packing_due: AtomicU64::new(0),
            probes_started: AtomicU64::new(0),
            probes_ended: AtomicU64::new(0),
            probe: Mutex::new(Probe { number: 0, outcome: Ok(()) }),
            confirmation: Confirmation::default(),
            set_aside_report: SetAsideReport::default(),
            newest_own,
            head_written,
        });
        shared.refuse_a_gap(snapshot_seq).await?;
        shared.refuse_a_changed_end(snapshot_seq, &head_object).await?;
        let head = shared.head();
        shared.set_aside_report.tell(&shared.name, &head.state);
        if head.seq - snapshot_seq >= shared.options.snapshot_every {
            shared.snapshots.request(head);
        }
        tokio::spawn(snapshot_task.run(due, shared.options.clone(), shared.head.subscribe()));
        let (requests, waiting) = mpsc::channel(WRITER_QUEUE_CAPACITY);
        tokio::spawn(writer::run(Arc::clone(&shared), waiting));
        tokio::spawn(heads);
        Ok(Self { shared, requests })
    }

    /// Reason why this ledger takes no changes, if it takes none: its newest commit is not as this server knows it.
    pub fn damage(&self) -> Option<Error> {
        self.shared.confirmation.damage()
    }

    /// Waits until the head object names the newest commit that this server wrote: before the process ends.
    pub async fn flush(&self) {
        let Some(named) = *self.shared.newest_own.borrow() else { return };
        let mut written = self.shared.head_written.clone();
        if !matches!(timeout(HEAD_WRITE_TIMEOUT, written.wait_for(|seq| *seq >= named.seq)).await, Ok(Ok(_))) {
            // A bucket that does not answer must not keep a process from ending.
            if !matches!(timeout(HEAD_WRITE_TIMEOUT, self.write_head(named)).await, Ok(Ok(()))) {
                tracing::warn!(event = "head_failed", ledger = %self.shared.name, "the head of a ledger could not be written before the end");
            }
        }
    }

    /// Writes the head object anew, with the current key.
    pub async fn renew_head(&self) -> Result<(), Error> {
        self.shared.look().await?;
        let head = self.shared.head();
        if head.seq > 0 {
            self.write_head(CommitRef { seq: head.seq, hash: head.hash }).await?;
        }
        Ok(())
    }

    async fn write_head(&self, named: CommitRef) -> Result<(), Error> {
        let Shared { environment, name, options, .. } = &*self.shared;
        Ok(head_object::write(&*environment.bucket, name, named, options.keys.as_deref()).await?)
    }

    pub fn name(&self) -> &LedgerName {
        &self.shared.name
    }

    /// The state as it is now: everything that any server had acknowledged before this call is in it.
    pub async fn read(&self) -> Result<View<S>, Error> {
        #[cfg(test)]
        if self.shared.options.sabotage == crate::simulation::Sabotage::StaleRead {
            return Ok(self.last_seen());
        }
        self.shared.look().await?;
        Ok(self.last_seen())
    }

    /// The state as this server last saw it, at no cost: for hints, never for an answer.
    pub fn last_seen(&self) -> View<S> {
        View(self.shared.head())
    }

    /// Wakes whoever waits on it when this server has seen a commit. It says "look" and carries nothing else.
    pub fn changes(&self) -> Changes<S> {
        Changes(self.shared.head.subscribe())
    }

    /// The commits with these numbers, in this order. Every number up to that of a [`View`] has one.
    pub async fn history(&self, seqs: impl IntoIterator<Item = u64>) -> Result<Vec<Commit>, Error> {
        let read = |seq| async move {
            match self.shared.fetch(seq).await? {
                Some((key, bytes)) => Commit::decode(&key, seq, &bytes),
                None => Err(Error::corrupt(&layout::commit(&self.shared.name, seq), "it is missing")),
            }
        };
        stream::iter(seqs).map(read).buffered(LOOK_BACK_CONCURRENCY).try_collect().await
    }

    /// Changes the ledger. When this returns `Ok`, the change is in the bucket.
    ///
    /// `decide` sees the newest state and puts or deletes records, or returns an error. **It may run several times**,
    /// each time on a newer state, because another server was first: so it decides from its argument alone, without
    /// I/O, clock or randomness. An `Err` it returns was decided on a state that was current, too.
    pub async fn commit<T, E>(
        &self,
        intent: Intent,
        decide: impl FnMut(&mut Transaction<S>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, CommitError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let (request, answer) = Request::new(intent, decide);
        let gone = || Error::Broken("the ledger's writer has stopped".to_owned());
        self.requests.send(Box::new(request)).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone().into()))
    }
}

/// Tells that a ledger moved on.
pub struct Changes<S>(watch::Receiver<Arc<Head<S>>>);

impl<S> Changes<S> {
    /// Returns when there was a commit since the last call; `false` when the ledger is closed.
    pub async fn next(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

impl<S: State> Shared<S> {
    pub(crate) fn head(&self) -> Arc<Head<S>> {
        Arc::clone(&self.head.borrow())
    }

    /// Makes a newer head known. Whoever was faster has derived at least as much from the same log.
    pub(crate) fn advance(&self, new: Arc<Head<S>>) {
        self.head.send_if_modified(|current| {
            let newer = new.seq > current.seq;
            if newer {
                *current = new;
            }
            newer
        });
    }

    /// Learns of every commit that was there when this call began.
    ///
    /// One probe of the bucket serves all who were already waiting when it began, as in Raft's read-index: a caller
    /// notes how many probes have started, and is content with any that started later. It serves them with its
    /// failure, too, else a thousand callers would time out one after the other. Even the failure of a probe that was
    /// under way when they came is an answer to them, unlike its success: the bucket was silent while they waited.
    ///
    /// On a near directory a probe is cheaper than to wait for one, so that each caller begins with its own. Nothing found
    /// is the answer, since commits have no gaps between them; what it finds, it reads with the others.
    pub(crate) async fn look(&self) -> Result<(), Error> {
        while self.environment.bucket.is_local() && self.pace.is_near() {
            let next = self.head().seq + 1;
            if self.fetch(next).await?.is_none() {
                return Ok(());
            }
            // Unless it is this server's own, and known by now.
            if self.head().seq < next {
                break;
            }
        }
        let ended = self.probes_ended.load(Ordering::SeqCst);
        let started = self.probes_started.load(Ordering::SeqCst);
        let mut probe = self.probe.lock().await;
        if probe.number > ended
            && let Err(error @ Error::Unavailable(_)) = &probe.outcome
        {
            return Err(error.clone());
        }
        if probe.number <= started {
            // Those who came at the same moment get to say so before the probe begins; else they would need a second.
            // Where that costs as much as a probe, each may as well have its own.
            if !self.pace.is_near() {
                tokio::task::yield_now().await;
            }
            let number = self.probes_started.fetch_add(1, Ordering::SeqCst) + 1;
            let outcome = self.catch_up().await;
            self.probes_ended.store(number, Ordering::SeqCst);
            *probe = Probe { number, outcome };
        }
        probe.outcome.clone()
    }

    /// Reads commits until there are no more. In calm times that is one GET that finds nothing.
    pub(crate) async fn catch_up(&self) -> Result<(), Error> {
        self.catch_up_beyond(None).await
    }

    /// The same where commits up to this one were seen in a listing: those are read first, so that little
    /// is asked for in vain.
    async fn catch_up_beyond(&self, listed: Option<u64>) -> Result<(), Error> {
        let head = self.head();
        // Whoever looks is likely to write next, and should not have to wait for this then.
        let (found, ()) = join!(self.fetch(head.seq + 1), self.confirm_ahead(&head));
        let Some((key, bytes)) = found? else { return Ok(()) };
        let next = Arc::new(self.follow(&head, &key, head.seq + 1, &bytes)?);
        self.snapshots.pass(&next);
        self.advance(next);
        let (mut window, mut beyond) = (2, 1);
        loop {
            let mut head = self.head();
            let count = match listed {
                None => window,
                Some(listed) if listed > head.seq => window.min(listed - head.seq),
                Some(_) => beyond,
            };
            let seqs: Vec<u64> = (1..=count).map(|step| head.seq + step).collect();
            let found = join_all(seqs.iter().map(|&seq| self.fetch(seq))).await;
            let mut reached_end = false;
            for (&seq, found) in seqs.iter().zip(found) {
                let Some((key, bytes)) = found? else {
                    reached_end = true;
                    break;
                };
                head = Arc::new(self.follow(&head, &key, seq, &bytes)?);
                self.snapshots.pass(&head);
            }
            self.advance(head);
            if reached_end {
                self.set_aside_report.tell(&self.name, &self.head().state);
                return Ok(());
            }
            if listed.is_some_and(|listed| listed < self.head().seq) {
                beyond = (beyond * 2).min(MAX_PREFETCHED_COMMITS);
            }
            window = (window * 2).min(MAX_PREFETCHED_COMMITS);
        }
    }

    /// The bytes of a commit as it was written, wherever they are now.
    pub(crate) async fn fetch(&self, seq: u64) -> Result<Option<(Key, Bytes)>, Error> {
        let key = layout::commit(&self.name, seq);
        let object = self.pace.time_get(self.environment.bucket.get(&key)).await?;
        match object {
            Some(object) => Ok(Some((key, self.resolve(seq, object.bytes).await?))),
            None => Ok(None),
        }
    }

    /// The bytes of a commit as it was written, where `found` lies in its place.
    pub(crate) async fn resolve(&self, seq: u64, found: Bytes) -> Result<Bytes, Error> {
        self.packs.resolve(&*self.environment.bucket, &self.name, seq, found).await
    }

    /// Catches up for the first time, and refuses a log with a hole: the next commit would be written into it, and
    /// everything after it would be lost. The listing comes first, so what it names must be found afterwards; that
    /// it may be out of date only makes the check weaker, never wrong.
    async fn refuse_a_gap(&self, after: u64) -> Result<(), Error> {
        let last = layout::commit(&self.name, after);
        let listed = self.environment.bucket.list(&layout::log(&self.name), Some(&last)).await?;
        let newest = listed.iter().filter_map(layout::number_of).max();
        self.catch_up_beyond(newest).await?;
        let head = self.head();
        match newest {
            Some(newest) if newest > head.seq => {
                let missing = layout::commit(&self.name, head.seq + 1);
                Err(Error::corrupt(&missing, format_args!("it is missing, though commit {newest} is there")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a log whose newest commit was altered, or whose newest commits were deleted. Of these no other commit
    /// tells, but the head object, and the digest that a commit bears.
    async fn refuse_a_changed_end(&self, snapshot_seq: u64, found: &FoundHead) -> Result<(), Error> {
        let head = self.head();
        if head.seq > 0 && head.seq == snapshot_seq {
            self.read_newest(&head).await?;
        }
        self.confirmation.confirm(head.seq);
        let end = CommitRef { seq: head.seq, hash: head.hash };
        let hash_of = async |seq| Ok(self.fetch(seq).await?.map(|(_, bytes)| Hash::of(&bytes)));
        head_object::compare(&self.name, found, end, hash_of).await
    }

    /// The head after the commit that was found under `key`.
    fn follow(&self, head: &Head<S>, key: &Key, seq: u64, bytes: &[u8]) -> Result<Head<S>, Error> {
        let commit = Commit::decode(key, seq, bytes)?;
        if commit.previous != head.hash {
            let previous = commit.previous;
            let why = format!("it follows a commit with hash {previous}, but the one before it has {}", head.hash);
            return Err(Error::corrupt(key, why));
        }
        self.refuse_a_wrong_mac(key, bytes)?;
        let mut state = head.state.clone();
        for change in commit.changes() {
            state.apply(&change);
        }
        self.confirmation.confirm(seq);
        Ok(Head { seq, hash: Hash::of(bytes), size: Some(bytes.len() as u64), state })
    }

    pub(crate) fn refuse_a_wrong_mac(&self, key: &Key, bytes: &[u8]) -> Result<(), Error> {
        match commit::check_mac(&self.name, bytes, self.options.keys.as_deref()) {
            Ok(_) => Ok(()),
            Err(why) => Err(Error::corrupt(key, why)),
        }
    }
}
