//! The programs that suites start.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A program of this workspace, as new as its source.
pub fn binary(name: &str) -> PathBuf {
    let path = directory_of_binaries().join(name);
    assert!(path.is_file(), "{} is not a program of this workspace", path.display());
    path
}

/// `cargo test` builds programs only for the tests of their own package, so that we have to ask for the others.
/// `cargo xtask test` has built them all, and says so: cargo may be busy with something else for minutes.
fn directory_of_binaries() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let test = std::env::current_exe().expect("a test is a program");
        // target/debug/deps/server-0123456789abcdef, or target/debug/screenshots
        let within = test.ancestors().skip(1).find(|directory| !directory.ends_with("deps"));
        let directory = within.expect("cargo has put it three levels deep").to_owned();
        if std::env::var_os("TACO_TEST_PROGRAMS_ARE_BUILT").is_some() {
            return directory;
        }
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        build.current_dir(std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests")).args([
            "build",
            "--quiet",
            "--workspace",
            "--bins",
        ]);
        match directory.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => {}
            Some(profile) => _ = build.args(["--profile", profile]),
        }
        build.arg("--target-dir").arg(directory.parent().expect("cargo has put it three levels deep"));
        let status = build.status().expect("cargo runs");
        assert!(status.success(), "the programs under test do not build");
        directory
    })
}
