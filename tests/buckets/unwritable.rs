//! A directory that this process may not write to.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use taco_ledger::doctor::{self, Outcome, ProbeError, Thoroughness};
use taco_ledger::{Bucket, Dice, Location, LocationError, SystemClock, Trouble, layout};

const DIRECTORY: &str = "TACO_TEST_UNWRITABLE";

/// Root may write anywhere, so a child without that privilege does the test.
#[tokio::test]
async fn a_directory_without_write_permission_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let location = Location::directory(directory.path());
    let bucket = location.open().expect("it opens");
    bucket.put(&layout::format(), Bytes::from_static(b"{}")).await.expect("written");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o555)).expect("the directory is ours");

    let myself = std::env::current_exe().expect("the test's own program");
    let mut child = if nix::unistd::geteuid().is_root() {
        let mut without_privilege = Command::new("setpriv");
        without_privilege.arg("--bounding-set=-dac_override,-dac_read_search").arg(myself);
        without_privilege
    } else {
        Command::new(myself)
    };
    let output = child
        .args(["--exact", "unwritable::in_the_unwritable_directory", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory.path())
        .output()
        .expect("setpriv (util-linux) is installed");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1, "nothing was written");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("the directory is ours");
}

#[tokio::test]
#[ignore = "started by the test above, without the privilege to write everywhere"]
async fn in_the_unwritable_directory() {
    let directory = PathBuf::from(std::env::var_os(DIRECTORY).expect("started by the test above"));
    let bucket: Arc<dyn Bucket> = Arc::new(Location::directory(&directory).open().expect("it is there"));
    assert!(bucket.get(&layout::format()).await.expect("reading is allowed").is_some());

    let error = bucket.create(&layout::beacon("a"), Bytes::from_static(b"x")).await.expect_err("denied");
    assert_eq!(error.trouble, Trouble::Denied, "{error}");
    let error = doctor::probe(&bucket, &Dice::from_system(), Thoroughness::QUICK).await.expect_err("denied");
    assert!(matches!(error, ProbeError::Trouble(_)), "{error}");
    let said = error.to_string();
    assert!(said.contains(directory.to_str().expect("UTF-8")) && said.contains("the right to"), "{said}");
    println!("{said}");
    let findings = doctor::examine(&bucket, &SystemClock, &Dice::from_system()).await;
    let failed: Vec<_> = findings.iter().filter(|finding| finding.outcome == Outcome::Failed).collect();
    assert!(matches!(failed[..], [finding] if finding.check == doctor::WRITE_PERMISSION), "{findings:#?}");

    let below = Location::directory(directory.join("below")).open().expect_err("it cannot be made");
    assert!(matches!(&below, LocationError::Directory { .. }), "{below}");
    println!("{below}");
}
