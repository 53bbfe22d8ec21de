//! `cargo xtask bench`: every benchmark of the workspace, one after another, so that none disturbs the next.

use std::process::ExitCode;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::command::{cargo, quietly, step};
use crate::tools;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The one benchmark to run.
    name: Option<String>,
    /// What that benchmark is told, for instance `--runs 50000 --workspaces 500`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs the benchmarks to the end, then fails if one of them failed. Each prints its own table.
pub(crate) fn bench(options: &Options) -> anyhow::Result<ExitCode> {
    let mut benchmarks = all_benchmarks()?;
    ensure!(!benchmarks.is_empty(), "the workspace has no benchmarks");
    if let Some(name) = &options.name {
        let known = benchmarks.clone();
        benchmarks.retain(|benchmark| benchmark == name);
        ensure!(!benchmarks.is_empty(), "there is no benchmark {name}; there are: {}", known.join(", "));
    }

    // A benchmark may start the real programs.
    step(cargo().args(["build", "--workspace", "--bins", "--release", "--locked"]))?;
    let variables = tools::for_benchmarks()?;
    let mut failed = Vec::new();
    for name in benchmarks {
        let mut command = cargo();
        // Of the whole workspace, so that nothing is built a second time with other features.
        command.args(["bench", "--locked", "--workspace", "--bench", &name]).envs(variables.iter().cloned());
        if !options.arguments.is_empty() {
            command.arg("--").args(&options.arguments);
        }
        if let Err(error) = step(&mut command) {
            eprintln!("error: {error:#}");
            failed.push(name);
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(ExitCode::SUCCESS)
}

fn all_benchmarks() -> anyhow::Result<Vec<String>> {
    let metadata = quietly(cargo().args(["metadata", "--no-deps", "--locked", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_slice(&metadata)?;
    let mut benchmarks = Vec::new();
    for package in list(&metadata, "packages")? {
        for target in list(package, "targets")? {
            if list(target, "kind")?.iter().any(|kind| kind == "bench") {
                benchmarks.push(text(target, "name")?);
            }
        }
    }
    Ok(benchmarks)
}

fn list<'a>(value: &'a Value, key: &str) -> anyhow::Result<&'a Vec<Value>> {
    value[key].as_array().with_context(|| format!("`cargo metadata` has no {key}"))
}

fn text(value: &Value, key: &str) -> anyhow::Result<String> {
    value[key].as_str().map(str::to_owned).with_context(|| format!("`cargo metadata` has no {key}"))
}
