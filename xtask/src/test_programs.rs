//! Test programs: building all of them at once, and running several at a time.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::command::{announce, cargo, describe};

/// Suites that wait more than they compute (for servers, engines, browsers, timeouts), the longest first, and last the one
/// whose stores are slowest on a busy machine. They run beside those that compute.
const WAITING_SUITES: &[&str] = &["terraform", "server", "faults", "browser", "agent", "conformance", "cli", "buckets"];

/// Limit for how many of them run concurrently. With three on two cores, stores and engines took longer than clients wait
/// for them.
const WAITING_CONCURRENCY: usize = 2;

/// Programs of one lane start in turn, those of different lanes run side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Programs that need cargo's lock of the target directory.
    Checks,
    Waiting,
    Computing,
}

/// A command whose output is shown when it has ended.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) command: Command,
    pub(crate) lane: Lane,
}

impl Program {
    /// True if the command accepts the arguments of a test program.
    pub(crate) fn runs_tests(&self) -> bool {
        self.lane != Lane::Checks || self.command.get_args().any(|argument| argument == "--doc")
    }
}

/// Outcome of a program.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
    pub(crate) took: Duration,
}

/// Builds all programs of the workspace, and returns its test programs. The suites start the real programs, too.
pub(crate) fn build() -> anyhow::Result<Vec<Program>> {
    let mut command = cargo();
    command.args(["build", "--workspace", "--bins", "--tests", "--locked"]);
    announce(&command);
    command.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped());
    let mut build = command.spawn().context("cannot start cargo")?;
    let mut programs = Vec::new();
    for line in BufReader::new(build.stdout.take().context("stdout was piped")?).lines() {
        programs.extend(test_program(&serde_json::from_str(&line?).context("cargo's messages are JSON")?));
    }
    ensure!(build.wait()?.success(), "`{}` failed", describe(&command));
    programs.sort_by_key(|program| WAITING_SUITES.iter().position(|suite| *suite == program.name));
    Ok(programs)
}

/// The test program that a message of cargo tells of, as `cargo test` would start it.
fn test_program(message: &Value) -> Option<Program> {
    let executable = message["executable"].as_str()?;
    message["profile"]["test"].as_bool()?.then_some(())?;
    let package = Path::new(message["manifest_path"].as_str()?).parent()?;
    let target = message["target"]["name"].as_str()?;
    let is_suite = message["target"]["kind"][0] == "test";
    let name = if is_suite { target.to_owned() } else { format!("{target} (unit tests)") };
    let lane = if WAITING_SUITES.contains(&name.as_str()) { Lane::Waiting } else { Lane::Computing };
    let mut command = Command::new(executable);
    // Programs are built already: suites need not ask cargo for them.
    command.current_dir(package).env("CARGO_MANIFEST_DIR", package).env("TACO_TEST_PROGRAMS_ARE_BUILT", "1");
    Some(Program { name, command, lane })
}

/// Runs all programs to their end, those of different lanes side by side. Prints the output of each when it ends.
pub(crate) fn run_all(programs: Vec<Program>) -> anyhow::Result<Vec<Outcome>> {
    let lanes = [(Lane::Checks, 1), (Lane::Waiting, WAITING_CONCURRENCY), (Lane::Computing, 1)];
    let mut queues = lanes.map(|(lane, workers)| (lane, workers, VecDeque::new()));
    for program in programs {
        let (_, _, queue) =
            queues.iter_mut().find(|(lane, ..)| *lane == program.lane).context("each lane has a queue")?;
        queue.push_back(program);
    }
    let queues = queues.map(|(_, workers, queue)| (workers, Mutex::new(queue)));
    let outcomes = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let work = |queue: &Mutex<VecDeque<Program>>| -> anyhow::Result<()> {
            while let Some(program) = { queue.lock().expect("nothing panics here").pop_front() } {
                let outcome = run(program)?;
                let mut outcomes = outcomes.lock().expect("nothing panics here");
                show(&outcome)?;
                outcomes.push(outcome);
            }
            Ok(())
        };
        let workers: Vec<_> = queues
            .iter()
            .flat_map(|(workers, queue)| (0..*workers).map(move |_| queue))
            .map(|queue| scope.spawn(move || work(queue)))
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("nothing panics here"))
    })?;
    Ok(outcomes.into_inner().expect("nothing panics here"))
}

