//! Group commit: the transactions that wait for a ledger become one commit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use taco_tables::State;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::bucket::Created;
use crate::commit::{self, Commit, Entry, Hash};
use crate::error::{CommitError, Error};
use crate::head_object::CommitRef;
use crate::layout;
use crate::ledger::{Head, Shared};
use crate::retry::{Backoff, OPERATION_TIMEOUT, no_answer};
use crate::transaction::{Intent, Transaction};

/// Maximum number of transactions in a commit: keeps it readable, and the time to run its closures again short.
const MAX_BATCH_TRANSACTIONS: usize = 1024;

/// A transaction that waits, whatever its closure returns.
pub(crate) trait Pending<S>: Send {
    fn intent(&self) -> &Intent;
    /// Decides anew. `true` if the changes in `transaction` are wanted.
    fn decide(&mut self, transaction: &mut Transaction<S>) -> bool;
    /// The state it decided on turned out to be current, and its changes, if any, are in the bucket.
    fn settle(self: Box<Self>);
    fn fail(self: Box<Self>, error: Error);
}

/// One call of `commit`.
pub(crate) struct Request<T, E, Decide> {
    intent: Intent,
    decide: Decide,
    decision: Option<Result<T, CommitError<E>>>,
    reply: oneshot::Sender<Result<T, CommitError<E>>>,
}

impl<T, E, Decide> Request<T, E, Decide> {
    pub(crate) fn new(intent: Intent, decide: Decide) -> (Self, oneshot::Receiver<Result<T, CommitError<E>>>) {
        let (reply, answer) = oneshot::channel();
        (Self { intent, decide, decision: None, reply }, answer)
    }
}

impl<S, T, E, Decide> Pending<S> for Request<T, E, Decide>
where
    T: Send,
    E: Send,
    Decide: FnMut(&mut Transaction<S>) -> Result<T, E> + Send,
{
    fn intent(&self) -> &Intent {
        &self.intent
    }

    fn decide(&mut self, transaction: &mut Transaction<S>) -> bool {
        // A closure that panics must not take the ledger's writer and everybody's transactions with it.
        let decision = match catch_unwind(AssertUnwindSafe(|| (self.decide)(transaction))) {
            Ok(decision) => match (decision, transaction.blocking_record()) {
                (Ok(_), Some(record)) => Err(Error::NewerRecord(record.clone()).into()),
                (decision, _) => decision.map_err(CommitError::Decided),
            },
            Err(_) => Err(Error::Broken(format!("{} could not be decided", self.intent.action)).into()),
        };
        let wanted = decision.is_ok();
        self.decision = Some(decision);
        wanted
    }

    fn settle(self: Box<Self>) {
        let decision = self.decision.unwrap_or_else(|| Err(Error::Broken("nothing was decided".to_owned()).into()));
        // Whoever asked may have gone away.
        let _ = self.reply.send(decision);
    }

    fn fail(self: Box<Self>, error: Error) {
        let _ = self.reply.send(Err(error.into()));
    }
}

/// Commits whatever arrives, until every handle on the ledger is gone.
pub(crate) async fn run<S: State>(shared: Arc<Shared<S>>, mut waiting: mpsc::Receiver<Box<dyn Pending<S>>>) {
    let mut last_commit: Option<Instant> = None;
    let mut batch = Vec::new();
    while waiting.recv_many(&mut batch, MAX_BATCH_TRANSACTIONS).await > 0 {
        if let Some(last) = last_commit
            && shared.environment.peers.alive() > 0
        {
            // Spread by chance: servers in step would otherwise let the same one lose every time.
            sleep_until(last + shared.pace.turn().mul_f64(1.0 + shared.environment.rng.fraction())).await;
        }
        gather(&mut waiting, &mut batch).await;
        match commit(&shared, std::mem::take(&mut batch)).await {
            Ok(true) => last_commit = Some(Instant::now()),
            Ok(false) => {}
            Err(error) => fail_waiting(&mut waiting, &error),
        }
    }
}

/// Takes what else waits. Those whom the last commit has just answered come back at once, so one yield to them makes
/// batches fuller than taking the first to arrive.
async fn gather<S>(waiting: &mut mpsc::Receiver<Box<dyn Pending<S>>>, batch: &mut Vec<Box<dyn Pending<S>>>) {
    tokio::task::yield_now().await;
    while batch.len() < MAX_BATCH_TRANSACTIONS
        && let Ok(next) = waiting.try_recv()
    {
        batch.push(next);
    }
}

/// Fails the transactions that waited while the bucket did not answer, instead of letting them wait as long again. Nothing of theirs
/// was tried.
fn fail_waiting<S>(waiting: &mut mpsc::Receiver<Box<dyn Pending<S>>>, error: &Error) {
    if matches!(error, Error::Unavailable(_)) {
        // No more than there are now: who comes later finds a bucket that may be well again.
        for _ in 0..waiting.len() {
            let Ok(pending) = waiting.try_recv() else { return };
            pending.fail(error.clone());
        }
    }
}

