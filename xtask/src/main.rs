//! The chores of this workspace, as code that needs nothing but Rust to start.
//!
//! Progress goes to stderr and results to stdout, so that `eval "$(cargo xtask tools)"` sees results only.

mod bench;
mod command;
mod conformance;
#[cfg(test)]
mod dependencies;
mod docs;
mod install;
#[cfg(test)]
mod modules;
mod prerequisites;
mod samples;
mod screenshots;
mod test;
mod test_programs;
mod test_report;
mod tools;

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

/// The chores of this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Chore {
    /// Check format, lints, documentation and licences, and run all tests; install what they need.
    Test(test::Options),
    /// Run go-tfe's own suite against a server, and tell which of its tests pass.
    Conformance(conformance::Options),
    /// Write the API reference again, from the table of routes.
    Docs,
    /// Run the benchmarks and show their tables.
    Bench(bench::Options),
    /// Take pictures of every page: light, dark, and as wide as a phone.
    Screenshots(screenshots::Options),
    /// Add samples of stored shapes and messages that changed; those that are there stay as they are.
    Samples(samples::Options),
    /// Install what the tests need, and print it as shell variables for a plain `cargo test`.
    ///
    /// Use it as: eval "$(cargo xtask tools)"
    Tools,
}

fn main() -> ExitCode {
    let chore = Chore::parse();
    let outcome = go_to_workspace().and_then(|()| match chore {
        Chore::Test(options) => test::test(&options),
        Chore::Conformance(options) => conformance::conformance(&options),
        Chore::Docs => docs::write(),
        Chore::Bench(options) => bench::bench(&options),
        Chore::Screenshots(options) => screenshots::take(&options),
        Chore::Samples(options) => samples::add(&options),
        Chore::Tools => tools::print_exports(),
    });
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Lets every chore work from any directory of the repository.
fn go_to_workspace() -> anyhow::Result<()> {
    // Asked for at run time: several checkouts may share a target directory, and with it this very program.
    let package = std::env::var("CARGO_MANIFEST_DIR").context("start it as `cargo xtask`")?;
    let workspace = format!("{package}/..");
    std::env::set_current_dir(&workspace).with_context(|| format!("cannot enter {workspace}"))
}
