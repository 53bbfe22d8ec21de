//! Logs of phases, as clients read them: by offset, while they grow.
//!
//! A phase that waited has a log that begins with why, made from the run's record. A plan that was lost and began again
//! has a log for each attempt. One whose last agent was given up ends with that, again from the record; so does a plan that
//! breaks outputs which others use. Readers get all that, one after the other, as one text.
//!
//! Clients stop reading at a log's last byte, and go on as if the phase had ended. So they get that byte only when it has: what
//! follows a plan's own lines is known then, and whoever asks after `terraform apply` finds the run applied.

use std::time::Duration;

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::id::{OrganizationId, RunId};
use taco_domain::permission::{Action, Resource};
use taco_domain::phase::{Phase, PhaseKind, StoredLog, StoredLogBlock};
use taco_domain::phase_attempt::PhaseAttempt;
use taco_domain::run::Run;
use taco_domain::wait_note::{closing_text, waiting_text};
use taco_ledger::{BucketError, LogBlock, LogDigest};
use tokio::time::{Instant, timeout_at};

use crate::blob_error::blob_error;
use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::log_id::log_id;
use crate::output_contracts::contract_text;
use crate::privileged::Privileged;
use crate::runs::RunView;

/// Polling intervals of a waiting reader, because the log may grow through another server. The first is short.
const LOOKS: [Duration; 3] = [Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1)];

/// The first byte of a log.
const BEGIN: char = '\u{2}';
/// The last byte of a log, by which clients know that nothing follows.
const END: u8 = 3;

#[boxed]
impl ControlPlane {
    /// Bytes of a phase's log from `offset` on, at most `limit`. Where there are none yet, waits up to `patience` for
    /// some; empty when that is over, or when nothing will follow.
    pub async fn follow_log(
        &self,
        view: &RunView,
        kind: PhaseKind,
        offset: u64,
        limit: usize,
        patience: Duration,
    ) -> Result<Vec<u8>, Error> {
        let reader = view.reader.as_ref();
        self.follow_log_in(&view.org, view.run.id, kind, offset, limit, patience, reader).await
    }

    /// The same in an organization that was opened for this. A reader who waits may lose the right to read meanwhile.
    #[expect(clippy::too_many_arguments, reason = "each says which bytes of which log, and to whom")]
    pub(crate) async fn follow_log_in(
        &self,
        org: &OrganizationSnapshot,
        run: RunId,
        kind: PhaseKind,
        offset: u64,
        limit: usize,
        patience: Duration,
        reader: Option<&Caller>,
    ) -> Result<Vec<u8>, Error> {
        let log = log_id(run, kind);
        let grown = self.shared.log_signals.follow(&log);
        let end = Instant::now() + patience;
        let mut looks = LOOKS.into_iter();
        let mut pause = LOOKS[LOOKS.len() - 1];
        let mut state = org.state.clone();
        loop {
            let signal = grown.notified();
            let found = state.runs.get(&run).ok_or(Error::NotFound("log"))?;
            if let Some(reader) = reader {
                let workspace = state.workspaces.get(&found.workspace).ok_or(Error::NotFound("log"))?;
                reader.require(Action::ReadRuns, Resource::Workspace(&state, workspace), "log")?;
            }
            let over = found.has_ended_for_readers(kind);
            let log = LogView { org, state: &state, run: found, kind, reader };
            let bytes = self.log_bytes(&log, offset, limit).await?;
            if !bytes.is_empty() || over || Instant::now() >= end || self.shared.log_signals.are_closed() {
                return Ok(bytes);
            }
            pause = looks.next().unwrap_or(pause);
            let look = end.min(Instant::now() + pause);
            // Woken or not, it looks.
            let _ = timeout_at(look, signal).await;
            org.look().await?;
            state = org.last_seen();
        }
    }

