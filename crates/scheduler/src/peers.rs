//! Exchange of known agents between servers. Hints for people and for the queue, but not for leases: those rest on
//! [`PeerDirectory::publish`] saying truly when all servers can know of a heartbeat.

use async_trait::async_trait;
use taco_control_plane::LedgerName;
use taco_domain::agent::AgentPresence;

/// The other servers.
#[async_trait]
pub trait PeerDirectory: Send + Sync + 'static {
    /// Tells the others which agents this server hears, and hears of theirs. When it returns true, every server can
    /// know of these heartbeats from now on.
    async fn publish(&self, agents: &[AgentPresence]) -> bool;

    /// The agents that the others hear, as of the last successful [`Self::publish`].
    fn heard(&self) -> Vec<AgentPresence>;

    /// The newest commit of a ledger that any peer has announced, for a server that missed the message to look.
    fn newest_commit(&self, ledger: &LedgerName) -> Option<u64>;
}

/// There are no others.
#[derive(Clone, Copy, Debug)]
pub struct SingleServer;

#[async_trait]
impl PeerDirectory for SingleServer {
    async fn publish(&self, _: &[AgentPresence]) -> bool {
        true
    }

    fn heard(&self) -> Vec<AgentPresence> {
        Vec::new()
    }

    fn newest_commit(&self, _: &LedgerName) -> Option<u64> {
        None
    }
}
