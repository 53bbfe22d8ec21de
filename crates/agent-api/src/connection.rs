use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use taco_control_plane::{AgentCaller, RequestInfo};
use taco_domain::global_queue::AgentScope;

use crate::AgentApi;
use crate::error::{AgentError, bearer};
use crate::session;

/// Maximum size of an agent's message. The longest is a list of all phases that it can execute at a time.
const MAX_MESSAGE_BYTES: usize = 256 * 1024;

/// Owner of a connecting agent.
#[derive(Clone)]
pub(crate) enum Visitor {
    /// The server's own.
    Within(AgentScope),
    /// A pool's.
    Pool(Box<AgentCaller>),
}

/// `GET /api/agent/v1/connect`: a WebSocket. An agent without a valid token gets no further than here.
pub(crate) async fn connect(
    State(api): State<AgentApi>,
    parts: Parts,
    upgrade: WebSocketUpgrade,
) -> Result<Response, AgentError> {
    let visitor = match api.within {
        Some(scope) => Visitor::Within(scope),
        None => Visitor::Pool(Box::new(recognise(&api, &parts).await?)),
    };
    let upgrade = upgrade.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES);
    Ok(upgrade.on_upgrade(move |socket| session::serve(api, visitor, socket)).into_response())
}

async fn recognise(api: &AgentApi, parts: &Parts) -> Result<AgentCaller, AgentError> {
    let address = parts.extensions.get::<axum::extract::ConnectInfo<std::net::SocketAddr>>();
    let address = address.map(|info| info.0.ip());
    let from = address.map(|address| address.to_string());
    let info = RequestInfo { id: None, from, address, ..RequestInfo::default() };
    Ok(api.control_plane.recognise_agent(bearer(&parts.headers)?, info).await?)
}
