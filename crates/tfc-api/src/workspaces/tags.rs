//! Tags of a workspace, as `cloud` blocks with a list of tags see them.

use serde::{Deserialize, Serialize};
use taco_control_plane::{OrganizationSnapshot, TagRef};
use taco_domain::organization_state::TagUse;
use taco_domain::tag::TagBinding;

use crate::body::RequestResource;
use crate::document::ResourceObject;
use crate::error::ApiError;
use crate::organizations;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;

pub(crate) const KIND: &str = "tags";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    instance_count: usize,
}

/// A tag of an organization, with how many workspaces carry it.
pub(crate) struct ShownTag {
    pub(crate) tag: TagUse,
    pub(crate) org: OrganizationSnapshot,
}

impl Resource for ShownTag {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let Self { tag, org } = self;
        let attributes = Attributes { name: tag.key.as_str(), instance_count: tag.workspaces };
        Ok(ResourceObject::new(KIND, tag.id, &attributes)
            .has_one("organization", organizations::identifier(org.entry().name.as_str())))
    }
}

/// A tag as a request names it: by its name, or by its id.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    name: Option<String>,
}

fn tag_ref(sent: RequestResource<Named>) -> Result<TagRef, ApiError> {
    match sent.attributes.name.clone() {
        Some(name) => Ok(TagRef::Key(name)),
        None => sent.id().map(TagRef::Id),
    }
}

async fn tags_in(request: &ApiRequest) -> Result<Vec<TagRef>, ApiError> {
    request.body().await?.resources::<Named>(KIND)?.into_iter().map(tag_ref).collect()
}

/// The tags that a request's relationship names, if it has one.
pub(crate) fn sent_tags<A>(sent: &RequestResource<A>) -> Result<Option<Vec<TagBinding>>, ApiError> {
    let Some(tags) = sent.to_many::<Named>("tags", KIND)? else { return Ok(None) };
    let binding =
        |tag: RequestResource<Named>| TagBinding { key: tag.attributes.name.unwrap_or_default(), value: None };
    Ok(Some(tags.into_iter().map(binding).collect()))
}

/// `GET /api/v2/workspaces/{workspace}/relationships/tags`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, query, .. } = &request;
    let text = query.get("query").or(query.get("q"));
    let (org, listed) = control_plane.workspace_tags(caller, &request.workspace()?, text, query.page()?).await?;
    request.page(listed.map(|tag| ShownTag { tag, org: org.clone() })).await
}

/// `POST /api/v2/workspaces/{workspace}/relationships/tags`
pub(crate) async fn add(request: ApiRequest) -> Answer {
    let (workspace, tags) = (request.workspace()?, tags_in(&request).await?);
    request.control_plane.tag_workspace(&request.caller, &workspace, tags).await?;
    no_content()
}

/// `DELETE /api/v2/workspaces/{workspace}/relationships/tags`
pub(crate) async fn remove(request: ApiRequest) -> Answer {
    let (workspace, tags) = (request.workspace()?, tags_in(&request).await?);
    request.control_plane.remove_workspace_tags(&request.caller, &workspace, tags).await?;
    no_content()
}
