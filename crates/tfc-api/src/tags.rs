//! Tags of a workspace, as `cloud` blocks with a list of tags see them.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use taco_control_plane::{Caller, ControlPlane, Listed, OpenOrganization, TagRef, WorkspaceRef};
use taco_domain::id::WorkspaceId;
use taco_domain::name::TagKey;
use taco_domain::organization_state::TagUse;
use taco_domain::tag::{TagBinding, tag_id};

use crate::body::{Body, Sent};
use crate::document::{Document, Resource};
use crate::error::ApiError;
use crate::organizations;
use crate::path::InPath;
use crate::query::Query;

pub(crate) const KIND: &str = "tags";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    instance_count: usize,
}

pub(crate) fn resource(open: &OpenOrganization, tag: &TagUse) -> Resource {
    Resource::new(KIND, tag.id, &Attributes { name: tag.key.as_str(), instance_count: tag.workspaces })
        .has_one("organization", organizations::identifier(open.entry().name.as_str()))
}

/// A tag as a request names it: by its name, or by its id.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Named {
    name: Option<String>,
}

/// The tags that a request's relationship names, if it has one.
pub(crate) fn sent_tags<A>(sent: &Sent<A>) -> Result<Option<Vec<TagBinding>>, ApiError> {
    let Some(tags) = sent.to_many::<Named>("tags", KIND)? else { return Ok(None) };
    let binding = |tag: Sent<Named>| TagBinding { key: tag.attributes.name.unwrap_or_default(), value: None };
    Ok(Some(tags.into_iter().map(binding).collect()))
}

/// `GET /api/v2/workspaces/{workspace}/relationships/tags`
pub(crate) async fn list(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(workspace): InPath<WorkspaceId>,
    query: Query,
) -> Result<Document, ApiError> {
    let view = control_plane.workspace_with_runs(&caller, &WorkspaceRef::Id(workspace)).await?;
    let home = view.workspace.id.home();
    let wanted = |key: &&TagKey| query.get("query").or(query.get("q")).is_none_or(|text| key.as_str().contains(text));
    let usage = |key: &TagKey| TagUse {
        id: tag_id(home, key),
        key: key.clone(),
        workspaces: view.open.state.workspaces_tagged(key).count(),
    };
    let listed = Listed::from_all(view.workspace.tags.keys().filter(wanted).map(usage), query.page()?);
    Ok(Document::page(listed.map(|tag| resource(&view.open, &tag))))
}

/// `POST /api/v2/workspaces/{workspace}/relationships/tags`
pub(crate) async fn add(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(workspace): InPath<WorkspaceId>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let wanted = WorkspaceRef::Id(workspace);
    let open = control_plane.workspace(&caller, &wanted).await?.open;
    let mut tags = Vec::new();
    for sent in body.resources::<Named>(KIND)? {
        let key = match sent.attributes.name.clone() {
            Some(name) => name,
            None => open.state.tag_key(&sent.id()?).ok_or_else(ApiError::not_found)?.to_string(),
        };
        tags.push(TagBinding { key, value: None });
    }
    control_plane.add_workspace_tags(&caller, &wanted, tags).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/v2/workspaces/{workspace}/relationships/tags`
pub(crate) async fn remove(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(workspace): InPath<WorkspaceId>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let named = |sent: Sent<Named>| match sent.attributes.name.clone() {
        Some(name) => Ok(TagRef::Key(name)),
        None => sent.id().map(TagRef::Id),
    };
    let tags = body.resources::<Named>(KIND)?.into_iter().map(named).collect::<Result<Vec<_>, _>>()?;
    control_plane.remove_workspace_tags(&caller, &WorkspaceRef::Id(workspace), tags).await?;
    Ok(StatusCode::NO_CONTENT)
}
