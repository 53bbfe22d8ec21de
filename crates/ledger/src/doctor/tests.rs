use std::collections::HashMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::task::yield_now;

use super::*;
use crate::bucket::{ByteStream, Download};
use crate::clock::SystemClock;
use crate::object_bucket::ObjectBucket;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lie {
    None,
    /// Accepts the condition and overwrites all the same.
    IgnoresTheCondition,
    /// Looks first and writes then, as a server without a lock would.
    LooksThenWrites,
    /// Tells everyone who comes second the truth, but keeps their bytes.
    RefusesButOverwrites,
    /// Writes, and loses the answer to every create.
    LosesAnswers,
    /// Says that it wrote, and did not.
    DropsCreates,
    /// Goes on telling what it told first.
    StaleReads,
    /// Shows an object only when it has been asked so often.
    StaleList(usize),
    ReadOnly,
    Unreachable,
    Undeletable,
    SlowClock(SignedDuration),
}

/// The in-memory bucket, with one thing wrong with it.
#[derive(Debug)]
struct Liar {
    bucket: ObjectBucket,
    lie: Lie,
    told: Mutex<HashMap<Key, Option<Object>>>,
    listings: AtomicUsize,
}

fn liar(lie: Lie) -> Arc<dyn Bucket> {
    let bucket = ObjectBucket::in_memory();
    Arc::new(Liar { bucket, lie, told: Mutex::default(), listings: AtomicUsize::new(0) })
}

impl Liar {
    fn refuse_write(&self, operation: &'static str, key: &Key) -> Result<(), BucketError> {
        self.refuse_all(operation, key)?;
        if self.lie != Lie::ReadOnly {
            return Ok(());
        }
        Err(BucketError::new(operation, key, BucketErrorKind::Denied, "AccessDenied"))
    }

    fn refuse_all(&self, operation: &'static str, key: &Key) -> Result<(), BucketError> {
        if self.lie != Lie::Unreachable {
            return Ok(());
        }
        Err(BucketError::new(operation, key, BucketErrorKind::OutcomeUnknown, "connection refused"))
    }
}

#[async_trait]
impl Bucket for Liar {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        self.refuse_write("create", key)?;
        match self.lie {
            Lie::IgnoresTheCondition => {
                self.bucket.put(key, bytes).await?;
                Ok(Created::Now)
            }
            Lie::LooksThenWrites => {
                if self.bucket.get(key).await?.is_some() {
                    return Ok(Created::AlreadyThere);
                }
                yield_now().await;
                self.bucket.put(key, bytes).await?;
                Ok(Created::Now)
            }
            Lie::RefusesButOverwrites => {
                let created = self.bucket.create(key, bytes.clone()).await?;
                self.bucket.put(key, bytes).await?;
                Ok(created)
            }
            Lie::LosesAnswers => {
                self.bucket.create(key, bytes).await?;
                Err(BucketError::new("create", key, BucketErrorKind::OutcomeUnknown, "connection closed"))
            }
            Lie::DropsCreates => Ok(Created::Now),
            _ => self.bucket.create(key, bytes).await,
        }
    }

    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.refuse_write("put", key)?;
        self.bucket.put(key, bytes).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
        self.refuse_all("get", key)?;
        let mut found = self.bucket.get(key).await?;
        if let (Lie::SlowClock(skew), Some(object)) = (self.lie, &mut found) {
            object.last_modified -= skew;
        }
        if self.lie == Lie::StaleReads {
            return Ok(self.told.lock().expect("no panics").entry(key.clone()).or_insert(found).clone());
        }
        Ok(found)
    }

    async fn list(&self, folder: &Key, after: Option<&Key>) -> Result<Vec<Key>, BucketError> {
        match self.lie {
            Lie::StaleList(misses) if self.listings.fetch_add(1, Ordering::Relaxed) < misses => Ok(Vec::new()),
            _ => self.bucket.list(folder, after).await,
        }
    }

    async fn folders(&self, folder: &Key) -> Result<Vec<String>, BucketError> {
        self.bucket.folders(folder).await
    }

    async fn delete(&self, key: &Key) -> Result<(), BucketError> {
        if self.lie == Lie::Undeletable { Ok(()) } else { self.bucket.delete(key).await }
    }

    async fn upload(&self, key: &Key, body: ByteStream) -> Result<u64, BucketError> {
        self.bucket.upload(key, body).await
    }

    async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
        self.bucket.download(key, range).await
    }
}

