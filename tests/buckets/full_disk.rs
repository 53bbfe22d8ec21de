//! A directory on a disk that fills up.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, stream};
use taco_ledger::{Bucket, BucketError, LedgerName, Location, Trouble, layout};

/// Tells the child that it is on the small disk, and where that is.
const DISK: &str = "TACO_TEST_SMALL_DISK";

/// The disk belongs to a child in a name space of its own: it needs no rights that a user does not have, and is gone
/// with the child however that ends.
#[test]
fn a_full_disk_is_named_and_leaves_nothing_half_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = format!("mount -t tmpfs -o size=256k tmpfs \"${DISK}\" && exec \"$@\"");
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &script, "sh"])
        .arg(std::env::current_exe().expect("the test's own program"))
        .args(["--exact", "full_disk::on_the_small_disk", "--ignored", "--nocapture"])
        .env(DISK, directory.path())
        .output()
        .expect("unshare (util-linux) is installed");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[tokio::test]
#[ignore = "started by the test above, on a disk of 256 KiB"]
async fn on_the_small_disk() {
    let disk = std::env::var(DISK).expect("started by the test above");
    let location = Location::directory(Path::new(&disk));
    let bucket: Arc<dyn Bucket> = Arc::new(location.open().expect("it opens"));
    let organization: LedgerName = "org-1".parse().expect("legal");
    let small = Bytes::from(vec![b'x'; 1_000]);
    let large = Bytes::from(vec![b'x'; 300_000]);
    let commit = |seq| layout::commit(&organization, seq);
    bucket.create(&commit(1), small.clone()).await.expect("there is room");

    let assert_full = |error: BucketError| {
        assert_eq!(error.trouble, Trouble::Full, "{error}");
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
