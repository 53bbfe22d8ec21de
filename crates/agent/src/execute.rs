//! Runs an engine in a process group of its own, and stops it when the phase is to stop.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{ChildStdin, Command};
use tokio::time::Instant;

use crate::confinement::Confinement;
use crate::control::{Control, Stop};
use crate::environment::Environment;
use crate::lease::Deadline;
use crate::log_file::LogFile;
use crate::processes;
use crate::supervise::{Instructions, LEASE_ENDED_EXIT_CODE, NOT_STARTED_EXIT_CODE, Order, monotonic_now};
use crate::users::RunAs;

/// Grace period for an engine to end by itself.
const KILL_GRACE_PERIOD: Duration = Duration::from_secs(30);
/// Time that part of a line waits for its end.
const LINE_FLUSH_TIMEOUT: Duration = Duration::from_millis(150);
/// Timeout for output after the supervisor has ended: no process holds the output any more.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);
/// Exit code for a supervisor that was killed and has none.
const NO_EXIT_CODE: i32 = 255;

/// Reason why an engine was told to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stopped {
    Canceled,
    AgentLeaves,
    TimedOut,
    Lost,
}

/// Exit of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Exit {
    pub(crate) code: i32,
    /// It may have succeeded nonetheless.
    pub(crate) stopped: Option<Stopped>,
}

impl Exit {
    /// Reason why an apply did not end by itself, if it did not. An engine that does has written all that it did into
    /// its state, and exits with 0 or 1, also when it was interrupted. It exits with something else when it was killed,
    /// by the kernel that ran out of memory say, or crashed; and with it or before it its supervisor may have been
    /// killed.
    pub(crate) fn killed(self) -> Option<String> {
        match self.code {
            0 | 1 => None,
            code if code == i32::from(NOT_STARTED_EXIT_CODE) => None,
            137 => Some("was killed (signal 9, as when memory runs out)".to_owned()),
            code @ 129..=192 => Some(format!("was killed (signal {})", code - 128)),
            NO_EXIT_CODE => Some("was killed together with the process that watches over it".to_owned()),
            code => Some(format!("crashed (code {code})")),
        }
    }
}

/// Command to run.
pub(crate) struct Invocation<'a> {
    pub(crate) program: &'a Path,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: &'a Path,
    pub(crate) environment: &'a Environment,
    /// An apply that somebody cancels may take its time: what it creates would be forgotten. The phase's timeout and a
    /// cancellation by force still end it.
    pub(crate) graceful_cancel: bool,
}

#[derive(Clone)]
pub(crate) struct Executor {
    pub(crate) supervisor: Vec<OsString>,
    /// See [`crate::Options::portable`].
    pub(crate) portable: bool,
    /// Root directory of the phase.
    pub(crate) root: PathBuf,
    pub(crate) run_as: Option<RunAs>,
    pub(crate) confinement: Option<Confinement>,
    /// Maximum size of the data of a process, in bytes.
    pub(crate) memory_limit: Option<u64>,
    /// Notes the supervisor's process before anything can happen in it.
    pub(crate) started: std::sync::Arc<dyn Fn(u32) + Send + Sync>,
    /// Hears what went wrong with processes that the run left behind.
    pub(crate) orphaned: std::sync::Arc<dyn Fn(&str) + Send + Sync>,
}

impl Executor {
    /// Runs it with all output in the log.
    pub(crate) async fn to_log(
        &self,
        invocation: Invocation<'_>,
        log: &LogFile,
        control: &mut Control,
    ) -> io::Result<Exit> {
        let (reader, writer) = io::pipe()?;
        let errors = writer.try_clone()?;
        let reading = tokio::spawn(read(Receiver::from_owned_fd(reader.into())?, log.clone()));
        let exit = self.run(invocation, true, writer.into(), errors.into(), control).await?;
        if let Ok(read) = tokio::time::timeout(OUTPUT_TIMEOUT, reading).await {
            read??;
        }
        log.flush()?;
        Ok(exit)
    }

