//! Local mode: a command serves the bucket of its directory itself, for as long as it takes. It is the same server as
//! `taco server`, on a free port of this machine, with an agent that works for the person at the keyboard.

mod cache;
pub(crate) mod in_bucket_key;

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use taco_cli::{BoxFuture, Doors, LocalBucket, LocalServer, ServesBuckets};
use taco_ledger::SharedRng;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

use crate::config::{Configuration, Flags, ProcessEnv, Secret};
use crate::server::{Running, Server};
use crate::{bucket, logging};

pub(crate) use cache::{Cache, RememberedProbe};

/// Serves the bucket of a command within its own process.
#[derive(Default)]
pub(crate) struct LocalHost {
    /// Started with the first bucket: most commands have a server elsewhere.
    runtime: OnceLock<Runtime>,
    served: Mutex<Option<Served>>,
}

struct Served {
    running: Running,
    answer: LocalServer,
    _logging: logging::Logging,
    /// Held for as long as this process uses its work directory.
    _slot: File,
}

/// What makes a server one for its operator alone.
#[derive(Clone, Debug)]
pub(crate) struct LocalOptions {
    /// Who its operator claims to be.
    pub(crate) author: String,
    pub(crate) probe: RememberedProbe,
}

impl LocalHost {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    fn runtime(&self) -> anyhow::Result<&Runtime> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime);
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        Ok(self.runtime.get_or_init(|| runtime))
    }

    async fn serve_once(&self, bucket: &LocalBucket) -> anyhow::Result<LocalServer> {
        let mut served = self.served.lock().await;
        if let Some(served) = &*served {
            return Ok(served.answer.clone());
        }
        let bucket = bucket.clone();
        // The command itself may wait for a terminal in its own thread.
        let started = self.runtime()?.spawn(async move { start(&bucket).await }).await??;
        Ok(served.insert(started).answer.clone())
    }
}

impl ServesBuckets for LocalHost {
    fn serve<'a>(&'a self, bucket: &'a LocalBucket) -> BoxFuture<'a, Result<LocalServer, String>> {
        Box::pin(async move { self.serve_once(bucket).await.map_err(|error| format!("{error:#}")) })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let served = self.served.lock().await.take();
            let (Some(Served { running, _logging, _slot, .. }), Some(runtime)) = (served, self.runtime.get()) else {
                return;
            };
            running.shutdown();
            // A task that broke has nothing left to wait for.
            let _ = runtime.spawn(running.wait()).await;
        })
    }
}

impl Drop for LocalHost {
    fn drop(&mut self) {
        // What is left was not worth waiting for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn start(wanted: &LocalBucket) -> anyhow::Result<Served> {
    // Runs can look at what belongs to their user, and this process holds the bucket's key.
    taco_agent::platform::forbid_inspection()?;
    let process_env = ProcessEnv::of_this_process();
    let cache = Cache::of_user(&process_env.variables).context("there is no home directory: HOME is not set")?;
    let (slot, work_dir) = cache.take_slot(&wanted.url).context("the cache directory cannot be used")?;
    let configuration = Configuration::load(&flags(wanted, &process_env, &cache, work_dir), &process_env)?;
    let mut settings = configuration.settings.clone();
    let logging = logging::start(&settings);
    let rng = SharedRng::from_system();
    let token = format!("{}{}", rng.unique(), rng.unique());
    settings.site_token = Some(Secret::new(&token));
    settings.no_auth = matches!(wanted.doors, Doors::OfMachine(_));
    (settings.tls_cert, settings.tls_key, settings.tls_dev) = (None, None, false);
    (settings.metrics_listen, settings.peer_url, settings.agent_run_as) = (None, None, None);
    settings.agent_concurrency = settings.agent_concurrency.max(1);
    let opened = bucket::open(&settings, &rng).with_context(|| configuration.bucket_in_words())?;
    in_bucket_key::find_or_make(&mut settings, &*opened.with_retries, &rng).await?;
    let probe = cache.remembered_probe(settings.bucket.as_str(), settings.s3_endpoint.as_ref());
    let options = LocalOptions { author: wanted.author.clone(), probe };
    let running = Server::start_local(settings, opened, options).await?;
    let address = format!("http://{}", running.address);
    Ok(Served { running, answer: LocalServer { address, token }, _logging: logging, _slot: slot })
}

/// Settings of a local server. Variables count as for any server; a `taco.toml` beside the configuration does not, because
/// it may have come with a repository.
fn flags(wanted: &LocalBucket, process_env: &ProcessEnv, cache: &Cache, work_dir: PathBuf) -> Flags {
    let listen = match wanted.doors {
        Doors::OfCommand => "127.0.0.1:0".to_owned(),
        Doors::OfMachine(address) => address.to_string(),
    };
    let path = |path: PathBuf| Some(path.display().to_string());
    let fixed = [
        ("bucket", Some(wanted.url.clone())),
        ("url", Some(format!("http://{listen}"))),
        ("listen", Some(listen)),
        ("s3_endpoint", wanted.s3_endpoint.clone()),
        ("s3_region", wanted.s3_region.clone()),
        ("agent_work_dir", path(work_dir)),
    ];
    // What is said to a person who waits for a plan should be about the plan.
    let defaults = [
        ("log_level", Some("error".to_owned())),
        ("log_format", Some("text".to_owned())),
        // Runs are the user's own, and have what the user has: a home directory of which they could see only parts would
        // break what they start.
        ("agent_environment", Some("inherit".to_owned())),
        ("agent_unconfined", Some("true".to_owned())),
        // Each command reads all commits since the last snapshot.
        ("snapshot_every", Some("16".to_owned())),
        ("engine_store", path(cache.engines())),
        ("provider_cache", path(cache.providers())),
    ];
    let is_given = |key: &str| {
        let variable = format!("TACO_{}", key.to_ascii_uppercase());
        process_env.variables.contains_key(&variable)
            || (key == "log_level" && process_env.variables.contains_key("RUST_LOG"))
    };
    let defaults = defaults.into_iter().filter(|(key, _)| !is_given(key));
    let given = fixed.into_iter().chain(defaults).filter_map(|(key, value)| Some((key, value?)));
    let file = (!process_env.variables.contains_key("TACO_CONFIG")).then(|| PathBuf::from("/dev/null"));
    Flags::of(file, given)
}
