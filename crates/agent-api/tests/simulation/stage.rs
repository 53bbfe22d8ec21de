//! Stage shared by everybody in one history, and its setup.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream;
use jiff::SignedDuration;
use taco_agent_protocol::{PhaseAttempt, PhaseKind};
use taco_control_plane::{
    AgentPoolPatch, Caller, NewConfiguration, NewToken, Privileged, RequestInfo, Settings, SignedUrlPurpose, Timeouts,
    WorkspaceRef,
};
use taco_domain::OrganizationState;
use taco_domain::id::{OrganizationId, RunId, WorkspaceId};
use taco_domain::run::RunSource;
use taco_domain::workspace::WorkspaceSource;
use taco_ledger::simulated::{Line, World};
use taco_ledger::{
    Bucket, Environment, Ledger, LedgerName, MasterKey, MasterKeys, Options, Peers, Retrying, SharedRng,
};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::clock::WallClock;
use crate::network::Network;
use crate::notes::Notes;
use crate::outside::Outside;
use crate::pause::{Pause, SeenAwake};
use crate::sabotage::{Forgetful, Sabotage};
use crate::server::Server;
use crate::walks;

pub(crate) const SITE_TOKEN: &str = "a text that the operator chose";
pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const SERVERS: usize = 2;
pub(crate) const AGENTS: usize = 6;
const WORKSPACES: usize = 3;

/// Timing of the faults in a history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Faults all the time.
    Safety,
    /// Faults stop, and then everything has to come to an end.
    Liveness,
}

pub(crate) struct Stage {
    pub(crate) sabotage: Sabotage,
    pub(crate) rng: SharedRng,
    /// Every tenth history has no faults at all.
    pub(crate) is_calm: bool,
    pub(crate) world: Arc<World>,
    pub(crate) network: Arc<Network>,
    pub(crate) outside: Arc<Outside>,
    pub(crate) notes: Notes,
    servers: [Mutex<Option<Arc<Server>>>; SERVERS],
    pub(crate) clocks: [Arc<WallClock>; SERVERS],
    pub(crate) server_pauses: [Arc<Pause>; SERVERS],
    pub(crate) agent_pauses: [Pause; AGENTS],
    pub(crate) kills: [Notify; AGENTS],
    pub(crate) begun: Instant,
    /// Time when the faults stop.
    pub(crate) over: Instant,
    pub(crate) organization: OrganizationId,
    pub(crate) ledger_name: LedgerName,
    pub(crate) workspaces: Vec<WorkspaceId>,
    pub(crate) pool_token: String,
    /// Sees the truth at once.
    pub(crate) observer: Ledger<OrganizationState>,
    /// The newest token of each phase, for [`Sabotage::NoFence`].
    pub(crate) tokens: Mutex<BTreeMap<(RunId, PhaseKind), (u64, String)>>,
}

impl Stage {
    pub(crate) fn below(&self, limit: usize) -> usize {
        (self.rng.fraction() * limit as f64) as usize
    }

    pub(crate) fn seconds(&self, least: f64, most: f64) -> Duration {
        Duration::from_secs_f64(least + self.rng.fraction() * (most - least))
    }

    pub(crate) fn is_bad(&self) -> bool {
        !self.is_calm && Instant::now() < self.over
    }

    /// A fault that happens this often while times are bad.
    pub(crate) fn chance(&self, fraction: f64) -> bool {
        self.is_bad() && self.rng.fraction() < fraction
    }

    pub(crate) fn server(&self, number: usize) -> Option<Arc<Server>> {
        self.servers[number].lock().expect("no panic").clone()
    }

    pub(crate) fn set_server(&self, number: usize, server: Option<Arc<Server>>) -> Option<Arc<Server>> {
        std::mem::replace(&mut *self.servers[number].lock().expect("no panic"), server)
    }

    /// An agent that is paused does nothing before it goes on.
    pub(crate) async fn awake(&self, agent: usize) {
        self.agent_pauses[agent].over().await;
    }

    pub(crate) fn remember_token(&self, phase: PhaseAttempt, token: &str) {
        let mut tokens = self.tokens.lock().expect("no panic");
        let newest = tokens.entry((phase.run, phase.phase)).or_default();
        if newest.0 <= phase.epoch {
            *newest = (phase.epoch, token.to_owned());
        }
    }
}

/// Environment of a server.
pub(crate) fn environment(stage: &Stage, line: Line, number: usize, server: String, rng: SharedRng) -> Environment {
    let pause = Arc::clone(&stage.server_pauses[number]);
    let bucket = Arc::new(SeenAwake { bucket: Arc::new(line), pause });
    let mut bucket: Arc<dyn Bucket> = Arc::new(Retrying::new(bucket, rng.clone()));
    if stage.sabotage == Sabotage::BlindRetry {
        bucket = Arc::new(Forgetful { bucket, unclear: Mutex::default() });
    }
    Environment { bucket, clock: Arc::clone(&stage.clocks[number]) as _, rng, server, peers: Peers::none() }
}

/// The same for one to which nothing happens.
pub(crate) fn quiet_environment(world: &Arc<World>, begun: Instant, server: &str, rng: SharedRng) -> Environment {
    let bucket = Arc::new(Retrying::new(Arc::new(Line::steady(world)), rng.clone()));
    let clock = Arc::new(WallClock::new(begun));
    Environment { bucket, clock, rng, server: server.to_owned(), peers: Peers::none() }
}

