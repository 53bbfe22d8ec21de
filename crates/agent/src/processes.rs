//! The processes that this one started, and what is left behind when one of them is killed that should have ended others.
//!
//! A supervisor ends all that its engine leaves. If something kills the supervisor itself, its children become this
//! process', which is the next one that adopts orphans: those it did not start itself came from a run.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

/// Rounds of killing what does not want to end, and the pause between them.
const MAX_KILL_ROUNDS: u32 = 400;
const KILL_ROUND_DELAY: Duration = Duration::from_millis(5);

/// Processes started by this one and not yet waited for.
static STARTED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// A child that is known not to be an orphan, until this is dropped.
pub(crate) struct Started(u32);

impl Drop for Started {
    fn drop(&mut self) {
        STARTED.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// Starts a command. The search for orphans cannot run between its start and the note of it.
pub(crate) fn start(command: &mut Command) -> io::Result<(Child, Started)> {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let child = command.spawn()?;
    let process = child.id().unwrap_or_default();
    started.insert(process);
    Ok((child, Started(process)))
}

/// A process as the system lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Listed {
    pub(crate) pid: i32,
    /// The first letters of its program's name, or the name it has set for itself.
    pub(crate) name: String,
    /// Dead, and not waited for.
    pub(crate) is_dead: bool,
}

/// The children of this process, also those that it has adopted.
pub(crate) fn children() -> Vec<Listed> {
    let own = std::process::id().to_string();
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let children = processes.flatten().filter_map(|process| {
        let pid: i32 = process.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(process.path().join("stat")).ok()?;
        // The name, in parentheses, may have anything in it; then come the state and the parent.
        let (before, after) = stat.rsplit_once(')')?;
        let name = before.split_once('(')?.1.chars().filter(|letter| !letter.is_control()).collect();
        let mut rest = after.split_whitespace();
        let is_dead = matches!(rest.next()?, "Z" | "X");
        (rest.next()? == own).then_some(Listed { pid, name, is_dead })
    });
    children.collect()
}

/// Name of the file, in a phase's directory, with the process group of its engine: for systems where nobody adopts orphans.
const GROUP_FILE: &str = "engine-group";

/// Notes an engine's process group for [`end_noted_group`].
pub(crate) fn note_group(phase: &Path, group: Pid) -> io::Result<()> {
    std::fs::write(phase.join(GROUP_FILE), group.to_string())
}

/// Ends the engine of a phase whose supervisor was killed, with all of its processes that have stayed in its group.
pub(crate) fn end_noted_group(phase: &Path) -> Orphans {
    let noted = std::fs::read_to_string(phase.join(GROUP_FILE)).ok();
    let group = noted.and_then(|text| text.trim().parse().ok()).map(Pid::from_raw);
    let ended = group.filter(|group| killpg(*group, Signal::SIGKILL).is_ok());
    let listed = |group: Pid| Listed { pid: group.as_raw(), name: "engine".to_owned(), is_dead: true };
    Orphans { ended: ended.map(listed).into_iter().collect(), alive: Vec::new() }
}

/// Processes that were left behind.
#[derive(Default, Debug)]
pub(crate) struct Orphans {
    pub(crate) ended: Vec<Listed>,
    pub(crate) alive: Vec<Listed>,
}

/// Ends what a supervisor that was killed has left behind. It takes a moment, so it is not for a thread that others need.
pub(crate) fn end_orphans() -> Orphans {
    let mut found = BTreeMap::new();
    let mut quiet = 0;
    for _ in 0..MAX_KILL_ROUNDS {
        // What a dying process leaves is there in the next round.
        quiet = if round(&mut found) { quiet + 1 } else { 0 };
        if quiet == 2 {
            break;
        }
        std::thread::sleep(KILL_ROUND_DELAY);
    }
    let alive: BTreeSet<i32> = children().iter().filter(|child| !child.is_dead).map(|child| child.pid).collect();
    let (alive, ended) = found.into_values().partition(|orphan: &Listed| alive.contains(&orphan.pid));
    Orphans { ended, alive }
}

/// Returns true if nothing is left to kill.
fn round(found: &mut BTreeMap<i32, Listed>) -> bool {
    let started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_own = |child: &Listed| u32::try_from(child.pid).is_ok_and(|pid| started.contains(&pid));
    let mut is_quiet = true;
    for orphan in children().into_iter().filter(|child| !is_own(child)) {
        let pid = Pid::from_raw(orphan.pid);
        if orphan.is_dead {
            // A program looks dead as soon as its first thread is. What it leaves is here when all of them are, and it
            // can be waited for.
            is_quiet &= waitpid(pid, Some(WaitPidFlag::WNOHANG)).is_err();
        } else {
            let _ = kill(pid, Signal::SIGKILL);
            found.insert(orphan.pid, orphan);
            is_quiet = false;
        }
    }
    is_quiet
}

/// Names for people: `sleep (4711), sh (4712)`.
pub(crate) fn names(processes: &[Listed]) -> String {
    let names: Vec<_> = processes.iter().take(20).map(|it| format!("{} ({})", it.name, it.pid)).collect();
    let more = processes.len().saturating_sub(names.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}
