//! A server in this process: opens the bucket, puts the doors together, and serves them.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use jiff::SignedDuration;
use taco_agent::{EngineTrust, Options as AgentOptions, RunUsers};
use taco_agent_api::AgentApi;
use taco_control_plane::{HistorySettings, Limits, NotificationSettings, Privileged, Timeouts};
use taco_domain::Author;
use taco_domain::global_queue::AgentScope;
use taco_ledger::beacon::{BEACON_INTERVAL, Beacons};
use taco_ledger::doctor::{ProbeError, Thoroughness, probe};
use taco_ledger::{
    Bucket, BucketErrorKind, Clock, Environment, LocationError, Options, SharedRng, SystemClock, format,
};
use taco_scheduler::{Leases, Scheduler};
use taco_tfc_api::Api;
use taco_web::Web;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower_http::timeout::TimeoutLayer;

use crate::bucket::OpenBucket;
use crate::config::{FilePath, PublicUrl, Settings};
use crate::connections::{ConnectionLimits, Service, Tls, lead_to_https};
use crate::courier::OutboundCourier;
use crate::health::{self, Readiness};
use crate::local::{LocalOptions, RememberedProbe};
use crate::master_keys::{self, KeyError};
use crate::peers::{self, BeaconPeers};
use crate::shutdown::Shutdown;
use crate::tls::{self, TlsError};
use crate::trusted_proxies::TrustedProxies;
use crate::{
    bucket, connections, embedded_agent, graphs, history, http, limits, metrics, no_auth, open_files, packs, retention,
};

/// Length from which a token cannot be guessed.
const MIN_TOKEN_LENGTH: usize = 32;

/// Connection limit of the second listener, which serves little and few.
const MAX_METRICS_CONNECTIONS: usize = 32;

/// Time after which a server that someone has started for a command tidies up: it is not one for a command then.
const LOCAL_TIDY_UP_DELAY: Duration = Duration::from_mins(5);

/// Name of the server that executes a run, for that run.
const LOCAL_HOST: &str = "taco.local";

/// Reason why a server did not start.
#[derive(thiserror::Error, Debug)]
pub enum StartError {
    #[error("{address} is taken by another program; stop that one, or choose another address with --{flag}")]
    Taken { address: SocketAddr, flag: &'static str },
    #[error("cannot listen on {address}: {why}; choose another address with --{flag}")]
    Listen { address: SocketAddr, flag: &'static str, why: io::Error },
    #[error(
        "no_auth lets everyone in who reaches {address}, so that it needs a loopback address, for example --listen 127.0.0.1:8080"
    )]
    NoAuthInPublic { address: SocketAddr },
    #[error("agent_run_as: {user} {reason}")]
    RunAs { user: String, reason: String },
    #[error("engine_keys or engine_checksums: {0}")]
    EngineTrust(String),
    #[error("requests to configured addresses cannot be sent: {0}")]
    Outbound(String),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Location(#[from] LocationError),
    #[error(transparent)]
    Bucket(#[from] ProbeError),
    #[error(transparent)]
    Content(#[from] taco_ledger::Error),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(
        "what this bucket holds was sealed with another key: {0}. Set TACO_SECRET_KEY to the key that it was made with"
    )]
    WrongKey(String),
    #[error(transparent)]
    Site(taco_control_plane::Error),
}

impl From<taco_control_plane::Error> for StartError {
    /// Callers are spared the details of what is stored; the operator who starts a server wants to know them.
    fn from(error: taco_control_plane::Error) -> Self {
        match error {
            taco_control_plane::Error::Unavailable(error) | taco_control_plane::Error::Corrupt(error) => error.into(),
            taco_control_plane::Error::Sealed(why) => Self::WrongKey(why),
            other => Self::Site(other),
        }
    }
}

/// Starts servers.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Starts a server. It answers requests by the time this returns.
    pub async fn start(settings: Settings) -> Result<Running, StartError> {
        Self::start_with(settings, Router::new()).await
    }

