//! Proves what a bucket can do before anything rests on it.
//!
//! Everything rests on create-if-absent. Some stores accept the condition and ignore it; others keep it until two
//! writers come at the same moment. Both look healthy until the day they lose acknowledged changes, so [`probe`] asks
//! before a server starts and [`examine`] asks everything, for `taco doctor`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use futures::{StreamExt, join};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::bucket::{Bucket, BucketError, BucketErrorKind, Created, Key, Object};
use crate::clock::{Clock, SharedRng};
use crate::layout;
use crate::location::Location;
use crate::retry::Backoff;

/// Time within which what was written has to be listed, and what was deleted to be gone.
const CONSISTENCY_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of races for one key, and of the writers in each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thoroughness {
    pub rounds: usize,
    pub writers: usize,
}

impl Thoroughness {
    /// For a local directory: the kernel is known to be honest, and a server has to start within 50 ms.
    pub const QUICK: Self = Self { rounds: 2, writers: 8 };
    /// For a bucket behind a network. A store that breaks one race in three passes once in a hundred starts, and then
    /// `taco doctor` still finds it.
    pub const REMOTE: Self = Self { rounds: 5, writers: 16 };
    /// For `taco doctor`.
    pub const FULL: Self = Self { rounds: 20, writers: 16 };

    /// Thoroughness of the start-up probe of this bucket.
    pub fn for_start_on(location: &Location) -> Self {
        if location.url.starts_with("file:") { Self::QUICK } else { Self::REMOTE }
    }
}

/// Number of rounds that race at the same time: each round's writers have a connection of their own.
const ROUND_CONCURRENCY: usize = 5;

/// Reason why a server must not start on a bucket. The text says what was seen, why that matters and what to do.
#[derive(Clone, thiserror::Error, Debug)]
pub enum ProbeError {
    #[error("the bucket cannot be used: {0}. {advice}", advice = advice(.0.kind))]
    Bucket(BucketError),
    #[error(
        "the bucket does not honour create-if-absent: {seen}. Two servers would both believe that their commit was \
         first, and acknowledged changes would be lost, so taco does not run on it. Use a store that honours \
         conditional writes (S3, GCS, Azure Blob, R2, MinIO, a local directory), or upgrade this one; \
         `taco doctor` tells more"
    )]
    IgnoresCreateIfAbsent { seen: String },
    #[error(
        "the bucket does not give back what was written: {seen}. taco would decide on old or missing records, so it \
         does not run on it. Turn off caches and asynchronous replication between taco and the bucket, or use a \
         store with strong consistency"
    )]
    ForgetsWrites { seen: String },
}

fn advice(kind: BucketErrorKind) -> &'static str {
    match kind {
        BucketErrorKind::OutcomeUnknown => "Check that its address is right and that it can be reached from here",
        BucketErrorKind::Denied => {
            "Give the credentials (or this process' user, for a directory) the right to read, write, list and delete"
        }
        BucketErrorKind::Full => "Make room",
        BucketErrorKind::Refused => "Check that the bucket exists, and its address, region and settings",
    }
}

impl From<BucketError> for ProbeError {
    fn from(error: BucketError) -> Self {
        Self::Bucket(error)
    }
}

/// Outcome of one check.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Passed,
    /// taco works, but someone should look at it.
    Warned,
    Failed,
    /// Not tried, because an earlier check failed on which it rests.
    Skipped,
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Passed => "passed",
            Self::Warned => "warned",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        })
    }
}

/// One row of `taco doctor`.
#[derive(Clone, Serialize, Debug)]
pub struct Finding {
    pub check: &'static str,
    pub outcome: Outcome,
    pub detail: String,
}

impl Finding {
    pub fn new(check: &'static str, outcome: Outcome, detail: impl Into<String>) -> Self {
        Self { check, outcome, detail: detail.into() }
    }
}

pub const REACHABLE: &str = "reachable";
pub const WRITE_PERMISSION: &str = "write permission";
pub const READ_AFTER_WRITE: &str = "read after write";
pub const OVERWRITE: &str = "overwrite is read back";
pub const LIST_AFTER_WRITE: &str = "list after write";
pub const CREATE_IF_ABSENT: &str = "create-if-absent";
pub const CREATE_RACE: &str = "create-if-absent under a race";
pub const CLOCK_SKEW: &str = "clock skew";
pub const DELETE: &str = "delete";

