//! The newest commit of a ledger has no next one that names its hash: the head object and its own digest protect it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{Counters, add, directory, memory, name, open_with};
use taco_ledger::{
    Bucket, CommitError, Error, Ledger, LedgerName, MasterKey, MasterKeys, Options, SharedRng, audit, layout,
};

const SECRET: &str = "the secret key of these tests, long enough";

fn keys(secret: &str) -> Arc<MasterKeys> {
    let key = MasterKey::from_secret(secret).expect("long enough");
    Arc::new(MasterKeys::new(key, Vec::new(), SharedRng::from_seed(1)))
}

async fn open(bucket: &Arc<dyn Bucket>) -> Result<Ledger<Counters>, Error> {
    open_with(bucket, Options { snapshot_every: 5, keys: Some(keys(SECRET)), ..Options::default() }).await
}

/// A directory with a ledger of so many commits, whose server has gone.
struct Closed {
    directory: tempfile::TempDir,
}

impl Closed {
    async fn after(commits: u64) -> Self {
        let closed = Self { directory: tempfile::tempdir().expect("a directory") };
        let ledger = open(&closed.bucket()).await.expect("an empty ledger");
        for _ in 0..commits {
            add(&ledger, "a").await.expect("a commit");
        }
        ledger.flush().await;
        if commits.is_multiple_of(5) {
            while !closed.file(&layout::snapshot(&name(), commits)).exists() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        }
        closed
    }

    fn bucket(&self) -> Arc<dyn Bucket> {
        directory(self.directory.path())
    }

    fn file(&self, key: &taco_ledger::Key) -> PathBuf {
        self.directory.path().join(key.as_str())
    }

    fn commit(&self, seq: u64) -> PathBuf {
        self.file(&layout::commit(&name(), seq))
    }

    fn head(&self) -> PathBuf {
        self.file(&layout::head(&name()))
    }

    /// Problems that `taco audit verify` finds, with the secret key and without.
    async fn problems(&self) -> [Vec<String>; 2] {
        let keys = keys(SECRET);
        let with = audit::verify(&*self.bucket(), None, Some(&keys)).await.expect("a readable bucket");
        let without = audit::verify(&*self.bucket(), None, None).await.expect("a readable bucket");
        [with, without].map(|reports| reports.iter().flat_map(|it| &it.problems).map(ToString::to_string).collect())
    }
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).expect("a file");
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replacen(from, to, 1)).expect("written");
}

fn assert_names(error: &str, key: &taco_ledger::Key) {
    assert!(error.contains(key.as_str()), "{key} is not named: {error}");
}