    /// Starts a server that has further routes.
    pub async fn start_with(settings: Settings, further: Router) -> Result<Running, StartError> {
        Self::start_on(settings, None, further, None).await
    }

    /// Starts a server for its operator alone, on a bucket that is open already.
    pub(crate) async fn start_local(
        settings: Settings,
        bucket: OpenBucket,
        local: LocalOptions,
    ) -> Result<Running, StartError> {
        Self::start_on(settings, Some(bucket), Router::new(), Some(local)).await
    }

    async fn start_on(
        settings: Settings,
        opened: Option<OpenBucket>,
        further: Router,
        local: Option<LocalOptions>,
    ) -> Result<Running, StartError> {
        if settings.no_auth && !settings.listen.ip().is_loopback() {
            return Err(StartError::NoAuthInPublic { address: settings.listen });
        }
        if settings.site_token.as_ref().is_some_and(|token| token.expose().chars().count() < MIN_TOKEN_LENGTH) {
            tracing::warn!(
                event = "site_token_weak",
                "site_token has fewer than {MIN_TOKEN_LENGTH} characters: whoever guesses it is the site's admin. \
                 `openssl rand -hex 32` prints one that nobody guesses"
            );
        }
        let run_as = settings.agent_run_as.as_deref().map(|users| run_as(users, settings.agent_concurrency.into()));
        let run_as = run_as.transpose()?;
        let path = |file: &Option<FilePath>| file.as_ref().map(|path| path.as_path().to_owned());
        let (keys, checksums) = (path(&settings.engine_keys), path(&settings.engine_checksums));
        let engine_trust = EngineTrust::read(keys.as_deref(), checksums.as_deref()).map_err(StartError::EngineTrust)?;
        master_keys::check(&settings)?;
        let open_files = open_files::raise();
        // First, because it fails most often and at once.
        let listener = listen(settings.listen, "listen").await?;
        let metrics_listener = match settings.metrics_listen {
            Some(address) => Some(listen(address, "metrics-listen").await?),
            None => None,
        };
        let address = address_of(&listener);
        let metrics_address = metrics_listener.as_ref().map(address_of);
        let url = settings.url.clone().with_chosen_port(address.port());

        let recorder = metrics::recorder();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let rng = SharedRng::from_system();
        let bucket = match opened {
            Some(bucket) => bucket,
            None => bucket::open(&settings, &rng)?,
        };
        let remembered = local.as_ref().map(|local| &local.probe);
        warn_if_slow(check_bucket(&bucket.with_retries, &settings, remembered, &*clock, &rng)).await?;

        let shutdown = Shutdown::new();
        let (mut under_way, mut tasks) = (JoinSet::new(), JoinSet::new());
        let server_id = rng.unique();
        let reachable_at = match &settings.peer_url {
            Some(url) => url.as_str().parse().ok(),
            None => peers::own_address(address, settings.speaks_tls()),
        };
        let (store, own_clock) = (Arc::clone(&bucket.with_retries), Arc::clone(&clock));
        let beacons = Arc::new(Beacons::new(store, own_clock, &server_id, reachable_at, BEACON_INTERVAL));
        let now = clock.now();
        let environment = Environment {
            bucket: bucket.with_retries,
            clock,
            rng: rng.clone(),
            server: server_id.clone(),
            peers: beacons.peers(),
        };
        let notifications = NotificationSettings {
            courier: Arc::new(OutboundCourier::of(&settings).map_err(StartError::Outbound)?),
            site_url: url.to_string().trim_end_matches('/').to_owned(),
        };
        let own_settings = control_plane_settings(&settings, &rng, own_hosts(&url, address))?;
        let own_settings = taco_control_plane::Settings { notifications, ..own_settings };
        let control_plane = Privileged::open(environment, own_settings).await?;
        // A caller with the site's token is the first admin, so there has to be one.
        let (admin_without_password, scope) = match &local {
            None => (control_plane.make_first_admin().await?, AgentScope::WithinServer),
            Some(local) => {
                let author = control_plane.act_for_claimed_author(&local.author).await?;
                (None, AgentScope::OfPerson(Author::User(author)))
            }
        };
        // Late enough: its files are next to the bucket, which is there by now.
        let tls = tls::load(&settings, now, &rng)?;
        let (acceptor, certificate_authority) = tls.map(|tls| (tls.acceptor, tls.certificate_authority)).unzip();
        let scheduler = Scheduler::new(
            control_plane.clone(),
            Leases::of(Duration::from_secs(settings.agent_lease.into())),
            Arc::new(BeaconPeers { beacons: Arc::clone(&beacons) }),
        );
        let scheduler = if local.is_some() { scheduler.briefly() } else { scheduler };
        let agent_api = AgentApi::new(control_plane.clone(), scheduler.clone(), &url.to_string());
        let (peer_wakeup_route, looking) = peers::peer_wakeup_route(control_plane.clone(), scheduler.wake());
        tasks.spawn(until(shutdown.clone(), looking));
        tasks.spawn(peers::notify_peers(control_plane.clone(), Arc::clone(&beacons), shutdown.clone()));
        tasks.spawn(schedule(scheduler.clone(), beacons, shutdown.clone()));
        tasks.spawn(disconnect_clients(control_plane.clone(), scheduler, shutdown.clone()));
        tasks.spawn(until(shutdown.clone(), graphs::examine_for_ever(control_plane.clone())));
        // What tidies up takes more requests than a command, and is in no hurry.
        let pause = if local.is_some() { LOCAL_TIDY_UP_DELAY } else { Duration::ZERO };
        let deleting = retention::delete_for_ever(control_plane.clone());
        tasks.spawn(until(shutdown.clone(), after(pause, deleting)));
        let archiving = history::archive_for_ever(control_plane.clone());
        tasks.spawn(until(shutdown.clone(), after(pause, archiving)));
        let pack_after = Duration::from_mins(settings.pack_after.into());
        let packing = packs::pack_for_ever(control_plane.clone(), pack_after);
        tasks.spawn(until(shutdown.clone(), after(pause, packing)));
        if settings.agent_concurrency > 0 {
            let authority = certificate_authority.as_ref().and_then(|path| path.as_deref());
            let secret = control_plane.journal_secret();
            let options = embedded_agent::options(&settings, run_as, engine_trust, secret, authority, address.port());
            let options = AgentOptions { keeps_id: local.is_some(), ..options };
            // The command that has started a local server waits for its runs.
            let patience = local.is_none().then_some(embedded_agent::SHUTDOWN_GRACE_PERIOD);
            let door = agent_api.router_within_for(scope);
            under_way.spawn(embedded_agent::run(options, door, patience, shutdown.clone()));
        }

        let api = Api::new(control_plane.control_plane(), &url.to_string());
        let mut api = api.with_rate_limit(settings.api_rate_limit);
        let readiness = Readiness::new(bucket.without_retries, bucket.writes, control_plane.clone(), shutdown.clone());
        let mut own = health::routes(readiness);
        let metrics_routes = metrics::routes(recorder.clone());
        match metrics_listener {
            None => own = own.merge(metrics_routes),
            Some(listener) => {
                let routes = http::surround(in_time(metrics_routes), None, rng.clone());
                let limits = ConnectionLimits { all: MAX_METRICS_CONNECTIONS, per_address: MAX_METRICS_CONNECTIONS };
                let service = Service { tls: None, routes, limits, proxies: TrustedProxies::default() };
                under_way.spawn(connections::serve(listener, service, shutdown.clone()));
            }
        }
        let mut web = Web::new(control_plane.control_plane(), url.as_url()).with_bucket(settings.bucket.as_str());
        if settings.no_auth {
            tracing::warn!(event = "no_auth", "runs without login: everyone on this machine is the site's admin");
            (api, web) = (api.without_login(), web.without_login());
        }
        let nothing_here = http::packed(in_time(web.clone().into_nothing_here()));
        let mut doors = api.into_router().merge(http::packed(in_time(web.into_router()))).merge(further);
        doors = doors.merge(agent_api.router()).merge(in_time(peer_wakeup_route));
        if settings.no_auth {
            doors = no_auth::only_for_this_machine(doors);
        }
        let routes = http::surround(in_time(own).merge(doors), Some(nothing_here), rng);
        let service = Service {
            tls: acceptor.map(|acceptor| Tls { acceptor, for_plain_http: lead_to_https(url.as_url()) }),
            routes,
            limits: open_files::connection_limits(
                open_files,
                settings.max_connections,
                settings.max_connections_per_address,
            ),
            proxies: settings.trusted_proxies.clone().unwrap_or_default(),
        };
        under_way.spawn(connections::serve(listener, service, shutdown.clone()));
        tasks.spawn(metrics::run_upkeep(recorder, shutdown.clone()));
        tracing::info!(%address, %url, server_id, bucket = settings.bucket.as_str(), "listening");
        let certificate_authority = certificate_authority.flatten();
        Ok(Running {
            address,
            metrics_address,
            url,
            control_plane,
            admin_without_password,
            certificate_authority,
            shutdown,
            under_way,
            tasks,
        })
    }
}

