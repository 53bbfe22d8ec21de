//! Every format that was ever written can still be read: `migrations-in-bucket/` holds a sample of each.

use std::path::{Path, PathBuf};

use crate::common::{Counters, add, directory, environment};
use taco_ledger::{Ledger, LedgerName, Options, audit, format};

fn migrations() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests")).join("../../migrations-in-bucket")
}

/// A bucket that holds a copy of a sample, so that nothing can change the sample itself.
fn copy_of(sample: &Path) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).expect("a directory");
        for entry in std::fs::read_dir(from).expect("a sample") {
            let entry = entry.expect("an entry");
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                copy(&entry.path(), &target);
            } else {
                std::fs::copy(entry.path(), target).expect("copied");
            }
        }
    }
    let directory = tempfile::tempdir().expect("a directory");
    copy(sample, directory.path());
    directory
}

async fn open(bucket: &tempfile::TempDir) -> Ledger<Counters> {
    let environment = environment(directory(bucket.path()), "reader", 0);
    let options = Options { snapshot_every: 3, ..Options::default() };
    Ledger::open(environment, LedgerName::site(), options).await.expect("a readable sample")
}

#[tokio::test]
async fn every_sample_is_a_sound_bucket() {
    let mut found = 0;
    for migration in std::fs::read_dir(migrations()).expect("migrations") {
        let migration = migration.expect("an entry").path();
        if !migration.is_dir() {
            continue;
        }
        assert!(migration.join("README.md").exists(), "{} has no README.md", migration.display());
        for sample in ["before", "after"] {
            let sample = migration.join(sample);
            if !sample.join("taco.json").exists() {
                continue;
            }
            let bucket = copy_of(&sample);
            let bucket = directory(bucket.path());
            assert!(format::read(&*bucket).await.expect("a known format").is_some());
            for report in audit::verify(&*bucket, None, None).await.expect("a readable bucket") {
                assert!(report.is_sound() && report.commits > 0, "{}: {report:?}", sample.display());
                found += 1;
            }
        }
    }
    assert!(found > 0, "there is at least one sample");
}

#[tokio::test]
async fn format_1_means_what_it_meant() {
    let bucket = copy_of(&migrations().join("0001-first-format/after"));
    let ledger = open(&bucket).await;
    let view = ledger.read().await.expect("a read");
    assert_eq!(view.seq(), 4);
    assert_eq!((view.count("a"), view.count("b"), view.count("gone")), (3, 1, 0));
    // It goes on from there, and what this version does not know stays.
    assert_eq!(add(&ledger, "a").await.expect("a commit"), 4);
    let newest =
        std::fs::read_to_string(bucket.path().join(taco_ledger::layout::commit(&LedgerName::site(), 5).as_str()))
            .expect("a commit");
    assert!(newest.contains(r#""color":"green""#), "a field of a newer version was dropped: {newest}");
}
