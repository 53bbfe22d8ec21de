use std::ffi::OsString;
use std::path::PathBuf;

use url::Url;

use crate::engine_trust::EngineTrust;
use crate::users::RunUsers;

/// Options of one agent.
#[derive(Clone)]
pub struct Options {
    /// Display name.
    pub name: String,
    /// Its pool's token.
    pub token: String,
    /// Maximum number of phases it executes at a time.
    pub concurrency: u32,
    /// Take one phase and leave.
    pub once: bool,
    /// Engines, journal and the directories of runs are in it. No two agents share one.
    pub work_dir: PathBuf,
    pub provider_mirror: Option<ProviderMirror>,
    pub engine_mirror: EngineMirror,
    pub engine_trust: EngineTrust,
    /// Certificates in PEM that engines have to trust, for a server whose authority the system does not know.
    pub ca_file: Option<PathBuf>,
    /// The users that engines run as. Needs an agent of root.
    pub run_as: Option<RunUsers>,
    /// Keep runs from the files and processes of other runs and of the agent, and from `forbidden`, where the kernel can do it.
    pub confine: bool,
    /// Paths that runs must not read or change, in addition to the work directory.
    pub forbidden: Vec<PathBuf>,
    /// Command line for [`crate::supervise`]: a program and its first arguments.
    pub supervisor: Vec<OsString>,
    /// Directory of engines, where other agents of this user look too; without it, one in the work directory.
    pub engine_store: Option<PathBuf>,
    /// Directory of providers that engines have downloaded, for all runs of this user.
    pub provider_cache: Option<PathBuf>,
    pub environment: RunEnvironment,
    /// Be the same agent after a restart: what the dead process had is lost at once, and not when its lease is over. Only
    /// for an agent that nobody else can pretend to be.
    pub keeps_id: bool,
    /// Supervise runs as on systems that are not Linux, by process groups and pipes alone.
    pub portable: bool,
    /// Seals the journal against runs that have the agent's own user. It must be the same after a restart.
    pub journal_secret: String,
}

impl Options {
    /// The supervisor of a program that calls [`crate::supervise::main`] when its first argument is `word`.
    pub fn own_supervisor(word: &str) -> Vec<OsString> {
        vec![crate::platform::own_program().into(), word.into()]
    }
}

/// Environment variables that runs begin with.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum RunEnvironment {
    /// What it takes to find programs and to reach the network, and a home directory of their own.
    #[default]
    Clean,
    /// Everything here: the user's own credentials and home directory, for runs on the user's own machine.
    Inherit(Vec<(OsString, OsString)>),
}

/// Mirror where engines find providers before they ask registries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProviderMirror {
    Directory(PathBuf),
    Network(Url),
}

/// Source of engines that are not on the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EngineMirror {
    /// The addresses of those who make them.
    Makers,
    /// `{base}/terraform/…` and `{base}/tofu/…`, both laid out as `releases.hashicorp.com` is: an address of http or https,
    /// or of a directory, as `file:///…`.
    At(Url),
    /// No downloads: only installed engines are used.
    Nowhere,
}