/// A server that was started.
#[derive(Debug)]
pub struct Running {
    pub address: SocketAddr,
    pub metrics_address: Option<SocketAddr>,
    pub url: PublicUrl,
    pub control_plane: Privileged,
    /// The first admin's name, while they have no password.
    pub admin_without_password: Option<String>,
    /// Certificate authority that clients have to trust, if the server has made its own.
    pub certificate_authority: Option<PathBuf>,
    shutdown: Shutdown,
    /// Requests, and the server's own agent.
    under_way: JoinSet<()>,
    /// Background tasks for as long as those are there.
    tasks: JoinSet<()>,
}

impl Running {
    /// Asks the server to stop: it takes no new requests and finishes those under way. [`Running::wait`] for the end.
    pub fn shutdown(&self) {
        self.shutdown.begin();
    }

    /// Waits until the server has stopped.
    pub async fn wait(self) {
        self.under_way.join_all().await;
        self.shutdown.is_quiet();
        self.tasks.join_all().await;
        self.control_plane.flush().await;
    }
}

fn run_as(users: &str, concurrency: u32) -> Result<RunUsers, StartError> {
    let parsed = RunUsers::parse(users).and_then(|users| users.check_concurrency(concurrency).map(|()| users));
    parsed.map_err(|reason| StartError::RunAs { user: users.to_owned(), reason })
}

