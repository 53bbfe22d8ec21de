//! Proves from the bucket alone that no commit was changed, removed or slipped in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::{fmt, iter};

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use serde::Serialize;
use taco_tables::{Change, RecordKey, State};

use crate::bucket::{Bucket, Key};
use crate::commit::{self, Commit, Hash};
use crate::error::Error;
use crate::head_object::{self, FoundHead, Proof};
use crate::layout::{self, LedgerName};
use crate::pack::{self, Pack, PackCache, PackRange};
use crate::seal::MasterKeys;
use crate::snapshot_chain::Piece;
use crate::{delta, snapshot, snapshot_loader};

/// Number of commits that are read at a time.
const COMMIT_READ_CONCURRENCY: usize = 32;

/// Number of packs that are read at a time.
const PACK_READ_CONCURRENCY: usize = 4;

/// Report on one ledger.
#[derive(Serialize, Debug)]
pub struct LedgerReport {
    pub ledger: String,
    /// Commits read, from the first one on.
    pub commits: u64,
    /// Number of them that are packed.
    pub packed: u64,
    /// The hash of the last of them. Kept elsewhere, it proves later that nothing before it was changed.
    pub last: Hash,
    /// Snapshots that agree with the log.
    pub snapshots: usize,
    /// Deltas that agree with the log.
    pub deltas: usize,
    /// Snapshots and deltas that no server begins with any more, and that a server removes with the next that it writes.
    pub superseded: usize,
    pub problems: Vec<Problem>,
    /// Problems that could not be proven, though nothing speaks against the objects.
    pub unproven: Vec<Problem>,
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

    fn add_doubt(&mut self, object: &Key, why: impl ToString) {
        self.unproven.push(Problem { object: object.to_string(), why: why.to_string() });
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.object, self.why)
    }
}

/// Verifies one ledger, or all that are in the bucket. An error means that the bucket could not be read; what is
/// wrong with its content is in the reports. With `keys`, keyed digests are compared, too: they tell an altered newest
/// commit and an altered head from what servers wrote, also where whoever altered them has computed the hashes anew.
pub async fn verify(
    bucket: &dyn Bucket,
    only: Option<&LedgerName>,
    keys: Option<&MasterKeys>,
) -> Result<Vec<LedgerReport>, Error> {
    let names = match only {
        Some(name) => vec![name.clone()],
        None => {
            let folders = bucket.folders(&layout::ledgers()).await?;
            folders.iter().filter_map(|name| name.parse().ok()).collect()
        }
    };
    let mut reports = Vec::new();
    for name in names {
        reports.push(verify_ledger(bucket, &name, keys).await?);
    }
    Ok(reports)
}

/// The records of a ledger as they are now, from its commits alone. Those that this version cannot read are set aside in
/// it; servers carry them along untouched.
pub async fn replay<S: State>(bucket: &dyn Bucket, name: &LedgerName) -> Result<S, Error> {
    let mut state = S::default();
    let mut commits = commits(bucket, name).await?;
    while let Some(found) = commits.next().await {
        let FoundCommit { seq, key, bytes, .. } = found?;
        let Some(bytes) = bytes else { break };
        Commit::decode(&key, seq, &bytes)?.changes().for_each(|change| state.apply(&change));
    }
    Ok(state)
}

/// The records of a ledger that this version cannot read, with the reason.
pub async fn unreadable_records<S: State>(
    bucket: &dyn Bucket,
    name: &LedgerName,
) -> Result<Vec<(RecordKey, String)>, Error> {
    let state = replay::<S>(bucket, name).await?;
    Ok(state.set_aside().iter().map(|(key, record)| (key.clone(), record.why.clone())).collect())
}

/// Content of the log under a number.
struct FoundCommit {
    seq: u64,
    key: Key,
    /// As it was written; `None` after the last.
    bytes: Option<Bytes>,
    /// The pack that it was read from.
    pack: Option<PackRange>,
}

/// Next part of the log to read.
enum Segment {
    Pack(PackRange),
    Commit(u64),
}

