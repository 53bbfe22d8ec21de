//! Keeps the server's secrets out of the reach of runs.
//!
//! `/proc/<pid>/environ` shows what a process was started with, for as long as it lives, to every process of the same
//! user, and what a run executes is such a process. So the server takes its variables along in a file that has no
//! name, starts itself again without them, reads them, and empties the file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use taco_agent::platform;

/// Says that the variables are on standard input.
const MARK: &str = "TACO_VARIABLES_ON_STDIN";

/// Variables that a process may show to everyone, and that libraries within it look for.
const PLAIN: [&str; 21] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TERM",
    "NO_COLOR",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "RUST_LOG",
    "RUST_BACKTRACE",
    "RUST_MIN_STACK",
    ALLOCATOR_SETTINGS,
];

/// Variable with settings of glibc's allocator, which reads it before a program begins. An operator's own is left as it is.
const ALLOCATOR_SETTINGS: &str = "GLIBC_TUNABLES";
/// Maximum number of the allocator's arenas. Each keeps free memory that the others do not use; glibc has eight for each core.
const MAX_ARENAS: usize = 8;
/// What is larger goes back to the system when it is freed, in bytes.
const LARGE_ALLOCATION: usize = 64 * 1024;
/// Free memory at the end of an arena goes back to the system when it is more than so many bytes.
const KEPT_FREE: usize = 128 * 1024;

static TAKEN_ALONG: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// The variables that taco was started with.
pub(crate) fn variables() -> BTreeMap<String, String> {
    TAKEN_ALONG.get().cloned().unwrap_or_else(of_process)
}

fn of_process() -> BTreeMap<String, String> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}

/// True in the process that was started again.
pub(crate) fn is_hidden() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Makes this process one that shows none of its variables. Returns in the process that was started again; where that
/// is impossible, in this one, with the reason.
pub(crate) fn hide() -> io::Result<()> {
    // Elsewhere there is no such file, and nothing that a second start would take out of the reach of others.
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    if !is_hidden() {
        return Err(start_again().unwrap_or_else(|error| error));
    }
    let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let variables = read_and_empty(file)?;
    // Later calls get the first answer.
    let _ = TAKEN_ALONG.set(variables);
    platform::forbid_inspection()
}

/// Replaces this process; does not return, unless it fails.
fn start_again() -> io::Result<io::Error> {
    let mut file = tempfile::tempfile()?;
    file.write_all(&serde_json::to_vec(&of_process())?)?;
    file.seek(SeekFrom::Start(0))?;
    let plain = std::env::vars_os().filter(|(name, _)| PLAIN.iter().any(|plain| name == plain));
    let mut command = Command::new(platform::own_program());
    command.args(std::env::args_os().skip(1)).env_clear();
    // Before the operator's.
    command.env(ALLOCATOR_SETTINGS, allocator_settings(std::thread::available_parallelism().map_or(1, usize::from)));
    command.envs(plain).env(MARK, "1").stdin(file);
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    Ok(command.exec())
}

/// Settings with which the allocator keeps little that is free: one arena for each thread that can run at a time, up to
/// [`MAX_ARENAS`]. See `docs/decisions/0037-memory-that-is-free.md`.
fn allocator_settings(cores: usize) -> String {
    let arenas = cores.clamp(1, MAX_ARENAS);
    format!(
        "glibc.malloc.arena_max={arenas}:glibc.malloc.mmap_threshold={LARGE_ALLOCATION}:glibc.malloc.trim_threshold={KEPT_FREE}"
    )
}

fn read_and_empty(mut file: File) -> io::Result<BTreeMap<String, String>> {
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    file.set_len(0)?;
    Ok(serde_json::from_slice(&text)?)
}