pub(crate) fn control_plane_settings(
    settings: &Settings,
    rng: &SharedRng,
    hosts: Vec<String>,
) -> Result<taco_control_plane::Settings, KeyError> {
    Ok(taco_control_plane::Settings {
        master_keys: Arc::new(master_keys::load(settings, rng)?),
        site_token: settings.site_token.as_ref().map(|token| token.expose().to_owned()),
        ledger: ledger_options(settings),
        timeouts: Timeouts {
            plan: SignedDuration::from_mins(settings.plan_timeout.into()),
            apply: SignedDuration::from_mins(settings.apply_timeout.into()),
            ..Timeouts::default()
        },
        limits: Limits {
            organizations_per_user: Some(settings.organizations_per_user.into()).filter(|most| *most > 0),
        },
        history: HistorySettings::default(),
        hosts,
        notifications: NotificationSettings::default(),
        opa: settings.opa.as_ref().map(|path| path.as_path().to_owned()).or_else(opa_on_path),
    })
}

/// The `opa` that is installed on this host, if there is one.
fn opa_on_path() -> Option<PathBuf> {
    taco_control_plane::opa_on_path(&std::env::var_os("PATH")?)
}

/// Hosts under which clients know this server: that of its URL, the address that it listens on, and the name that every run
/// has for the server that executes it.
fn own_hosts(url: &PublicUrl, address: SocketAddr) -> Vec<String> {
    let url = url.as_url();
    let host = url.host_str().unwrap_or_default();
    let with_port = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    vec![with_port, address.to_string(), LOCAL_HOST.to_owned()]
}

