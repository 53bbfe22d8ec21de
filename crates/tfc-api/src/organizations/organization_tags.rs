//! The tags that an organization's workspaces carry.

use taco_control_plane::TagFilter;

use crate::request::{Answer, ApiRequest, no_content};
use crate::tags::ShownTag;
use crate::{tags, workspaces};

/// `GET /api/v2/organizations/{organization}/tags`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, query, .. } = &request;
    let filter = TagFilter {
        query: query.text("q"),
        not_on: query.get("filter[exclude][taggable][id]").and_then(|id| id.parse().ok()),
    };
    let organization = request.organization()?;
    let (org, listed) = control_plane.organization_tags(caller, organization, &filter, query.page()?).await?;
    request.page(listed.map(|tag| ShownTag { tag, org: org.clone() })).await
}

/// `DELETE /api/v2/organizations/{organization}/tags`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    let tags = request.ids(tags::KIND).await?;
    request.control_plane.delete_organization_tags(&request.caller, request.organization()?, tags).await?;
    no_content()
}

/// `POST /api/v2/tags/{tag}/relationships/workspaces`
pub(crate) async fn add_workspaces(request: ApiRequest) -> Answer {
    let tag = request.id("tag")?;
    let workspaces = request.ids(workspaces::KIND).await?;
    request.control_plane.tag_workspaces(&request.caller, tag, workspaces).await?;
    no_content()
}
