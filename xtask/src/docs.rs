//! `cargo xtask docs`: writes what is made from the code, `docs/api.md`.

use std::process::ExitCode;

use crate::command::{cargo, step};

pub(crate) fn write() -> anyhow::Result<ExitCode> {
    step(cargo().args(["test", "--workspace", "--test", "api", "reference::"]).env("TACO_WRITE_DOCS", "1"))?;
    Ok(ExitCode::SUCCESS)
}
