//! Required behaviour of every bucket.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::future::join_all;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::SignedDuration;
use taco_ledger::bucket::{ByteStream, Created};
use taco_ledger::doctor::{self, Outcome, Thoroughness};
use taco_ledger::{Bucket, BucketError, BucketErrorKind, Clock, Key, LedgerName, SharedRng, SystemClock, layout};
use tokio::sync::Barrier;

use crate::places::{Place, open};

const MIB: usize = 1024 * 1024;

fn organization() -> LedgerName {
    "org-1".parse().expect("a legal name")
}

fn state(id: &str) -> Key {
    layout::blob(&organization(), "states", id)
}

async fn read(bucket: &Arc<dyn Bucket>, key: &Key) -> Option<Bytes> {
    bucket.get(key).await.expect("the bucket answers").map(|object| object.bytes)
}

async fn put_all(bucket: &Arc<dyn Bucket>, keys: &[Key]) {
    let puts = keys.iter().map(|key| bucket.put(key, Bytes::from_static(b"x")));
    stream::iter(puts).buffer_unordered(32).try_collect::<()>().await.expect("the bucket takes objects");
}

async fn list(bucket: &Arc<dyn Bucket>, folder: &Key, after: Option<&Key>) -> Vec<Key> {
    bucket.list(folder, after).await.expect("the bucket lists")
}

pub(crate) async fn the_second_creator_is_refused(place: &Place) {
    let key = layout::commit(&organization(), 1);
    let create = |text: &'static str| place.bucket.create(&key, Bytes::from_static(text.as_bytes()));
    assert_eq!(create("first").await.expect("created"), Created::Now);
    assert_eq!(create("second").await.expect("refused"), Created::AlreadyThere);
    assert_eq!(create("first").await.expect("refused"), Created::AlreadyThere, "the same bytes are no excuse");
    assert_eq!(read(&place.bucket, &key).await.as_deref(), Some(&b"first"[..]));

    place.bucket.put(&key, Bytes::from_static(b"overwritten")).await.expect("an overwrite has no condition");
    assert_eq!(create("third").await.expect("refused"), Created::AlreadyThere);
    assert_eq!(read(&place.bucket, &key).await.as_deref(), Some(&b"overwritten"[..]));
}

pub(crate) async fn of_racing_creators_one_wins(place: &Place) {
    const WRITERS: usize = 16;
    for round in 1..=20 {
        let key = layout::commit(&organization(), round);
        let start = Arc::new(Barrier::new(WRITERS));
        let racers = (0..WRITERS).map(|writer| {
            let (bucket, key, start) = (Arc::clone(&place.bucket), key.clone(), Arc::clone(&start));
            tokio::spawn(async move {
                start.wait().await;
                bucket.create(&key, Bytes::from(format!("writer {writer}"))).await
            })
        });
        let answers = join_all(racers).await;
        let answers = answers.into_iter().map(|answer| answer.expect("no panic").expect("the bucket answers"));
        let winners: Vec<usize> =
            answers.enumerate().filter(|(_, answer)| *answer == Created::Now).map(|(writer, _)| writer).collect();
        assert_eq!(winners.len(), 1, "round {round}: {winners:?}");
        let found = read(&place.bucket, &key).await.expect("it is there");
        assert_eq!(found, format!("writer {}", winners[0]), "round {round}");
    }
}

pub(crate) async fn an_absent_object_is_none(place: &Place) {
    let absent = state("absent");
    assert!(read(&place.bucket, &absent).await.is_none());
    assert!(place.bucket.download(&absent, None).await.expect("the bucket answers").is_none());
    assert!(place.bucket.download(&absent, Some(2..5)).await.expect("the bucket answers").is_none());

    place.bucket.put(&layout::commit(&organization(), 1), Bytes::from_static(b"{}")).await.expect("written");
    let folder = layout::log(&organization());
    assert!(read(&place.bucket, &folder).await.is_none(), "a folder is no object");
    assert!(place.bucket.download(&folder, None).await.expect("the bucket answers").is_none());
    let ranges = place.bucket.ranges(&[(absent, 2..5), (folder, 0..1)]).await;
    assert_eq!(ranges.expect("the bucket answers"), [None, None]);
}

pub(crate) async fn an_object_can_be_overwritten(place: &Place) {
    let key = layout::beacon("server-1");
    for content in ["first", "second, and longer", "", "last"] {
        place.bucket.put(&key, Bytes::from_static(content.as_bytes())).await.expect("written");
        assert_eq!(read(&place.bucket, &key).await.expect("it is there"), content);
    }
}

pub(crate) async fn an_object_tells_when_it_was_written(place: &Place) {
    let key = layout::beacon("server-1");
    let before = SystemClock.now() - SignedDuration::from_secs(2);
    place.bucket.put(&key, Bytes::from_static(b"first")).await.expect("written");
    let first = place.bucket.get(&key).await.expect("the bucket answers").expect("it is there").last_modified;
    let after = SystemClock.now() + SignedDuration::from_secs(2);
    assert!(before <= first && first <= after, "{before} {first} {after}");

    tokio::time::sleep(Duration::from_millis(1_100)).await;
    place.bucket.put(&key, Bytes::from_static(b"second")).await.expect("written");
    let second = place.bucket.get(&key).await.expect("the bucket answers").expect("it is there").last_modified;
    assert!(second > first, "an overwrite is newer: {first} {second}");
}

