//! What a user's local servers keep between commands: `~/.cache/taco`, with engines, providers, what buckets have proved,
//! and a work directory for each process.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use url::form_urlencoded::byte_serialize;

use crate::config::HttpUrl;

/// Time for which a bucket that was honest is believed.
const PROBE_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// Processes of one user on one bucket at a time.
const MAX_SLOTS: u32 = 1000;

#[derive(Clone, Debug)]
pub(crate) struct Cache(PathBuf);

impl Cache {
    /// The cache of the user whose variables these are.
    pub(crate) fn of_user(variables: &BTreeMap<String, String>) -> Option<Self> {
        let absolute = |name: &str| variables.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(Self(caches.join("taco")))
    }

    pub(crate) fn engines(&self) -> PathBuf {
        self.0.join("engines")
    }

    pub(crate) fn providers(&self) -> PathBuf {
        self.0.join("providers")
    }

    /// A work directory for this process, and what keeps others out of it. That of a process that was killed comes first:
    /// its journal says what it could not send.
    pub(crate) fn take_slot(&self, bucket: &str) -> io::Result<(File, PathBuf)> {
        let slots = self.0.join("local").join(file_name(bucket));
        private(&slots)?;
        let mut free = None;
        for number in 0..MAX_SLOTS {
            let work_dir = slots.join(number.to_string());
            let is_new = !work_dir.exists();
            if is_new && free.is_some() {
                break;
            }
            private(&work_dir)?;
            let lock = File::create(work_dir.join("slot"))?;
            if lock.try_lock().is_err() {
                continue;
            }
            if has_journal(&work_dir) {
                return Ok((lock, work_dir));
            }
            free.get_or_insert((lock, work_dir));
            if is_new {
                break;
            }
        }
        free.ok_or_else(|| io::Error::other(format!("{} processes use {}", MAX_SLOTS, slots.display())))
    }

    /// What is known of a bucket's honesty.
    pub(crate) fn remembered_probe(&self, bucket: &str, endpoint: Option<&HttpUrl>) -> RememberedProbe {
        let endpoint = endpoint.map(HttpUrl::as_str).unwrap_or_default();
        RememberedProbe(self.0.join("probes").join(file_name(&format!("{bucket} {endpoint}"))))
    }
}

/// Directories that nobody else looks into.
fn private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

fn has_journal(work_dir: &Path) -> bool {
    let entries = fs::read_dir(work_dir.join("journal")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| path.extension().is_some_and(|kind| kind == "entry"))
}

/// A text as the name of a file.
fn file_name(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

/// The file that says that a bucket has passed the start-up probe.
#[derive(Clone, Debug)]
pub(crate) struct RememberedProbe(PathBuf);

impl RememberedProbe {
    /// True if this version of taco has found the bucket honest within a day.
    pub(crate) fn is_fresh(&self) -> bool {
        let is_ours = fs::read_to_string(&self.0).is_ok_and(|version| version == env!("CARGO_PKG_VERSION"));
        let written = fs::metadata(&self.0).and_then(|file| file.modified());
        let age = written.ok().and_then(|written| written.elapsed().ok());
        is_ours && age.is_some_and(|age| age < PROBE_LIFETIME)
    }

    /// Remembers that it was. A cache that cannot be written costs time, and no more.
    pub(crate) fn remember(&self) {
        let directory = self.0.parent().unwrap_or(Path::new("/"));
        if let Err(error) = private(directory).and_then(|()| fs::write(&self.0, env!("CARGO_PKG_VERSION"))) {
            tracing::debug!(%error, "the verdict on the bucket is not remembered");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> (tempfile::TempDir, Cache) {
        let home = tempfile::tempdir().expect("a directory");
        let variables = [("HOME".to_owned(), home.path().display().to_string())].into();
        let cache = Cache::of_user(&variables).expect("there is a home");
        (home, cache)
    }

    #[test]
    fn each_process_has_a_work_directory_and_what_one_left_is_taken_first() {
        let (_home, cache) = cache();
        let number = |slot: &(File, PathBuf)| slot.1.file_name().map(|name| name.to_string_lossy().into_owned());
        let first = cache.take_slot("s3://acme").expect("one");
        let second = cache.take_slot("s3://acme").expect("another");
        assert_eq!((number(&first), number(&second)), (Some("0".to_owned()), Some("1".to_owned())));
        assert_ne!(cache.take_slot("s3://other").expect("one").1, first.1);
        let left = second.1.join("journal");
        fs::create_dir(&left).expect("a directory");
        fs::write(left.join("run-1-plan-1.entry"), "").expect("a file");
        drop((first, second));
        assert_eq!(number(&cache.take_slot("s3://acme").expect("one")), Some("1".to_owned()));
    }

    #[test]
    fn a_verdict_is_one_of_this_version_about_one_bucket() {
        let (_home, cache) = cache();
        let probe = cache.remembered_probe("s3://acme", None);
        assert!(!probe.is_fresh());
        probe.remember();
        assert!(probe.is_fresh());
        assert!(!cache.remembered_probe("s3://other", None).is_fresh());
        fs::write(&probe.0, "0.0.1").expect("a file");
        assert!(!probe.is_fresh());
    }
}
