//! The process between agent and engine: if anything happens to the agent, the engine and all that it started end.
//!
//! The agent holds the other end of this process' standard input. Over it come what to run, the lease's end and
//! requests to stop; when it closes, the agent is dead. An agent that is paused, or killed by `kill -9`, cannot stop
//! its engines in time; this process can. It also adopts the orphans of the engine's descendants, so that a daemon
//! started by a run does not outlive the run.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::confinement::Confinement;
use crate::users::RunAs;
use crate::{platform, processes};

/// Grace period for an engine whose agent died to write its state.
const ORPHAN_GRACE_PERIOD: Duration = Duration::from_secs(3);
/// Exit code of an engine that failed because its lease ended.
pub(crate) const LEASE_ENDED_EXIT_CODE: u8 = 213;
/// Exit code of a supervisor that could not start its engine.
pub(crate) const NOT_STARTED_EXIT_CODE: u8 = 127;
/// Maximum number of rounds to kill processes: what survives them cannot be killed.
const MAX_KILL_ROUNDS: u32 = 400;
/// Timeout for relaying output after all are dead: no process holds the output any more.
const RELAY_TIMEOUT: Duration = Duration::from_secs(2);

/// Message of an agent, one to a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// Interrupt and kill at these times of the monotonic clock, which all processes share.
    Until {
        interrupt_at: Duration,
        kill_at: Duration,
    },
    Interrupt,
    Kill,
}

impl Order {
    pub(crate) fn line(self) -> String {
        match self {
            Self::Until { interrupt_at, kill_at } => {
                format!("until {} {}\n", interrupt_at.as_nanos(), kill_at.as_nanos())
            }
            Self::Interrupt => "interrupt\n".to_owned(),
            Self::Kill => "kill\n".to_owned(),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        match words.next()? {
            "interrupt" => Some(Self::Interrupt),
            "kill" => Some(Self::Kill),
            "until" => {
                let mut time = || Some(Duration::from_nanos(words.next()?.parse().ok()?));
                Some(Self::Until { interrupt_at: time()?, kill_at: time()? })
            }
            _ => None,
        }
    }
}

pub(crate) fn monotonic_now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default()
}

enum Event {
    Exit(std::io::Result<ExitStatus>),
    Order(Order),
    AgentIsGone,
}

/// First message of an agent, on one line. It does not come as arguments or in the environment, which other processes
/// of the same user can see; and a variable of the run, `LD_PRELOAD` say, must not change this process, which may be
/// root's.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct Instructions {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) run_as: Option<RunAs>,
    pub(crate) confinement: Option<Confinement>,
    /// Maximum size of the data of a process, in bytes.
    #[serde(default)]
    pub(crate) memory_limit: Option<u64>,
    /// Nobody adopts orphans: the engine's process group is all that is known of it.
    pub(crate) portable: bool,
    /// All output goes through this process to its standard output. An engine whose output has no reader dies of it,
    /// before it has written its state; this process reads on when the agent is dead.
    pub(crate) relays: bool,
}

impl Instructions {
    pub(crate) fn line(&self) -> serde_json::Result<String> {
        Ok(format!("{}\n", serde_json::to_string(self)?))
    }
}

/// Runs what standard input says and ends with its exit code. The only argument is the directory of the phase, by which
/// an agent that is started again knows whose engine this is.
pub fn main() -> ExitCode {
    match supervise() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("Error: {error}");
            ExitCode::from(NOT_STARTED_EXIT_CODE)
        }
    }
}

fn supervise() -> Result<u8, String> {
    // It knows the run's variables, which are not other runs' to read.
    let _ = platform::forbid_inspection();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| error.to_string())?;
    let instructions: Instructions =
        serde_json::from_str(&line).map_err(|error| format!("an engine's supervisor was told nonsense: {error}"))?;
    if !instructions.portable {
        platform::adopt_orphans();
    }
    let mut command = Command::new(&instructions.program);
    command.args(&instructions.arguments).env_clear().envs(instructions.environment);
    command.stdin(Stdio::null()).process_group(0);
    if let Some(RunAs { user, group }) = instructions.run_as {
        command.uid(user).gid(group);
    }
    if let Some(limit) = instructions.memory_limit {
        // This process is small, and what it starts inherits the limit.
        let set = nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_DATA, limit, limit);
        set.map_err(|error| format!("the memory limit cannot be set: {error}"))?;
    }
    let relay = match instructions.relays {
        true => Some(relay(&mut command).map_err(|error| error.to_string())?),
        false => None,
    };
    let start = || start(&mut command, instructions.confinement.as_ref());
    // In a thread of its own: this process gives nothing up, so that the run cannot reach it, not even by a signal.
    let started = std::thread::scope(|scope| scope.spawn(start).join());
    let started = started.map_err(|_| "the thread that starts the engine broke".to_owned())?;
    let mut child = started.map_err(|error| format!("{}: {error}", instructions.program.to_string_lossy()))?;
    // It holds the ends of pipes that only the engine may hold now.
    drop(command);
    let group = Pid::from_raw(i32::try_from(child.id()).map_err(|error| error.to_string())?);
    if instructions.portable {
        let phase = std::env::args_os().next_back().unwrap_or_default();
        processes::note_group(Path::new(&phase), group).map_err(|error| error.to_string())?;
    }
    let (sender, events) = mpsc::channel();
    let orders = sender.clone();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if let Some(order) = Order::parse(&line) {
                let _ = orders.send(Event::Order(order));
            }
        }
        let _ = orders.send(Event::AgentIsGone);
    });
    std::thread::spawn(move || sender.send(Event::Exit(child.wait())));
    let (status, lease_ended) = wait_for_engine(group, &events);
    let _ = killpg(group, Signal::SIGKILL);
    clean_up();
    if let Some(relay) = relay {
        let _ = relay.recv_timeout(RELAY_TIMEOUT);
    }
    let status = status.map_err(|error| error.to_string())?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    match code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX) {
        0 => Ok(0),
        _ if lease_ended => Ok(LEASE_ENDED_EXIT_CODE),
        code => Ok(code),
    }
}

