//! Starting other programs.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// The cargo that started us, so that every step uses the same toolchain.
pub(crate) fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Path of `program`, if it is installed.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|directory| directory.join(program)).find(|path| path.is_file())
}

/// Announces `command` as a step of the chore.
pub(crate) fn announce(command: &Command) {
    eprintln!("\n== {}", describe(command));
}

/// Announces and runs one step of a chore; its output goes where ours goes.
pub(crate) fn step(command: &mut Command) -> anyhow::Result<()> {
    announce(command);
    let status = command.status().with_context(|| format!("cannot start `{}`", describe(command)))?;
    ensure!(status.success(), "`{}` failed", describe(command));
    Ok(())
}

/// Runs a command of which only the outcome matters: its output appears when it fails. Returns its stdout.
pub(crate) fn quietly(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("cannot start `{}`", describe(command)))?;
    if !output.status.success() {
        eprint!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    }
    ensure!(output.status.success(), "`{}` failed", describe(command));
    Ok(output.stdout)
}

/// The command as a person would type it.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let words = program.file_name().into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
