use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

pub(crate) const POOL_TOKEN: &str = "s3cr3t-pool-token";

/// The program of an environment variable that `cargo xtask tools` sets.
pub(crate) fn tool(variable: &str) -> PathBuf {
    let hint = format!(r#"{variable} is not set: run `cargo xtask test`, or eval "$(cargo xtask tools)" first"#);
    std::env::var_os(variable).expect(&hint).into()
}

/// `PATH` on which both engines are found.
pub(crate) fn engine_path() -> String {
    let directories: Vec<_> = ["TACO_TEST_TERRAFORM", "TACO_TEST_TOFU"]
        .map(|variable| tool(variable).parent().expect("a program is in a directory").display().to_string())
        .into();
    format!("{}:/usr/local/bin:/usr/bin:/bin", directories.join(":"))
}

/// A `taco-agent` that is killed with the test.
pub(crate) struct AgentProcess {
    child: Child,
}

impl AgentProcess {
    /// An agent in `work_dir`. `change` may add arguments.
    pub(crate) fn start(server: &str, work_dir: &Path, change: impl FnOnce(&mut Command)) -> Self {
        Self::start_program(Path::new(env!("CARGO_BIN_EXE_taco-agent")), server, work_dir, change)
    }

    /// The same with a copy of the program.
    pub(crate) fn start_program(
        program: &Path,
        server: &str,
        work_dir: &Path,
        change: impl FnOnce(&mut Command),
    ) -> Self {
        let mut command = Command::new(program);
        command.args(["--server", server, "--name", "test-agent", "--concurrency", "2"]);
        command.arg("--work-dir").arg(work_dir);
        command.env_clear().env("PATH", engine_path()).env("TACO_AGENT_TOKEN", POOL_TOKEN);
        command.env("TACO_ENGINE_MIRROR", "none");
        command.stdin(Stdio::null());
        change(&mut command);
        Self { child: command.spawn().expect("taco-agent starts") }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("the agent is there");
    }

    pub(crate) fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.child.wait().expect("it can be waited for");
    }

    /// Its exit code.
    pub(crate) async fn exit(&mut self) -> Option<i32> {
        let mut code = None;
        eventually("the agent leaves", || {
            code = self.child.try_wait().expect("it can be waited for");
            code.is_some()
        })
        .await;
        code.and_then(|status| status.code())
    }

    /// The line with which it says something.
    pub(crate) async fn says(&mut self, what: &str) -> String {
        let lines = BufReader::new(self.child.stderr.take().expect("it was piped")).lines();
        let what = what.to_owned();
        let looking =
            tokio::task::spawn_blocking(move || lines.map_while(Result::ok).find(|line| line.contains(&what)));
        let looking = tokio::time::timeout(Duration::from_secs(60), looking);
        looking.await.expect("within a minute").expect("no panic").expect("it says so")
    }

    pub(crate) fn standard_error(&mut self) -> String {
        let mut text = String::new();
        self.child.stderr.take().expect("it was piped").read_to_string(&mut text).expect("a text");
        text
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Polls until it is so.
pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("within a minute: {what}");
}

pub(crate) fn lives(process: i32) -> bool {
    // One that is dead and not waited for is dead.
    std::fs::read_to_string(format!("/proc/{process}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
}

/// The process that started this one, or has adopted it.
pub(crate) fn parent(process: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it lives");
    let after_name = stat.rsplit(')').next().expect("a name in parentheses");
    after_name.split_whitespace().nth(1).expect("a parent").parse().expect("a number")
}
