//! Live pages: a part of a page that browsers renew while it is open.
//!
//! A template wraps the part in a block, within one element that carries [`Version`]:
//!
//! ```text
//! {% block live %}<div id="live" data-live="5" data-version="{{ version }}">…</div>{% endblock %}
//! ```
//!
//! `static/live.js` asks for the page's own address every `data-live` seconds, with `If-None-Match`, while the tab is
//! visible and nobody types within the part. The handler first compares versions, which costs no rendering and no look
//! into the bucket, and renders only what is new:
//!
//! ```text
//! let version = Version::current(&web, &visitor, &organization).await?;
//! if version.is_known(&headers) { return Ok(version.not_modified()); }
//! …
//! Ok(version.answer(&headers, &page.as_live(), &page))
//! ```
//!
//! Relative times are no part of a version: browsers let them tick.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use askama::Template;
use axum::http::header::{ETAG, HeaderValue, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use taco_control_plane::Error;
use taco_domain::agent::AgentPresence;

use crate::visitor::Visitor;
use crate::{Web, page};

/// True if a block is requested instead of the whole page. Going back in the history requests the whole.
pub(crate) fn wants_part(headers: &HeaderMap) -> bool {
    headers.contains_key("hx-request") && !headers.contains_key("hx-history-restore-request")
}

/// Everything that a page of an organization is made from, as an entity tag: the organization's newest commit that this
/// server knows of, the agents that are connected and busy, the visitor and the address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Version(String);

impl Version {
    /// Version at this moment. It is taken before the page is rendered: a change in between is seen by the next request.
    pub(crate) async fn current(web: &Web, visitor: &Visitor, organization: &str) -> Result<Self, Error> {
        let newest = web.control_plane.newest_commit_seen(&visitor.caller, organization).await?;
        let agents = agents_digest(&web.control_plane.presence().agents());
        let parts = [
            env!("CARGO_PKG_VERSION"),
            &visitor.session,
            visitor.user.id.to_string().as_str(),
            if visitor.user.site_admin { "admin" } else { "" },
            &visitor.here,
            &newest.to_string(),
            &agents.to_string(),
        ]
        .join("\n");
        Ok(Self(format!("\"{}\"", hex::encode(&Sha256::digest(parts)[..12]))))
    }

    /// True if the request is for a part that the browser already has.
    pub(crate) fn is_known(&self, headers: &HeaderMap) -> bool {
        let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        wants_part(headers) && known == Some(self.0.as_str())
    }

    pub(crate) fn not_modified(&self) -> Response {
        self.tagged(StatusCode::NOT_MODIFIED.into_response())
    }

    /// The part or the whole page, whichever the request wants.
    pub(crate) fn answer(&self, headers: &HeaderMap, part: &impl Template, whole: &impl Template) -> Response {
        let response = match wants_part(headers) {
            true => page::render(StatusCode::OK, part),
            false => page::render(StatusCode::OK, whole),
        };
        self.tagged(response)
    }

    fn tagged(&self, mut response: Response) -> Response {
        if let Ok(tag) = HeaderValue::from_str(&self.0) {
            response.headers_mut().insert(ETAG, tag);
        }
        response
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Digest of which agents are connected and how busy they are. Heartbeats alone do not change it.
fn agents_digest(agents: &[AgentPresence]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for agent in agents {
        (agent.agent, agent.pool, agent.busy, agent.concurrency, agent.draining).hash(&mut hasher);
    }
    hasher.finish()
}
