//! `taco-agent` as people call it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgAction, Parser};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use url::Url;

use crate::dial::Dial;
use crate::engine_trust::EngineTrust;
use crate::options::{EngineMirror, Options, ProviderMirror, RunEnvironment};
use crate::platform;
use crate::secrets::{self, Token};
use crate::shutdown::Shutdown;
use crate::supervise;
use crate::users::RunUsers;

/// The first argument of the process between agent and engine.
const SUPERVISE: &str = "supervise";

/// Takes phases of runs from a taco server and executes them with terraform or tofu.
///
/// The first SIGTERM lets it finish what it has; the second interrupts its engines.
#[derive(Parser)]
#[command(name = "taco-agent", version)]
struct Arguments {
    /// Address of the server
    #[arg(long, env = "TACO_AGENT_SERVER", value_name = "URL")]
    server: Url,
    /// Token of the agent pool; better is --token-file
    #[arg(long, env = "TACO_AGENT_TOKEN", hide_env_values = true, group = "source")]
    token: Option<String>,
    /// File with the token of the agent pool
    #[arg(long, env = "TACO_AGENT_TOKEN_FILE", value_name = "FILE", group = "source")]
    token_file: Option<PathBuf>,
    /// Read the token from standard input
    #[arg(long, group = "source")]
    token_on_stdin: bool,
    /// What people call it; the host's name if not given
    #[arg(long, env = "TACO_AGENT_NAME")]
    name: Option<String>,
    /// How many phases it executes at a time
    #[arg(long, env = "TACO_AGENT_CONCURRENCY", default_value_t = 1, value_name = "COUNT",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    concurrency: u32,
    /// Run one job, then exit
    #[arg(long, env = "TACO_AGENT_ONCE", action = ArgAction::SetTrue)]
    once: bool,
    /// Directory for engines, runs and the journal; each agent has its own
    #[arg(long, env = "TACO_AGENT_WORK_DIR", value_name = "DIRECTORY")]
    work_dir: Option<PathBuf>,
    /// Directory or https address where engines find providers first
    #[arg(long, env = "TACO_PROVIDER_MIRROR", value_name = "PLACE")]
    provider_mirror: Option<String>,
    /// Address to download engines from (https, or file for a directory), laid out as releases.hashicorp.com is; `none` for
    /// no downloads
    #[arg(long, env = "TACO_ENGINE_MIRROR", value_name = "URL")]
    engine_mirror: Option<String>,
    /// File with OpenPGP keys that sign engines, beside those of HashiCorp and OpenTofu
    #[arg(long, env = "TACO_ENGINE_KEYS", value_name = "FILE")]
    engine_keys: Option<PathBuf>,
    /// File with checksums of engines' archives, as sha256sum prints them; those in it need no signature
    #[arg(long, env = "TACO_ENGINE_CHECKSUMS", value_name = "FILE")]
    engine_checksums: Option<PathBuf>,
    /// File with more certificate authorities, in PEM
    #[arg(long, env = "TACO_AGENT_CA_FILE", value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// User that engines run as, or several for one each (`runs-1,runs-2`, or by number `64000-64031`); needs an agent of
    /// root
    #[arg(long, env = "TACO_AGENT_RUN_AS", value_name = "USERS")]
    run_as: Option<String>,
    /// Let runs touch all that their user may, also what other runs have: for those that mount something or need sudo
    #[arg(long, env = "TACO_AGENT_UNCONFINED", action = ArgAction::SetTrue)]
    unconfined: bool,
}

