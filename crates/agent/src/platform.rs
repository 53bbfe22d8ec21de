//! What only Linux has, and what takes its place elsewhere: programs without `/proc`, and no isolation of runs.

use std::io;
use std::path::PathBuf;

/// Path by which this program is started again. On Linux it stays right when the program's file is replaced by a newer
/// one.
pub fn own_program() -> PathBuf {
    if cfg!(target_os = "linux") {
        return "/proc/self/exe".into();
    }
    std::env::current_exe().unwrap_or_else(|_| std::env::args_os().next().unwrap_or_default().into())
}

/// Keeps all but root from inspecting this process from now on: its memory, and the environment that it began with.
/// Elsewhere than on Linux, systems do that for programs they trust, and taco is not among them.
pub fn forbid_inspection() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_dumpable(false)?;
    Ok(())
}

/// Makes this process adopt what its descendants leave behind. Systems that cannot do this leave it to their first
/// process, and orphans are found by their process group alone.
pub(crate) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_child_subreaper(true);
}
