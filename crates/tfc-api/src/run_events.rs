//! What happened to a run. Clients refuse to go on without the list.

use axum::extract::State;
use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{Caller, ControlPlane, RunEventView};
use taco_domain::Author;
use taco_domain::id::{RunEventId, RunId};

use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
use crate::{comments, users};

pub(crate) const KIND: &str = "run-events";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    action: &'a str,
    created_at: Timestamp,
    description: Option<&'a str>,
}

fn resource(event: &RunEventView) -> Resource {
    let entry = &event.entry;
    let description = entry.description.as_deref();
    let attributes = Attributes { action: &entry.action, created_at: entry.at, description };
    let comment = entry.comment.map(|id| Identifier::new(comments::KIND, id));
    Resource::new(KIND, event.id, &attributes)
        .has_optional("actor", users::user(&entry.by))
        .has_optional("comment", comment)
        .link("self", format!("/api/v2/run-events/{}", event.id))
}

async fn include(
    control_plane: &ControlPlane,
    caller: &Caller,
    event: &RunEventView,
    query: &Query,
    document: &mut Document,
) {
    if query.includes("actor")
        && let Author::User(actor) = event.entry.by
        && let Ok(user) = control_plane.user(caller, actor).await
    {
        document.include(users::resource(&user));
    }
    if query.includes("comment")
        && let Some(comment) = &event.comment
    {
        document.include(comments::resource(comment));
    }
}

/// `GET /api/v2/runs/{run}/run-events`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(run): InPath<RunId>,
    query: Query,
) -> Result<Document, ApiError> {
    let events = control_plane.run(&caller, run).await?.events();
    let mut document = Document::many(events.iter().map(resource).collect());
    for event in &events {
        include(&control_plane, &caller, event, &query, &mut document).await;
    }
    Ok(document)
}

/// `GET /api/v2/run-events/{run_event}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(event): InPath<RunEventId>,
    query: Query,
) -> Result<Document, ApiError> {
    let event = control_plane.run_event(&caller, event).await?;
    let mut document = Document::one(resource(&event));
    include(&control_plane, &caller, &event, &query, &mut document).await;
    Ok(document)
}
