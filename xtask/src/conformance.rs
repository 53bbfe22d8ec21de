//! `cargo xtask conformance`: go-tfe's own suite against a server, and nothing else.

use std::process::ExitCode;

use crate::command::{cargo, step};
use crate::prerequisites;
use crate::tools;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Tests of go-tfe to try, also such as are not listed yet; without any, all that are listed.
    #[arg(value_name = "TEST")]
    tests: Vec<String>,
}

/// Prints a line for each test as it ends, and what a failed one said.
pub(crate) fn conformance(options: &Options) -> anyhow::Result<ExitCode> {
    prerequisites::ensure_present()?;
    let variables = tools::for_tests()?;
    step(cargo().args(["build", "--workspace", "--bins", "--locked"]))?;
    let mut suite = cargo();
    suite.args(["test", "--locked", "--package", "taco-tests", "--test", "conformance", "--", "--nocapture"]);
    step(suite.envs(variables).env("TACO_TEST_GO_TFE_ONLY", options.tests.join(" ")))?;
    Ok(ExitCode::SUCCESS)
}
