//! Every key in the bucket is made here, so that `docs/bucket-layout.md` has one file to agree with.

use std::fmt;
use std::str::FromStr;

use crate::bucket::Key;

/// The name of a ledger: `site`, or an organization's id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LedgerName(String);

/// A ledger's name that could be mistaken for something else in the bucket.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("{0:?} cannot name a ledger: 1 to 64 letters, digits and hyphens are allowed")]
pub struct BadLedgerName(String);

impl FromStr for LedgerName {
    type Err = BadLedgerName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let legal = !text.is_empty()
            && text.len() <= 64
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if legal { Ok(Self(text.to_owned())) } else { Err(BadLedgerName(text.to_owned())) }
    }
}

impl fmt::Display for LedgerName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl LedgerName {
    /// The ledger of users, tokens and the list of organizations.
    pub fn site() -> Self {
        Self("site".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The bucket's format number; the first object ever written.
pub fn format() -> Key {
    Key::new("taco.json")
}

/// The secret key of a bucket that people use without a server.
pub fn secret_key() -> Key {
    Key::new("secret-key")
}

/// All ledgers.
pub fn ledgers() -> Key {
    Key::new("ledgers")
}

/// All commits of a ledger.
pub fn log(ledger: &LedgerName) -> Key {
    Key::new(format!("ledgers/{ledger}/log"))
}

/// Commit number `seq` of a ledger.
pub fn commit(ledger: &LedgerName, seq: u64) -> Key {
    Key::new(format!("ledgers/{ledger}/log/{seq:020}.json"))
}

/// Name of a ledger's newest commit.
pub fn head(ledger: &LedgerName) -> Key {
    Key::new(format!("ledgers/{ledger}/head.json"))
}

/// All snapshots of a ledger.
pub fn snapshots(ledger: &LedgerName) -> Key {
    Key::new(format!("ledgers/{ledger}/snapshots"))
}

/// A ledger's whole state after commit `seq`.
pub fn snapshot(ledger: &LedgerName, seq: u64) -> Key {
    Key::new(format!("ledgers/{ledger}/snapshots/{seq:020}.jsonl.zst"))
}

/// All deltas of a ledger.
pub fn deltas(ledger: &LedgerName) -> Key {
    Key::new(format!("ledgers/{ledger}/deltas"))
}

/// Changes of a ledger after commit `from`, up to and with commit `to`.
pub fn delta(ledger: &LedgerName, from: u64, to: u64) -> Key {
    Key::new(format!("ledgers/{ledger}/deltas/{from:020}-{to:020}.jsonl.zst"))
}

/// The two numbers in the name of a delta; `None` for anything else that lies beside them.
pub fn range_of(key: &Key) -> Option<(u64, u64)> {
    numbers_before(key, ".jsonl.zst").filter(|(from, to)| from < to)
}

fn numbers_before(key: &Key, ending: &str) -> Option<(u64, u64)> {
    let (from, to) = key.file_name().strip_suffix(ending)?.split_once('-')?;
    let number = |digits: &str| (digits.len() == 20).then(|| digits.parse().ok()).flatten();
    Some((number(from)?, number(to)?))
}

/// All packs of a ledger.
pub fn packs(ledger: &LedgerName) -> Key {
    Key::new(format!("ledgers/{ledger}/packs"))
}

/// The commits `from` to `to` of a ledger.
pub fn pack(ledger: &LedgerName, from: u64, to: u64) -> Key {
    Key::new(format!("ledgers/{ledger}/packs/{from:020}-{to:020}.zst"))
}

/// The numbers of the first and the last commit in a pack; `None` for anything else that lies beside it.
pub fn pack_range_of(key: &Key) -> Option<(u64, u64)> {
    numbers_before(key, ".zst").filter(|(from, to)| 0 < *from && from <= to)
}

/// The number in the name of a commit or a snapshot; `None` for anything else that lies beside them.
pub fn number_of(key: &Key) -> Option<u64> {
    let (digits, suffix) = key.file_name().split_once('.')?;
    let known = digits.len() == 20 && matches!(suffix, "json" | "jsonl.zst");
    known.then(|| digits.parse().ok()).flatten()
}

/// The ledger that a commit's or snapshot's key belongs to.
pub fn ledger_of(key: &Key) -> Option<LedgerName> {
    key.as_str().strip_prefix("ledgers/")?.split('/').next()?.parse().ok()
}

/// All large objects of an organization.
pub fn blobs(ledger: &LedgerName) -> Key {
    Key::new(format!("blobs/{ledger}"))
}

/// A large object of an organization. `kind` is a fixed word such as `states`; `id` a generated id.
pub fn blob(ledger: &LedgerName, kind: &'static str, id: &str) -> Key {
    debug_assert!(is_plain(id), "blob ids are generated");
    Key::new(format!("blobs/{ledger}/{kind}/{id}"))
}

/// The piece of a log that begins at byte `offset`. A phase's epoch is part of the name, so an agent that was given
/// up writes where nobody looks.
pub fn log_chunk(ledger: &LedgerName, log: &str, epoch: u64, offset: u64) -> Key {
    debug_assert!(is_plain(log), "log ids are generated");
    Key::new(format!("blobs/{ledger}/logs/{log}/{epoch:010}/{offset:020}"))
}

/// The folder of all logs. It ends with a slash, since others may begin like it.
pub fn logs(ledger: &LedgerName) -> String {
    format!("blobs/{ledger}/logs/")
}

/// All pieces of all logs.
pub fn all_logs(ledger: &LedgerName) -> Key {
    Key::new(format!("blobs/{ledger}/logs"))
}

/// The log, the epoch and the offset that the key of a piece names; `None` for anything else that lies beside them.
pub fn piece_of(key: &Key) -> Option<(String, u64, u64)> {
    let mut parts = key.as_str().rsplit('/');
    let (_, epoch, log) = (parts.next()?, parts.next()?, parts.next()?);
    Some((log.to_owned(), epoch.parse().ok()?, offset_of(key)?))
}

/// All pieces of one attempt's log.
pub fn log_chunks(ledger: &LedgerName, log: &str, epoch: u64) -> Key {
    debug_assert!(is_plain(log), "log ids are generated");
    Key::new(format!("blobs/{ledger}/logs/{log}/{epoch:010}"))
}

/// The offset in the name of a piece of a log; `None` for anything else that lies beside it.
pub fn offset_of(key: &Key) -> Option<u64> {
    let digits = key.file_name();
    (digits.len() == 20).then(|| digits.parse().ok()).flatten()
}

/// All of an organization's history.
pub fn history(ledger: &LedgerName) -> Key {
    Key::new(format!("ledgers/{ledger}/history"))
}

/// A page of bundles of finished records.
pub fn history_page(ledger: &LedgerName, page: &str) -> Key {
    debug_assert!(is_plain(page), "page ids are generated");
    Key::new(format!("ledgers/{ledger}/history/pages/{page}"))
}

/// A part of a segment of history. `part` is a fixed word such as `runs`.
pub fn history_part(ledger: &LedgerName, segment: &str, part: &'static str) -> Key {
    debug_assert!(is_plain(segment), "segment ids are generated");
    Key::new(format!("ledgers/{ledger}/history/segments/{segment}/{part}.zst"))
}

/// All beacons.
pub fn beacons() -> Key {
    Key::new("beacons")
}

/// One server's sign of life.
pub fn beacon(server: &str) -> Key {
    debug_assert!(is_plain(server), "server ids are generated");
    Key::new(format!("beacons/{server}.json"))
}

/// Folder in which the start-up probe and `taco doctor` try what the bucket can do.
pub fn probes() -> Key {
    Key::new("probes")
}

/// One object of theirs.
pub fn probe(attempt: &str) -> Key {
    debug_assert!(is_plain(attempt), "probe ids are generated");
    Key::new(format!("probes/{attempt}"))
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sort_as_text() {
        let site = LedgerName::site();
        assert!(commit(&site, 9) < commit(&site, 10));
        assert_eq!(number_of(&commit(&site, 42)), Some(42));
        assert_eq!(number_of(&snapshot(&site, 42)), Some(42));
        assert_eq!(range_of(&delta(&site, 42, 43)), Some((42, 43)));
        assert_eq!((range_of(&delta(&site, 43, 42)), range_of(&snapshot(&site, 42))), (None, None));
        assert_eq!((number_of(&delta(&site, 42, 43)), pack_range_of(&delta(&site, 42, 43))), (None, None));
        assert_eq!((pack_range_of(&pack(&site, 1, 1)), range_of(&pack(&site, 1, 2))), (Some((1, 1)), None));
        assert_eq!(number_of(&Key::new("ledgers/site/log/00000000000000000042.json#1")), None);
    }

    #[test]
    fn a_piece_of_a_log_is_named_by_where_it_begins() {
        let piece = log_chunk(&LedgerName::site(), "plan-1", 2, 4096);
        assert_eq!(offset_of(&piece), Some(4096));
        assert_eq!(piece_of(&piece), Some(("plan-1".to_owned(), 2, 4096)));
        assert!(piece.as_str().starts_with(&format!("{}/", log_chunks(&LedgerName::site(), "plan-1", 2))));
        assert_eq!(offset_of(&format()), None);
    }

    #[test]
    fn a_name_that_could_leave_its_folder_is_refused() {
        for name in ["", "..", "a/b", "a b", "a%2e", &"x".repeat(65)] {
            assert!(name.parse::<LedgerName>().is_err(), "{name:?}");
        }
        assert_eq!(ledger_of(&commit(&"org-1a".parse().expect("legal"), 1)), Some("org-1a".parse().expect("legal")));
    }
}