/// Runs one program. Its output goes into a file: a pipe would stay open for as long as anything that a test left behind.
fn run(Program { name, mut command, .. }: Program) -> anyhow::Result<Outcome> {
    let mut file = tempfile::tempfile()?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?);
    let start = Instant::now();
    let status = command.status().with_context(|| format!("cannot start `{}`", describe(&command)))?;
    let took = start.elapsed();
    file.rewind()?;
    let mut output = Vec::new(); // Bytes, because a test may print anything.
    file.read_to_end(&mut output)?;
    let output = String::from_utf8_lossy(&output).into_owned();
    Ok(Outcome { name, command: describe(&command), status, output, took })
}

fn show(Outcome { name, output, took, .. }: &Outcome) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n== {name}, {} s\n{output}", took.as_secs())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::{Lane, Program, run_all, test_program};

    fn shell(name: &str, lane: Lane, script: &str) -> Program {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Program { name: name.to_owned(), command, lane }
    }

    #[test]
    fn all_programs_run_even_after_one_has_failed() {
        let mut outcomes = run_all(vec![
            shell("bad", Lane::Computing, "echo to stdout; echo to stderr >&2; exit 3"),
            shell("good", Lane::Computing, "echo fine"),
        ])
        .expect("they run");
        outcomes.sort_by(|one, other| one.name.cmp(&other.name));
        let [bad, good] = &outcomes[..] else { panic!("{outcomes:?}") };
        assert_eq!((bad.status.code(), bad.output.as_str()), (Some(3), "to stdout\nto stderr\n"));
        assert_eq!((good.status.code(), good.output.as_str()), (Some(0), "fine\n"));
    }

    #[test]
    fn programs_of_different_lanes_run_side_by_side() {
        let directory = tempfile::tempdir().expect("a directory");
        let [one, other] = ["one", "other"].map(|name| directory.path().join(name).display().to_string());
        // Each waits for the other, so that neither ends if they run in turn.
        let meet = |mine: &str, theirs: &str| {
            format!("touch {mine}; for i in $(seq 600); do [ -e {theirs} ] && exit 0; sleep 0.1; done; exit 1")
        };
        let outcomes = run_all(vec![
            shell("one", Lane::Waiting, &meet(&one, &other)),
            shell("other", Lane::Computing, &meet(&other, &one)),
        ])
        .expect("they run");
        assert!(outcomes.iter().all(|outcome| outcome.status.success()));
    }

    #[test]
    fn a_program_that_leaves_another_behind_is_not_waited_for_longer() {
        let start = Instant::now();
        run_all(vec![shell("parent", Lane::Waiting, "sleep 60 & exit 0")]).expect("it runs");
        assert!(start.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn of_cargos_messages_those_about_test_programs_count() {
        let message = |executable, test, kind| {
            json!({ "reason": "compiler-artifact", "executable": executable, "manifest_path": "/taco/tests/Cargo.toml",
                "profile": { "test": test }, "target": { "name": "faults", "kind": [kind] } })
        };
        let suite = test_program(&message(Some("/target/faults-1"), true, "test")).expect("a test program");
        assert_eq!((suite.name.as_str(), suite.lane), ("faults", Lane::Waiting));
        let unit_tests = test_program(&message(Some("/target/faults-2"), true, "lib")).expect("a test program");
        assert_eq!((unit_tests.name.as_str(), unit_tests.lane), ("faults (unit tests)", Lane::Computing));
        assert!(test_program(&message(Some("/target/faults"), false, "bin")).is_none(), "a program under test");
        assert!(test_program(&message(None, true, "test")).is_none());
        assert!(test_program(&json!({ "reason": "build-finished", "success": true })).is_none());
    }
}