/// From the first commit on, for ever: a pack where there is one, else commit by commit.
fn segments(packs: Vec<PackRange>) -> impl Iterator<Item = Segment> {
    let mut next = 1;
    let mut packs = packs.into_iter().peekable();
    iter::from_fn(move || {
        while packs.next_if(|pack| pack.to < next).is_some() {}
        match packs.next_if(|pack| pack.contains(next)) {
            Some(pack) => {
                next = pack.to + 1;
                Some(Segment::Pack(pack))
            }
            None => {
                next += 1;
                Some(Segment::Commit(next - 1))
            }
        }
    })
}

/// The commits of a ledger from the first on, and `None` for ever after the last. Packed ones are read pack by pack.
async fn commits<'a>(
    bucket: &'a dyn Bucket,
    name: &'a LedgerName,
) -> Result<impl Stream<Item = Result<FoundCommit, Error>> + Unpin + 'a, Error> {
    let packs = pack::list(bucket, name).await?;
    let (last_packed, cache) = (packs.last().map_or(0, |pack| pack.to), Arc::new(PackCache::default()));
    let of_pack = move |range: PackRange| async move {
        let pack = Pack::read(bucket, name, range).await?;
        let found = |(seq, bytes)| {
            Ok(FoundCommit { seq, key: layout::commit(name, seq), bytes: Some(bytes), pack: Some(range) })
        };
        Ok(pack.commits().map(found).collect::<Vec<_>>())
    };
    let single = move |seq: u64| {
        let cache = Arc::clone(&cache);
        async move {
            let key = layout::commit(name, seq);
            let bytes = match bucket.get(&key).await? {
                // It was packed since the packs were listed.
                Some(object) => Some(cache.resolve(bucket, name, seq, object.bytes).await?),
                None => None,
            };
            Ok(FoundCommit { seq, key, bytes, pack: None })
        }
    };
    let read = move |stretch| {
        let single = single.clone();
        async move {
            match stretch {
                Segment::Pack(range) => of_pack(range).await.unwrap_or_else(|error| vec![Err(error)]),
                Segment::Commit(seq) => vec![single(seq).await],
            }
        }
    };
    let packed = segments(packs).take_while(move |segment| match segment {
        Segment::Pack(_) => true,
        Segment::Commit(seq) => *seq <= last_packed,
    });
    let packed = stream::iter(packed).map(read.clone()).buffered(PACK_READ_CONCURRENCY);
    let others = stream::iter((last_packed + 1..).map(Segment::Commit)).map(read).buffered(COMMIT_READ_CONCURRENCY);
    Ok(Box::pin(packed.chain(others).flat_map(stream::iter)))
}