/// Starts the engine with what it may touch. What is given up holds for this thread and for what it starts.
fn start(command: &mut Command, confinement: Option<&Confinement>) -> std::io::Result<Child> {
    if let Some(confinement) = confinement {
        let enforced = confinement.enforce();
        enforced.map_err(|error| std::io::Error::other(format!("the run cannot be kept from others: {error}")))?;
    }
    command.spawn()
}

/// Copies what the command will say to standard output for as long as someone reads it, and says when all is copied.
fn relay(command: &mut Command) -> std::io::Result<mpsc::Receiver<()>> {
    let (mut reader, writer) = std::io::pipe()?;
    command.stderr(writer.try_clone()?).stdout(writer);
    let (done, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        let mut output = std::io::stdout().lock();
        let mut is_read = true;
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            is_read = is_read && output.write_all(&buffer[..count]).and_then(|()| output.flush()).is_ok();
        }
        let _ = done.send(());
    });
    Ok(receiver)
}

/// Waits for the engine, and stops it when it is time. Also says whether its time was over.
fn wait_for_engine(group: Pid, events: &mpsc::Receiver<Event>) -> (std::io::Result<ExitStatus>, bool) {
    let (mut interrupt_at, mut kill_at) = (Duration::MAX, Duration::MAX);
    let mut lease_ended = false;
    let signal = |signal| {
        let _ = killpg(group, signal);
    };
    loop {
        let now = monotonic_now();
        if now >= interrupt_at {
            lease_ended = true;
            signal(Signal::SIGINT);
            interrupt_at = Duration::MAX;
        }
        if now >= kill_at {
            lease_ended = true;
            signal(Signal::SIGKILL);
            kill_at = Duration::MAX;
        }
        let wait = interrupt_at.min(kill_at).saturating_sub(now).min(Duration::from_secs(60));
        match events.recv_timeout(wait) {
            Ok(Event::Exit(status)) => return (status, lease_ended),
            // Engines that were interrupted stay so, regardless of the lease.
            Ok(Event::Order(Order::Until { .. })) if lease_ended => {}
            Ok(Event::Order(Order::Until { interrupt_at: interrupt, kill_at: kill })) => {
                (interrupt_at, kill_at) = (interrupt, kill);
            }
            Ok(Event::Order(Order::Interrupt)) => signal(Signal::SIGINT),
            Ok(Event::Order(Order::Kill)) => signal(Signal::SIGKILL),
            Ok(Event::AgentIsGone) => {
                signal(Signal::SIGINT);
                interrupt_at = Duration::MAX;
                kill_at = kill_at.min(now + ORPHAN_GRACE_PERIOD);
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }
}

/// Ends what the engine left behind, which is this process' to wait for by now.
fn clean_up() {
    for _ in 0..MAX_KILL_ROUNDS {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::EINTR) | Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => {}
            Err(_) => return,
            Ok(_) => {
                for child in processes::children() {
                    let _ = kill(Pid::from_raw(child.pid), Signal::SIGKILL);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    // Programs of another user, say, which the run may start and only root may stop.
    let left: Vec<_> = processes::children().into_iter().filter(|child| !child.is_dead).collect();
    if !left.is_empty() {
        eprintln!("\nWarning: the run left processes behind that cannot be ended: {}", processes::names(&left));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn instructions_survive_the_way_in_one_line() {
        let odd = OsString::from_vec(vec![b'a', b'\n', 0xff]);
        let told = Instructions {
            portable: false,
            program: "/bin/terraform".into(),
            arguments: vec!["plan".into(), odd.clone()],
            environment: vec![("NAME".into(), odd.clone())],
            run_as: Some(RunAs { user: 1, group: 2 }),
            confinement: Some(Confinement { forbidden: vec![odd], ..Confinement::default() }),
            memory_limit: Some(1 << 30),
            relays: true,
        };
        let line = told.line().expect("JSON");
        assert_eq!(line.lines().count(), 1);
        let heard: Instructions = serde_json::from_str(&line).expect("JSON");
        assert_eq!(format!("{heard:?}"), format!("{told:?}"));
    }

    #[test]
    fn orders_survive_the_way() {
        let until = Order::Until { interrupt_at: Duration::from_nanos(5), kill_at: Duration::from_secs(9) };
        for order in [until, Order::Interrupt, Order::Kill] {
            assert_eq!(Order::parse(&order.line()), Some(order));
        }
        assert_eq!(Order::parse("something else"), None);
    }
}
