//! Context shared by all phases of an agent.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use serde_json::json;
use taco_words::id::{AgentId, RunId};
use tokio::sync::OnceCell;

use crate::cli_configuration::Services;
use crate::confinement::Confinement;
use crate::dial::Dial;
use crate::engine::Engines;
use crate::journal::{Entry, Journal};
use crate::opa_program::OpaPrograms;
use crate::options::{Options, ProviderMirror};
use crate::phase_requests::{HttpClient, http_client};
use crate::users::{RunUsers, UserPool};
use crate::workdir::Workdir;
use crate::{confinement, engine_memory, tls, workdir};

pub(crate) struct Context {
    pub(crate) options: Options,
    pub(crate) dial: Dial,
    pub(crate) client: HttpClient,
    pub(crate) journal: Journal,
    pub(crate) engines: Engines,
    pub(crate) opa: OpaPrograms,
    /// Directories of runs.
    pub(crate) runs: PathBuf,
    /// Providers' schemas.
    pub(crate) schemas: PathBuf,
    /// Directories of phases that are over, with what the server has not got yet.
    pub(crate) unsent: PathBuf,
    /// States that the server did not take.
    kept_states: PathBuf,
    pub(crate) ca_bundle: Option<PathBuf>,
    /// Whom engines run as.
    pub(crate) users: UserPool,
    /// Memory settings of engines, as environment variables.
    pub(crate) engine_memory: Vec<(&'static str, String)>,
    /// Paths that runs must not access, where that can be enforced.
    forbidden: Option<Vec<PathBuf>>,
    services: OnceCell<Services>,
    /// Held for as long as the agent lives.
    _lock: File,
}

impl Context {
    pub(crate) fn new(options: Options, dial: Dial) -> io::Result<Self> {
        let root = std::path::absolute(&options.work_dir)?;
        let explain = |error: io::Error| io::Error::other(format!("the work directory {}: {error}", root.display()));
        // Another user has to come through to its own run, and sees nothing on the way.
        let mode = if options.run_as.is_some() { 0o711 } else { 0o700 };
        let runs = root.join("runs");
        for (directory, mode) in [(&root, mode), (&runs, mode), (&root.join("schemas"), 0o700)] {
            DirBuilder::new().recursive(true).mode(mode).create(directory).map_err(explain)?;
            fs::set_permissions(directory, Permissions::from_mode(mode)).map_err(explain)?;
        }
        let lock = File::create(root.join("lock")).map_err(explain)?;
        lock.try_lock().map_err(|_| {
            io::Error::other(format!("another agent uses the work directory {}: give this one its own", root.display()))
        })?;
        let ca_bundle = match &options.ca_file {
            None => None,
            Some(file) => {
                let path = root.join("authorities.pem");
                fs::write(&path, tls::bundle(file)?).map_err(explain)?;
                Some(path)
            }
        };
        let store = options.engine_store.clone().unwrap_or_else(|| root.join("engines"));
        if let Some(cache) = &options.provider_cache {
            DirBuilder::new().recursive(true).mode(0o700).create(cache).map_err(explain)?;
        }
        let forbidden = can_confine(&options).then(|| {
            // Engines are started elsewhere.
            let further = options.forbidden.iter().filter_map(|path| std::path::absolute(path).ok());
            further.chain([root.clone()]).collect()
        });
        Ok(Self {
            forbidden,
            journal: Journal::open(root.join("journal"), &options.journal_secret).map_err(explain)?,
            opa: OpaPrograms::new(&store, std::env::var_os("PATH"), &options),
            engines: Engines::new(store, std::env::var_os("PATH"), &options),
            runs,
            schemas: root.join("schemas"),
            unsent: root.join("unsent"),
            kept_states: root.join("kept-states"),
            ca_bundle,
            users: UserPool::new(options.run_as.as_ref()),
            engine_memory: engine_memory::settings(options.concurrency),
            services: OnceCell::new(),
            client: http_client(dial.clone()),
            dial,
            options,
            _lock: lock,
        })
    }

    /// Id of an earlier process of this agent, if it is to be the same.
    pub(crate) fn kept_id(&self) -> Option<AgentId> {
        let text = fs::read_to_string(self.id_file()?).ok()?;
        text.trim().parse().ok()
    }

    /// Remembers the agent's id. Without it, a successor waits for the end of a lease, which is no harm.
    pub(crate) fn keep_id(&self, id: AgentId) {
        if let Some(file) = self.id_file()
            && let Err(error) = fs::write(&file, id.to_string())
        {
            tracing::warn!(event = "agent_id_write_failed", %error, file = %file.display(), "the agent's id is not kept");
        }
    }

    fn id_file(&self) -> Option<PathBuf> {
        self.options.keeps_id.then(|| self.runs.with_file_name("agent-id"))
    }

