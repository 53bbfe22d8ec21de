//! The head object of a ledger: which commit is the newest, and its hash.
//!
//! Every commit is protected by the one after it, which names its hash; only the newest has none. So each writer notes its
//! newest commit in `head.json` soon after it was written, with a keyed digest that only a server can make. Whoever opens or
//! verifies the ledger finds a newest commit that was altered, and newest commits that were deleted.
//!
//! The head is written on the side, and two servers' writes may cross, so it may name an older commit than the newest:
//! that is no error. The commit that it names has to be there, with that hash. See
//! `docs/decisions/0019-the-newest-commit-is-protected.md`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::bucket::{Bucket, BucketError, Key};
use crate::commit::Hash;
use crate::error::Error;
use crate::layout::{self, LedgerName};
use crate::seal::{MacError, MasterKeys};

/// The number of this way to write a head.
const FORMAT: u64 = 1;

/// Minimum interval between two writes of a ledger's head: several commits in a row share one request.
const MIN_WRITE_INTERVAL: Duration = Duration::from_millis(250);

/// A commit and its hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CommitRef {
    pub(crate) seq: u64,
    pub(crate) hash: Hash,
}

#[derive(Serialize, Deserialize)]
struct HeadObject {
    format: u64,
    seq: u64,
    hash: Hash,
    /// By a key that is derived from the secret key; absent where a ledger is used without keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
}

/// Head of a ledger, as it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FoundHead {
    /// Older servers wrote none, and a server that was killed may not have come to it.
    None,
    Names(CommitRef, Proof),
    /// It was altered, or is no head at all.
    Damaged(String),
}

/// Verdict of a keyed digest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Proof {
    Proven,
    /// There is none: it was made by an older version, or without keys.
    NoMac,
    /// Nothing can be said, and why: nobody gave a key, or it was made with another.
    Unproven(String),
}

fn encode(ledger: &LedgerName, named: CommitRef, keys: Option<&MasterKeys>) -> Bytes {
    let mac = keys.map(|keys| keys.mac(&context(ledger), &content(named)));
    let object = HeadObject { format: FORMAT, seq: named.seq, hash: named.hash, mac };
    let mut bytes = serde_json::to_vec(&object).expect("a head is plain data");
    bytes.push(b'\n');
    bytes.into()
}

fn context(ledger: &LedgerName) -> String {
    format!("taco head 1 {ledger}")
}

fn content(named: CommitRef) -> Vec<u8> {
    format!("{} {}", named.seq, named.hash).into_bytes()
}

fn decode(ledger: &LedgerName, bytes: &[u8], keys: Option<&MasterKeys>) -> FoundHead {
    let object: HeadObject = match serde_json::from_slice(bytes) {
        Ok(object) => object,
        Err(error) => return FoundHead::Damaged(format!("it is not the head of a ledger: {error}")),
    };
    if object.format > FORMAT {
        let named = CommitRef { seq: object.seq, hash: object.hash };
        return FoundHead::Names(named, Proof::Unproven(format!("it has format {}", object.format)));
    }
    let named = CommitRef { seq: object.seq, hash: object.hash };
    let Some(mac) = object.mac else { return FoundHead::Names(named, Proof::NoMac) };
    match check_mac(keys, &context(ledger), &content(named), &mac) {
        Ok(proof) => FoundHead::Names(named, proof),
        Err(why) => FoundHead::Damaged(why),
    }
}

/// Compares a keyed digest; `Err` says that what it was made of was altered.
pub(crate) fn check_mac(keys: Option<&MasterKeys>, context: &str, bytes: &[u8], mac: &str) -> Result<Proof, String> {
    let Some(keys) = keys else { return Ok(Proof::Unproven("no secret key was given to prove it with".to_owned())) };
    match keys.check_mac(context, bytes, mac) {
        Ok(()) => Ok(Proof::Proven),
        Err(error @ MacError::MissingKey(_)) => Ok(Proof::Unproven(error.to_string())),
        Err(error @ MacError::Wrong) => Err(error.to_string()),
    }
}

/// Reads a ledger's head. Whoever wants to compare it with the log reads the log afterwards: a head is written after its
/// commit, so what it names must then be found.
pub(crate) async fn read(
    bucket: &dyn Bucket,
    ledger: &LedgerName,
    keys: Option<&MasterKeys>,
) -> Result<FoundHead, BucketError> {
    let found = bucket.get(&layout::head(ledger)).await?;
    Ok(found.map_or(FoundHead::None, |object| decode(ledger, &object.bytes, keys)))
}

