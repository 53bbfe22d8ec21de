//! `/app/{organization}/settings/tags`: the tags that an organization's workspaces carry.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::TagFilter;
use taco_domain::id::TagId;
use taco_domain::organization_state::TagUse;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, VisitorForm};
use crate::list_page::ListPage;
use crate::navigation::{Section, organization_address};
use crate::page::Layout;
use crate::pagination::{self, PageQuery};
use crate::rail::Rail;
use crate::visitor::Visitor;
use crate::workspace_query::WorkspaceQuery;
use crate::{Web, organization_settings, page};

#[derive(Template)]
#[template(path = "organization_tags.html")]
struct TagsPage {
    layout: Layout,
    /// Of the settings.
    rail: Rail,
    list: ListPage<Row>,
    /// Some tag can be chosen.
    can_delete: bool,
    complaint: Complaint,
}

struct Row {
    id: TagId,
    key: String,
    workspaces: usize,
    /// The list of those.
    workspaces_address: String,
    /// Reason why it cannot be deleted.
    refusal: Option<String>,
}

fn address_of(organization: &str) -> String {
    format!("{}/tags", organization_settings::address(organization))
}

/// `GET /app/{organization}/settings/tags`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Path(organization): Path<String>,
    Query(wanted): Query<PageQuery>,
) -> Result<Response, PageError> {
    let page = tags_page(&web, &visitor, &organization, wanted, Complaint::default()).await?;
    Ok(page::render(StatusCode::OK, &page))
}

async fn tags_page(
    web: &Web,
    visitor: &Visitor,
    organization: &str,
    wanted: PageQuery,
    complaint: Complaint,
) -> Result<TagsPage, PageError> {
    let search = wanted.search.trim();
    let filter = TagFilter { query: Some(search.to_owned()), ..TagFilter::default() };
    let number = pagination::asked_for(&wanted.page);
    let (org, listed) = web.control_plane.organization_tags(&visitor.caller, organization, &filter, number).await?;
    let name = org.entry().name.as_str();
    let workspaces = format!("{}/workspaces", organization_address(name));
    let row = |tag: TagUse| Row {
        id: tag.id,
        key: tag.key.to_string(),
        workspaces: tag.workspaces,
        workspaces_address: format!("{workspaces}?{}", WorkspaceQuery::tagged(tag.key.as_str()).in_address()),
        refusal: org.tag_deletion_choice(&visitor.caller, &tag).err(),
    };
    let list = ListPage::of(address_of(name), search, listed, row);
    Ok(TagsPage {
        layout: Layout::for_visitor(web, visitor).in_organization(name, Section::Settings),
        rail: Rail::of_organization(&org, &visitor.caller, "/tags"),
        can_delete: list.rows.iter().any(|row| row.refusal.is_none()),
        list,
        complaint,
    })
}

/// Tags to delete.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Chosen {
    tag: Vec<String>,
}

/// `POST /app/{organization}/settings/tags/delete`
pub(crate) async fn delete(
    State(web): State<Web>,
    Path(organization): Path<String>,
    VisitorForm(visitor, chosen): VisitorForm<Chosen>,
) -> Result<Response, PageError> {
    if chosen.tag.is_empty() {
        let complaint = Complaint::about_field("tag", "Choose the tags to delete");
        let page = tags_page(&web, &visitor, &organization, PageQuery::default(), complaint).await?;
        return Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    let ids = chosen.tag.iter().map(|id| id.parse()).collect::<Result<Vec<TagId>, _>>();
    let ids = ids.map_err(|_| PageError::not_found("tag"))?;
    let count = ids.len();
    web.control_plane.delete_organization_tags(&visitor.caller, &organization, ids).await?;
    Ok(Flash::says(format!("{count} {} deleted.", if count == 1 { "tag" } else { "tags" }))
        .redirect_to(&address_of(&organization)))
}