/// The first of `findings` that stands in the way of everything that needs `checks`.
pub fn first_failure<'a>(findings: &'a [Finding], checks: &[&str]) -> Option<&'a Finding> {
    findings.iter().find(|finding| finding.outcome == Outcome::Failed && checks.contains(&finding.check))
}

/// Checks that taco can rest on this bucket: the quick question that every start asks. It removes what it writes.
pub async fn probe(bucket: &Arc<dyn Bucket>, rng: &SharedRng, thoroughness: Thoroughness) -> Result<(), ProbeError> {
    let attempt = Attempt::new(bucket, rng);
    let one_after_another = attempt.key("sequence");
    let (sequence, race) = join!(attempt.refuses_a_second_writer(&one_after_another), attempt.races(thoroughness));
    let mut written = attempt.race_keys(thoroughness);
    written.push(one_after_another);
    attempt.clean_up(&written).await;
    // If both failed, what happened without a race is the simpler thing to look at.
    sequence?;
    race?;
    Ok(())
}

/// Everything that taco asks of a bucket, tried one by one. The caller appends what it knows about the bucket's
/// contents; [`first_failure`] tells whether there is any point.
pub async fn examine(bucket: &Arc<dyn Bucket>, clock: &dyn Clock, rng: &SharedRng) -> Vec<Finding> {
    let attempt = Attempt::new(bucket, rng);
    let object = attempt.key("object");
    let one_after_another = attempt.key("sequence");
    let mut findings = Findings::default();

    findings.check(REACHABLE, &[], attempt.is_reachable(&object)).await;
    findings.check(WRITE_PERMISSION, &[REACHABLE], attempt.may_write(&object)).await;
    findings.check(READ_AFTER_WRITE, &[REACHABLE, WRITE_PERMISSION], attempt.reads_what_it_wrote(&object)).await;
    let readable = &[REACHABLE, WRITE_PERMISSION, READ_AFTER_WRITE];
    findings.check(OVERWRITE, readable, attempt.reads_what_it_overwrote(&object)).await;
    findings.check(LIST_AFTER_WRITE, readable, attempt.lists_what_it_wrote(&object)).await;
    findings.check(CREATE_IF_ABSENT, readable, attempt.explain_sequence(&one_after_another)).await;
    let creating = &[REACHABLE, WRITE_PERMISSION, READ_AFTER_WRITE, CREATE_IF_ABSENT];
    findings.check(CREATE_RACE, creating, attempt.explain_races(Thoroughness::FULL)).await;
    findings.check(CLOCK_SKEW, readable, attempt.compares_clocks(clock)).await;
    findings.check(DELETE, readable, attempt.forgets_what_it_deleted(&object)).await;

    if first_failure(&findings.0, &[REACHABLE, WRITE_PERMISSION]).is_none() {
        let mut written = attempt.race_keys(Thoroughness::FULL);
        written.extend([object, one_after_another, attempt.key("clock")]);
        attempt.clean_up(&written).await;
    }
    findings.0
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    async fn check(
        &mut self,
        check: &'static str,
        needs: &[&'static str],
        trial: impl Future<Output = Result<(Outcome, String), ProbeError>>,
    ) {
        let finding = match first_failure(&self.0, needs) {
            Some(failed) => Finding::new(check, Outcome::Skipped, format!("because \"{}\" failed", failed.check)),
            None => match trial.await {
                Ok((outcome, detail)) => Finding::new(check, outcome, detail),
                Err(error) => Finding::new(check, Outcome::Failed, error.to_string()),
            },
        };
        self.0.push(finding);
    }
}

type Trial = Result<(Outcome, String), ProbeError>;

fn passed(detail: impl Into<String>) -> Trial {
    Ok((Outcome::Passed, detail.into()))
}

/// One visit to the bucket, under keys that nobody else uses.
struct Attempt<'a> {
    bucket: &'a Arc<dyn Bucket>,
    rng: &'a SharedRng,
    id: String,
}

