//! Keeps a run away from files and processes that are none of its business: those of other runs, of its agent, and of the
//! server that the agent is part of. They usually have the same Unix user, so that permissions cannot do it.
//!
//! It uses Landlock, with which a process gives up rights for itself and all that it starts. Landlock knows only what
//! is allowed, and a directory is allowed with all that is in it. So everything except the path to what is forbidden is
//! allowed, one by one; the directories on that path can be passed through, but neither listed nor written to. A
//! process that is restricted in this way cannot look into processes that are not, regardless of their user: not into
//! their environment, memory or open files. Where the kernel supports it, it cannot send them signals either.

#[cfg(target_os = "linux")]
mod landlock;

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

/// Paths that a run may access. The paths are byte strings, as the system has them.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub(crate) struct Confinement {
    /// Not these and nothing in them,
    pub(crate) forbidden: Vec<OsString>,
    /// but these, which are in them, with all rights,
    pub(crate) own: Vec<OsString>,
    /// and these, which may be, to read and to execute.
    pub(crate) readable: Vec<OsString>,
}

#[cfg(target_os = "linux")]
pub(crate) use landlock::{is_supported, keeps_signals};

/// Systems other than Linux have no Landlock.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_supported() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn keeps_signals() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
impl Confinement {
    /// Nobody asks for what is not supported.
    pub(crate) fn enforce(&self) -> std::io::Result<()> {
        Err(std::io::Error::from(std::io::ErrorKind::Unsupported))
    }
}
