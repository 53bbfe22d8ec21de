//! Child processes of the suite: without a privilege, on a small disk, or in order to be killed.
//!
//! `bucket-child unwritable DIRECTORY`, `bucket-child small-disk DIRECTORY`, `bucket-child server`. It fails by panicking.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use harness::bucket_servers::BucketServer;
use taco_ledger::doctor::{self, Outcome, ProbeError, Thoroughness};
use taco_ledger::{
    Bucket, BucketError, BucketErrorKind, LedgerName, Location, LocationError, SharedRng, SystemClock, layout,
};
use tokio::time::{Instant, sleep};

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["unwritable", directory] => without_write_permission(Path::new(directory)).await,
        ["small-disk", disk] => on_a_small_disk(Path::new(disk)).await,
        ["server"] => with_a_server().await,
        _ => panic!("bucket-child unwritable DIRECTORY | small-disk DIRECTORY | server"),
    }
}

/// A directory that this process may read and not write.
async fn without_write_permission(directory: &Path) {
    let bucket: Arc<dyn Bucket> = Arc::new(Location::directory(directory).open().expect("it is there"));
    assert!(bucket.get(&layout::format()).await.expect("reading is allowed").is_some());

    let error = bucket.create(&layout::beacon("a"), Bytes::from_static(b"x")).await.expect_err("denied");
    assert_eq!(error.kind, BucketErrorKind::Denied, "{error}");
    let error = doctor::probe(&bucket, &SharedRng::from_system(), Thoroughness::QUICK).await.expect_err("denied");
    assert!(matches!(error, ProbeError::Bucket(_)), "{error}");
    let said = error.to_string();
    assert!(said.contains(directory.to_str().expect("UTF-8")) && said.contains("the right to"), "{said}");
    println!("{said}");
    let findings = doctor::examine(&bucket, &SystemClock, &SharedRng::from_system()).await;
    let failed: Vec<_> = findings.iter().filter(|finding| finding.outcome == Outcome::Failed).collect();
    assert!(matches!(failed[..], [finding] if finding.check == doctor::WRITE_PERMISSION), "{findings:#?}");

    let below = Location::directory(directory.join("below")).open().expect_err("it cannot be made");
    assert!(matches!(&below, LocationError::Directory { .. }), "{below}");
    println!("{below}");
}

/// A directory on a disk of 256 KiB.
async fn on_a_small_disk(disk: &Path) {
    let bucket: Arc<dyn Bucket> = Arc::new(Location::directory(disk).open().expect("it opens"));
    let organization: LedgerName = "org-1".parse().expect("legal");
    let small = Bytes::from(vec![b'x'; 1_000]);
    let large = Bytes::from(vec![b'x'; 300_000]);
    let commit = |seq| layout::commit(&organization, seq);
    bucket.create(&commit(1), small.clone()).await.expect("there is room");

    let assert_full = |error: BucketError| {
        assert_eq!(error.kind, BucketErrorKind::Full, "{error}");
        assert!(error.to_string().contains(error.key.as_str()), "{error}");
        println!("{error}");
    };
    assert_full(bucket.create(&commit(2), large.clone()).await.expect_err("it does not fit"));
    assert_full(bucket.put(&layout::beacon("a"), large.clone()).await.expect_err("it does not fit"));
    let blob = layout::blob(&organization, "states", "large");
    let body = stream::iter(vec![Ok(large.clone())]).boxed();
    assert_full(bucket.upload(&blob, body).await.expect_err("it does not fit"));
    let body = stream::iter(vec![Ok(large); 20]).boxed();
    assert_full(bucket.upload(&blob, body).await.expect_err("it does not fit in parts either"));

    assert_eq!(bucket.list(&layout::ledgers(), None).await.expect("it lists"), [commit(1)]);
    for key in [commit(2), layout::beacon("a"), blob] {
        assert!(bucket.get(&key).await.expect("it reads").is_none(), "{key} is visible");
    }
    bucket.create(&commit(2), small).await.expect("what did not fit takes no room, so there is some");
    bucket.put(&commit(1), Bytes::from(vec![b'y'; 300_000])).await.expect_err("it does not fit");
    assert_eq!(bucket.get(&commit(1)).await.expect("it reads").expect("it is there").bytes[..3], *b"xxx");
}

/// Starts a server, tells its address, and waits to be killed.
async fn with_a_server() {
    let server = BucketServer::gofakes3().await.unwrap_or_else(|error| panic!("{error:#}"));
    let endpoint = server.location().s3_endpoint.expect("an S3 server");
    println!("\naddress {}", endpoint.trim_start_matches("http://"));
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_secs(1)).await;
    }
}
