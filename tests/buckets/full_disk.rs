//! A directory on a disk that fills up.

use std::process::Command;

/// The disk belongs to a child in a name space of its own: it needs no rights that a user does not have, and is gone
/// with the child however that ends.
#[test]
fn a_full_disk_is_named_and_leaves_nothing_half_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = "mount -t tmpfs -o size=256k tmpfs \"$3\" && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .args([env!("CARGO_BIN_EXE_bucket-child"), "small-disk"])
        .arg(directory.path())
        .output()
        .expect("unshare (util-linux) is installed");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
