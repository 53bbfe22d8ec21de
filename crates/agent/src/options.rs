use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use url::Url;

/// What one agent is told when it starts.
#[derive(Clone)]
pub struct Options {
    /// What people call it.
    pub name: String,
    /// Its pool's token.
    pub token: String,
    /// How many phases it executes at a time.
    pub concurrency: u32,
    /// Take one phase and leave.
    pub once: bool,
    /// Engines, journal and the directories of runs are in it. No two agents share one.
    pub work_dir: PathBuf,
    pub provider_mirror: Option<ProviderMirror>,
    pub engine_mirror: EngineMirror,
    /// Certificates in PEM that engines have to trust, for a server whose authority the system does not know.
    pub ca_file: Option<PathBuf>,
    /// The user that engines run as. Needs an agent of root.
    pub run_as: Option<RunAs>,
    /// Keep runs from the files of other runs, of the agent, and from `forbidden`, where the kernel can do it.
    pub confine: bool,
    /// What runs must not read or change beside the work directory.
    pub forbidden: Vec<PathBuf>,
    /// How to call [`crate::supervise`]: a program and its first arguments.
    pub supervisor: Vec<OsString>,
    /// Seals the journal against runs that have the agent's own user. It must be the same after a restart.
    pub journal_secret: String,
}

impl Options {
    /// The supervisor of a program that calls [`crate::supervise::main`] when its first argument is `word`.
    /// `/proc/self/exe` stays right when the program's file is replaced by a newer one.
    pub fn own_supervisor(word: &str) -> Vec<OsString> {
        vec!["/proc/self/exe".into(), word.into()]
    }
}

/// Where engines find providers before they ask registries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProviderMirror {
    Directory(PathBuf),
    Network(Url),
}

/// Where engines come from that are not on the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EngineMirror {
    /// The addresses of those who make them.
    Makers,
    /// `{base}/terraform/…` and `{base}/tofu/…`, both laid out as `releases.hashicorp.com` is.
    At(Url),
    /// What is installed has to do.
    Nowhere,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct RunAs {
    pub user: u32,
    pub group: u32,
}

impl RunAs {
    /// The user with this name. The error completes the sentence "«name» …".
    pub fn named(user: &str) -> Result<Self, String> {
        let found = nix::unistd::User::from_name(user).map_err(|error| format!("cannot be looked up: {error}"))?;
        let found = found.ok_or("is no user of this machine")?;
        match nix::unistd::geteuid().is_root() {
            true => Ok(Self { user: found.uid.as_raw(), group: found.gid.as_raw() }),
            false => Err("is another user, and only root can run engines as another user".to_owned()),
        }
    }
}
