//! Report on all test programs together: at the very end, where it is found.

use std::process::ExitCode;

use crate::test_programs::Outcome;

/// Prints which programs took how long, what failed tests said, which programs failed, and a line that counts all tests.
pub(crate) fn print(outcomes: &[Outcome]) -> ExitCode {
    print_times(outcomes);
    let mut counts = Counts::default();
    let mut failures = Failures::default();
    for outcome in outcomes {
        let failed_before = counts.failed;
        for line in outcome.output.split_inclusive('\n') {
            counts.add(line);
            failures.add(line);
        }
        failures.listening = false;
        if !outcome.status.success() && counts.failed == failed_before {
            // A check, or a test program that died and left no result.
            counts.failed += 1;
            failures.said.push(format!("---- {} ----\n{}", outcome.name, last_lines(&outcome.output)));
        }
    }
    failures.print();
    for Outcome { command, status, .. } in outcomes.iter().filter(|outcome| !outcome.status.success()) {
        eprintln!("error: `{command}` failed: {status}");
    }
    println!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped);
    if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print_times(outcomes: &[Outcome]) {
    let mut slowest: Vec<_> = outcomes.iter().collect();
    slowest.sort_by_key(|outcome| std::cmp::Reverse(outcome.took));
    let times: Vec<_> =
        slowest.iter().take(12).map(|outcome| format!("{} {} s", outcome.name, outcome.took.as_secs())).collect();
    println!("\nSlowest: {}", times.join(", "));
}

fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(Failures::LINES)..].join("\n")
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

/// Output of failed tests, repeated where it is found: at the very end.
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
            let lines = said.lines().skip(1);
            let panics = lines.clone().any(|line| line.contains("panicked at"));
            let reason = lines.skip_while(|line| panics && !line.contains("panicked at")).take(Self::LINES);
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
