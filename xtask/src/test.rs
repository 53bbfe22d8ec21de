//! `cargo xtask test`: what must hold before a change is taken.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context;

use crate::command::{announce, cargo, describe, step};
use crate::prerequisites;
use crate::tools::{self, Variable};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run the tests only: no check of format, lints and licences.
    #[arg(long)]
    quick: bool,
    /// For the test programs, for example a part of the names of the tests to run.
    #[arg(last = true, value_name = "FILTER")]
    filter: Vec<String>,
}

/// Goes through all steps, up to the first that fails.
pub(crate) fn test(options: &Options) -> anyhow::Result<ExitCode> {
    // First, so that nobody waits for the lints to learn that npm is missing.
    prerequisites::ensure_present()?;
    if !options.quick {
        step(cargo().args(["fmt", "--all", "--check"]))?;
        step(cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))?;
        step(Command::new(tools::cargo_deny()?).args([
            "--locked",
            "check",
            "--hide-inclusion-graph",
            "bans",
            "licenses",
            "sources",
        ]))?;
    }
    let variables = tools::for_tests()?;
    // The suites start the real programs, which `cargo test` builds for their own packages only.
    step(cargo().args(["build", "--workspace", "--bins", "--locked"]))?;
    run_tests(&variables, &options.filter)
}

/// Runs all tests, even after one has failed, and ends with what failed ones said and a line that counts them all.
fn run_tests(variables: &[Variable], filter: &[String]) -> anyhow::Result<ExitCode> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--locked", "--no-fail-fast", "--"]).args(filter);
    if !variables.iter().any(|(name, _)| *name == tools::PREVIOUS_RELEASE_VARIABLE) {
        command.args(["--skip", "previous_release::"]);
    }
    announce(&command);
    let mut tests =
        command.envs(variables.iter().cloned()).stdout(Stdio::piped()).spawn().context("cannot start `cargo test`")?;

    let mut counts = Counts::default();
    let mut failures = Failures::default();
    let mut output = BufReader::new(tests.stdout.take().context("stdout was piped")?);
    let mut line = Vec::new(); // Bytes, because a test may print anything.
    while output.read_until(b'\n', &mut line)? > 0 {
        std::io::stdout().write_all(&line)?;
        let text = String::from_utf8_lossy(&line);
        counts.add(&text);
        failures.add(&text);
        line.clear();
    }

    let success = tests.wait()?.success();
    if !success {
        failures.print();
        eprintln!("error: `{}` failed", describe(&command));
        // A test program that died left no result.
        counts.failed = counts.failed.max(1);
    }
    println!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped);
    Ok(if success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Tests of all test programs together.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Counts {
    /// Adds the result of one test program, if this is the line that tells it:
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; …`
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        for part in result.split(['.', ';']) {
            let Some((number, what)) = part.trim().split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

/// What failed tests said, told again where it is found: at the very end.
#[derive(Debug, Default)]
struct Failures {
    said: Vec<String>,
    listening: bool,
}

impl Failures {
    /// Of each failed test, from its panic on: what comes after are logs of servers.
    const LINES: usize = 60;

    /// A test program tells what failed ones said between `---- NAME stdout ----` and a second `failures:`, which lists
    /// their names.
    fn add(&mut self, line: &str) {
        match line.trim_end() {
            "failures:" => self.listening = false,
            head if head.starts_with("---- ") && head.ends_with(" stdout ----") => {
                self.listening = true;
                self.said.push(line.to_owned());
            }
            _ if self.listening => self.said.last_mut().expect("a test's name came first").push_str(line),
            _ => {}
        }
    }

    fn print(&self) {
        for said in &self.said {
            let name = said.lines().take(1);
            let reason = said.lines().skip(1).skip_while(|line| !line.contains("panicked at")).take(Self::LINES);
            println!("\n{}", name.chain(reason).collect::<Vec<_>>().join("\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Failures};

    #[test]
    fn results_of_several_test_programs_are_summed() {
        let mut counts = Counts::default();
        for line in [
            "running 4 tests\n",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.05s\n",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s\n",
            "5 passed\n",
        ] {
            counts.add(line);
        }
        assert_eq!(counts, Counts { passed: 13, failed: 2, skipped: 1 });
    }

    #[test]
    fn what_failed_tests_said_is_kept() {
        let mut failures = Failures::default();
        for line in [
            "test one ... FAILED\n",
            "\n",
            "failures:\n",
            "\n",
            "---- one stdout ----\n",
            "it went wrong\n",
            "---- two stdout ----\n",
            "this too\n",
            "\n",
            "failures:\n",
            "    one\n",
            "test result: FAILED. 0 passed; 2 failed\n",
        ] {
            failures.add(line);
        }
        assert_eq!(failures.said, ["---- one stdout ----\nit went wrong\n", "---- two stdout ----\nthis too\n\n"]);
    }
}
