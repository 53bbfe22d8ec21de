//! Errors of a ledger on a bucket that is not as it left it. Every error names the object, and nothing is overwritten.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::{add, directory, memory, open};
use taco_ledger::{CommitError, Error, Location, audit, format, layout};

struct Folder {
    directory: tempfile::TempDir,
}

impl Folder {
    /// A bucket with a ledger of 25 commits, a snapshot after 10 and a delta up to 20.
    async fn with_a_ledger() -> Self {
        let folder = Self { directory: tempfile::tempdir().expect("a directory") };
        let bucket = directory(folder.path());
        let ledger = open(&bucket).await.expect("an empty ledger");
        for _ in 0..25 {
            add(&ledger, "a").await.expect("a commit");
        }
        let name = crate::common::name();
        for key in [layout::snapshot(&name, 10), layout::delta(&name, 10, 20)] {
            while !folder.file(&key).exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        folder
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn file(&self, key: &taco_ledger::Key) -> PathBuf {
        self.path().join(key.as_str())
    }

    fn commit(&self, seq: u64) -> PathBuf {
        self.file(&layout::commit(&crate::common::name(), seq))
    }

    fn snapshot(&self, seq: u64) -> PathBuf {
        self.file(&layout::snapshot(&crate::common::name(), seq))
    }

    async fn problems(&self) -> Vec<String> {
        let reports = audit::verify(&*directory(self.path()), None, None).await.expect("a readable bucket");
        reports.iter().flat_map(|report| &report.problems).map(ToString::to_string).collect()
    }
}

fn flip_a_byte(path: &Path) {
    let mut bytes = std::fs::read(path).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).expect("written");
}

#[tokio::test]
async fn a_sound_ledger_is_found_sound() {
    let folder = Folder::with_a_ledger().await;
    let reports = audit::verify(&*directory(folder.path()), None, None).await.expect("a readable bucket");
    assert_eq!(reports.len(), 1);
    assert_eq!((reports[0].commits, reports[0].snapshots, reports[0].deltas), (25, 1, 1));
    assert!(reports[0].is_sound(), "{:?}", reports[0].problems);
}

#[tokio::test]
async fn a_damaged_commit_stops_the_ledger_and_is_named() {
    let folder = Folder::with_a_ledger().await;
    let before = std::fs::read(folder.commit(23)).expect("a commit");
    std::fs::write(folder.commit(23), b"{\"format\":1,\"seq\":23").expect("written");
    let error = open(&directory(folder.path())).await.expect_err("damage");
    assert!(error.to_string().contains("00000000000000000023.json is damaged"), "{error}");
    assert!(folder.problems().await[0].contains("log/00000000000000000023.json: it is not a commit"));
    assert_eq!(std::fs::read(folder.commit(23)).expect("still there"), b"{\"format\":1,\"seq\":23");

    std::fs::write(folder.commit(23), before).expect("mended");
    assert_eq!(
        open(&directory(folder.path())).await.expect("sound again").read().await.expect("a read").count("a"),
        25
    );
}

#[tokio::test]
async fn a_commit_changed_by_hand_breaks_the_chain() {
    let folder = Folder::with_a_ledger().await;
    let text = std::fs::read_to_string(folder.commit(22)).expect("a commit");
    std::fs::write(folder.commit(22), text.replace("\"count\":22", "\"count\":99")).expect("written");
    let error = open(&directory(folder.path())).await.expect_err("a broken chain");
    assert!(
        error.to_string().contains("00000000000000000023.json is damaged: it follows a commit with hash"),
        "{error}"
    );
    assert!(folder.problems().await[0].contains("one of the two was changed"));
}

#[tokio::test]
async fn a_running_server_that_meets_a_damaged_commit_writes_nothing() {
    let folder = Folder::with_a_ledger().await;
    let ledger = open(&directory(folder.path())).await.expect("a sound ledger");
    std::fs::write(folder.commit(26), b"garbage").expect("written");
    match add(&ledger, "a").await {
        Err(CommitError::Ledger(error @ Error::Corrupt { .. })) => {
            assert!(error.to_string().contains("00000000000000000026.json"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(ledger.read().await.is_err());
    assert_eq!(std::fs::read(folder.commit(26)).expect("still there"), b"garbage");
    assert!(!folder.commit(27).exists());
}

#[tokio::test]
async fn a_missing_commit_in_the_middle_is_refused_and_not_filled() {
    let folder = Folder::with_a_ledger().await;
    std::fs::remove_file(folder.commit(22)).expect("removed");
    let error = open(&directory(folder.path())).await.expect_err("a hole");
    let wanted = "00000000000000000022.json is damaged: it is missing, though commit 25 is there";
    assert!(error.to_string().contains(wanted), "{error}");
    assert!(folder.problems().await[0].contains("it is missing, though commit 25 is there"));
    assert!(!folder.commit(22).exists());
}

#[tokio::test]
async fn a_snapshot_with_a_flipped_byte_is_reported_and_passed_over() {
    let folder = Folder::with_a_ledger().await;
    flip_a_byte(&folder.snapshot(10));
    let damaged = std::fs::read(folder.snapshot(10)).expect("a snapshot");
    let ledger = open(&directory(folder.path())).await.expect("the log has everything");
    assert_eq!(ledger.read().await.expect("a read").count("a"), 25);
    let problems = folder.problems().await;
    assert!(
        problems[0].contains("snapshots/00000000000000000010.jsonl.zst: it is not a whole snapshot"),
        "{problems:?}"
    );
    assert_eq!(std::fs::read(folder.snapshot(10)).expect("still there"), damaged, "evidence is not overwritten");
}

#[tokio::test]
async fn a_snapshot_that_disagrees_with_the_log_is_found() {
    let folder = Folder::with_a_ledger().await;
    std::fs::copy(folder.snapshot(10), folder.snapshot(20)).expect("copied");
    assert_eq!(open(&directory(folder.path())).await.expect("opened").read().await.expect("a read").count("a"), 25);
    assert_eq!(folder.problems().await.len(), 1);
}

#[tokio::test]
async fn a_bucket_of_a_newer_format_is_refused() {
    let bucket = memory();
    format::ensure(&*bucket, &taco_ledger::SystemClock).await.expect("an empty bucket");
    format::ensure(&*bucket, &taco_ledger::SystemClock).await.expect("our own bucket");
    let newer = r#"{"format":99,"created_at":"2026-01-01T00:00:00Z","created_by":"taco 9"}"#;
    bucket.put(&layout::format(), newer.into()).await.expect("written");
    let error = format::ensure(&*bucket, &taco_ledger::SystemClock).await.expect_err("too new");
    let wanted = "taco.json says that this bucket has format 99, and this version of taco knows formats up to 1";
    assert!(error.to_string().contains(wanted), "{error}");
    assert_eq!(bucket.get(&layout::format()).await.expect("read").expect("there").bytes, newer);
}

#[tokio::test]
async fn a_commit_of_a_newer_format_is_refused() {
    let folder = Folder::with_a_ledger().await;
    std::fs::write(folder.commit(26), r#"{"format":2,"body":"of another kind"}"#).expect("written");
    let error = open(&directory(folder.path())).await.expect_err("too new");
    assert!(matches!(error, Error::NewerFormat { found: 2, .. }), "{error}");
}

#[test]
fn addresses_that_cannot_be_buckets_say_what_is_allowed() {
    for (url, why) in [
        ("taco-data", "relative URL without a base"),
        ("ftp://bucket", "ftp:// is not known"),
        ("s3://", "it names no bucket"),
        ("", "relative URL without a base"),
    ] {
        let error = Location { url: url.into(), ..Location::default() }.open().expect_err(url).to_string();
        assert!(error.contains(why) && error.contains("s3://bucket/prefix"), "{url:?}: {error}");
    }
}
