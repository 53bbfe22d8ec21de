//! The network between agents, servers and people: it delays, and parts of it may be cut off from others for a while,
//! in one direction or in both.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use taco_agent_api::AgentSocket;
use taco_agent_protocol::{FromAgent, FromServer};
use taco_ledger::SharedRng;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::pause::Pause;
use crate::signal::Signal;
use crate::stage::SERVERS;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Place {
    Agent(usize),
    Server(usize),
    Person,
}

pub(crate) struct Network {
    rng: SharedRng,
    blocked: Signal<BTreeSet<(Place, Place)>>,
    server_pauses: [Arc<Pause>; SERVERS],
    connections: Mutex<Vec<(Place, Place, [AbortHandle; 2])>>,
}

impl Network {
    pub(crate) fn new(rng: SharedRng, server_pauses: [Arc<Pause>; SERVERS]) -> Self {
        Self { rng, blocked: Signal::new(BTreeSet::new()), server_pauses, connections: Mutex::default() }
    }

    /// A server that is paused hears what was sent to it when it goes on.
    async fn awake(&self, place: Place) {
        if let Place::Server(number) = place {
            self.server_pauses[number].over().await;
        }
    }

    pub(crate) fn block(&self, from: Place, to: Place) {
        self.blocked.modify(|blocked| {
            blocked.insert((from, to));
        });
    }

    pub(crate) fn unblock(&self, from: Place, to: Place) {
        self.blocked.modify(|blocked| {
            blocked.remove(&(from, to));
        });
    }

    pub(crate) fn heal(&self) {
        self.blocked.modify(BTreeSet::clear);
    }

    pub(crate) fn is_blocked(&self, from: Place, to: Place) -> bool {
        self.blocked.get().contains(&(from, to))
    }

    /// Returns when something that was sent now has arrived: what is blocked is sent again until it arrives.
    pub(crate) async fn travel(&self, from: Place, to: Place) {
        let scale = if self.rng.fraction() < 0.02 { 1.5 } else { 0.03 };
        sleep(Duration::from_secs_f64(0.001 + self.rng.fraction() * scale)).await;
        let mut blocked = self.blocked.clone();
        while self.is_blocked(from, to) {
            blocked.changed().await;
        }
    }

    /// Resets every connection at `place`.
    pub(crate) fn reset(&self, place: Place) {
        let mut connections = self.connections.lock().expect("no panic");
        for (_, _, relays) in connections.extract_if(.., |(agent, server, _)| *agent == place || *server == place) {
            relays.iter().for_each(AbortHandle::abort);
        }
    }
}

/// Messages to an agent over its connection.
pub(crate) enum Down {
    Message(Box<FromServer>),
    /// The other end's transport still answers.
    Pong,
}

/// An agent's end of a connection.
pub(crate) struct AgentEnd {
    pub(crate) sender: mpsc::UnboundedSender<FromAgent>,
    pub(crate) receiver: mpsc::UnboundedReceiver<Down>,
}

/// A server's end of a connection.
pub(crate) struct ServerEnd {
    sender: mpsc::UnboundedSender<FromServer>,
    receiver: mpsc::UnboundedReceiver<FromAgent>,
}

impl AgentSocket for ServerEnd {
    async fn hear(&mut self) -> Option<Result<FromAgent, serde_json::Error>> {
        self.receiver.recv().await.map(Ok)
    }

    async fn say(&mut self, message: &FromServer) -> bool {
        self.sender.send(message.clone()).is_ok()
    }
}

/// Connects an agent with a server, which hears nothing while it is paused. Messages keep their order; none is lost
/// unless the connection is.
pub(crate) fn connect(network: &Arc<Network>, agent: Place, server: Place) -> (AgentEnd, ServerEnd) {
    let (agent_sender, mut from_agent) = mpsc::unbounded_channel::<FromAgent>();
    let (to_server, server_receiver) = mpsc::unbounded_channel();
    let (server_sender, mut from_server) = mpsc::unbounded_channel::<FromServer>();
    let (to_agent, agent_receiver) = mpsc::unbounded_channel();
    let (pong, mut pongs) = mpsc::unbounded_channel();
    let up = {
        let network = Arc::clone(network);
        tokio::spawn(async move {
            while let Some(message) = from_agent.recv().await {
                network.travel(agent, server).await;
                network.awake(server).await;
                let is_heartbeat = matches!(message, FromAgent::Heartbeat { .. });
                if to_server.send(message).is_err() {
                    return;
                }
                if is_heartbeat {
                    let _ = pong.send(());
                }
            }
            network.travel(agent, server).await;
        })
    };
    let down = {
        let network = Arc::clone(network);
        tokio::spawn(async move {
            loop {
                let message = tokio::select! {
                    biased;
                    message = from_server.recv() => match message {
                        Some(message) => Down::Message(Box::new(message)),
                        None => break,
                    },
                    Some(()) = pongs.recv() => Down::Pong,
                };
                network.travel(server, agent).await;
                if to_agent.send(message).is_err() {
                    return;
                }
            }
            network.travel(server, agent).await;
        })
    };
    let relays = [up.abort_handle(), down.abort_handle()];
    network.connections.lock().expect("no panic").push((agent, server, relays));
    let agent_end = AgentEnd { sender: agent_sender, receiver: agent_receiver };
    (agent_end, ServerEnd { sender: server_sender, receiver: server_receiver })
}