pub(crate) async fn an_empty_bucket_lists_nothing(place: &Place) {
    assert_eq!(list(&place.bucket, &layout::ledgers(), None).await, []);
    assert_eq!(list(&place.bucket, &layout::log(&organization()), Some(&layout::commit(&organization(), 1))).await, []);
    assert_eq!(place.bucket.folders(&layout::ledgers()).await.expect("the bucket lists"), [""; 0]);
}

pub(crate) async fn a_listing_is_sorted_and_begins_after_a_key(place: &Place) {
    let commit = |seq| layout::commit(&organization(), seq);
    put_all(&place.bucket, &[11, 2, 1_000, 9, 1].map(commit)).await;
    let log = layout::log(&organization());
    assert_eq!(list(&place.bucket, &log, None).await, [1, 2, 9, 11, 1_000].map(commit));
    assert_eq!(
        list(&place.bucket, &log, Some(&commit(2))).await,
        [9, 11, 1_000].map(commit),
        "the key itself is left out"
    );
    assert_eq!(list(&place.bucket, &log, Some(&commit(5))).await, [9, 11, 1_000].map(commit), "the key need not exist");
    assert_eq!(list(&place.bucket, &log, Some(&commit(1_000))).await, []);
    place.bucket.delete(&commit(9)).await.expect("deleted");
    assert_eq!(list(&place.bucket, &log, None).await, [1, 2, 11, 1_000].map(commit), "what was deleted is gone");
}

pub(crate) async fn a_listing_stays_in_its_folder(place: &Place) {
    let (short, long): (LedgerName, LedgerName) = ("a".parse().expect("legal"), "ab".parse().expect("legal"));
    let mine = [layout::commit(&short, 1), layout::commit(&short, 2)];
    put_all(&place.bucket, &mine).await;
    put_all(&place.bucket, &[layout::commit(&long, 1), layout::snapshot(&short, 1), layout::beacon("a")]).await;
    assert_eq!(list(&place.bucket, &layout::log(&short), None).await, mine);
    let mut everything = mine.to_vec();
    everything.extend([layout::snapshot(&short, 1), layout::commit(&long, 1)]);
    everything.sort();
    assert_eq!(list(&place.bucket, &layout::ledgers(), None).await, everything, "folders below are included");
}

pub(crate) async fn a_long_listing_is_complete(place: &Place) {
    let keys: Vec<Key> = (1..=1_050).map(|seq| layout::commit(&organization(), seq)).collect();
    put_all(&place.bucket, &keys).await;
    let log = layout::log(&organization());
    assert_eq!(list(&place.bucket, &log, None).await, keys);
    assert_eq!(list(&place.bucket, &log, Some(&keys[9])).await, keys[10..]);
}

pub(crate) async fn folders_are_named_once_and_sorted(place: &Place) {
    let names = ["zebra", "site", "org-1", "a"].map(|name| name.parse::<LedgerName>().expect("legal"));
    for name in &names {
        put_all(&place.bucket, &[layout::commit(name, 1), layout::commit(name, 2), layout::snapshot(name, 2)]).await;
    }
    put_all(&place.bucket, &[layout::beacon("b")]).await;
    let folders = place.bucket.folders(&layout::ledgers()).await.expect("the bucket lists");
    assert_eq!(folders, ["a", "org-1", "site", "zebra"]);
    let folders = place.bucket.folders(&layout::beacons()).await.expect("the bucket lists");
    assert_eq!(folders, [""; 0], "objects are no folders");
}

pub(crate) async fn deleting_twice_is_fine(place: &Place) {
    let key = state("deleted");
    place.bucket.put(&key, Bytes::from_static(b"x")).await.expect("written");
    for _ in 0..2 {
        place.bucket.delete(&key).await.expect("deleted");
        assert!(read(&place.bucket, &key).await.is_none());
    }
    assert_eq!(place.bucket.create(&key, Bytes::from_static(b"y")).await.expect("created"), Created::Now);
}

/// Bytes that differ from place to place, so that a mixed-up order of parts shows.
fn content(size: usize) -> Bytes {
    (0..size).map(|at| (at / 251 + at) as u8).collect()
}

/// A body in pieces of odd sizes, as a network delivers them.
fn body(content: &Bytes) -> ByteStream {
    const PIECE: usize = 77_777;
    let pieces = (0..content.len()).step_by(PIECE).map(|at| content.slice(at..content.len().min(at + PIECE)));
    stream::iter(pieces.map(Ok).collect::<Vec<_>>()).boxed()
}