#[tokio::test]
async fn the_head_names_the_newest_commit_and_all_is_sound() {
    let closed = Closed::after(7).await;
    let head = std::fs::read_to_string(closed.head()).expect("a head");
    assert!(head.contains(r#""seq":7"#) && head.contains(r#""mac":"#), "{head}");
    assert_eq!(closed.problems().await, [Vec::<String>::new(), Vec::new()]);
    let report = audit::verify(&*closed.bucket(), None, Some(&keys(SECRET))).await.expect("a readable bucket");
    assert!(report[0].unproven.is_empty(), "{report:?}");
    assert_eq!(open(&closed.bucket()).await.expect("opened").read().await.expect("a read").count("a"), 7);
}

#[tokio::test]
async fn an_altered_newest_commit_is_noticed() {
    // After the fifth a snapshot spares the server the commits before.
    for newest in [5, 7] {
        let closed = Closed::after(newest).await;
        replace(&closed.commit(newest), &format!("\"count\":{newest}"), "\"count\":3");
        let error = open(&closed.bucket()).await.expect_err("altered").to_string();
        assert_names(&error, &layout::commit(&name(), newest));
        for problems in closed.problems().await {
            assert_names(&problems.join(" "), &layout::commit(&name(), newest));
        }
    }
}

#[tokio::test]
async fn deleted_newest_commits_are_noticed() {
    for (newest, deleted) in [(5, 1), (7, 1), (7, 2)] {
        let closed = Closed::after(newest).await;
        for seq in newest - deleted + 1..=newest {
            std::fs::remove_file(closed.commit(seq)).expect("removed");
        }
        let first_missing = layout::commit(&name(), newest - deleted + 1);
        let error = open(&closed.bucket()).await.expect_err("deleted").to_string();
        assert_names(&error, &first_missing);
        assert!(error.contains("missing"), "{error}");
        for problems in closed.problems().await {
            assert_names(&problems.join(" "), &first_missing);
        }
    }
}

#[tokio::test]
async fn a_newest_commit_that_was_altered_before_the_head_named_it_has_a_wrong_mac() {
    let closed = Closed::after(6).await;
    let head = std::fs::read(closed.head()).expect("a head");
    let ledger = open(&closed.bucket()).await.expect("opened");
    add(&ledger, "a").await.expect("a commit");
    ledger.flush().await;
    // As a crash before the head was written leaves it.
    std::fs::write(closed.head(), head).expect("written");
    open(&closed.bucket()).await.expect("a head that is behind is no error");
    assert_eq!(closed.problems().await, [Vec::<String>::new(), Vec::new()]);

    replace(&closed.commit(7), "\"count\":7", "\"count\":3");
    let error = open(&closed.bucket()).await.expect_err("altered").to_string();
    assert_names(&error, &layout::commit(&name(), 7));
    assert_names(&closed.problems().await[0].join(" "), &layout::commit(&name(), 7));
}

#[tokio::test]
async fn whoever_rewrites_commit_and_head_is_found_by_the_key() {
    let closed = Closed::after(6).await;
    replace(&closed.commit(6), "\"count\":6", "\"count\":3");
    let bytes = std::fs::read(closed.commit(6)).expect("a commit");
    let hash = taco_ledger::Hash::of(&bytes);
    let text = std::fs::read_to_string(closed.head()).expect("a head");
    let (before, rest) = text.split_once("\"hash\":\"").expect("a hash");
    std::fs::write(closed.head(), format!("{before}\"hash\":\"{hash}{}", &rest[64..])).expect("written");
    assert_names(&open(&closed.bucket()).await.expect_err("altered").to_string(), &layout::commit(&name(), 6));
    let problems = closed.problems().await[0].join(" ");
    assert_names(&problems, &layout::commit(&name(), 6));
    assert_names(&problems, &layout::head(&name()));
}

#[tokio::test]
async fn a_damaged_or_missing_head_stops_nobody_and_is_told() {
    let closed = Closed::after(6).await;
    std::fs::write(closed.head(), "{").expect("written");
    assert_names(&closed.problems().await[1].join(" "), &layout::head(&name()));
    std::fs::remove_file(closed.head()).expect("removed");
    let report = audit::verify(&*closed.bucket(), None, None).await.expect("a readable bucket");
    assert!(report[0].is_sound() && report[0].unproven.len() == 1, "{report:?}");
    let ledger = open(&closed.bucket()).await.expect("opened");
    add(&ledger, "a").await.expect("a commit");
    ledger.flush().await;
    assert!(closed.head().exists());
}

#[tokio::test]
async fn a_ledger_goes_on_under_another_key() {
    let closed = Closed::after(6).await;
    let options = Options { keys: Some(keys("the secret key of next year, long enough")), ..Options::default() };
    let ledger = open_with(&closed.bucket(), options).await.expect("opened");
    ledger.renew_head().await.expect("a head");
    let report = audit::verify(&*closed.bucket(), None, Some(&keys("the secret key of next year, long enough"))).await;
    let report = report.expect("a readable bucket");
    assert!(report[0].is_sound() && report[0].unproven.is_empty(), "{report:?}");
}

#[tokio::test]
async fn a_running_server_writes_nothing_after_a_newest_commit_that_was_deleted_or_altered() {
    for altered in [false, true] {
        let closed = Closed::after(3).await;
        let ledger = open(&closed.bucket()).await.expect("opened");
        let before = std::fs::read(closed.commit(3)).expect("a commit");
        if altered {
            std::fs::write(closed.commit(3), [&before[..], b" "].concat()).expect("written");
        } else {
            std::fs::remove_file(closed.commit(3)).expect("removed");
        }
        match add(&ledger, "a").await {
            Err(CommitError::Ledger(error @ Error::Corrupt { .. })) => {
                assert_names(&error.to_string(), &layout::commit(&name(), 3));
            }
            other => panic!("{other:?}"),
        }
        assert!(!closed.commit(4).exists());
        assert_names(&ledger.damage().expect("it is known").to_string(), &layout::commit(&name(), 3));
        assert_eq!(ledger.read().await.expect("whoever reads is served from memory").count("a"), 3);

        std::fs::write(closed.commit(3), before).expect("restored");
        assert_eq!(add(&ledger, "a").await.expect("a commit"), 4);
        assert!(ledger.damage().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_behind_a_network_notices_it_too() {
    let bucket = memory();
    let ledger = open(&bucket).await.expect("an empty ledger");
    add(&ledger, "a").await.expect("a commit");
    add(&ledger, "a").await.expect("a commit");
    let key = layout::commit(&name(), 2);
    bucket.delete(&key).await.expect("deleted");
    // What it wrote itself a moment ago it takes for granted.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let error = add(&ledger, "a").await.expect_err("a hole");
    assert_names(&format!("{error:?}"), &key);
    assert!(bucket.get(&layout::commit(&name(), 3)).await.expect("read").is_none());
}

#[test]
fn the_head_lies_beside_the_log() {
    assert_eq!(layout::head(&LedgerName::site()).as_str(), "ledgers/site/head.json");
}