async fn verify_ledger(
    bucket: &dyn Bucket,
    name: &LedgerName,
    keys: Option<&MasterKeys>,
) -> Result<LedgerReport, Error> {
    let mut report = LedgerReport {
        ledger: name.to_string(),
        commits: 0,
        packed: 0,
        last: Hash::NONE,
        snapshots: 0,
        deltas: 0,
        superseded: 0,
        problems: Vec::new(),
        unproven: Vec::new(),
    };
    // Before the log: what it names must be found afterwards.
    let head = head_object::read(bucket, name, keys).await?;
    let mut named_hash = None;
    let mut newest_proof = Proof::NoMac;
    let pieces = snapshot_loader::list(bucket, name).await?;
    report.superseded = pieces.superseded().count();
    for piece in pieces.detached() {
        report.note(&piece.key(name), "the snapshot or the delta that it continues is missing");
    }
    let mut shortcuts = Shortcuts::of(pieces.iter());
    let log = bucket.list_sizes(&layout::log(name)).await?;
    let log: BTreeMap<u64, u64> = log.iter().filter_map(|(key, size)| Some((layout::number_of(key)?, *size))).collect();
    let newest_listed = log.last_key_value().map_or(0, |(seq, _)| *seq);

    let mut records = BTreeSet::new();
    let mut commits = commits(bucket, name).await?;
    while let Some(found) = commits.next().await {
        let FoundCommit { seq, key, bytes, pack } = match found {
            Ok(found) => found,
            Err(Error::Corrupt { object, why }) => {
                report.note(&object, why);
                break;
            }
            Err(error) => return Err(error),
        };
        let Some(bytes) = bytes else {
            if seq <= newest_listed {
                report.note(&key, format_args!("it is missing, though commit {newest_listed} is there"));
            }
            break;
        };
        let commit = match Commit::decode(&key, seq, &bytes) {
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
        match commit::check_mac(name, &bytes, keys) {
            Ok(proof) => newest_proof = proof,
            Err(why) => {
                report.note(&key, why);
                break;
            }
        }
        if let Some(pack) = pack {
            verify_place(bucket, &mut report, &key, log.get(&seq).copied(), pack, &bytes).await?;
            report.packed += 1;
        }
        report.commits = seq;
        report.last = Hash::of(&bytes);
        if matches!(&head, FoundHead::Names(named, _) if named.seq == seq) {
            named_hash = Some(report.last);
        }
        for change in commit.changes() {
            shortcuts.touch(&records, &change);
            match change {
                Change::Put(record, _) => records.insert(record),
                Change::Delete(record) => records.remove(&record),
            };
        }
        for (piece, touched) in shortcuts.reach(seq, report.last) {
            match piece {
                Piece::Snapshot(_) => verify_snapshot(bucket, &mut report, &piece.key(name), &records).await?,
                Piece::Delta { .. } => {
                    verify_delta(bucket, &mut report, &piece.key(name), &records, &touched).await?;
                }
            }
        }
    }
    for piece in shortcuts.not_reached() {
        report.note(&piece.key(name), "the commit that it was taken after cannot be reached");
    }
    verify_end(&mut report, name, &head, named_hash, &newest_proof);
    Ok(report)
}

/// In the place of a packed commit lies what names its pack, or the commit itself, which nobody has overwritten yet.
async fn verify_place(
    bucket: &dyn Bucket,
    report: &mut LedgerReport,
    key: &Key,
    size: Option<u64>,
    pack: PackRange,
    commit: &Bytes,
) -> Result<(), Error> {
    let placeholder = pack.placeholder();
    match size {
        None => report.note(key, "it is packed, but nothing lies in its place: a stalled server could write it again"),
        // What is wrong with one of this size is found by whoever reads it.
        Some(size) if size == placeholder.len() as u64 => {}
        Some(_) => {
            let found = bucket.get(key).await?.map(|object| object.bytes).unwrap_or_default();
            if found != commit && found != placeholder {
                report.note(key, "it is not what its pack has: one of the two was altered");
            }
        }
    }
    Ok(())
}

/// The end of the log is not protected by a next commit, but by the head object and by the newest commit's own digest.
/// `named_hash` is the hash of the commit that the head names, if the log was read that far.
fn verify_end(
    report: &mut LedgerReport,
    name: &LedgerName,
    head: &FoundHead,
    named_hash: Option<Hash>,
    newest_proof: &Proof,
) {
    let (newest, next) = (layout::commit(name, report.commits), layout::commit(name, report.commits + 1));
    match head {
        FoundHead::Damaged(why) => report.note(&layout::head(name), why),
        FoundHead::Names(named, proof) => {
            match named_hash {
                Some(hash) if hash != named.hash => {
                    let (key, why) = head_object::altered(name, *named, hash);
                    report.note(&key, why);
                }
                Some(_) => {}
                // Where the walk along the log ended early, why it did says enough.
                None if report.problems.iter().any(|problem| problem.object == next.as_str()) => {}
                None => {
                    let (key, why) = head_object::missing(name, report.commits + 1, named.seq);
                    report.note(&key, why);
                }
            }
            let is_behind = named.seq < report.commits;
            match (proof, newest_proof) {
                (Proof::Unproven(why), _) => report.add_doubt(&layout::head(name), why),
                (Proof::Proven, Proof::Unproven(why)) if is_behind => {
                    report.add_doubt(&newest, format_args!("{why}, and {} names an older one", layout::head(name)));
                }
                (Proof::Proven, Proof::NoMac) if is_behind => {
                    let why = "it has no MAC, and the head names an older one: an older version of taco wrote it, or it \
                               was altered";
                    report.add_doubt(&newest, why);
                }
                _ => {}
            }
        }
        // A ledger of an older version has no head, and nobody misses it.
        FoundHead::None if *newest_proof != Proof::NoMac => {
            let why = "it is missing: newest commits that were deleted would not be noticed. A server writes it with its \
                       next commit";
            report.add_doubt(&layout::head(name), why);
        }
        FoundHead::None => {}
    }
}

/// The snapshots and deltas that a walk along the log has still to reach.
struct Shortcuts {
    by_end: BTreeMap<u64, Vec<Piece>>,
    /// Deltas that have begun and not ended, with what was touched since.
    open: BTreeMap<Piece, Touched>,
}

/// Changes of records since the commit that a delta begins after.
#[derive(Default)]
struct Touched {
    begin: Option<Hash>,
    /// Records, and whether each was there before.
    records: BTreeMap<RecordKey, bool>,
}

impl Shortcuts {
    fn of(pieces: impl Iterator<Item = Piece>) -> Self {
        let mut by_end: BTreeMap<u64, Vec<Piece>> = BTreeMap::new();
        pieces.for_each(|piece| by_end.entry(piece.end()).or_default().push(piece));
        Self { by_end, open: BTreeMap::new() }
    }

    /// A change is about to be made.
    fn touch(&mut self, records: &BTreeSet<RecordKey>, change: &Change) {
        let (Change::Put(record, _) | Change::Delete(record)) = change;
        for touched in self.open.values_mut().filter(|touched| !touched.records.contains_key(record)) {
            touched.records.insert(record.clone(), records.contains(record));
        }
    }

    /// Commit `seq` was read: the pieces that end there. A delta has what was touched since its beginning.
    fn reach(&mut self, seq: u64, hash: Hash) -> Vec<(Piece, Touched)> {
        let ended = self.by_end.remove(&seq).unwrap_or_default();
        let ended = ended.into_iter().map(|piece| (piece, self.open.remove(&piece).unwrap_or_default())).collect();
        for piece in self.by_end.values().flatten() {
            if matches!(piece, Piece::Delta { from, .. } if *from == seq) {
                self.open.insert(*piece, Touched { begin: Some(hash), records: BTreeMap::new() });
            }
        }
        ended
    }

    fn not_reached(&self) -> impl Iterator<Item = Piece> {
        self.by_end.values().flatten().copied()
    }
}

/// A delta has to be readable, and to lead from the records at its beginning to those at its end.
async fn verify_delta(
    bucket: &dyn Bucket,
    report: &mut LedgerReport,
    key: &Key,
    records: &BTreeSet<RecordKey>,
    touched: &Touched,
) -> Result<(), Error> {
    let Some(object) = bucket.get(key).await? else { return Ok(()) };
    let mut is_put = BTreeMap::new();
    let decoded = delta::decode(key, &object.bytes, |change| {
        match change {
            Change::Put(record, _) => is_put.insert(record, true),
            Change::Delete(record) => is_put.insert(record, false),
        };
    });
    match decoded {
        Ok(header) if header.hash != report.last || Some(header.from_hash) != touched.begin => {
            report.note(key, "it was made between other commits than those of its numbers");
        }
        Ok(_) => {
            let is_wrong = |record: &&RecordKey| {
                let (before, now) = (touched.records.get(*record), records.contains(*record));
                match (before, is_put.get(*record)) {
                    (None, _) => true,
                    // What was changed and changed back is no change.
                    (Some(before), None) => *before != now,
                    (Some(_), Some(is_put)) => *is_put != now,
                }
            };
            match touched.records.keys().chain(is_put.keys()).find(is_wrong) {
                Some(record) => report.note(key, format_args!("it and the log disagree on {record}")),
                None => report.deltas += 1,
            }
        }
        Err(Error::Corrupt { why, .. }) => report.note(key, why),
        Err(error) => report.note(key, error),
    }
    Ok(())
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