pub(crate) async fn open(environment: Environment) -> Result<Privileged, taco_control_plane::Error> {
    let key = MasterKey::from_secret("a master key with more than enough characters").expect("a long secret");
    let settings = Settings {
        master_keys: Arc::new(MasterKeys::new(key, Vec::new(), environment.rng.clone())),
        site_token: Some(SITE_TOKEN.to_owned()),
        ledger: Options { snapshot_every: 64, ..Options::default() },
        timeouts: Timeouts::default(),
        limits: Default::default(),
        history: Default::default(),
        hosts: Vec::new(),
        notifications: taco_control_plane::NotificationSettings::default(),
        opa: None,
    };
    Privileged::open(environment, settings).await
}

/// A server that only watches, and to which nothing happens.
pub(crate) async fn watcher(stage: &Stage) -> Privileged {
    open(quiet_environment(&stage.world, stage.begun, "watcher", SharedRng::from_seed(7))).await.expect("a site")
}

/// A new organization, and its admin.
pub(crate) async fn given_organization(plane: &Privileged, name: &str) -> Caller {
    let admin = || plane.authenticate(SITE_TOKEN, RequestInfo::default());
    let email = format!("{name}@{name}.test");
    let patch = serde_json::from_value(serde_json::json!({ "name": name, "email": email })).expect("a patch");
    plane.create_organization(&admin().await.expect("the admin"), &patch).await.expect("an organization");
    admin().await.expect("the admin")
}

/// A new workspace that has a configuration.
pub(crate) async fn given_workspace(
    plane: &Privileged,
    caller: &Caller,
    organization: &str,
    patch: serde_json::Value,
) -> WorkspaceId {
    let patch = serde_json::from_value(patch).expect("a patch");
    let made = plane.create_workspace(caller, organization, patch, WorkspaceSource::Api).await.expect("a workspace");
    let wanted = WorkspaceRef::Id(made.workspace.id);
    let new = NewConfiguration { auto_queue_runs: Some(false), ..NewConfiguration::default() };
    let version = plane.create_configuration_version(caller, &wanted, new, RunSource::Api).await;
    let id = version.expect("a configuration").version.id.to_string();
    let purpose = SignedUrlPurpose::UploadConfiguration;
    let pass = plane.sign_url_token(caller, purpose, &id, SignedDuration::from_hours(1));
    let pass = plane.verify_url_token(purpose, &id, &pass).expect("a pass");
    let archive = stream::iter([Ok::<_, std::io::Error>(configuration())]);
    plane.upload_configuration(&pass, archive).await.expect("an archive");
    made.workspace.id
}

/// An organization with a pool and workspaces that have a configuration. Nothing goes wrong yet.
pub(crate) async fn prepare(seed: u64, mode: Mode, sabotage: Sabotage) -> Arc<Stage> {
    let rng = SharedRng::from_seed(seed);
    let world = World::new(seed, 0.0);
    let begun = Instant::now();
    let seen_by = quiet_environment(&world, begun, "preparation", SharedRng::from_seed(!seed));
    let plane = open(seen_by.clone()).await.expect("a site");
    plane.first_start().await.expect("an admin");
    let caller = given_organization(&plane, "acme").await;
    let patch = AgentPoolPatch { name: Some("pool".to_owned()), ..AgentPoolPatch::default() };
    let pool = plane.create_agent_pool(&caller, "acme", patch).await.expect("a pool");
    let token = plane.create_agent_pool_token(&caller, pool.pool.id, NewToken::default()).await.expect("a token");
    let mut workspaces = Vec::new();
    for number in 1..=WORKSPACES {
        let patch = serde_json::json!({
            "name": format!("workspace-{number}"), "execution-mode": "agent", "agent-pool-id": pool.pool.id,
        });
        workspaces.push(given_workspace(&plane, &caller, "acme", patch).await);
    }
    walks::declare(&plane, &caller, &workspaces).await;
    let organization = pool.org.id();
    let ledger_name: LedgerName = organization.to_string().parse().expect("a legal name");
    let observer = Ledger::open(seen_by, ledger_name.clone(), Options::default()).await.expect("the truth");
    let bad = Duration::from_secs(if mode == Mode::Safety { 330 } else { 210 });
    let is_calm = seed.is_multiple_of(10);
    if !is_calm {
        world.set_fault_rate(0.1 + 0.8 * rng.fraction());
    }
    let server_pauses: [Arc<Pause>; SERVERS] = Default::default();
    let clocks = std::array::from_fn(|_| Arc::new(WallClock::drifted(begun, rng.fraction())));
    Arc::new(Stage {
        sabotage,
        is_calm,
        network: Arc::new(Network::new(SharedRng::from_seed(seed ^ 0xaaaa), server_pauses.clone())),
        rng,
        world,
        outside: Arc::default(),
        notes: Notes::default(),
        servers: Default::default(),
        clocks,
        server_pauses,
        agent_pauses: Default::default(),
        kills: Default::default(),
        begun,
        over: Instant::now() + bad,
        organization,
        ledger_name,
        workspaces,
        pool_token: token.text.reveal(),
        observer,
        tokens: Mutex::default(),
    })
}

fn configuration() -> Bytes {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    archive.append_data(&mut header, "main.tf", &[][..]).expect("in memory");
    archive.into_inner().and_then(GzEncoder::finish).expect("in memory").into()
}