    /// Current length of a phase's log, in bytes as readers count them.
    pub async fn log_end(&self, view: &RunView, kind: PhaseKind) -> Result<u64, Error> {
        let log = LogView::of(view, kind);
        let phase = log.phase();
        let waited = waiting_text(phase, kind).len() as u64;
        if let Some(closing) = self.closing(&log, waited).await? {
            return Ok(closing.begins + closing.text.len() as u64);
        }
        let (epoch, begins) = attempt_at(phase, waited, u64::MAX);
        if epoch == 0 {
            return Ok(waited);
        }
        let end = self.written_end(&log, epoch).await?;
        let held_back = log.holds_end_back() && self.last_bytes(&log, epoch, end, 1).await? == [END];
        Ok(begins + (end - u64::from(held_back)).saturating_sub(u64::from(begins > 0)))
    }

    /// Number of bytes that an attempt's agent wrote.
    async fn written_end(&self, log: &LogView<'_>, epoch: u64) -> Result<u64, Error> {
        if let Some(stored) = log.phase().log.as_ref().filter(|_| epoch == log.phase().epoch) {
            return Ok(stored.size());
        }
        self.shared.logs.end(log.org.ledger.name(), &log.id(), epoch).await.map_err(log_error)
    }

    /// The last `count` of these bytes of an attempt.
    async fn last_bytes(&self, log: &LogView<'_>, epoch: u64, end: u64, count: u64) -> Result<Vec<u8>, Error> {
        let from = end.saturating_sub(count);
        let limit = usize::try_from(end - from).unwrap_or_default();
        let read = self.shared.logs.read(log.org.ledger.name(), &log.id(), epoch, from, limit).await;
        Ok(read.map_err(log_error)?.to_vec())
    }

    /// What follows the lines of agents, if anything does.
    async fn closing(&self, log: &LogView<'_>, waited: u64) -> Result<Option<Closing>, Error> {
        let phase = log.phase();
        if let Some(closing) = Closing::of_lost(phase, log.kind, waited) {
            return Ok(Some(closing));
        }
        let text = contract_text(log.state, log.run, log.kind, log.reader);
        if text.is_empty() || !log.run.has_ended_for_readers(log.kind) {
            return Ok(None);
        }
        let (epoch, begins) = attempt_at(phase, waited, u64::MAX);
        let end = if epoch == 0 { 0 } else { self.written_end(log, epoch).await? };
        let last = if end == 0 { Vec::new() } else { self.last_bytes(log, epoch, end, 2).await? };
        let (is_ended, before) = match last.as_slice() {
            [before @ .., END] => (true, before),
            before => (false, before),
        };
        let begins = begins + (end - u64::from(is_ended)).saturating_sub(u64::from(begins > 0));
        let mut closing = String::new();
        match before.last() {
            None if begins == 0 => closing.push(BEGIN),
            None | Some(b'\n' | 2) => {}
            Some(_) => closing.push('\n'),
        }
        closing.push_str(&text);
        closing.push(char::from(END));
        Ok(Some(Closing { begins, text: closing }))
    }

    /// The bytes of a phase's log from `offset` on, at most `limit`, as far as there are any now.
    pub async fn log_part(&self, view: &RunView, kind: PhaseKind, offset: u64, limit: usize) -> Result<Vec<u8>, Error> {
        let log = LogView::of(view, kind);
        let mut found = Vec::new();
        while found.len() < limit {
            let at = offset + found.len() as u64;
            let more = self.log_bytes(&log, at, limit - found.len()).await?;
            if more.is_empty() {
                break;
            }
            found.extend(more);
        }
        Ok(found)
    }

