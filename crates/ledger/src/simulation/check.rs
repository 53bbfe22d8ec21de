//! Compares what clients were told with what the log says, read without any of the ledger's own code paths.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::history::{Everything, Said, Told, text_of};
use crate::commit::Hash;
use crate::head_object::CommitRef;
use crate::snapshot_chain::{Piece, Pieces};
use crate::{delta, layout, snapshot};

/// Everything the log adds up to after each commit, by a replay of its own: plain JSON into a plain map.
struct Replay {
    /// The state as text after commit `n`, at index `n`.
    states: Vec<String>,
    /// Commits that put an operation on its shelf.
    appended: BTreeMap<u64, Vec<u64>>,
    /// Holder of each name, and since which commit.
    claims: BTreeMap<String, (u64, u64)>,
}

pub(super) async fn check(told: &Told) -> Result<String, String> {
    let objects = told.world.objects();
    let replay = replay(told, &objects)?;
    check_snapshots(told, &objects, &replay)?;
    check_head(told, &objects)?;

    let mut acknowledged_before: Vec<(u64, u64)> = Vec::new(); // (moment of the answer, commit it must be in)
    for answer in &told.answers {
        match &answer.said {
            Said::Appended(operation) => match replay.appended.get(operation).map(Vec::as_slice) {
                None => return Err(format!("operation {operation} was acknowledged and is lost")),
                Some([seq]) => acknowledged_before.push((answer.answered, *seq)),
                Some(several) => return Err(format!("operation {operation} happened in commits {several:?}")),
            },
            Said::Unknown(operation) => {
                let times = replay.appended.get(operation).map_or(0, Vec::len);
                if times > 1 {
                    return Err(format!("operation {operation}, of unknown outcome, happened {times} times"));
                }
            }
            Said::Claimed { name, by } => match replay.claims.get(name) {
                Some((holder, seq)) if holder == by => acknowledged_before.push((answer.answered, *seq)),
                other => return Err(format!("{name} was given to {by}, but the log says {other:?}")),
            },
            Said::Taken { name, by, holder } => match replay.claims.get(name) {
                Some((real, _)) if real == holder && holder != by => {}
                other => return Err(format!("{by} was told that {holder} has {name}, but the log says {other:?}")),
            },
            Said::Read { .. } => {}
        }
    }
    check_reads(told, &replay, acknowledged_before)?;

    let mut fingerprint = Sha256::new();
    for (key, bytes) in &objects {
        fingerprint.update(key.as_str());
        fingerprint.update(bytes);
    }
    fingerprint.update(told.answers.len().to_le_bytes());
    Ok(hex::encode(fingerprint.finalize()))
}

fn replay(told: &Told, objects: &BTreeMap<crate::Key, bytes::Bytes>) -> Result<Replay, String> {
    let mut records: BTreeMap<(String, String), Value> = BTreeMap::new();
    let mut replay = Replay { states: vec![String::new()], appended: BTreeMap::new(), claims: BTreeMap::new() };
    let mut previous = "0".repeat(64);
    for seq in 1.. {
        let Some(bytes) = commit_bytes(told, objects, seq)? else { break };
        let bytes = &bytes;
        let commit: Value = serde_json::from_slice(bytes).map_err(|error| format!("commit {seq}: {error}"))?;
        if commit["previous"] != previous.as_str() {
            return Err(format!("commit {seq} does not follow the one before it"));
        }
        previous = hex::encode(Sha256::digest(bytes));
        for put in commit["transactions"].as_array().into_iter().flatten().flat_map(|entry| list(&entry["puts"])) {
            let (kind, id) = (text(&put["kind"]), text(&put["id"]));
            let before = records.insert((kind.clone(), id.clone()), put["value"].clone());
            if kind == "claim" {
                replay.claims.entry(id).or_insert((put["value"]["holder"].as_u64().unwrap_or_default(), seq));
            } else {
                let old: BTreeSet<u64> = before.iter().flat_map(operations).collect();
                let new = operations(&put["value"]);
                for operation in new.iter().filter(|operation| !old.contains(operation)) {
                    replay.appended.entry(*operation).or_default().push(seq);
                }
                if new.len() != new.iter().collect::<BTreeSet<_>>().len() {
                    return Err(format!("commit {seq} puts an operation on a shelf for a second time"));
                }
            }
        }
        replay.states.push(text_of_records(&records));
    }
    Ok(replay)
}

