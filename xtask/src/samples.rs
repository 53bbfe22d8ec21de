//! `cargo xtask samples`: freezes what this version stores and says, where no sample in `migrations-in-bucket/` shows it.

use std::process::ExitCode;

use crate::command::{cargo, step};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Freeze a whole bucket of the newest format instead, if it has none.
    #[arg(long)]
    bucket: bool,
}

pub(crate) fn add(options: &Options) -> anyhow::Result<ExitCode> {
    // The program starts a server.
    step(cargo().args(["build", "--workspace", "--bins", "--locked"]))?;
    let mut freeze = cargo();
    freeze.args(["run", "--quiet", "--locked", "--package", "taco-tests", "--bin", "freeze", "--"]);
    step(freeze.arg(if options.bucket { "bucket" } else { "samples" }))?;
    println!(
        "Look at `git diff migrations-in-bucket`, and note in CHANGELOG.md whether the previous release reads what is new."
    );
    Ok(ExitCode::SUCCESS)
}
