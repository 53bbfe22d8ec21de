//! The agent within the server. It is the same as `taco-agent`, and comes through a door that only it can reach.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use taco_agent::{Dial, EngineMirror, EngineTrust, Options, ProviderMirror, RunEnvironment, RunUsers};
use tokio::io::DuplexStream;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::config::{AgentEnvironment, Settings};
use crate::shutdown::Shutdown;
use crate::{master_keys, tls};

/// The first argument of a `taco` that supervises an engine.
pub(crate) const SUPERVISE: &str = "supervise-engine";

/// Bytes between agent and server that wait for either.
const BUFFER_BYTES: usize = 256 * 1024;

/// Grace period for phases under way when the server shuts down; then they are interrupted.
pub(crate) const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(15);

/// Executes phases until the server goes down. What is under way then is interrupted after `patience`, or never.
pub(crate) async fn run(options: Options, door: Router, patience: Option<Duration>, shutdown: Shutdown) {
    let dial = Dial::embedded(move || open(&door));
    let (urgency, asked) = watch::channel(taco_agent::Shutdown::Stay);
    let mut agent = tokio::spawn(taco_agent::run(options, dial, asked));
    let ended = tokio::select! {
        ended = &mut agent => ended,
        () = shutdown.begun() => {
            urgency.send_replace(taco_agent::Shutdown::Drain);
            let drained = async {
                match patience {
                    Some(patience) => timeout(patience, &mut agent).await.ok(),
                    None => Some((&mut agent).await),
                }
            };
            match drained.await {
                Some(ended) => ended,
                None => {
                    urgency.send_replace(taco_agent::Shutdown::Stop);
                    agent.await
                }
            }
        }
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::error!(
                event = "embedded_agent_stopped", %error,
                "the server's own agent has stopped; runs need another one"
            );
        }
        Err(error) => {
            tracing::error!(
                event = "embedded_agent_crashed", %error,
                "the server's own agent broke; runs need another one"
            );
        }
    }
}

/// A connection to this very server.
fn open(door: &Router) -> DuplexStream {
    let (agent, server) = tokio::io::duplex(BUFFER_BYTES);
    let service = TowerToHyperService::new(door.clone());
    tokio::spawn(async move {
        // It is our own, so that nothing limits how long it may take.
        let connection =
            http1::Builder::new().header_read_timeout(None).serve_connection(TokioIo::new(server), service);
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection of the server's own agent ended early");
        }
    });
    agent
}

/// Options of the agent.
pub(crate) fn options(
    settings: &Settings,
    run_as: Option<RunUsers>,
    engine_trust: EngineTrust,
    journal_secret: String,
    authority: Option<&Path>,
    port: u16,
) -> Options {
    Options {
        name: "server".to_owned(),
        token: String::new(),
        concurrency: settings.agent_concurrency.into(),
        once: false,
        work_dir: settings.agent_work_dir.clone().unwrap_or_else(|| work_dir(port)),
        provider_mirror: settings.provider_mirror.clone().map(ProviderMirror::Directory),
        engine_mirror: match &settings.engine_mirror {
            Some(url) => EngineMirror::At(url.as_url().clone()),
            None => EngineMirror::Makers,
        },
        engine_trust,
        ca_file: authority.map(Path::to_owned),
        run_as,
        confine: !settings.agent_unconfined,
        engine_store: settings.engine_store.clone(),
        provider_cache: settings.provider_cache.clone(),
        environment: match settings.agent_environment {
            AgentEnvironment::Clean => RunEnvironment::Clean,
            AgentEnvironment::Inherit => RunEnvironment::Inherit(inherited()),
        },
        keeps_id: false,
        portable: settings.agent_portable,
        forbidden: forbidden(settings),
        supervisor: Options::own_supervisor(SUPERVISE),
        journal_secret,
    }
}

/// Paths that only the server may read and change. A run has the server's user, unless a setting names another one.
fn forbidden(settings: &Settings) -> Vec<PathBuf> {
    let bucket = settings.bucket.as_str();
    let beside_bucket = [master_keys::directory(bucket), master_keys::key_file(bucket), tls::key_beside(bucket)];
    let key = settings.tls_key.as_ref().map(|path| path.as_path().to_owned());
    beside_bucket.into_iter().chain([key]).flatten().chain(settings.files_with_secrets.iter().cloned()).collect()
}

/// The server's own variables, without its settings.
fn inherited() -> Vec<(OsString, OsString)> {
    let variables = crate::environment::variables();
    let is_setting = |name: &str| name.starts_with("TACO_");
    let kept = variables.into_iter().filter(|(name, _)| !is_setting(name));
    kept.map(|(name, value)| (name.into(), value.into())).collect()
}

/// Servers on one machine differ in their ports.
fn work_dir(port: u16) -> PathBuf {
    let variables = crate::environment::variables();
    let of = |name: &str| variables.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = of("XDG_DATA_HOME").or_else(|| Some(of("HOME")?.join(".local/share")));
    data.unwrap_or_else(std::env::temp_dir).join(format!("taco/agent-{port}"))
}