impl<'a> Attempt<'a> {
    fn new(bucket: &'a Arc<dyn Bucket>, rng: &'a SharedRng) -> Self {
        Self { bucket, rng, id: rng.unique() }
    }

    fn key(&self, purpose: &str) -> Key {
        layout::probe(&format!("{}-{purpose}", self.id))
    }

    fn race_key(&self, round: usize) -> Key {
        self.key(&format!("race-{round}"))
    }

    fn race_keys(&self, thoroughness: Thoroughness) -> Vec<Key> {
        (0..thoroughness.rounds).map(|round| self.race_key(round)).collect()
    }

    /// Bytes that only this writer of this visit writes, so that whatever is found tells whose it is.
    fn mark(&self, writer: impl fmt::Display) -> Bytes {
        Bytes::from(format!("taco probe {}, writer {writer}\n", self.id))
    }

    async fn clean_up(&self, keys: &[Key]) {
        for (key, outcome) in keys.iter().zip(join_all(keys.iter().map(|key| self.bucket.delete(key))).await) {
            if let Err(error) = outcome {
                tracing::debug!(%key, %error, "a probe object stays behind; it is garbage, not a danger");
            }
        }
    }

    async fn is_reachable(&self, absent: &Key) -> Trial {
        let begun = Instant::now();
        match self.bucket.get(absent).await? {
            None => passed(format!("answered in {}", milliseconds(begun.elapsed()))),
            Some(_) => {
                Err(ProbeError::ForgetsWrites { seen: format!("{absent} was never written, and yet it is there") })
            }
        }
    }

    async fn may_write(&self, key: &Key) -> Trial {
        let begun = Instant::now();
        self.bucket.put(key, self.mark("first")).await?;
        passed(format!("wrote an object in {}", milliseconds(begun.elapsed())))
    }

    async fn reads_what_it_wrote(&self, key: &Key) -> Trial {
        let begun = Instant::now();
        expect_content(key, self.bucket.get(key).await?, &self.mark("first"))?;
        passed(format!("read it in {}", milliseconds(begun.elapsed())))
    }

    async fn reads_what_it_overwrote(&self, key: &Key) -> Trial {
        for writer in ["second", "third"] {
            self.bucket.put(key, self.mark(writer)).await?;
            expect_content(key, self.bucket.get(key).await?, &self.mark(writer))?;
        }
        passed("the newest bytes came back")
    }

    /// Nothing rests on a fresh listing, so a late one is only worth a warning. One that never shows the object is no
    /// listing at all.
    async fn lists_what_it_wrote(&self, key: &Key) -> Trial {
        let begun = Instant::now();
        let mut backoff = Backoff::new(self.rng);
        let mut times_missed = 0;
        loop {
            let keys = self.bucket.list(&layout::probes(), None).await?;
            if keys.contains(key) {
                break;
            }
            times_missed += 1;
            let pause = backoff.next_delay();
            if begun.elapsed() + pause > CONSISTENCY_TIMEOUT {
                return Err(ProbeError::ForgetsWrites {
                    seen: format!(
                        "{key} was written, but {} s later the listing does not show it",
                        CONSISTENCY_TIMEOUT.as_secs()
                    ),
                });
            }
            sleep(pause).await;
        }
        if times_missed == 0 {
            return passed("the listing shows the object at once");
        }
        let late = milliseconds(begun.elapsed());
        Ok((
            Outcome::Warned,
            format!(
                "the listing showed the object only after {late}. No decision rests on listings, but snapshots and \
                 servers may be noticed late"
            ),
        ))
    }

    async fn compares_clocks(&self, clock: &dyn Clock) -> Trial {
        let key = self.key("clock");
        let before = clock.now();
        self.bucket.put(&key, self.mark("clock")).await?;
        let after = clock.now();
        let Some(object) = self.bucket.get(&key).await? else {
            return Err(ProbeError::ForgetsWrites { seen: format!("{key} was written, but it is not there") });
        };
        Ok(judge_clock(before, object.last_modified, after))
    }

    async fn forgets_what_it_deleted(&self, key: &Key) -> Trial {
        self.bucket.delete(key).await?;
        match self.bucket.get(key).await? {
            None => passed("a deleted object is gone"),
            Some(_) => Err(ProbeError::ForgetsWrites { seen: format!("{key} was deleted, and yet it is there") }),
        }
    }