/// Writes a ledger's head.
pub(crate) async fn write(
    bucket: &dyn Bucket,
    ledger: &LedgerName,
    named: CommitRef,
    keys: Option<&MasterKeys>,
) -> Result<(), BucketError> {
    bucket.put(&layout::head(ledger), encode(ledger, named, keys)).await
}

/// That a commit which the head names is not there.
pub(crate) fn missing(ledger: &LedgerName, first_missing: u64, named: u64) -> (Key, String) {
    let (head, key) = (layout::head(ledger), layout::commit(ledger, first_missing));
    (key, format!("it is missing, though {head} says that commit {named} was written: it was deleted"))
}

/// That the commit which the head names is another one.
pub(crate) fn altered(ledger: &LedgerName, named: CommitRef, found: Hash) -> (Key, String) {
    let (head, key) = (layout::head(ledger), layout::commit(ledger, named.seq));
    let why = format!("its hash is {found}, but {head} says that it was written with {}: it was altered", named.hash);
    (key, why)
}

/// Writes the heads of one ledger, one after the other, each with the newest commit that is known then. It ends, with
/// the newest, when nobody is left to note another.
pub(crate) async fn write_heads(
    bucket: Arc<dyn Bucket>,
    ledger: LedgerName,
    keys: Option<Arc<MasterKeys>>,
    mut newest: watch::Receiver<Option<CommitRef>>,
    written: watch::Sender<u64>,
) {
    while newest.changed().await.is_ok() {
        let Some(named) = *newest.borrow_and_update() else { continue };
        match write(&*bucket, &ledger, named, keys.as_deref()).await {
            Ok(()) => {
                written.send_replace(named.seq);
            }
            // The next commit tries again. Until then the newest commits are protected by their own digests alone.
            Err(error) => {
                tracing::warn!(event = "head_failed", %ledger, %error, "the head of a ledger could not be written");
            }
        }
        // Whoever closes the ledger does not wait.
        if newest.has_changed().is_ok() {
            sleep(MIN_WRITE_INTERVAL).await;
        }
    }
}

/// Compares the head that was found before the log was read with the log, which ends at `end`. `hash_of` reads the
/// commit of a number, which the log has.
pub(crate) async fn compare(
    ledger: &LedgerName,
    found: &FoundHead,
    end: CommitRef,
    hash_of: impl AsyncFnOnce(u64) -> Result<Option<Hash>, Error>,
) -> Result<(), Error> {
    let named = match found {
        FoundHead::None => return Ok(()),
        FoundHead::Damaged(why) => {
            let object = layout::head(ledger);
            tracing::error!(event = "head_damaged", %object, why, "the head of a ledger is damaged: deleted commits would not be noticed");
            return Ok(());
        }
        FoundHead::Names(named, proof) => {
            if let Proof::Unproven(why) = proof {
                tracing::debug!(object = %layout::head(ledger), why, "the head of a ledger cannot be proven");
            }
            *named
        }
    };
    if named.seq > end.seq {
        let (key, why) = missing(ledger, end.seq + 1, named.seq);
        return Err(Error::corrupt(&key, why));
    }
    let hash = if named.seq == end.seq { Some(end.hash) } else { hash_of(named.seq).await? };
    match hash {
        Some(hash) if hash == named.hash => Ok(()),
        Some(hash) => {
            let (key, why) = altered(ledger, named, hash);
            Err(Error::corrupt(&key, why))
        }
        None => {
            let (key, why) = missing(ledger, named.seq, named.seq);
            Err(Error::corrupt(&key, why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those with a MAC and those without. `cargo xtask samples` adds new ones.
    #[test]
    fn heads_of_earlier_versions_are_read() {
        let file = "../../migrations-in-bucket/0001-first-format/samples/bucket/head.jsonl";
        let samples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let samples = std::fs::read_to_string(samples).expect("samples");
        for sample in samples.lines() {
            let found = decode(&LedgerName::site(), sample.as_bytes(), None);
            assert!(matches!(found, FoundHead::Names(..)), "{sample}: {found:?}");
            let object: HeadObject = serde_json::from_str(sample).expect("a head");
            assert_eq!(serde_json::to_string(&object).expect("JSON"), sample);
        }
    }
}