    /// Some of these bytes: up to the end of what there is of the last attempt, or up to where a piece of it ends.
    async fn log_bytes(&self, view: &LogView<'_>, offset: u64, limit: usize) -> Result<Vec<u8>, Error> {
        let phase = view.phase();
        let waited = waiting_text(phase, view.kind).into_bytes();
        let closing = self.closing(view, waited.len() as u64).await?;
        let log = view.id();
        let mut found = Vec::new();
        while found.len() < limit {
            let at = offset + found.len() as u64;
            if let Some(closing) = closing.as_ref().filter(|closing| at >= closing.begins) {
                let from = usize::try_from(at - closing.begins).unwrap_or(usize::MAX);
                found.extend(closing.text.bytes().skip(from).take(limit - found.len()));
                break;
            }
            let (epoch, begins) = attempt_at(phase, waited.len() as u64, at);
            let limit = limit - found.len();
            if epoch == 0 {
                let from = usize::try_from(at).unwrap_or(usize::MAX).min(waited.len());
                found.extend(waited[from..].iter().take(limit));
                if phase.epoch == 0 {
                    break;
                }
                continue;
            }
            let end = phase.earlier_logs.get(epoch as usize - 1).copied().unwrap_or(u64::MAX);
            // Another text takes the place of the agent's last byte.
            let end = match closing.as_ref().filter(|_| epoch == phase.epoch) {
                Some(closing) => end.min(closing.begins - begins + u64::from(begins > 0)),
                None => end,
            };
            let at = at - begins + u64::from(begins > 0);
            let limit = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX).min(limit);
            let (logs, ledger) = (&self.shared.logs, view.org.ledger.name());
            let read = match phase.log.as_ref().filter(|_| epoch == phase.epoch) {
                Some(ended) => logs.read_verified(ledger, &log, epoch, at, limit, &log_digest(ended)).await,
                None => logs.read(ledger, &log, epoch, at, limit).await,
            };
            let read = read.map_err(log_error)?;
            let is_all = read.is_empty() || epoch == phase.epoch && closing.is_none();
            let shown = match read.split_last() {
                Some((&END, before)) if epoch == phase.epoch && view.holds_end_back() => before,
                _ => &read[..],
            };
            found.extend(shown);
            if is_all {
                break;
            }
        }
        Ok(found)
    }

    /// Number of bytes of an attempt's log that readers get when the attempt is given up. If its agent has ended the
    /// log, the end marker is not counted: it is not the end of the whole.
    pub(crate) async fn log_left_by(&self, org: &OrganizationSnapshot, attempt: PhaseAttempt) -> Result<u64, Error> {
        let (ledger, log, logs) = (org.ledger.name(), log_id(attempt.run, attempt.phase), &self.shared.logs);
        let end = logs.end(ledger, &log, attempt.epoch).await.map_err(log_error)?;
        let Some(last) = end.checked_sub(1) else { return Ok(0) };
        let read = logs.read(ledger, &log, attempt.epoch, last, 1).await.map_err(log_error)?;
        Ok(if read == [END] { last } else { end })
    }

    /// Summary of an attempt's log for the commit that ends its phase. `None` if parts of it are damaged by then: that
    /// must not keep the phase from ending.
    pub(crate) async fn stored_log(
        &self,
        org: &OrganizationSnapshot,
        attempt: PhaseAttempt,
    ) -> Result<Option<StoredLog>, Error> {
        let (ledger, log) = (org.ledger.name(), log_id(attempt.run, attempt.phase));
        match self.shared.logs.digest(ledger, &log, attempt.epoch).await.map_err(log_error) {
            Ok(digest) => {
                let blocks = digest.blocks.into_iter().map(|LogBlock { end, digest }| StoredLogBlock { end, digest });
                Ok(Some(StoredLog { blocks: blocks.collect() }))
            }
            Err(Error::Corrupt(error)) => {
                tracing::error!(event = "log_corrupt", %error, "the log of a phase is damaged before its end");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Verbs without permission checks, for the server itself.
#[boxed]
impl Privileged {
    /// The log of any phase, as [`ControlPlane::follow_log`] reads it.
    pub async fn follow_log_of(
        &self,
        phase: (OrganizationId, RunId, PhaseKind),
        offset: u64,
        limit: usize,
        patience: Duration,
    ) -> Result<Vec<u8>, Error> {
        let (organization, run, kind) = phase;
        let org = self.organization_unchecked(organization.organization_prefix(), "organization").await?;
        let org = self.with_history(org, run).await?;
        self.follow_log_in(&org, run, kind, offset, limit, patience, None).await
    }

    /// This server is stopping: requests that wait for a log to grow get their response now, and clients turn to
    /// another server.
    pub fn let_readers_go(&self) {
        self.shared.log_signals.close();
    }
}

pub(crate) fn log_digest(log: &StoredLog) -> LogDigest {
    let block = |block: &StoredLogBlock| LogBlock { end: block.end, digest: block.digest.clone() };
    LogDigest { blocks: log.blocks.iter().map(block).collect() }
}

fn log_error(error: BucketError) -> Error {
    blob_error(error.into())
}

/// A phase's log, and who reads it.
struct LogView<'a> {
    org: &'a OrganizationSnapshot,
    state: &'a OrganizationState,
    run: &'a Run,
    kind: PhaseKind,
    reader: Option<&'a Caller>,
}

impl<'a> LogView<'a> {
    fn of(view: &'a RunView, kind: PhaseKind) -> Self {
        Self { org: &view.org, state: &view.org.state, run: &view.run, kind, reader: view.reader.as_ref() }
    }

    fn phase(&self) -> &'a Phase {
        self.run.phase(self.kind)
    }

    /// Its id in the bucket.
    fn id(&self) -> String {
        log_id(self.run.id, self.kind)
    }

    /// True if its last byte must wait: the phase has not ended yet, and more may follow what its agent wrote last.
    fn holds_end_back(&self) -> bool {
        !self.run.has_ended_for_readers(self.kind)
    }
}

/// Text shown after the last attempt's log, and its offset in the whole.
struct Closing {
    begins: u64,
    text: String,
}

impl Closing {
    /// That of a phase whose agent was given up; `None` where an agent ends the log.
    fn of_lost(phase: &Phase, kind: PhaseKind, waited: u64) -> Option<Self> {
        let after = |begins: u64, length: &u64| begins + length.saturating_sub(u64::from(begins > 0));
        let begins = phase.earlier_logs.iter().fold(waited, after);
        let text = closing_text(phase, kind, begins == 0);
        (!text.is_empty()).then_some(Self { begins, text })
    }
}

/// The attempt whose log holds `offset` of the whole, and where that log begins in the whole; attempt 0 is the text of
/// `waited` bytes before all others. Each begins with a mark of one byte, of which readers see the first alone.
fn attempt_at(phase: &Phase, waited: u64, offset: u64) -> (u64, u64) {
    if offset < waited || phase.epoch == 0 {
        return (0, 0);
    }
    let mut begins = waited;
    for (index, length) in phase.earlier_logs.iter().enumerate() {
        let epoch = index as u64 + 1;
        let shown = length.saturating_sub(u64::from(begins > 0));
        // The last attempt's log may still be read after it was given up.
        if offset < begins + shown || epoch == phase.epoch {
            return (epoch, begins);
        }
        begins += shown;
    }
    (phase.epoch, begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_follow_each_other_in_one_text() {
        let phase =
            |epoch, earlier_logs: &[u64]| Phase { epoch, earlier_logs: earlier_logs.to_vec(), ..Phase::default() };
        for (phase, waited, offset, expected) in [
            (phase(0, &[]), 0, 0, (0, 0)),
            (phase(1, &[]), 0, 7, (1, 0)),
            (phase(2, &[10]), 0, 9, (1, 0)),
            (phase(2, &[10]), 0, 10, (2, 10)),
            (phase(2, &[10, 5]), 0, 13, (2, 10)),
            (phase(2, &[10, 5]), 0, 99, (2, 10)),
            (phase(2, &[0]), 0, 0, (2, 0)),
            (phase(0, &[]), 30, 99, (0, 0)),
            (phase(1, &[]), 30, 29, (0, 0)),
            (phase(1, &[]), 30, 30, (1, 30)),
            (phase(2, &[10]), 30, 38, (1, 30)),
            (phase(2, &[10]), 30, 39, (2, 39)),
            (phase(2, &[0]), 30, 30, (2, 30)),
        ] {
            assert_eq!(attempt_at(&phase, waited, offset), expected, "{phase:?} {waited} {offset}");
        }
    }
}
