//! Journal of the agent's work, on disk: after a restart it sends what it had not sent.
//!
//! Entries hold phases' tokens. They are for their owner alone, and sealed as well, because a run may have the agent's
//! own user: the key is derived from the pool's token, which no run can read.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use taco_agent_protocol::{Outcome, PhaseAttempt, PhaseKind};

const NONCE_LENGTH: usize = 12;

/// A phase that was begun and not reported.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) phase: PhaseAttempt,
    pub(crate) token: String,
    /// Removed when all is sent.
    pub(crate) directory: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) errored_state: PathBuf,
    pub(crate) log: PathBuf,
    /// Digest of the last state that the server has.
    #[serde(default)]
    pub(crate) sent_state: Option<[u8; 32]>,
    #[serde(default)]
    pub(crate) outcome: Option<Outcome>,
    /// The process that watches the engine.
    #[serde(default)]
    pub(crate) supervisor: Option<u32>,
    /// True if an apply's engine may have been started: before, there is no doubt that nothing was applied. Older
    /// agents did not note it.
    #[serde(default = "is_not_known")]
    pub(crate) may_have_applied: bool,
}

fn is_not_known() -> bool {
    true
}

impl Entry {
    /// No other attempt has this name.
    pub(crate) fn name(&self) -> String {
        name(&self.phase)
    }
}

fn name(phase: &PhaseAttempt) -> String {
    format!("{}-{}-{}", phase.run, phase.phase, phase.epoch)
}

#[derive(Clone)]
pub(crate) struct Journal {
    directory: PathBuf,
    key: Arc<RandomizedNonceKey>,
}

impl Journal {
    pub(crate) fn open(directory: PathBuf, secret: &str) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        let key: [u8; 32] = Sha256::new().chain_update(b"taco agent journal\0").chain_update(secret).finalize().into();
        let key = RandomizedNonceKey::new(&AES_256_GCM, &key).map_err(io::Error::other)?;
        Ok(Self { directory, key: Arc::new(key) })
    }

    /// Everything that was begun and not removed. What cannot be read is set aside.
    pub(crate) fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for file in fs::read_dir(&self.directory)? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "entry") {
                match self.read(&path) {
                    Ok(entry) => entries.push(entry),
                    Err(error) => {
                        tracing::warn!(
                            event = "journal_entry_unreadable", path = %path.display(), %error,
                            "an entry of the journal cannot be read"
                        );
                        fs::rename(&path, path.with_extension("unreadable"))?;
                    }
                }
            }
        }
        Ok(entries)
    }

    /// Writes an entry, and returns the handle that keeps it true.
    pub(crate) fn begin(&self, entry: Entry) -> io::Result<JournalRecord> {
        let record = JournalRecord { journal: self.clone(), entry: Arc::new(Mutex::new(entry)) };
        record.change(|_| {})?;
        Ok(record)
    }

    fn path(&self, phase: &PhaseAttempt) -> PathBuf {
        self.directory.join(format!("{}.entry", name(phase)))
    }

    fn write(&self, entry: &Entry) -> io::Result<()> {
        let mut sealed = serde_json::to_vec(entry)?;
        let nonce = self.key.seal_in_place_append_tag(Aad::empty(), &mut sealed).map_err(io::Error::other)?;
        let path = self.path(&entry.phase);
        let fresh = path.with_extension("fresh");
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(nonce.as_ref())?;
        file.write_all(&sealed)?;
        // A plan that a power failure takes away is done again; waiting for the disk would make every plan slower.
        if entry.outcome.is_some() && entry.phase.phase == PhaseKind::Apply {
            file.sync_data()?;
        }
        fs::rename(fresh, path)
    }

    fn read(&self, path: &Path) -> io::Result<Entry> {
        let mut bytes = fs::read(path)?;
        let broken = || io::Error::other("it was sealed with another token, or is broken");
        if bytes.len() < NONCE_LENGTH {
            return Err(broken());
        }
        let mut sealed = bytes.split_off(NONCE_LENGTH);
        let nonce = Nonce::try_assume_unique_for_key(&bytes).map_err(|_| broken())?;
        let opened = self.key.open_in_place(nonce, Aad::empty(), &mut sealed).map_err(|_| broken())?;
        Ok(serde_json::from_slice(opened)?)
    }
}

/// One entry while its phase goes on.
#[derive(Clone)]
pub(crate) struct JournalRecord {
    journal: Journal,
    entry: Arc<Mutex<Entry>>,
}

