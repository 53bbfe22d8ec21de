//! Programs of the release before this one, as they still run during an upgrade.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

const VARIABLE: &str = "TACO_TEST_PREVIOUS_RELEASE";

/// Settings that the previous release does not know, and refuses.
const NEW_SETTINGS: &[&str] = &["TACO_SNAPSHOT_EVERY", "TACO_PACK_AFTER"];

/// The same command with the program of the previous release, which sees the same environment but for settings that are
/// newer than it.
///
/// The command must have begun with an empty environment, as those of this harness do.
pub fn of_previous_release(command: &Command) -> Command {
    let name = Path::new(command.get_program()).file_name().expect("a program has a name");
    let mut previous = Command::new(directory().join(name));
    previous.args(command.get_args()).env_clear();
    let is_known = |name: &OsStr| NEW_SETTINGS.iter().all(|new| name != *new);
    let variables = command.get_envs().filter(|(name, _)| is_known(name));
    previous.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    if let Some(directory) = command.get_current_dir() {
        previous.current_dir(directory);
    }
    previous
}

fn directory() -> PathBuf {
    let Some(taco) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        panic!(
            "{VARIABLE} does not say where the previous release is. `cargo xtask test` and `eval \"$(cargo xtask tools)\"` \
             build it from the history of this repository; a tarball or a shallow clone has no such history: \
             `git fetch --unshallow`, or name a built `taco` (with `taco-agent` beside it) in {VARIABLE}"
        );
    };
    assert!(taco.is_file(), "{VARIABLE} names {}, which is no program", taco.display());
    taco.parent().expect("a file lies in a directory").to_owned()
}