async fn examine_a(lie: Lie) -> Vec<Finding> {
    examine(&liar(lie), &SystemClock, &SharedRng::from_seed(1)).await
}

async fn probe_a(lie: Lie) -> Result<(), ProbeError> {
    probe(&liar(lie), &SharedRng::from_seed(1), Thoroughness::REMOTE).await
}

/// The checks that did not pass, without those that were skipped for their sake.
fn complaints(findings: &[Finding]) -> Vec<(&'static str, Outcome)> {
    let loud = |finding: &&Finding| matches!(finding.outcome, Outcome::Warned | Outcome::Failed);
    findings.iter().filter(loud).map(|finding| (finding.check, finding.outcome)).collect()
}

fn skipped(findings: &[Finding]) -> usize {
    findings.iter().filter(|finding| finding.outcome == Outcome::Skipped).count()
}

#[tokio::test(start_paused = true)]
async fn an_honest_bucket_passes_and_is_left_empty() {
    let bucket: Arc<dyn Bucket> = liar(Lie::None);
    let rng = SharedRng::from_seed(1);
    probe(&bucket, &rng, Thoroughness::REMOTE).await.expect("it is honest");
    let findings = examine(&bucket, &SystemClock, &rng).await;
    assert_eq!(complaints(&findings), [], "{findings:#?}");
    assert_eq!((findings.len(), skipped(&findings)), (9, 0), "{findings:#?}");
    assert_eq!(bucket.list(&layout::probes(), None).await.expect("memory answers"), []);
}