impl JournalRecord {
    pub(crate) fn change(&self, change: impl FnOnce(&mut Entry)) -> io::Result<()> {
        let mut entry = self.entry.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut entry);
        self.journal.write(&entry)
    }

    /// Moves what is left of a phase into a directory of its own below `unsent`, out of the way of the next phase of its
    /// run, which has the same path as all of them.
    pub(crate) fn set_aside(&self, unsent: &Path) -> io::Result<()> {
        let from = self.entry().directory;
        let to = unsent.join(self.entry().name());
        if from == to {
            return Ok(());
        }
        // It may have been moved by an agent that was killed before it could note that.
        if !to.exists() {
            match fs::rename(&from, &to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.change(|entry| {
            for path in [&mut entry.state, &mut entry.errored_state, &mut entry.log] {
                if let Ok(inside) = path.strip_prefix(&from) {
                    *path = to.join(inside);
                }
            }
            entry.directory = to;
        })
    }

    pub(crate) fn entry(&self) -> Entry {
        self.entry.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        let phase = self.entry.lock().unwrap_or_else(PoisonError::into_inner).phase;
        fs::remove_file(self.journal.path(&phase))
    }
}

#[cfg(test)]
mod tests {
    use taco_words::id::RunId;

    use super::*;

    fn entry() -> Entry {
        Entry {
            phase: PhaseAttempt { run: RunId::from_random([1; 16]), phase: PhaseKind::Apply, epoch: 3 },
            token: "s3cr3t-token".to_owned(),
            directory: "/runs/1".into(),
            state: "/runs/1/state".into(),
            errored_state: "/runs/1/errored".into(),
            log: "/runs/1/log".into(),
            sent_state: None,
            outcome: None,
            supervisor: None,
            may_have_applied: false,
        }
    }

    /// An agent that is upgraded finds what the one before it noted. `cargo xtask samples` adds new ones.
    #[test]
    fn entries_of_earlier_versions_are_read() {
        let file = "../../migrations-in-bucket/0001-first-format/samples/agent/journal-entry.jsonl";
        let samples = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("samples");
        for sample in samples.lines() {
            let entry: Entry = serde_json::from_str(sample).expect("it can be read");
            let written = serde_json::to_value(&entry).expect("it can be written");
            let sample: serde_json::Value = serde_json::from_str(sample).expect("JSON");
            for (name, value) in sample.as_object().expect("an object") {
                assert_eq!(written.get(name), Some(value), "{name} is dropped");
            }
        }
    }

    #[test]
    fn entries_are_there_after_a_restart_and_nobody_else_can_read_them() {
        let directory = tempfile::tempdir().expect("a directory");
        let open = |secret| Journal::open(directory.path().join("journal"), secret).expect("a journal");
        let record = open("pool token").begin(entry()).expect("an entry");
        record.change(|entry| entry.outcome = Some(Outcome::Canceled { incomplete: false })).expect("a change");
        let entries = open("pool token").entries().expect("entries");
        assert!(entries == [Entry { outcome: Some(Outcome::Canceled { incomplete: false }), ..entry() }]);
        for file in fs::read_dir(directory.path().join("journal")).expect("files") {
            let bytes = fs::read(file.expect("a file").path()).expect("a file");
            assert!(!String::from_utf8_lossy(&bytes).contains("s3cr3t"));
        }
        record.remove().expect("it goes");
        assert!(open("pool token").entries().expect("entries").is_empty());
    }

    #[test]
    fn what_is_left_of_a_phase_makes_way_for_the_next_one() {
        let place = tempfile::tempdir().expect("a directory");
        let (run, unsent) = (place.path().join("runs/1"), place.path().join("unsent"));
        let journal = Journal::open(place.path().join("journal"), "token").expect("a journal");
        for directory in [&run, &unsent] {
            fs::create_dir_all(directory).expect("a directory");
        }
        fs::write(run.join("log"), "first").expect("a file");
        let (directory, log, state) = (run.clone(), run.join("log"), run.join("state"));
        let record = journal.begin(Entry { directory, log, state, ..entry() }).expect("an entry");
        record.set_aside(&unsent).expect("it is moved");
        fs::create_dir(&run).expect("there is room for another phase");
        fs::write(run.join("log"), "second").expect("a file");
        for record in
            [record.clone(), journal.begin(Entry { directory: run.clone(), ..record.entry() }).expect("an entry")]
        {
            record.set_aside(&unsent).expect("twice is fine");
            assert_eq!(record.entry().directory, unsent.join(entry().name()));
            assert_eq!(fs::read_to_string(record.entry().log).expect("a file"), "first");
        }
        assert_eq!(record.entry().state, unsent.join(entry().name()).join("state"));
        assert_eq!(fs::read_to_string(run.join("log")).expect("a file"), "second");
        assert!(journal.entries().expect("entries")[0].directory.starts_with(&unsent), "also after a restart");
    }

    #[test]
    fn an_entry_of_another_token_is_set_aside() {
        let directory = tempfile::tempdir().expect("a directory");
        Journal::open(directory.path().into(), "old").and_then(|journal| journal.begin(entry())).expect("an entry");
        let journal = Journal::open(directory.path().into(), "new").expect("a journal");
        assert!(journal.entries().expect("entries").is_empty());
        assert!(journal.entries().expect("again").is_empty());
    }
}