    async fn explain_sequence(&self, key: &Key) -> Trial {
        self.refuses_a_second_writer(key).await?;
        passed("the second writer of a key was refused")
    }

    /// Two writers of one key, one after the other.
    async fn refuses_a_second_writer(&self, key: &Key) -> Result<(), ProbeError> {
        let (first, second) = (self.mark("first"), self.mark("second"));
        if self.create(key, &first).await? == Created::AlreadyThere {
            return Err(ProbeError::ForgetsWrites {
                seen: format!("{key} was never written, and yet something else is there"),
            });
        }
        if self.create(key, &second).await? == Created::Now {
            return Err(ProbeError::IgnoresCreateIfAbsent {
                seen: format!("{key} was there, and yet a second writer could create it"),
            });
        }
        expect_content(key, self.bucket.get(key).await?, &first)
    }

    /// Creates an object and finds out what became of it, even if the answer was lost.
    async fn create(&self, key: &Key, bytes: &Bytes) -> Result<Created, ProbeError> {
        let begun = Instant::now();
        let mut backoff = Backoff::new(self.rng);
        loop {
            let unclear = match self.bucket.create(key, bytes.clone()).await {
                Ok(Created::Now) => return Ok(Created::Now),
                Ok(Created::AlreadyThere) => None,
                Err(error) if error.is_outcome_unknown() => Some(error),
                Err(error) => return Err(error.into()),
            };
            match self.bucket.get(key).await? {
                Some(found) if found.bytes == bytes => return Ok(Created::Now),
                Some(_) => return Ok(Created::AlreadyThere),
                None => {}
            }
            let pause = backoff.next_delay();
            if begun.elapsed() + pause > CONSISTENCY_TIMEOUT {
                return Err(unclear.map_or_else(
                    || ProbeError::ForgetsWrites {
                        seen: format!("{key} cannot be created because it is there, but it cannot be read either"),
                    },
                    ProbeError::Bucket,
                ));
            }
            sleep(pause).await;
        }
    }

    async fn explain_races(&self, thoroughness: Thoroughness) -> Trial {
        let Thoroughness { rounds, writers } = thoroughness;
        let settled = self.races(thoroughness).await?;
        let detail = format!("one winner in each of {settled} races of {writers} writers");
        if settled == rounds {
            return passed(detail);
        }
        let lost = rounds - settled;
        Ok((Outcome::Warned, format!("{detail}; {lost} more races ended without any answer that tells who won")))
    }

    /// Lets writers race for one key, several times, and counts the races that settled. An error if the bucket lied
    /// in one of them, or if none was settled.
    async fn races(&self, thoroughness: Thoroughness) -> Result<usize, ProbeError> {
        let rounds = (0..thoroughness.rounds).map(|round| self.race(round, thoroughness.writers));
        let rounds: Vec<_> = futures::stream::iter(rounds).buffered(ROUND_CONCURRENCY).collect().await;
        let mut settled = 0;
        let mut unsettled = None;
        let mut flaws = Vec::new();
        for round in rounds {
            match round {
                Ok(()) => settled += 1,
                Err(ProbeError::Bucket(error)) => unsettled = Some(error),
                Err(flaw) => flaws.push(flaw),
            }
        }
        let broken = flaws.len();
        match flaws.into_iter().next() {
            Some(ProbeError::IgnoresCreateIfAbsent { seen }) => Err(ProbeError::IgnoresCreateIfAbsent {
                seen: format!("in {broken} of {} races {seen}", thoroughness.rounds),
            }),
            Some(flaw) => Err(flaw),
            None => match unsettled {
                Some(error) if settled == 0 || !error.is_outcome_unknown() => Err(error.into()),
                _ => Ok(settled),
            },
        }
    }

