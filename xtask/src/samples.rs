//! `cargo xtask samples`: freezes what this version stores and says, where no sample in `migrations-in-bucket/` shows it.

use std::process::ExitCode;

use crate::command::{cargo, step};

pub(crate) fn add() -> anyhow::Result<ExitCode> {
    let mut test = cargo();
    test.args(["test", "--quiet", "--workspace", "--locked", "--test", "formats", "--"]);
    step(test.args(["--ignored", "--exact", "--nocapture", "samples::add_samples_of_what_is_new"]))?;
    println!(
        "Look at `git diff migrations-in-bucket`, and note in CHANGELOG.md whether the previous release reads what is new."
    );
    Ok(ExitCode::SUCCESS)
}
