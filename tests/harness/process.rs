//! A child process whose output is kept, and which does not outlive its test.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Long enough for a machine that is busy with other tests.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(90);

pub struct Process {
    child: Child,
    stdout: Lines,
    stderr: Lines,
}

impl Process {
    pub fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let stdout = Lines::follow(child.stdout.take().expect("it is piped"));
        let stderr = Lines::follow(child.stderr.take().expect("it is piped"));
        Self { child, stdout, stderr }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The first line of standard output that pleases; waits for it.
    pub fn line_of_stdout(&self, pleases: impl Fn(&str) -> bool) -> String {
        let found = self.stdout.wait_for(pleases);
        found.unwrap_or_else(|| panic!("the line did not come; {self:?}"))
    }

    /// The first line of standard error that pleases; waits for it.
    pub fn line_of_stderr(&self, pleases: impl Fn(&str) -> bool) -> String {
        let found = self.stderr.wait_for(pleases);
        found.unwrap_or_else(|| panic!("the line did not come; {self:?}"))
    }

    /// Standard output up to now.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    pub fn signal(&self, signal: Signal) {
        let id = Pid::from_raw(self.child.id().try_into().expect("process ids are small"));
        kill(id, signal).expect("the process is there");
    }

    /// Waits for the end.
    pub fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                self.stdout.wait_for(|_| false);
                self.stderr.wait_for(|_| false);
                return status;
            }
            assert!(begun.elapsed() < OUTPUT_TIMEOUT, "it does not end; {self:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl std::fmt::Debug for Process {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "process {}\nstdout:\n{}\nstderr:\n{}", self.child.id(), self.stdout(), self.stderr())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It fails if the process has ended, which is fine.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Output that a thread collects line by line.
#[derive(Clone, Default)]
struct Lines(Arc<(Mutex<Collected>, Condvar)>);

#[derive(Default)]
struct Collected {
    lines: Vec<String>,
    ended: bool,
}

impl Lines {
    fn follow(pipe: impl Read + Send + 'static) -> Self {
        let lines = Self::default();
        let collector = lines.clone();
        thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                collector.add(|collected| collected.lines.push(line));
            }
            collector.add(|collected| collected.ended = true);
        });
        lines
    }

    fn add(&self, change: impl FnOnce(&mut Collected)) {
        let (collected, changed) = &*self.0;
        change(&mut collected.lock().expect("no thread panicked"));
        changed.notify_all();
    }

    fn wait_for(&self, pleases: impl Fn(&str) -> bool) -> Option<String> {
        let (collected, changed) = &*self.0;
        let find = |collected: &Collected| collected.lines.iter().find(|line| pleases(line)).cloned();
        let guard = collected.lock().expect("no thread panicked");
        let (guard, _) = changed
            .wait_timeout_while(guard, OUTPUT_TIMEOUT, |collected| !collected.ended && find(collected).is_none())
            .expect("no thread panicked");
        find(&guard)
    }

    fn text(&self) -> String {
        self.0.0.lock().expect("no thread panicked").lines.join("\n")
    }
}