    /// One race: everyone tries to create the same object at the same moment.
    async fn race(&self, round: usize, writers: usize) -> Result<(), ProbeError> {
        let key = self.race_key(round);
        let start = Arc::new(Barrier::new(writers));
        let mut racers = JoinSet::new();
        for writer in 0..writers {
            let (bucket, key, bytes, start) =
                (Arc::clone(self.bucket), key.clone(), self.mark(writer), Arc::clone(&start));
            racers.spawn(async move {
                // Opens each racer's connection, so that they really start together. What it says does not matter.
                let _ = bucket.get(&key).await;
                start.wait().await;
                (writer, bucket.create(&key, bytes).await)
            });
        }
        let answers: Vec<Answer> = racers.join_all().await;
        let found = self.bucket.get(&key).await?;
        let owner = match &found {
            None => Owner::Nobody,
            Some(object) => {
                (0..writers).find(|writer| object.bytes == self.mark(writer)).map_or(Owner::Stranger, Owner::Writer)
            }
        };
        judge_race(&key, &answers, owner)
    }
}

/// A racer, and what it was told.
type Answer = (usize, Result<Created, BucketError>);

/// Whose bytes were found after a race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    Nobody,
    Writer(usize),
    Stranger,
}

/// Judges whether a race went as it must. A race in which nobody was told "you won" is no lie as long as the object belongs
/// to one of them: answers get lost. Two who were told so is one, and so is a winner whose object is not there.
fn judge_race(key: &Key, answers: &[Answer], owner: Owner) -> Result<(), ProbeError> {
    let writers = answers.len();
    let winners: Vec<usize> =
        answers.iter().filter(|(_, answer)| matches!(answer, Ok(Created::Now))).map(|(writer, _)| *writer).collect();
    match (winners.as_slice(), owner) {
        ([_, _, ..], _) => Err(ProbeError::IgnoresCreateIfAbsent {
            seen: format!("{} of {writers} writers of {key} were each told that they had created it", winners.len()),
        }),
        ([winner], Owner::Writer(owner)) if *winner == owner => Ok(()),
        ([_], Owner::Writer(_)) => Err(ProbeError::IgnoresCreateIfAbsent {
            seen: format!(
                "one of {writers} writers was told that it had created {key}, but another one's bytes are there"
            ),
        }),
        ([], Owner::Writer(_)) => Ok(()),
        ([_], Owner::Nobody) => Err(ProbeError::ForgetsWrites {
            seen: format!("a writer was told that it had created {key}, but it is not there"),
        }),
        (_, Owner::Stranger) => Err(ProbeError::ForgetsWrites {
            seen: format!("{key} holds bytes that none of its {writers} writers wrote"),
        }),
        ([], Owner::Nobody) => {
            let error = answers.iter().find_map(|(_, answer)| answer.as_ref().err().cloned());
            Err(ProbeError::Bucket(error.unwrap_or_else(|| {
                let why = format!("all of {writers} writers were told that it exists, but it is not there");
                BucketError::new("create", key, BucketErrorKind::OutcomeUnknown, why)
            })))
        }
    }
}

fn expect_content(key: &Key, found: Option<Object>, written: &Bytes) -> Result<(), ProbeError> {
    let seen = match found {
        Some(object) if object.bytes == written => return Ok(()),
        Some(_) => format!("{key} was written, but other bytes are there"),
        None => format!("{key} was written, but it is not there"),
    };
    Err(ProbeError::ForgetsWrites { seen })
}

/// Clock difference beyond which people who compare times are confused.
const WARN_CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(5);
/// Clock difference beyond which signatures and tokens are refused.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// Compares the bucket's time of a write with our times around it.
fn judge_clock(before: Timestamp, written: Timestamp, after: Timestamp) -> (Outcome, String) {
    // Most buckets tell whole seconds, rounded down.
    let earliest = before - SignedDuration::from_secs(1);
    let (skew, direction) = if written < earliest {
        (earliest.duration_since(written), "behind")
    } else {
        (written.duration_since(after).max(SignedDuration::ZERO), "ahead of")
    };
    let detail = format!("the bucket's clock is {skew:#} {direction} ours");
    if skew > MAX_CLOCK_SKEW {
        (Outcome::Failed, format!("{detail}. Set this machine's clock (NTP), or the bucket's"))
    } else if skew > WARN_CLOCK_SKEW {
        (Outcome::Warned, format!("{detail}. taco works, but times in lists and logs will look odd"))
    } else {
        (Outcome::Passed, "the bucket's clock agrees with ours".to_owned())
    }
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests;
