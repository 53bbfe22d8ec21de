//! A directory that this process may not write to.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use bytes::Bytes;
use taco_ledger::{Bucket, Location, layout};

/// Root may write anywhere, so a child without that privilege does the test.
#[tokio::test]
async fn a_directory_without_write_permission_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let location = Location::directory(directory.path());
    let bucket = location.open().expect("it opens");
    bucket.put(&layout::format(), Bytes::from_static(b"{}")).await.expect("written");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o555)).expect("the directory is ours");

    let program = env!("CARGO_BIN_EXE_bucket-child");
    let mut child = if nix::unistd::geteuid().is_root() {
        let mut without_privilege = Command::new("setpriv");
        without_privilege.arg("--bounding-set=-dac_override,-dac_read_search").arg(program);
        without_privilege
    } else {
        Command::new(program)
    };
    let output = child.arg("unwritable").arg(directory.path()).output().expect("setpriv (util-linux) is installed");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1, "nothing was written");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("the directory is ours");
}