/// The bytes of a commit, in its place or in the pack that is named there.
fn commit_bytes(
    told: &Told,
    objects: &BTreeMap<crate::Key, bytes::Bytes>,
    seq: u64,
) -> Result<Option<Vec<u8>>, String> {
    let Some(found) = objects.get(&layout::commit(&told.name, seq)) else { return Ok(None) };
    let place: Value = serde_json::from_slice(found).map_err(|error| format!("commit {seq}: {error}"))?;
    let (Some(from), Some(to)) = (place["from"].as_u64(), place["to"].as_u64()) else {
        return Ok(Some(found.to_vec()));
    };
    let pack = objects.get(&layout::pack(&told.name, from, to)).ok_or(format!("the pack of {seq} is not there"))?;
    let plain = zstd::decode_all(&pack[..]).map_err(|error| format!("the pack of {seq}: {error}"))?;
    let newline = plain.iter().position(|byte| *byte == b'\n').ok_or("a pack has no header")?;
    let header: Value = serde_json::from_slice(&plain[..newline]).map_err(|error| error.to_string())?;
    let sizes: Vec<usize> = list(&header["sizes"]).filter_map(|size| Some(size.as_u64()? as usize)).collect();
    let place = (seq - from) as usize;
    let begin = newline + 1 + sizes[..place].iter().sum::<usize>();
    Ok(Some(plain[begin..begin + sizes[place]].to_vec()))
}

/// Shelves first, then claims, as the state declares its tables.
fn text_of_records(records: &BTreeMap<(String, String), Value>) -> String {
    let mut text = String::new();
    for wanted in ["shelf", "claim"] {
        for ((kind, id), value) in records.iter().filter(|((kind, _), _)| kind == wanted) {
            let value = match wanted {
                "shelf" => format!(r#"{{"id":{},"operations":{}}}"#, value["id"], value["operations"]),
                _ => format!(r#"{{"id":{},"holder":{}}}"#, value["id"], value["holder"]),
            };
            text.push_str(&format!("{kind} {id} {value}\n"));
        }
    }
    text
}

/// Every chain of a snapshot and deltas adds up to what the log does.
fn check_snapshots(told: &Told, objects: &BTreeMap<crate::Key, bytes::Bytes>, replay: &Replay) -> Result<(), String> {
    let is_shortcut = |key: &&crate::Key| key.as_str().contains("/snapshots/") || key.as_str().contains("/deltas/");
    let pieces: Pieces = objects.keys().filter(is_shortcut).filter_map(Piece::of).collect();
    for end in pieces.iter().map(Piece::end) {
        let Some(chain) = pieces.chain_to_newest_of([end]) else { continue };
        let mut state = Everything::default();
        let mut named = CommitRef { seq: 0, hash: Hash::NONE };
        for piece in chain.0 {
            let key = piece.key(&told.name);
            named = match piece {
                Piece::Snapshot(seq) => snapshot::load(&key, &told.name, seq, &objects[&key]).map(|(header, whole)| {
                    state = whole;
                    CommitRef { seq, hash: header.hash }
                }),
                Piece::Delta { to, .. } => delta::apply(&key, &told.name, named, to, &objects[&key], &mut state),
            }
            .map_err(|error| error.to_string())?;
        }
        if replay.states.get(end as usize) != Some(&text_of(&state)) {
            return Err(format!("the snapshot or delta that ends at {end} is not what the log adds up to"));
        }
    }
    Ok(())
}

/// The head object names a commit of the log, with its hash.
fn check_head(told: &Told, objects: &BTreeMap<crate::Key, bytes::Bytes>) -> Result<(), String> {
    let Some(bytes) = objects.get(&layout::head(&told.name)) else { return Ok(()) };
    let head: Value = serde_json::from_slice(bytes).map_err(|error| format!("the head: {error}"))?;
    let seq = head["seq"].as_u64().ok_or("the head has no number")?;
    let named = &commit_bytes(told, objects, seq)?.ok_or(format!("the head names {seq}, which is not there"))?;
    match head["hash"] == hex::encode(Sha256::digest(named)).as_str() {
        true => Ok(()),
        false => Err(format!("the head names another commit {seq} than the log has")),
    }
}

/// A read shows a prefix of the log that has everything acknowledged before it began, and no less than any read that
/// ended before it began.
fn check_reads(told: &Told, replay: &Replay, mut floor: Vec<(u64, u64)>) -> Result<(), String> {
    for answer in &told.answers {
        if let Said::Read { seq, .. } = &answer.said {
            floor.push((answer.answered, *seq));
        }
    }
    for answer in &told.answers {
        let Said::Read { seq, state } = &answer.said else { continue };
        if replay.states.get(*seq as usize) != Some(state) {
            return Err(format!("a read after commit {seq} does not show what the log adds up to"));
        }
        let least = floor.iter().filter(|(answered, _)| *answered < answer.asked).map(|(_, seq)| *seq).max();
        if least.is_some_and(|least| *seq < least) {
            return Err(format!("a read shows commit {seq}, though {least:?} was known before it began"));
        }
    }
    Ok(())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn operations(shelf: &Value) -> Vec<u64> {
    list(&shelf["operations"]).filter_map(Value::as_u64).collect()
}
