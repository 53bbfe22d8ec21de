//! The other servers on the same bucket. Their beacons tell which agents they hear; and a server that commits something
//! says "look" to its peers, so that an agent there need not wait for the next beacon.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde::{Deserialize, Serialize};
use taco_control_plane::Privileged;
use taco_domain::agent::AgentPresence;
use taco_ledger::LedgerName;
use taco_ledger::beacon::Beacons;
use taco_scheduler::{PeerDirectory, Wake};
use tokio::sync::Notify;
use tokio::time::sleep;
use url::Url;

use crate::shutdown::Shutdown;

const LOOK_PATH: &str = "/api/peers/look";
const PEER_SIGNATURE: &str = "x-taco-peer";

/// Minimum interval between two notifications of a peer: one look finds everything.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(50);

/// Timeout for a peer; one that does not answer will find out by itself.
const PEER_TIMEOUT: Duration = Duration::from_secs(2);

/// The message to look, and where. Servers of an earlier version send and read it without the ledgers.
#[derive(Clone, Default, Serialize, Deserialize, Debug)]
struct Look {
    /// The newest commit that the sender knows of each ledger in which something is new.
    ledgers: BTreeMap<String, u64>,
}

/// Lets the scheduler speak through the beacon.
pub(crate) struct BeaconPeers {
    pub(crate) beacons: Arc<Beacons>,
}

#[async_trait]
impl PeerDirectory for BeaconPeers {
    async fn publish(&self, agents: &[AgentPresence]) -> bool {
        let agents = agents.iter().filter_map(|agent| serde_json::to_value(agent).ok()).collect();
        self.beacons.note_agents(agents);
        match self.beacons.run_round().await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(
                    event = "beacon_failed", %error,
                    "this server could not show itself to the others"
                );
                false
            }
        }
    }

    fn heard(&self) -> Vec<AgentPresence> {
        let peers = self.beacons.peers().list();
        let agents = peers.into_iter().flat_map(|beacon| beacon.agents);
        // What a newer server tells may not be understood.
        agents.filter_map(|agent| serde_json::from_value(agent).ok()).collect()
    }

    fn newest_commit(&self, ledger: &LedgerName) -> Option<u64> {
        self.beacons.peers().newest(ledger)
    }
}

/// Address where other servers reach this one: the one that it listens on, or, if that is every address, the one that
/// leads out of this machine.
pub(crate) fn own_address(listens: SocketAddr, tls: bool) -> Option<Url> {
    let ip = if listens.ip().is_unspecified() { outbound_address()? } else { listens.ip() };
    let scheme = if tls { "https" } else { "http" };
    Url::parse(&format!("{scheme}://{}", SocketAddr::new(ip, listens.port()))).ok()
}

/// Connecting a datagram socket sends nothing; it only chooses a way.
fn outbound_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Says "look" to the others whenever this server has committed something.
pub(crate) async fn notify_peers(control_plane: Privileged, beacons: Arc<Beacons>, shutdown: Shutdown) {
    let client = reqwest::Client::builder()
        .timeout(PEER_TIMEOUT)
        // What is said is worth nothing to a listener, and peers' certificates are for the name that clients use.
        .danger_accept_invalid_certs(true)
        .build()
        .expect("a client without surprises");
    let peers = beacons.peers();
    let telling = async {
        let mut told = BTreeMap::new();
        loop {
            peers.own_commits().notified().await;
            let seen: BTreeMap<LedgerName, u64> = control_plane.ledgers_seen().into_iter().collect();
            let news = seen.iter().filter(|(ledger, seq)| told.get(*ledger) < Some(*seq));
            let look = Look { ledgers: news.map(|(ledger, seq)| (ledger.to_string(), *seq)).collect() };
            let look = serde_json::to_vec(&look).expect("it is plain data");
            told = seen;
            for beacon in peers.list() {
                let Some(address) = beacon.address.and_then(|address| address.join(LOOK_PATH).ok()) else { continue };
                let said =
                    client.post(address).header(PEER_SIGNATURE, control_plane.sign_peer_request()).body(look.clone());
                tokio::spawn(async move {
                    if let Err(error) = said.send().await {
                        tracing::debug!(%error, "a peer could not be told to look");
                    }
                });
            }
            sleep(NOTIFY_INTERVAL).await;
        }
    };
    tokio::select! {
        () = shutdown.quiet() => {}
        () = telling => {}
    }
}

#[derive(Clone)]
struct PeerWakeup {
    control_plane: Privileged,
    wanted: Arc<Wanted>,
}

/// Ledgers to look at. Looks are batched: one that begins after the message was heard finds everything.
#[derive(Default)]
struct Wanted {
    signal: Notify,
    at: Mutex<WantedAt>,
}

#[derive(Default)]
struct WantedAt {
    everywhere: bool,
    ledgers: BTreeMap<String, u64>,
}

impl Wanted {
    fn add(&self, look: Option<Look>) {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        match look {
            None => at.everywhere = true,
            Some(look) => {
                for (ledger, seq) in look.ledgers {
                    let newest = at.ledgers.entry(ledger).or_default();
                    *newest = seq.max(*newest);
                }
            }
        }
        drop(at);
        self.signal.notify_one();
    }

    fn take(&self) -> WantedAt {
        std::mem::take(&mut *self.at.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The door for other servers, and the task that looks.
pub(crate) fn peer_wakeup_route(control_plane: Privileged, wake: Wake) -> (Router, impl Future<Output = ()> + Send) {
    let wanted = Arc::<Wanted>::default();
    let peer_wakeup_route = PeerWakeup { control_plane, wanted: Arc::clone(&wanted) };
    let looking = async move {
        loop {
            wanted.signal.notified().await;
            let WantedAt { everywhere, ledgers } = wanted.take();
            if everywhere {
                wake.look().await;
            } else {
                // What is no ledger's name is nothing to look at.
                let ledgers = ledgers.into_iter().filter_map(|(name, seq)| Some((name.parse().ok()?, seq)));
                wake.look_at(ledgers.collect()).await;
            }
        }
    };
    (Router::new().route(LOOK_PATH, post(look)).with_state(peer_wakeup_route), looking)
}

/// `POST /api/peers/look`
async fn look(State(peer_wakeup_route): State<PeerWakeup>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let word = headers.get(PEER_SIGNATURE).and_then(|word| word.to_str().ok()).unwrap_or_default();
    if !peer_wakeup_route.control_plane.verify_peer_request(word) {
        return StatusCode::NOT_FOUND;
    }
    peer_wakeup_route.wanted.add(serde_json::from_slice(&body).ok());
    StatusCode::NO_CONTENT
}