#[tokio::test(start_paused = true)]
async fn each_lie_is_named_by_its_check() {
    use Outcome::{Failed, Warned};
    let hour = SignedDuration::from_hours(1);
    let cases = [
        (Lie::IgnoresTheCondition, Some((CREATE_IF_ABSENT, Failed)), 1),
        (Lie::RefusesButOverwrites, Some((CREATE_IF_ABSENT, Failed)), 1),
        (Lie::DropsCreates, Some((CREATE_IF_ABSENT, Failed)), 1),
        (Lie::LooksThenWrites, Some((CREATE_RACE, Failed)), 0),
        (Lie::LosesAnswers, None, 0),
        (Lie::StaleReads, Some((READ_AFTER_WRITE, Failed)), 6),
        (Lie::StaleList(2), Some((LIST_AFTER_WRITE, Warned)), 0),
        (Lie::StaleList(usize::MAX), Some((LIST_AFTER_WRITE, Failed)), 0),
        (Lie::ReadOnly, Some((WRITE_PERMISSION, Failed)), 7),
        (Lie::Unreachable, Some((REACHABLE, Failed)), 8),
        (Lie::Undeletable, Some((DELETE, Failed)), 0),
        (Lie::SlowClock(hour), Some((CLOCK_SKEW, Failed)), 0),
        (Lie::SlowClock(-hour), Some((CLOCK_SKEW, Failed)), 0),
        (Lie::SlowClock(SignedDuration::from_secs(30)), Some((CLOCK_SKEW, Warned)), 0),
    ];
    for (lie, complaint, times_skipped) in cases {
        let findings = examine_a(lie).await;
        assert_eq!(complaints(&findings), Vec::from_iter(complaint), "{lie:?}: {findings:#?}");
        assert_eq!(skipped(&findings), times_skipped, "{lie:?}: {findings:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_does_not_start_on_a_bucket_that_lies() {
    for lie in [Lie::IgnoresTheCondition, Lie::LooksThenWrites, Lie::RefusesButOverwrites] {
        let error = probe_a(lie).await.expect_err("a lie");
        assert!(matches!(error, ProbeError::IgnoresCreateIfAbsent { .. }), "{lie:?}: {error}");
        assert!(error.to_string().contains("acknowledged changes would be lost"), "{error}");
    }
    for lie in [Lie::StaleReads, Lie::DropsCreates] {
        let error = probe_a(lie).await.expect_err("a lie");
        assert!(
            matches!(error, ProbeError::ForgetsWrites { .. } | ProbeError::IgnoresCreateIfAbsent { .. }),
            "{lie:?}: {error}"
        );
    }
    for lie in [Lie::StaleList(usize::MAX), Lie::LosesAnswers, Lie::Undeletable] {
        probe_a(lie).await.unwrap_or_else(|error| panic!("{lie:?} is no reason not to start: {error}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_cannot_be_used_is_explained() {
    let denied = probe_a(Lie::ReadOnly).await.expect_err("denied").to_string();
    assert!(denied.contains("AccessDenied. Give the credentials"), "{denied}");
    let unreachable = probe_a(Lie::Unreachable).await.expect_err("unreachable").to_string();
    assert!(unreachable.contains("connection refused. Check that its address is right"), "{unreachable}");
}

#[test]
fn a_race_is_judged_by_answers_and_content() {
    let key = layout::probe("x");
    let (won, lost) = (Ok(Created::Now), Ok(Created::AlreadyThere));
    let unclear = Err(BucketError::new("create", &key, BucketErrorKind::OutcomeUnknown, "timeout"));
    let judge = |answers: &[&Result<Created, BucketError>], owner| {
        let answers: Vec<Answer> =
            answers.iter().enumerate().map(|(writer, &answer)| (writer, answer.clone())).collect();
        judge_race(&key, &answers, owner)
    };
    assert!(judge(&[&won, &lost], Owner::Writer(0)).is_ok());
    assert!(judge(&[&unclear, &lost], Owner::Writer(0)).is_ok(), "its answer was lost");
    assert!(judge(&[&lost, &lost], Owner::Writer(0)).is_ok(), "a retry met its own write");
    assert!(matches!(judge(&[&won, &won], Owner::Writer(0)), Err(ProbeError::IgnoresCreateIfAbsent { .. })));
    assert!(matches!(judge(&[&won, &lost], Owner::Writer(1)), Err(ProbeError::IgnoresCreateIfAbsent { .. })));
    assert!(matches!(judge(&[&won, &lost], Owner::Nobody), Err(ProbeError::ForgetsWrites { .. })));
    assert!(matches!(judge(&[&won, &lost], Owner::Stranger), Err(ProbeError::ForgetsWrites { .. })));
    assert!(matches!(judge(&[&lost, &unclear], Owner::Nobody), Err(ProbeError::Bucket(_))));
    assert!(matches!(judge(&[&lost, &lost], Owner::Nobody), Err(ProbeError::Bucket(_))));
}

#[test]
fn whole_seconds_are_no_skew() {
    let second: Timestamp = "2026-11-16T10:00:00Z".parse().expect("a time");
    let within = second + SignedDuration::from_millis(900);
    assert_eq!(judge_clock(within, second, within).0, Outcome::Passed);
    let (outcome, detail) = judge_clock(second, second + SignedDuration::from_mins(2), second);
    assert_eq!((outcome, detail.contains("2m ahead of ours")), (Outcome::Warned, true), "{detail}");
}

#[tokio::test]
async fn a_directory_is_probed_and_left_empty() {
    let directory = tempfile::tempdir().expect("a directory");
    let location = Location::directory(directory.path());
    let bucket: Arc<dyn Bucket> = Arc::new(location.open().expect("it opens"));
    let thoroughness = Thoroughness::for_start_on(&location);
    assert_eq!(thoroughness, Thoroughness::QUICK);
    probe(&bucket, &SharedRng::from_seed(1), thoroughness).await.expect("it is honest");
    assert_eq!(bucket.list(&layout::probes(), None).await.expect("it lists"), []);
}