/// The whole program.
pub fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == SUPERVISE) {
        return supervise::main();
    }
    match start(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(error)) => {
            eprintln!("taco-agent: {error}");
            ExitCode::from(2)
        }
        Err(Failure::Other(error)) => {
            eprintln!("taco-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

/// One line for people.
enum Failure {
    Usage(String),
    Other(String),
}

fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::Usage(error.to_string())
}

fn other(error: impl std::fmt::Display) -> Failure {
    Failure::Other(error.to_string())
}

fn start(arguments: Arguments) -> Result<(), Failure> {
    let token = match (&arguments.token, &arguments.token_file, arguments.token_on_stdin) {
        (Some(token), _, _) => {
            let token = Token { text: token.clone(), file: None };
            return Err(other(secrets::start_again(&token)));
        }
        (None, Some(file), _) => return Err(other(secrets::start_again(&secrets::token_of(file).map_err(usage)?))),
        (None, None, true) => secrets::token_on_stdin().map_err(usage)?,
        (None, None, false) => {
            return Err(usage(
                "a token is needed: --token-file FILE, or TACO_AGENT_TOKEN (`taco pool token create` makes one)",
            ));
        }
    };
    platform::forbid_inspection().map_err(other)?;
    tracing_subscriber::fmt()
        .with_max_level(log_level(std::env::var("RUST_LOG").ok().as_deref()))
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .finish()
        .with(filter_fn(secrets::may_be_logged))
        .init();
    let dial = Dial::network(arguments.server.clone(), arguments.ca_file.as_deref()).map_err(usage)?;
    let options = options(arguments, token)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(other)?;
    runtime.block_on(async {
        let (sender, shutdown) = watch::channel(Shutdown::Stay);
        let mut terminated = signal(SignalKind::terminate()).map_err(other)?;
        let mut interrupted = signal(SignalKind::interrupt()).map_err(other)?;
        tokio::spawn(async move {
            for urgency in [Shutdown::Drain, Shutdown::Stop] {
                tokio::select! {
                    _ = terminated.recv() => {}
                    _ = interrupted.recv() => {}
                }
                sender.send_replace(urgency);
            }
        });
        crate::run(options, dial, shutdown).await.map_err(other)
    })
}

fn log_level(word: Option<&str>) -> tracing::Level {
    word.and_then(|word| word.parse().ok()).unwrap_or(tracing::Level::INFO)
}

fn options(arguments: Arguments, token: Token) -> Result<Options, Failure> {
    let name = match arguments.name {
        Some(name) => name,
        None => nix::unistd::gethostname().map_err(other)?.to_string_lossy().into_owned(),
    };
    let work_dir = match arguments.work_dir {
        Some(directory) => directory,
        None => default_work_dir().ok_or_else(|| usage("--work-dir is needed: there is no home directory"))?,
    };
    let concurrency = if arguments.once { 1 } else { arguments.concurrency };
    let run_as = arguments.run_as.as_deref().map(|users| run_as(users, concurrency));
    Ok(Options {
        name,
        journal_secret: token.text.clone(),
        token: token.text,
        concurrency,
        once: arguments.once,
        work_dir,
        provider_mirror: arguments.provider_mirror.as_deref().map(provider_mirror).transpose().map_err(usage)?,
        engine_mirror: engine_mirror(arguments.engine_mirror.as_deref()).map_err(usage)?,
        engine_trust: EngineTrust::read(arguments.engine_keys.as_deref(), arguments.engine_checksums.as_deref())
            .map_err(usage)?,
        ca_file: arguments.ca_file,
        run_as: run_as.transpose().map_err(usage)?,
        confine: !arguments.unconfined,
        engine_store: None,
        provider_cache: None,
        environment: RunEnvironment::Clean,
        keeps_id: false,
        portable: false,
        forbidden: token.file.into_iter().collect(),
        supervisor: Options::own_supervisor(SUPERVISE),
    })
}

fn default_work_dir() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|home| !home.is_empty()).map(|home| Path::new(&home).join(".taco-agent"))
}

fn provider_mirror(place: &str) -> Result<ProviderMirror, String> {
    if place.starts_with("http://") {
        return Err(format!("--provider-mirror {place}: engines take mirrors by https only"));
    }
    if place.starts_with("https://") {
        return Url::parse(place)
            .map(ProviderMirror::Network)
            .map_err(|error| format!("--provider-mirror {place}: {error}"));
    }
    let directory = std::path::absolute(place).map_err(|error| format!("--provider-mirror {place}: {error}"))?;
    match directory.is_dir() {
        true => Ok(ProviderMirror::Directory(directory)),
        false => Err(format!("--provider-mirror {place}: there is no such directory")),
    }
}

fn engine_mirror(address: Option<&str>) -> Result<EngineMirror, String> {
    match address {
        None => Ok(EngineMirror::Makers),
        Some("none") => Ok(EngineMirror::Nowhere),
        Some(address) => match Url::parse(address) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(EngineMirror::At(url)),
            Ok(url) if url.to_file_path().is_ok() => Ok(EngineMirror::At(url)),
            _ => Err(format!("--engine-mirror {address}: give an https address, file:///…, or none")),
        },
    }
}

fn run_as(users: &str, concurrency: u32) -> Result<RunUsers, String> {
    let parsed = RunUsers::parse(users).and_then(|users| users.check_concurrency(concurrency).map(|()| users));
    parsed.map_err(|reason| format!("--run-as {users}: this {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_are_checked_when_the_agent_starts() {
        assert!(provider_mirror("http://mirror").is_err());
        assert!(provider_mirror("/no/such/directory").is_err());
        assert!(matches!(provider_mirror("https://mirror/"), Ok(ProviderMirror::Network(_))));
        assert!(matches!(provider_mirror("/"), Ok(ProviderMirror::Directory(_))));
        assert_eq!(engine_mirror(None), Ok(EngineMirror::Makers));
        assert_eq!(engine_mirror(Some("none")), Ok(EngineMirror::Nowhere));
        assert!(matches!(engine_mirror(Some("file:///srv/engines")), Ok(EngineMirror::At(_))));
        assert!(engine_mirror(Some("mirror")).is_err());
    }
}
