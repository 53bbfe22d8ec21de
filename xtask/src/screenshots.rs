//! `cargo xtask screenshots`: how every page looks, on a server with something to show.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::command::{cargo, step};
use crate::{prerequisites, tools};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where the pictures go.
    #[arg(default_value = "target/screenshots")]
    directory: PathBuf,
    /// Only pages whose names contain one of these.
    pages: Vec<String>,
}

pub(crate) fn take(options: &Options) -> anyhow::Result<ExitCode> {
    prerequisites::ensure_present()?;
    let variables = tools::for_screenshots()?;
    step(cargo().args(["build", "--workspace", "--bins", "--locked"]))?;
    let directory = std::path::absolute(&options.directory)?;
    let mut run = cargo();
    run.args(["run", "--quiet", "--locked", "--package", "taco-tests", "--bin", "screenshots", "--"]);
    step(run.arg(&directory).args(&options.pages).envs(variables))?;
    println!("{}", directory.display());
    Ok(ExitCode::SUCCESS)
}