fn ledger_options(settings: &Settings) -> Options {
    let snapshot_every = u64::from(settings.snapshot_every).max(1);
    let pack_after = SignedDuration::from_mins(settings.pack_after.into());
    Options { snapshot_every, pack_commits: snapshot_every, pack_after, ..Options::default() }
}

/// Refuses a bucket that taco cannot rest on. One of a newer format is left alone, so the format comes first; an empty
/// one is marked as ours only when it has proved honest.
async fn check_bucket(
    bucket: &Arc<dyn Bucket>,
    settings: &Settings,
    remembered: Option<&RememberedProbe>,
    clock: &dyn Clock,
    rng: &SharedRng,
) -> Result<(), StartError> {
    if remembered.is_some_and(RememberedProbe::is_fresh) {
        format::ensure(&**bucket, clock).await?;
        return Ok(());
    }
    let is_ours = format::read(&**bucket).await?.is_some();
    match probe(bucket, rng, Thoroughness::for_start_on(&settings.location())).await {
        // It proved honest when it was marked as ours. What it holds can be served, and it may take writes later.
        Err(ProbeError::Bucket(error))
            if is_ours && matches!(error.kind, BucketErrorKind::Full | BucketErrorKind::Denied) =>
        {
            tracing::error!(
                event = "bucket_read_only", %error,
                "the bucket takes no writes: starting all the same, to serve what can be read"
            );
            return Ok(());
        }
        probed => probed?,
    }
    if let Some(remembered) = remembered {
        remembered.remember();
    }
    format::ensure(&**bucket, clock).await?;
    Ok(())
}

/// A bucket that cannot be reached is given some time; meanwhile the operator should not have to guess.
async fn warn_if_slow<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    match timeout(Duration::from_secs(2), work.as_mut()).await {
        Ok(done) => done,
        Err(_) => {
            tracing::warn!(event = "bucket_unreachable", "the bucket has not answered yet; trying on");
            work.await
        }
    }
}

async fn listen(address: SocketAddr, flag: &'static str) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|why| match why.kind() {
        io::ErrorKind::AddrInUse => StartError::Taken { address, flag },
        _ => StartError::Listen { address, flag, why },
    })
}

fn address_of(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().expect("a listener has an address")
}

/// Gives phases to agents, and lets all servers know of the agents' heartbeats, for as long as one of this server's may
/// have a phase; then takes its beacon down.
async fn schedule(scheduler: Scheduler, beacons: Arc<Beacons>, shutdown: Shutdown) {
    scheduler.run(shutdown.quiet()).await;
    beacons.remove_own().await;
}

/// Dismisses readers and agents when the server shuts down: they would keep it waiting, or wait for it in vain.
async fn disconnect_clients(control_plane: Privileged, scheduler: Scheduler, shutdown: Shutdown) {
    shutdown.begun().await;
    control_plane.let_readers_go();
    scheduler.dismiss_agents().await;
}

async fn after(pause: Duration, work: impl Future<Output = ()>) {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
    work.await;
}

/// Works until nothing is under way.
async fn until(shutdown: Shutdown, work: impl Future<Output = ()>) {
    tokio::select! {
        () = shutdown.quiet() => {}
        () = work => {}
    }
}

/// Gives up on handlers that take too long.
fn in_time(routes: Router) -> Router {
    routes.layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, limits::HANDLER_TIMEOUT))
}
