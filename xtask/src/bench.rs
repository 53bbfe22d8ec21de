//! `cargo xtask bench`: every benchmark of the workspace, one after another, so that none disturbs the next.

use std::process::ExitCode;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::command::{cargo, quietly, step};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The one benchmark to run.
    name: Option<String>,
}

struct Benchmark {
    package: String,
    name: String,
}

/// Runs the benchmarks to the end, then fails if one of them failed. Each prints its own table.
pub(crate) fn bench(options: &Options) -> anyhow::Result<ExitCode> {
    let mut benchmarks = all_benchmarks()?;
    ensure!(!benchmarks.is_empty(), "the workspace has no benchmarks");
    if let Some(name) = &options.name {
        let known: Vec<String> = benchmarks.iter().map(|benchmark| benchmark.name.clone()).collect();
        benchmarks.retain(|benchmark| &benchmark.name == name);
        ensure!(!benchmarks.is_empty(), "there is no benchmark {name}; there are: {}", known.join(", "));
    }

    // A benchmark may start the real programs.
    step(cargo().args(["build", "--workspace", "--bins", "--release", "--locked"]))?;
    let mut failed = Vec::new();
    for Benchmark { package, name } in benchmarks {
        if let Err(error) = step(cargo().args(["bench", "--locked", "--package", &package, "--bench", &name])) {
            eprintln!("error: {error:#}");
            failed.push(name);
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(ExitCode::SUCCESS)
}

fn all_benchmarks() -> anyhow::Result<Vec<Benchmark>> {
    let metadata = quietly(cargo().args(["metadata", "--no-deps", "--locked", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_slice(&metadata)?;
    let mut benchmarks = Vec::new();
    for package in list(&metadata, "packages")? {
        for target in list(package, "targets")? {
            if list(target, "kind")?.iter().any(|kind| kind == "bench") {
                benchmarks.push(Benchmark { package: text(package, "name")?, name: text(target, "name")? });
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
