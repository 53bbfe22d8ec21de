//! Proves from the bucket alone that no commit was changed, removed or slipped in.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use futures::{Stream, StreamExt, stream};
use serde::Serialize;
use taco_tables::{Change, RecordKey, State};

use crate::bucket::{Bucket, Key, Object};
use crate::commit::{Commit, Hash};
use crate::error::Error;
use crate::layout::{self, LedgerName};
use crate::snapshot;

/// Commits are read this many at a time.
const AHEAD: usize = 32;

/// What was found in one ledger.
#[derive(Serialize, Debug)]
pub struct LedgerReport {
    pub ledger: String,
    /// Commits read, from the first one on.
    pub commits: u64,
    /// The hash of the last of them. Kept elsewhere, it proves later that nothing before it was changed.
    pub last: Hash,
    pub snapshots: usize,
    pub problems: Vec<Problem>,
}

/// Something that is not as it was written.
#[derive(Serialize, Debug)]
pub struct Problem {
    pub object: String,
    pub why: String,
}

impl LedgerReport {
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    fn note(&mut self, object: &Key, why: impl ToString) {
        self.problems.push(Problem { object: object.to_string(), why: why.to_string() });
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.object, self.why)
    }
}

/// Verifies one ledger, or all that are in the bucket. An error means that the bucket could not be read; what is
/// wrong with its content is in the reports.
pub async fn verify(bucket: &dyn Bucket, only: Option<&LedgerName>) -> Result<Vec<LedgerReport>, Error> {
    let names = match only {
        Some(name) => vec![name.clone()],
        None => {
            let folders = bucket.folders(&layout::ledgers()).await?;
            folders.iter().filter_map(|name| name.parse().ok()).collect()
        }
    };
    let mut reports = Vec::new();
    for name in names {
        reports.push(verify_ledger(bucket, &name).await?);
    }
    Ok(reports)
}

/// The records of a ledger that this version cannot read, with the reason. Servers carry them along untouched.
pub async fn unreadable_records<S: State>(
    bucket: &dyn Bucket,
    name: &LedgerName,
) -> Result<Vec<(RecordKey, String)>, Error> {
    let mut state = S::default();
    let mut commits = commits(bucket, name);
    while let Some(found) = commits.next().await {
        let (seq, key, object) = found?;
        let Some(object) = object else { break };
        Commit::decode(&key, seq, &object.bytes)?.changes().for_each(|change| state.apply(&change));
    }
    Ok(state.set_aside().iter().map(|(key, record)| (key.clone(), record.why.clone())).collect())
}

/// The commits of a ledger from the first on, and `None` for ever after the last.
fn commits<'a>(
    bucket: &'a dyn Bucket,
    name: &'a LedgerName,
) -> impl Stream<Item = Result<(u64, Key, Option<Object>), Error>> + Unpin + 'a {
    let fetch = move |seq| async move {
        let key = layout::commit(name, seq);
        let object = bucket.get(&key).await?;
        Ok((seq, key, object))
    };
    Box::pin(stream::iter(1..).map(fetch).buffered(AHEAD))
}

async fn verify_ledger(bucket: &dyn Bucket, name: &LedgerName) -> Result<LedgerReport, Error> {
    let mut report =
        LedgerReport { ledger: name.to_string(), commits: 0, last: Hash::NONE, snapshots: 0, problems: Vec::new() };
    let mut snapshots = BTreeMap::new();
    for key in bucket.list(&layout::snapshots(name), None).await? {
        if let Some(seq) = layout::number_of(&key) {
            snapshots.insert(seq, key);
        }
    }
    let newest_listed =
        bucket.list(&layout::log(name), None).await?.iter().filter_map(layout::number_of).max().unwrap_or(0);

    let mut records = BTreeSet::new();
    let mut commits = commits(bucket, name);
    while let Some(found) = commits.next().await {
        let (seq, key, object) = found?;
        let Some(object) = object else {
            if seq <= newest_listed {
                report.note(&key, format_args!("it is missing, though commit {newest_listed} is there"));
            }
            break;
        };
        let commit = match Commit::decode(&key, seq, &object.bytes) {
            Ok(commit) if commit.previous == report.last => commit,
            Ok(commit) => {
                let why = format!(
                    "it follows a commit with hash {}, but the one before it has {}: one of the two was changed",
                    commit.previous, report.last
                );
                report.note(&key, why);
                break;
            }
            Err(Error::Corrupt { why, .. }) => {
                report.note(&key, why);
                break;
            }
            Err(error) => {
                report.note(&key, error);
                break;
            }
        };
        report.commits = seq;
        report.last = Hash::of(&object.bytes);
        for change in commit.changes() {
            match change {
                Change::Put(record, _) => records.insert(record),
                Change::Delete(record) => records.remove(&record),
            };
        }
        if let Some(key) = snapshots.remove(&seq) {
            verify_snapshot(bucket, &mut report, &key, &records).await?;
        }
    }
    for key in snapshots.values() {
        report.note(key, "the commit that it was taken after cannot be reached");
    }
    Ok(report)
}

/// A snapshot has to be readable, and to hold exactly the records that the commits before it left.
async fn verify_snapshot(
    bucket: &dyn Bucket,
    report: &mut LedgerReport,
    key: &Key,
    records: &BTreeSet<RecordKey>,
) -> Result<(), Error> {
    let Some(object) = bucket.get(key).await? else { return Ok(()) };
    let mut held = BTreeSet::new();
    match snapshot::decode(key, &object.bytes, |record, _| {
        held.insert(record);
    }) {
        Ok(header) if header.hash != report.last => {
            report.note(key, "it was taken after another commit than the one of its number");
        }
        Ok(_) => match held.symmetric_difference(records).next() {
            Some(record) => report.note(key, format_args!("it and the log disagree on {record}")),
            None => report.snapshots += 1,
        },
        Err(Error::Corrupt { why, .. }) => report.note(key, why),
        Err(error) => report.note(key, error),
    }
    Ok(())
}
