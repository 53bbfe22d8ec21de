//! `cargo xtask test`: what must hold before a change is taken.

use std::process::{Command, ExitCode};
use std::thread;

use anyhow::Context;

use crate::command::{cargo, step};
use crate::test_programs::{Lane, Program, build, run_all};
use crate::tools::{self, Variable};
use crate::{prerequisites, test_report};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run the tests only: no check of format, lints, documentation and licences.
    #[arg(long)]
    quick: bool,
    /// For the test programs, for example a part of the names of the tests to run.
    #[arg(last = true, value_name = "FILTER")]
    filter: Vec<String>,
}

/// Builds everything up to the first thing that does not build; then runs all checks and tests, even after one has failed.
pub(crate) fn test(options: &Options) -> anyhow::Result<ExitCode> {
    // First, so that one need not wait for a build to learn that npm is missing.
    prerequisites::ensure_present()?;
    let quick = options.quick;
    if !quick {
        step(cargo().args(["fmt", "--all", "--check"]))?;
    }
    // Beside our own build: much of it is downloading.
    let tools = thread::spawn(move || {
        if !quick {
            tools::cargo_deny()?;
        }
        tools::for_tests()
    });
    let built = build();
    let variables = tools.join().expect("nothing panics there");
    let (mut programs, mut variables) = (built?, variables?);
    variables.extend(tools::previous_release()?);
    if !quick {
        programs.splice(0..0, checks()?);
    }
    programs.push(doc_tests());
    pass_on(&mut programs, &variables, &options.filter);

    let outcomes = run_all(programs)?;
    Ok(test_report::print(&outcomes))
}

/// Further checks. They need no programs, and much computing: they run while suites wait.
fn checks() -> anyhow::Result<Vec<Program>> {
    let mut clippy = cargo();
    clippy.args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]);
    let mut documentation = cargo();
    documentation.args(["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"]);
    // It is for those who work on taco: what is public may lead to what is private.
    documentation.env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links");
    let mut licences = Command::new(tools::cargo_deny().context("cannot check licences")?);
    licences.args(["--locked", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]);
    let check = |name: &str, command| Program { name: name.to_owned(), command, lane: Lane::Checks };
    Ok(vec![check("clippy", clippy), check("documentation", documentation), check("licences", licences)])
}

/// Examples within comments, which `cargo` alone can run.
fn doc_tests() -> Program {
    let mut command = cargo();
    command.args(["test", "--workspace", "--locked", "--doc", "--no-fail-fast", "--"]);
    Program { name: "examples in comments".to_owned(), command, lane: Lane::Checks }
}

/// Tells test programs where tools are, and which tests to run.
fn pass_on(programs: &mut [Program], variables: &[Variable], filter: &[String]) {
    for Program { command, .. } in programs.iter_mut().filter(|program| program.runs_tests()) {
        command.envs(variables.iter().cloned()).args(filter);
        if !variables.iter().any(|(name, _)| *name == tools::PREVIOUS_RELEASE_VARIABLE) {
            command.args(["--skip", "previous_release::"]);
        }
    }
}