async fn download(bucket: &Arc<dyn Bucket>, key: &Key, range: Option<Range<u64>>) -> (u64, Bytes) {
    let download = bucket.download(key, range).await.expect("the bucket answers").expect("it is there");
    let bytes: BytesMut = download.body.try_collect::<Vec<_>>().await.expect("the body arrives").concat()[..].into();
    (download.size, bytes.freeze())
}

pub(crate) async fn uploads_of_any_size_come_back(place: &Place) {
    // A part is 5 MiB: less than one, exactly one, exactly two, and a piece more.
    for size in [0, 1, 5 * MIB - 1, 5 * MIB, 5 * MIB + 1, 10 * MIB, 12 * MIB] {
        let (key, content) = (state(&format!("size-{size}")), content(size));
        let uploaded = place.bucket.upload(&key, body(&content)).await.expect("uploaded");
        assert_eq!(uploaded, size as u64);
        let (told, downloaded) = download(&place.bucket, &key, None).await;
        assert_eq!((told, downloaded.len()), (size as u64, size));
        assert!(downloaded == content, "{size} bytes came back changed");
    }
}

pub(crate) async fn a_range_is_read_without_the_rest(place: &Place) {
    let size = 12 * MIB;
    let (key, content) = (state("large"), content(size));
    place.bucket.upload(&key, body(&content)).await.expect("uploaded");
    let ranges = [0..1, 0..size, 5 * MIB - 3..5 * MIB + 3, size - 1..size, 1_000..1_000_000];
    for range in ranges {
        let (told, downloaded) = download(&place.bucket, &key, Some(range.start as u64..range.end as u64)).await;
        assert_eq!(told, size as u64, "the size is that of the whole object");
        assert!(downloaded == content.slice(range.clone()), "{range:?}");
    }
    let beyond = size as u64 - 10..size as u64 + 10;
    assert_eq!(download(&place.bucket, &key, Some(beyond)).await.1, content.slice(size - 10..));
}

pub(crate) async fn an_upload_that_breaks_leaves_nothing(place: &Place) {
    let broken = |size: usize| -> ByteStream {
        let error = BucketError::new("upload", &state("broken"), BucketErrorKind::Refused, "the client hung up");
        body(&content(size)).chain(stream::iter([Err(error)])).boxed()
    };
    for size in [0, 100, 5 * MIB, 12 * MIB] {
        let key = state(&format!("broken-{size}"));
        let error = place.bucket.upload(&key, broken(size)).await.expect_err("its body breaks");
        assert_eq!(error.why, "the client hung up");
        assert!(read(&place.bucket, &key).await.is_none(), "{size} bytes became visible");
    }
    assert_eq!(list(&place.bucket, &layout::blobs(&organization()), None).await, []);

    let key = state("whole");
    place.bucket.upload(&key, body(&content(100))).await.expect("uploaded");
    place.bucket.upload(&key, broken(6 * MIB)).await.expect_err("its body breaks");
    assert_eq!(read(&place.bucket, &key).await.expect("it is there"), content(100), "what was there is untouched");
    assert_eq!(list(&place.bucket, &layout::blobs(&organization()), None).await, [key]);
}

pub(crate) async fn two_prefixes_are_two_buckets(place: &Place) {
    let Some(location) = &place.location else { return };
    let under = |prefix: &str| {
        let mut location = location.clone();
        location.url = format!("{}/{prefix}", location.url);
        open(&location)
    };
    let log = layout::log(&organization());
    let (inner, other) = (under(log.as_str()), under("some/other/"));
    let key = layout::beacon("server-1");
    assert_eq!(inner.create(&key, Bytes::from_static(b"inner")).await.expect("created"), Created::Now);
    assert_eq!(other.create(&key, Bytes::from_static(b"other")).await.expect("created"), Created::Now);
    assert_eq!(list(&inner, &layout::beacons(), None).await, std::slice::from_ref(&key));
    assert_eq!(list(&inner, &layout::beacons(), Some(&key)).await, []);
    assert_eq!(inner.folders(&layout::ledgers()).await.expect("the bucket lists"), [""; 0]);
    assert_eq!(read(&inner, &key).await.as_deref(), Some(&b"inner"[..]));

    let from_above = list(&place.bucket, &log, None).await;
    let from_above: Vec<&str> = from_above.iter().map(Key::as_str).collect();
    assert_eq!(from_above, [format!("{log}/{key}")], "the prefix stands before every key");
    inner.delete(&key).await.expect("deleted");
    assert_eq!(read(&other, &key).await.as_deref(), Some(&b"other"[..]));
}

pub(crate) async fn the_doctor_is_content(place: &Place) {
    let rng = SharedRng::from_system();
    doctor::probe(&place.bucket, &rng, Thoroughness::REMOTE).await.expect("the bucket is honest");
    let findings = doctor::examine(&place.bucket, &SystemClock, &rng).await;
    assert!(findings.iter().all(|finding| finding.outcome == Outcome::Passed), "{findings:#?}");
    assert_eq!(list(&place.bucket, &layout::probes(), None).await, [], "it cleans up");
}
