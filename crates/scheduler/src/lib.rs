//! Reconciles: which agent gets which phase, who is asked to stop, who went silent, who waits, who is
//! to be told.
//!
//! It is woken by signals that carry nothing, or by a slow tick, looks at what the ledgers say, and commits what
//! follows. Start, fail-over and ordinary work are one path. Every server runs it; the log decides who was first.

mod agents;
mod cancels;
mod disagreements;
mod hand_out;
mod leases;
mod notifications;
mod peers;
mod refusals;
mod run_tasks;
mod scheduler;
mod waits;
mod walks;

pub use agents::{AgentLink, NewAgent, ReconnectGuard, ToAgent};
pub use leases::Leases;
pub use peers::{PeerDirectory, SingleServer};
pub use scheduler::{Scheduler, Wake};
