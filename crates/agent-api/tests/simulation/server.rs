//! Servers: they start, say "look" to each other, are paused, crash, and start again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use taco_agent_api::AgentApi;
use taco_control_plane::{Error, Privileged};
use taco_domain::agent::AgentPresence;
use taco_ledger::beacon::{BEACON_INTERVAL, Beacons};
use taco_ledger::simulated::Line;
use taco_ledger::{LedgerName, SharedRng};
use taco_scheduler::{Leases, PeerDirectory, Scheduler, Wake};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::network::Place;
use crate::pause::{Pause, WhileAwake};
use crate::stage::{LEASE, SERVERS, Stage, environment, open};

/// "Look" is said at most this often.
pub(crate) const NOTIFY_INTERVAL: Duration = Duration::from_millis(50);

/// One life of a server.
pub(crate) struct Server {
    pub(crate) plane: Privileged,
    pub(crate) api: AgentApi,
    pub(crate) router: Router,
    wake: Wake,
    line: Line,
    pause: Arc<Pause>,
    tasks: Mutex<JoinSet<()>>,
}

/// As the server's own.
pub(crate) struct BeaconPeers(pub(crate) Arc<Beacons>);

#[async_trait]
impl PeerDirectory for BeaconPeers {
    async fn publish(&self, agents: &[AgentPresence]) -> bool {
        self.0.note_agents(agents.iter().filter_map(|agent| serde_json::to_value(agent).ok()).collect());
        self.0.run_round().await.is_ok()
    }

    fn heard(&self) -> Vec<AgentPresence> {
        let agents = self.0.peers().list().into_iter().flat_map(|beacon| beacon.agents);
        agents.filter_map(|agent| serde_json::from_value(agent).ok()).collect()
    }

    fn newest_commit(&self, ledger: &LedgerName) -> Option<u64> {
        self.0.peers().newest(ledger)
    }
}

impl Server {
    async fn start(stage: &Arc<Stage>, number: usize, life: usize) -> Result<Arc<Self>, Error> {
        let line = Line::to(&stage.world);
        let name = format!("server-{number}-{life}");
        let rng = SharedRng::from_seed(stage.below(1 << 30) as u64);
        let mut environment = environment(stage, line.clone(), number, name.clone(), rng);
        let clock = Arc::clone(&environment.clock);
        let beacons = Beacons::new(Arc::clone(&environment.bucket), clock, &name, None, BEACON_INTERVAL);
        let beacons = Arc::new(beacons);
        environment.peers = beacons.peers();
        let plane = open(environment).await?;
        let peers = Arc::new(BeaconPeers(Arc::clone(&beacons)));
        let scheduler = Scheduler::new(plane.clone(), Leases::of(LEASE), peers);
        let api = AgentApi::new(plane.clone(), scheduler.clone(), "https://taco.test");
        let router = api.router();
        let (wake, tasks, pause) = (scheduler.wake(), Mutex::default(), Arc::clone(&stage.server_pauses[number]));
        let server = Arc::new(Self { plane, api, router, wake, line, pause, tasks });
        server.run(async move { scheduler.run(std::future::pending()).await });
        server.run(notify_peers(Arc::clone(stage), number, beacons));
        Ok(server)
    }

    fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().expect("no panic").spawn(WhileAwake::new(&self.pause, work));
    }

    /// Works as this server, and dies with it.
    pub(crate) async fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = Option<T>> + Send + 'static,
    ) -> Option<T> {
        let (done, outcome) = oneshot::channel();
        self.run(async move {
            let _ = done.send(work.await);
        });
        outcome.await.ok().flatten()
    }

    /// `kill -9`: what is under way in the bucket happens or not.
    fn crash(&self) {
        self.line.cut();
        self.tasks.lock().expect("no panic").abort_all();
    }
}

/// Says "look" to the others whenever this server has committed something. It may get lost.
async fn notify_peers(stage: Arc<Stage>, number: usize, beacons: Arc<Beacons>) {
    let peers = beacons.peers();
    loop {
        peers.own_commits().notified().await;
        for other in (0..SERVERS).filter(|other| *other != number) {
            let (from, to) = (Place::Server(number), Place::Server(other));
            if stage.network.is_blocked(from, to) || stage.chance(0.1) {
                continue;
            }
            let stage = Arc::clone(&stage);
            tokio::spawn(async move {
                stage.network.travel(from, to).await;
                if let Some(server) = stage.server(other) {
                    let wake = server.wake.clone();
                    server.run(async move { wake.look().await });
                }
            });
        }
        sleep(NOTIFY_INTERVAL).await;
    }
}

/// A server that crashes and comes back until the bad time is over.
pub(crate) async fn lives_of_a_server(stage: Arc<Stage>, number: usize) {
    for life in 0.. {
        stage.server_pauses[number].end();
        let server = loop {
            match Server::start(&stage, number, life).await {
                Ok(server) => break server,
                Err(_) => sleep(Duration::from_secs(1)).await,
            }
        };
        stage.set_server(number, Some(Arc::clone(&server)));
        let lifetime = stage.seconds(20.0, 200.0);
        sleep_until((Instant::now() + lifetime).min(stage.over)).await;
        if !stage.is_bad() {
            return;
        }
        stage.set_server(number, None);
        server.crash();
        sleep(stage.seconds(0.5, 15.0)).await;
    }
}