    /// Runs it with its output in a file that only the agent can read, and returns its standard error.
    pub(crate) async fn to_file(
        &self,
        invocation: Invocation<'_>,
        output: &Path,
        control: &mut Control,
    ) -> io::Result<(Exit, String)> {
        let errors: PathBuf = output.with_extension("stderr");
        let stdio = |path: &Path| {
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path).map(Stdio::from)
        };
        let exit = self.run(invocation, false, stdio(output)?, stdio(&errors)?, control).await?;
        Ok((exit, String::from_utf8_lossy(&tokio::fs::read(&errors).await?).into_owned()))
    }

    async fn run(
        &self,
        invocation: Invocation<'_>,
        relays: bool,
        output: Stdio,
        errors: Stdio,
        control: &mut Control,
    ) -> io::Result<Exit> {
        let Some((supervisor, first)) = self.supervisor.split_first() else {
            return Err(io::Error::other("this agent has no supervisor"));
        };
        let instructions = Instructions {
            program: invocation.program.into(),
            arguments: invocation.arguments,
            environment: invocation.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            run_as: self.run_as,
            confinement: self.confinement.clone(),
            memory_limit: self.memory_limit,
            portable: self.portable,
            relays,
        };
        let told = instructions.line()?;
        let mut command = Command::new(supervisor);
        command.args(first).arg(&self.root).env_clear().current_dir(invocation.directory);
        command.stdin(Stdio::piped()).stdout(output).stderr(errors).process_group(0);
        let (mut child, _started) = processes::start(&mut command)?;
        // It holds the ends of pipes that only the child may hold now.
        drop(command);
        (self.started)(child.id().unwrap_or_default());
        let mut orders = Orders { pipe: child.stdin.take(), deadline: None };
        orders.say(&told).await;
        let mut stopped = None;
        let mut obeyed = Stop::Run;
        let mut kill_at = None;
        let mut timed_out = false;
        let times_out_at = control.times_out_at;
        loop {
            orders.until(control.deadline()).await;
            let stop = control.stop();
            if stop > obeyed {
                obeyed = stop;
                stopped = Some(match stop {
                    Stop::Run | Stop::Cancel | Stop::Kill => Stopped::Canceled,
                    Stop::Leave => Stopped::AgentLeaves,
                    Stop::Lost => Stopped::Lost,
                });
                match stop {
                    Stop::Run => {}
                    Stop::Cancel if invocation.graceful_cancel => orders.send(Order::Interrupt).await,
                    Stop::Cancel | Stop::Leave => {
                        orders.send(Order::Interrupt).await;
                        kill_at = Some(Instant::now() + KILL_GRACE_PERIOD);
                    }
                    Stop::Kill | Stop::Lost => orders.send(Order::Kill).await,
                }
            }
            let may_time_out =
                !timed_out && (stopped.is_none() || (invocation.graceful_cancel && obeyed == Stop::Cancel));
            tokio::select! {
                status = child.wait() => {
                    let code = status?.code().unwrap_or(NO_EXIT_CODE);
                    if code == NO_EXIT_CODE {
                        self.end_orphans().await?;
                    }
                    let lease_ended = code == i32::from(LEASE_ENDED_EXIT_CODE);
                    return Ok(Exit { code, stopped: stopped.or(lease_ended.then_some(Stopped::Lost)) });
                }
                () = control.changed() => {}
                () = tokio::time::sleep_until(times_out_at), if may_time_out => {
                    timed_out = true;
                    stopped.get_or_insert(Stopped::TimedOut);
                    orders.send(Order::Interrupt).await;
                    kill_at = Some(Instant::now() + KILL_GRACE_PERIOD);
                }
                () = tokio::time::sleep_until(kill_at.unwrap_or(times_out_at)), if kill_at.is_some() => {
                    orders.send(Order::Kill).await;
                    kill_at = None;
                }
            }
        }
    }
}

impl Executor {
    /// Cleanup in place of a supervisor that was killed.
    async fn end_orphans(&self) -> io::Result<()> {
        let (portable, root) = (self.portable, self.root.clone());
        let end = move || if portable { processes::end_noted_group(&root) } else { processes::end_orphans() };
        let orphans = tokio::task::spawn_blocking(end).await.map_err(io::Error::other)?;
        (self.orphaned)("the process that watches over the engine was killed");
        if !orphans.ended.is_empty() {
            (self.orphaned)(&format!(
                "the run left processes behind, which were ended: {}",
                processes::names(&orphans.ended)
            ));
        }
        if !orphans.alive.is_empty() {
            let names = processes::names(&orphans.alive);
            (self.orphaned)(&format!("the run left processes behind that cannot be ended: {names}"));
        }
        Ok(())
    }
}

/// The agent's end of the supervisor's standard input. While it is open, the agent lives.
struct Orders {
    pipe: Option<ChildStdin>,
    deadline: Option<Deadline>,
}

impl Orders {
    async fn until(&mut self, deadline: Option<Deadline>) {
        let Some(deadline) = deadline.filter(|_| deadline != self.deadline) else { return };
        self.deadline = Some(deadline);
        // In this order: a pause between the two makes the deadline earlier, never later.
        let clock = monotonic_now();
        let now = Instant::now();
        let at = |instant: Instant| clock + instant.saturating_duration_since(now);
        self.send(Order::Until { interrupt_at: at(deadline.interrupt_at), kill_at: at(deadline.kill_at) }).await;
    }

    async fn send(&mut self, order: Order) {
        self.say(&order.line()).await;
    }

    /// A supervisor that does not listen has ended.
    async fn say(&mut self, line: &str) {
        if let Some(pipe) = &mut self.pipe {
            let _ = pipe.write_all(line.as_bytes()).await;
        }
    }
}

/// Reads the output; after an error it is still read, so that the engine can end.
async fn read(mut output: Receiver, log: LogFile) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    let mut result = Ok(());
    loop {
        let timeout = if log.waits() { LINE_FLUSH_TIMEOUT } else { Duration::from_secs(3600) };
        match tokio::time::timeout(timeout, output.read(&mut buffer)).await {
            Ok(Ok(0)) => return result,
            Ok(Ok(count)) => result = result.and(log.write(&buffer[..count])),
            Ok(Err(error)) => return Err(error),
            Err(_) => result = result.and(log.flush()),
        }
    }
}
