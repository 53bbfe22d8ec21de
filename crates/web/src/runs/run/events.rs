//! A run as it goes on, as one stream of events: `log` carries lines as HTML, `progress` how far the resources are,
//! and `status` says that the page is old. The id of an event says how far the log was sent, so that a browser that was
//! cut off goes on from there.

use std::convert::Infallible;
use std::time::Duration;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use taco_control_plane::{Error, RunView};
use taco_domain::phase::PhaseKind;
use tokio::time::{Instant, sleep};

use crate::Web;
use crate::error::PageError;
use crate::run::log::facts_before;
use crate::run::log_lines::line_at;
use crate::run::log_text::LogText;
use crate::run::page::{RunPath, find};
use crate::run::progress::Facts;
use crate::visitor::Visitor;

/// A stream ends after this long, and the browser reconnects: so a visitor who lost a right loses the stream, and a
/// server that shuts down need not wait for it.
const EVENT_STREAM_LIFETIME: Duration = Duration::from_secs(10);
/// Delay after which the browser reconnects.
const RECONNECT_DELAY: Duration = Duration::from_millis(200);
/// Longest interval at which a stream polls for changes by other servers.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The largest piece of a log in one event.
const MAX_LOG_EVENT_BYTES: usize = 128 * 1024;

#[derive(Deserialize)]
pub(crate) struct Since {
    /// Offset in the page's log, such as `plan:1234`.
    #[serde(default)]
    from: String,
    /// Fingerprint of what the page shows; see [`seen`].
    #[serde(default)]
    seen: String,
}

/// Fingerprint of what a page shows of a run: anything that changes the page changes it.
pub(crate) fn seen(web: &Web, view: &RunView) -> String {
    let waits: Vec<String> = web.control_plane.wait_reasons(view).iter().map(|reason| reason.in_words()).collect();
    // Where there was no log, the page has no place for one.
    let has_log = [&view.run.plan, &view.run.apply].map(|phase| !phase.waits.is_empty());
    let results = view.run.stages.iter().flat_map(|stage| &stage.results);
    let answers: Vec<String> = results.map(|result| format!("{} {}", result.status, result.updated_at)).collect();
    let text = format!("{} {} {waits:?} {has_log:?} {answers:?}", view.run.status, view.run.history.len());
    hex::encode(&Sha256::digest(text)[..6])
}

/// `GET …/runs/{run}/events`
pub(crate) async fn follow(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<RunPath>,
    Query(since): Query<Since>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, PageError> {
    let view = find(&web, &visitor, &path).await?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let (kind, at) = place(last.unwrap_or(&since.from)).unwrap_or((PhaseKind::Plan, 0));
    let facts = if view.run.structured_output { facts_before(&web, &view, kind, at).await? } else { Facts::default() };
    let text = LogText::from_line(kind, line_at(&web, &view, kind, at).await?);
    let follower = Follower {
        web,
        view,
        kind,
        at,
        text,
        facts,
        seen: since.seen,
        ends: Instant::now() + EVENT_STREAM_LIFETIME,
        told_progress: 0,
    };
    let events = stream::unfold(Some(follower), |follower| async {
        let mut follower = follower?;
        match follower.next().await {
            Ok(Some(event)) => Some((Ok(event.retry(RECONNECT_DELAY)), Some(follower))),
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(event = "event_stream_failed", %error, "a stream of events ended early");
                None
            }
        }
    });
    Ok(Sse::new(events.fuse()).keep_alive(KeepAlive::default()))
}

/// Reads what an event's id says.
fn place(id: &str) -> Option<(PhaseKind, u64)> {
    let (kind, at) = id.split_once(':')?;
    Some((kind.parse().ok()?, at.parse().ok()?))
}

#[derive(Template)]
#[template(path = "run_progress.html")]
struct ProgressPart<'a> {
    facts: &'a Facts,
}

struct Follower {
    web: Web,
    view: RunView,
    kind: PhaseKind,
    at: u64,
    text: LogText,
    facts: Facts,
    seen: String,
    ends: Instant,
    /// Offset in the log when the progress was last sent.
    told_progress: u64,
}

impl Follower {
    /// The next event; `None` when it is time for the browser to come again.
    async fn next(&mut self) -> Result<Option<Event>, Error> {
        let mut changes = self.view.org.changes();
        while Instant::now() < self.ends {
            let over = self.view.run.phase(self.kind).status.is_final();
            let bytes = self.web.control_plane.log_part(&self.view, self.kind, self.at, MAX_LOG_EVENT_BYTES).await?;
            if !bytes.is_empty() {
                self.web.lines.learn(&self.view, self.kind, self.at, &bytes);
                self.at += bytes.len() as u64;
                self.facts.push(&bytes);
                let mut html = self.text.push(&bytes);
                if over && bytes.len() < MAX_LOG_EVENT_BYTES {
                    html.push_str(&self.text.finish());
                }
                if !html.is_empty() {
                    return Ok(Some(self.event("log", &html)));
                }
                continue;
            }
            if self.told_progress != self.at && !self.facts.resources.is_empty() {
                self.told_progress = self.at;
                let html = ProgressPart { facts: &self.facts }.render().unwrap_or_default();
                return Ok(Some(self.event("progress", &html)));
            }
            let seen = seen(&self.web, &self.view);
            if seen != self.seen {
                self.seen = seen;
                return Ok(Some(self.event("status", "look")));
            }
            let wait = async {
                match over {
                    true => sleep(POLL_INTERVAL).await,
                    // Woken when the log grows through this server.
                    false => {
                        self.web.control_plane.follow_log(&self.view, self.kind, self.at, 1, POLL_INTERVAL).await.ok();
                    }
                }
            };
            tokio::select! {
                () = wait => {}
                _ = changes.next() => {}
            }
            self.look().await?;
        }
        Ok(None)
    }

    async fn look(&mut self) -> Result<(), Error> {
        self.view.refresh().await
    }

    fn event(&self, name: &str, data: &str) -> Event {
        let at = self.at - self.text.waiting();
        Event::default().event(name).id(format!("{}:{at}", self.kind)).data(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_how_far_which_log_was_sent() {
        assert_eq!(place("plan:12"), Some((PhaseKind::Plan, 12)));
        assert_eq!(place("apply:0"), Some((PhaseKind::Apply, 0)));
        for nonsense in ["", "plan", "plan:", "plan:-1", "other:1", "plan:1:2"] {
            assert_eq!(place(nonsense), None, "{nonsense}");
        }
    }
}