    /// Unsent entries of an earlier process of this agent. Directories no longer needed are removed.
    pub(crate) fn left_over(&self) -> io::Result<Vec<Entry>> {
        let entries = self.journal.entries()?;
        DirBuilder::new().recursive(true).mode(0o700).create(&self.unsent)?;
        for directory in fs::read_dir(&self.runs)?.chain(fs::read_dir(&self.unsent)?) {
            let directory = directory?.path();
            let is_of = |entry: &Entry| entry.directory == directory || self.unsent.join(entry.name()) == directory;
            if !entries.iter().any(is_of) {
                workdir::remove(&directory)?;
            }
        }
        Ok(entries)
    }

    /// Confinement of the run in this directory; `None` if it may access whatever its user may.
    pub(crate) fn confinement(&self, workdir: &Workdir) -> Option<Confinement> {
        let texts = |paths: &[PathBuf]| paths.iter().map(|path| path.clone().into_os_string()).collect();
        let mirror = match &self.options.provider_mirror {
            Some(ProviderMirror::Directory(directory)) => Some(directory),
            Some(ProviderMirror::Network(_)) | None => None,
        };
        let readable = [Some(self.engines.store()), self.ca_bundle.as_ref(), mirror];
        Some(Confinement {
            forbidden: texts(self.forbidden.as_ref()?),
            own: texts(&workdir.of_run()),
            readable: readable.into_iter().flatten().map(|path| path.clone().into_os_string()).collect(),
        })
    }

    /// Keeps a state that the server did not take, for people.
    pub(crate) fn keep_state(&self, run: RunId, state: &[u8]) -> io::Result<PathBuf> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.kept_states)?;
        let path = self.kept_states.join(format!("{run}.tfstate"));
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        file.write_all(state)?;
        Ok(path)
    }

    /// The services of the server, as engines would find them.
    pub(crate) async fn services(&self) -> Services {
        let asking = self.services.get_or_try_init(|| async {
            let empty = Full::new(Bytes::new()).map_err(|never| match never {}).boxed();
            let request =
                Request::get(self.dial.address("/.well-known/terraform.json")).body(empty).map_err(io::Error::other)?;
            let response = self.client.request(request).await.map_err(io::Error::other)?;
            let body = response.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
            serde_json::from_slice::<Services>(&body).map_err(io::Error::other)
        });
        match tokio::time::timeout(Duration::from_secs(5), asking).await {
            Ok(Ok(services)) => services.clone(),
            // It has always been there; a phase that does not ask for it is better than none.
            _ => SERVICES.map(|(name, address)| (name.to_owned(), json!(address))).into_iter().collect(),
        }
    }
}

/// Services that every server has, for phases whose server cannot be asked.
const SERVICES: [(&str, &str); 6] = [
    ("tfe.v2", "/api/v2/"),
    ("tfe.v2.1", "/api/v2/"),
    ("tfe.v2.2", "/api/v2/"),
    ("state.v2", "/api/v2/"),
    ("modules.v1", "/api/registry/v1/modules/"),
    ("providers.v1", "/api/registry/v1/providers/"),
];

/// True if runs can be isolated from others. What remains open is logged once, when the agent starts.
fn can_confine(options: &Options) -> bool {
    let can = options.confine && !options.portable && confinement::is_supported();
    if options.confine && !can {
        tracing::warn!(
            event = "landlock_unavailable",
            "this system has no Landlock, or one before Linux 5.19: a run can read what other runs of its user have"
        );
    }
    let (users_differ, is_root) = match &options.run_as {
        Some(users) => (users.differ(), false),
        None => (false, nix::unistd::geteuid().is_root()),
    };
    let open = isolation_gaps(can, can && confinement::keeps_signals(), users_differ, options.run_as.as_ref(), is_root);
    match open.as_slice() {
        [] => tracing::info!("runs are isolated from each other's files and processes"),
        open if !options.confine || is_root => {
            tracing::warn!(event = "runs_not_isolated", "runs are not fully isolated: {}", open.join("; "));
        }
        open => tracing::info!("runs are not fully isolated: {}", open.join("; ")),
    }
    can
}

/// Gaps in the isolation of runs, for people.
fn isolation_gaps(
    files: bool,
    signals: bool,
    users_differ: bool,
    run_as: Option<&RunUsers>,
    is_root: bool,
) -> Vec<&'static str> {
    let mut open = Vec::new();
    if is_root {
        open.push("they execute as root and can change this system (set agent_run_as, or --run-as, to another user)");
    }
    if !files && !users_differ {
        open.push("a run can read files and variables of other runs");
    }
    if !signals && !users_differ {
        open.push("a run can end processes of other runs (Linux 6.12 can prevent it, and so can a user for each run)");
    }
    if !signals && run_as.is_none() {
        open.push("a run can end its agent (another user for runs prevents it)");
    }
    open
}