/// Decides and writes one batch, again and again until it is in the log or the bucket gives up. `true` if it wrote.
async fn commit<S: State>(shared: &Arc<Shared<S>>, mut batch: Vec<Box<dyn Pending<S>>>) -> Result<bool, Error> {
    let end = Instant::now() + CONTENTION_TIMEOUT;
    let outcome = loop {
        let deadline = end.min(Instant::now() + OPERATION_TIMEOUT);
        let head = shared.head();
        let (state, entries) = decide_all(&head, &mut batch);
        if entries.is_empty() {
            // Nothing to write: but even "no" must have been decided on a current state.
            match shared.look().await {
                Ok(()) if shared.head().seq == head.seq => break Ok(None),
                Ok(()) => continue,
                Err(error) => break Err(error),
            }
        }
        if let Err(error) = shared.confirm_newest(&head).await {
            break Err(error);
        }
        let seq = head.seq + 1;
        let commit = Commit {
            format: commit::FORMAT,
            seq,
            id: shared.environment.rng.unique(),
            at: shared.environment.clock.now(),
            server: shared.environment.server.clone(),
            previous: head.hash,
            transactions: entries,
        };
        match write(shared, &commit, deadline).await {
            Ok(Written::Won { hash, size }) => break Ok(Some(Arc::new(Head { seq, hash, size: Some(size), state }))),
            Ok(Written::Lost) => {
                metrics::counter!("taco_ledger_conflicts_total").increment(1);
                if let Err(error) = shared.look().await {
                    break Err(error);
                }
                if Instant::now() >= end {
                    let ledger = shared.name.to_string();
                    break Err(Error::Busy { ledger, seconds: CONTENTION_TIMEOUT.as_secs() });
                }
            }
            Err(error) => break Err(error),
        }
    };
    match outcome {
        Ok(written) => {
            let wrote = written.is_some();
            if let Some(head) = written {
                metrics::counter!("taco_ledger_commits_total").increment(1);
                metrics::counter!("taco_ledger_transactions_total").increment(batch.len() as u64);
                shared.advance(Arc::clone(&head));
                shared.confirmation.confirm(head.seq);
                shared.newest_own.send_replace(Some(CommitRef { seq: head.seq, hash: head.hash }));
                shared.environment.peers.note_commit(&shared.name, head.seq);
                if head.seq.is_multiple_of(shared.options.snapshot_every) {
                    shared.snapshots.request(head);
                }
            }
            batch.into_iter().for_each(|pending| pending.settle());
            Ok(wrote)
        }
        Err(error) => {
            tracing::warn!(event = "commit_failed", ledger = %shared.name, %error, transactions = batch.len(), "a commit failed");
            batch.into_iter().for_each(|pending| pending.fail(error.clone()));
            Err(error)
        }
    }
}

/// Runs every closure on the state that the ones before it leave behind.
fn decide_all<S: State>(head: &Head<S>, batch: &mut [Box<dyn Pending<S>>]) -> (S, Vec<Entry>) {
    let mut state = head.state.clone();
    let mut entries = Vec::new();
    for pending in batch {
        let mut transaction = Transaction::on(state.clone());
        if pending.decide(&mut transaction) && !transaction.is_empty() {
            let (after, entry) = transaction.finish(pending.intent());
            state = after;
            entries.push(entry);
        }
    }
    (state, entries)
}

enum Written {
    Won {
        hash: Hash,
        size: u64,
    },
    /// Another server's commit has this number.
    Lost,
}

/// Writes one commit. Its three outcomes are won, lost and "nobody knows"; the last is settled by reading back, since
/// an attempt whose answer was lost looks like somebody else's commit.
async fn write<S: State>(shared: &Shared<S>, commit: &Commit, deadline: Instant) -> Result<Written, Error> {
    let key = layout::commit(&shared.name, commit.seq);
    let bytes = Bytes::from(commit.encode(&shared.name, shared.options.keys.as_deref()));
    let (hash, size) = (Hash::of(&bytes), bytes.len() as u64);
    let bucket = &shared.environment.bucket;
    let mut backoff = Backoff::new(&shared.environment.rng);
    let no_answer = || no_answer("create", &key, OPERATION_TIMEOUT);
    loop {
        let attempt = shared.pace.time_put(bucket.create(&key, bytes.clone()));
        let unclear = match timeout_at(deadline, attempt).await {
            Ok(Ok(Created::Now)) => return Ok(Written::Won { hash, size }),
            Ok(Ok(Created::AlreadyThere)) => None,
            Ok(Err(error)) if error.is_outcome_unknown() => Some(error),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => Some(no_answer()),
        };
        #[cfg(test)]
        match shared.options.sabotage {
            crate::simulation::Sabotage::ConflictTakenForSuccess if unclear.is_none() => {
                return Ok(Written::Won { hash, size });
            }
            crate::simulation::Sabotage::BlindRetry => return Ok(Written::Lost),
            _ => {}
        }
        match timeout_at(deadline.max(Instant::now() + READ_BACK_TIMEOUT), bucket.get(&key)).await {
            // It may be packed by now, where this process was stalled in between.
            Ok(Ok(Some(object))) => match is_ours(&shared.resolve(commit.seq, object.bytes).await?, &commit.id) {
                true => {
                    metrics::counter!("taco_ledger_own_commits_recognised_total").increment(1);
                    return Ok(Written::Won { hash, size });
                }
                false => return Ok(Written::Lost),
            },
            Ok(Ok(None)) => {}
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err(no_answer().into()),
        }
        let pause = backoff.next_delay();
        if Instant::now() + pause >= deadline {
            return Err(unclear.unwrap_or_else(no_answer).into());
        }
        sleep(pause).await;
    }
}

/// Timeout for a batch that loses to other servers again and again.
const CONTENTION_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(8);

/// Timeout for reading back a write that timed out.
const READ_BACK_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1);

/// True if a commit in the bucket bears this id. One that cannot be read is nobody's.
fn is_ours(bytes: &[u8], id: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Identity<'a> {
        id: &'a str,
    }
    serde_json::from_slice::<Identity<'_>>(bytes).is_ok_and(|found| found.id == id)
}
