//! One commit: what it says, and how it stands in the bucket.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use taco_tables::{Change, RecordKey};

use crate::bucket::Key;
use crate::error::Error;
use crate::head_object::{self, Proof};
use crate::layout::LedgerName;
use crate::seal::{MAC_TEXT, MasterKeys};

/// The number of this way to write a commit; see `migrations-in-bucket/`.
pub(crate) const FORMAT: u64 = 1;

/// The SHA-256 of a commit as it stands in the bucket. Each commit names the one before it, so nobody can change or
/// remove one without its being seen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Hash that the first commit names.
    pub const NONE: Self = Self([0; 32]);

    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut bytes = [0; 32];
        hex::decode_to_slice(&text, &mut bytes).map_err(serde::de::Error::custom)?;
        Ok(Self(bytes))
    }
}

/// Several transactions that happened at once.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Commit {
    pub format: u64,
    pub seq: u64,
    /// Random: how a writer whose answer was lost knows its own commit again.
    pub id: String,
    pub at: Timestamp,
    /// The server that wrote it.
    pub server: String,
    pub previous: Hash,
    pub transactions: Vec<Entry>,
}

/// One transaction: who did what, and what it changed.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Entry {
    pub actor: String,
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub puts: Vec<Put>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deletes: Vec<RecordKey>,
    /// Records that were read, where a read has to leave a trace. It changes nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<RecordKey>,
}

#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Put {
    pub kind: String,
    pub id: String,
    pub value: Box<RawValue>,
}

/// Beginning of the last field of a commit: a keyed digest of all bytes before it. Versions that know no such field pass
/// over it.
const MAC_FIELD: &[u8] = b",\"mac\":\"";
const AFTER_MAC: &[u8] = b"\"}\n";

fn mac_context(ledger: &LedgerName) -> String {
    format!("taco commit 1 {ledger}")
}

/// Checks the keyed digest at the end of a commit against the bytes before it. `Err` says that they were altered. A commit
/// of a server that knew no digests has none.
pub(crate) fn check_mac(ledger: &LedgerName, bytes: &[u8], keys: Option<&MasterKeys>) -> Result<Proof, String> {
    let split = || {
        let (rest, mac) = bytes.strip_suffix(AFTER_MAC)?.split_at_checked(bytes.len() - AFTER_MAC.len() - MAC_TEXT)?;
        Some((rest.strip_suffix(MAC_FIELD)?, std::str::from_utf8(mac).ok()?))
    };
    let has_room = bytes.len() >= AFTER_MAC.len() + MAC_TEXT;
    let Some((content, mac)) = has_room.then(split).flatten() else { return Ok(Proof::NoMac) };
    head_object::check_mac(keys, &mac_context(ledger), content, mac)
}

impl Commit {
    /// The bytes that stand in the bucket. With `keys`, they end with a keyed digest.
    pub(crate) fn encode(&self, ledger: &LedgerName, keys: Option<&MasterKeys>) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).expect("a commit is plain data");
        let Some(keys) = keys else {
            bytes.push(b'\n');
            return bytes;
        };
        let brace = bytes.pop();
        debug_assert_eq!(brace, Some(b'}'), "a commit is an object");
        let mac = keys.mac(&mac_context(ledger), &bytes);
        bytes.extend_from_slice(MAC_FIELD);
        bytes.extend_from_slice(mac.as_bytes());
        bytes.extend_from_slice(AFTER_MAC);
        bytes
    }

    /// Reads commit `seq` as it was found under `key`.
    pub fn decode(key: &Key, seq: u64, bytes: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Format {
            format: u64,
        }
        // The number first: a newer format may look different in every other way.
        let Format { format } = serde_json::from_slice(bytes)
            .map_err(|error| Error::corrupt(key, format_args!("it is not a commit: {error}")))?;
        if format > FORMAT {
            return Err(Error::NewerFormat { object: key.clone(), found: format, known: FORMAT });
        }
        let commit: Self = serde_json::from_slice(bytes)
            .map_err(|error| Error::corrupt(key, format_args!("it is not a commit: {error}")))?;
        if commit.seq != seq {
            return Err(Error::corrupt(key, format_args!("it says that it is commit {}", commit.seq)));
        }
        Ok(commit)
    }

    /// Its changes to the records, in order.
    pub fn changes(self) -> impl Iterator<Item = Change> {
        self.transactions.into_iter().flat_map(|entry| {
            let puts =
                entry.puts.into_iter().map(|put| Change::Put(RecordKey { kind: put.kind, id: put.id }, put.value));
            entry.deletes.into_iter().map(Change::Delete).chain(puts)
        })
    }
}
