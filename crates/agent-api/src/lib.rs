//! The door for agents: one WebSocket for work, cancels and heartbeats, and plain requests for everything large.
//!
//! Agents of pools come with their pool's token. The agent within a server comes through [`AgentApi::router_within`],
//! which only that server can reach and which asks for none.

mod connection;
mod error;
mod phases;
mod session;
mod translation;

use axum::Router;
use axum::routing::get;
use taco_agent_protocol::CONNECT_PATH;
use taco_control_plane::{AgentCaller, Privileged};
use taco_domain::global_queue::AgentScope;
use taco_scheduler::Scheduler;

use crate::connection::Visitor;
pub use crate::session::AgentSocket;

/// State shared by all handlers.
#[derive(Clone)]
pub struct AgentApi {
    pub(crate) control_plane: Privileged,
    pub(crate) scheduler: Scheduler,
    /// The address under which clients know the server: runs reach it there.
    pub(crate) url: String,
    /// What the server's own agent takes, if this listener is only reachable by that.
    pub(crate) within: Option<AgentScope>,
}

impl AgentApi {
    pub fn new(control_plane: Privileged, scheduler: Scheduler, url: &str) -> Self {
        Self { control_plane, scheduler, url: url.trim_end_matches('/').to_owned(), within: None }
    }

    /// Routes for agents that come over the network.
    pub fn router(&self) -> Router {
        self.clone().into_router()
    }

    /// Routes for the agent within this server.
    pub fn router_within(&self) -> Router {
        self.router_within_for(AgentScope::WithinServer)
    }

    /// The same, where that agent takes only some of the runs.
    pub fn router_within_for(&self, scope: AgentScope) -> Router {
        Self { within: Some(scope), ..self.clone() }.into_router()
    }

    /// Talks with an agent of the caller's pool, over any connection, until either leaves.
    pub async fn run_session(&self, caller: AgentCaller, conversation: impl AgentSocket) {
        session::serve(self.clone(), Visitor::Pool(Box::new(caller)), conversation).await;
    }

    fn into_router(self) -> Router {
        Router::new()
            .route(CONNECT_PATH, get(connection::connect))
            .route("/api/agent/v1/phases/{run}/{phase}/{epoch}/{what}", get(phases::fetch).put(phases::upload))
            .with_state(self)
    }
}
