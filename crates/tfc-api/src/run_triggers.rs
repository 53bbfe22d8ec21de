//! Run triggers: an apply in one workspace, the source, starts a run in another.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{Caller, ControlPlane, RunTriggerView, TriggerDirection};
use taco_domain::attribute::shown;
use taco_domain::id::RunTriggerId;

use crate::body::{Body, NoAttributes};
use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
use crate::workspaces::{self, InWorkspace};

const KIND: &str = "run-triggers";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    created_at: Timestamp,
    workspace_name: &'a str,
    sourceable_name: &'a str,
}

fn resource(view: &RunTriggerView) -> Resource {
    let attributes = Attributes {
        created_at: view.trigger.created_at,
        workspace_name: view.workspace.name.as_str(),
        sourceable_name: view.source.name.as_str(),
    };
    let source = Identifier::new(workspaces::KIND, view.source.id);
    Resource::new(KIND, view.trigger.id, &attributes)
        .has_one("workspace", Identifier::new(workspaces::KIND, view.workspace.id))
        .has_one("sourceable", source)
        .link("self", format!("/api/v2/run-triggers/{}", view.trigger.id))
}

fn include(caller: &Caller, view: &RunTriggerView, query: &Query, document: &mut Document) {
    for (name, workspace) in [("workspace", &view.workspace), ("sourceable", &view.source)] {
        let beside = view.view_of(workspace);
        let may_see = caller.may(taco_domain::permission::Action::ReadWorkspace, beside.resource()).allowed;
        if query.includes(name) && may_see {
            document.include(workspaces::resource(caller, &beside));
        }
    }
}

/// `GET /api/v2/workspaces/{workspace}/run-triggers`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InWorkspace(workspace): InWorkspace,
    query: Query,
) -> Result<Document, ApiError> {
    let name = "filter[run-trigger][type]";
    let direction = match query.get(name) {
        None | Some("inbound") => TriggerDirection::Inbound,
        Some("outbound") => TriggerDirection::Outbound,
        Some(other) => {
            let detail = format!("{name} must be inbound or outbound; it is {}", shown(other));
            return Err(ApiError::parameter(name, detail));
        }
    };
    let listed = control_plane.run_triggers(&caller, &workspace, direction, query.page()?).await?;
    let views = listed.items.clone();
    let mut document = Document::page(listed.map(|view| resource(&view)));
    for view in &views {
        include(&caller, view, &query, &mut document);
    }
    Ok(document)
}

/// `POST /api/v2/workspaces/{workspace}/run-triggers`
pub(crate) async fn create(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InWorkspace(workspace): InWorkspace,
    body: Body,
) -> Result<Response, ApiError> {
    let sent = body.resource::<NoAttributes>(KIND)?;
    let source = sent.to_one("sourceable")?.flatten().ok_or_else(|| {
        ApiError::invalid("/data/relationships/sourceable", "The workspace whose applies start runs must be given")
    })?;
    let view = control_plane.create_run_trigger(&caller, &workspace, source).await?;
    Ok((StatusCode::CREATED, Document::one(resource(&view))).into_response())
}

/// `GET /api/v2/run-triggers/{run_trigger}`
pub(crate) async fn read(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(trigger): InPath<RunTriggerId>,
    query: Query,
) -> Result<Document, ApiError> {
    let view = control_plane.run_trigger(&caller, trigger).await?;
    let mut document = Document::one(resource(&view));
    include(&caller, &view, &query, &mut document);
    Ok(document)
}

/// `DELETE /api/v2/run-triggers/{run_trigger}`
pub(crate) async fn delete(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(trigger): InPath<RunTriggerId>,
) -> Result<StatusCode, ApiError> {
    control_plane.delete_run_trigger(&caller, trigger).await?;
    Ok(StatusCode::NO_CONTENT)
}
