//! `/`, `/app` and `/app/organizations`: where one begins.

pub(crate) mod audit_log;
pub(crate) mod audit_words;
pub(crate) mod dashboard;
pub(crate) mod invitations;
pub(crate) mod organization_members;
pub(crate) mod organization_secrets;
pub(crate) mod organization_settings;
pub(crate) mod organization_tags;

use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use taco_control_plane::{Error, OrganizationView, PageRequest};
use taco_domain::organization::OrganizationPatch;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, VisitorForm};
use crate::invitations::InvitationRow;
use crate::list_page::ListPage;
use crate::navigation::organization_address;
use crate::page::Layout;
use crate::pagination::{self, PageQuery};
use crate::text::Moment;
use crate::visitor::Visitor;
use crate::{Web, page, terraform};

const PATH: &str = "/app/organizations";

/// Word of the page with the first steps.
const WELCOME: &str = "welcome";

/// Fields next to which the form can show an error.
const FIELDS: [&str; 2] = ["name", "email"];

#[derive(Template)]
#[template(path = "landing.html")]
struct LandingPage<'a> {
    layout: Layout,
    username: &'a str,
    host: String,
    /// For terraform's configuration, where it cannot find our services itself.
    host_block: Option<String>,
    invitations: Vec<InvitationRow>,
    form: FormContent,
    is_landing: bool,
}

#[derive(Template)]
#[template(path = "organizations.html")]
struct OrganizationsPage {
    layout: Layout,
    invitations: Vec<InvitationRow>,
    list: ListPage<Row>,
    form: FormContent,
    is_landing: bool,
}

struct Row {
    name: String,
    address: String,
    email: String,
    workspaces: usize,
    created: Moment,
}

impl Row {
    fn of(view: OrganizationView) -> Self {
        Self {
            address: organization_address(&view.name),
            email: view.organization.email.to_string(),
            workspaces: view.org.workspace_count(),
            created: Moment(view.organization.created_at),
            name: view.name,
        }
    }
}

/// Content of the form for a new organization.
#[derive(Default)]
struct FormContent {
    name: String,
    email: String,
    complaint: Complaint,
}

impl FormContent {
    fn empty(visitor: &Visitor) -> Self {
        Self { email: visitor.user.email.to_string(), ..Self::default() }
    }
}

/// `GET /`
pub(crate) async fn home() -> Redirect {
    Redirect::to("/app")
}

/// `GET /app`. Who has one organization is led to it, and who has none learns what to do.
pub(crate) async fn start(State(web): State<Web>, visitor: Visitor) -> Result<Response, PageError> {
    // At once, so that they share one look at the bucket.
    let (seen, invitations) = tokio::try_join!(
        web.control_plane.organizations(&visitor.caller, None, PageRequest::new(1, 2)),
        InvitationRow::all(&web, &visitor),
    )?;
    Ok(match seen.items.as_slice() {
        [] => page::render(StatusCode::OK, &landing(&web, &visitor, invitations, FormContent::empty(&visitor))),
        [only] if seen.total == 1 && invitations.is_empty() => {
            Redirect::to(&organization_address(&only.name)).into_response()
        }
        _ => Redirect::to(PATH).into_response(),
    })
}

fn landing<'a>(web: &Web, visitor: &'a Visitor, invitations: Vec<InvitationRow>, form: FormContent) -> LandingPage<'a> {
    LandingPage {
        layout: Layout::for_visitor(web, visitor),
        username: visitor.user.username.as_str(),
        host: terraform::host_name(&web.address),
        host_block: terraform::needed_host_block(&web.address),
        invitations,
        form,
        is_landing: true,
    }
}

/// `GET /app/organizations`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Query(wanted): Query<PageQuery>,
) -> Result<Response, PageError> {
    let form = FormContent::empty(&visitor);
    Ok(page::render(StatusCode::OK, &organizations(&web, &visitor, wanted, form).await?))
}

async fn organizations(
    web: &Web,
    visitor: &Visitor,
    wanted: PageQuery,
    form: FormContent,
) -> Result<OrganizationsPage, Error> {
    let (search, number) = (wanted.search.trim(), pagination::asked_for(&wanted.page));
    let (listed, invitations) = tokio::try_join!(
        web.control_plane.organizations(&visitor.caller, Some(search), number),
        InvitationRow::all(web, visitor),
    )?;
    Ok(OrganizationsPage {
        layout: Layout::for_visitor(web, visitor),
        list: ListPage::of(PATH.to_owned(), search, listed, Row::of),
        invitations,
        form,
        is_landing: false,
    })
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct Create {
    name: String,
    email: String,
    /// `welcome`, if the form was on the page with the first steps.
    from: String,
}

/// `POST /app/organizations`
pub(crate) async fn create(
    State(web): State<Web>,
    VisitorForm(visitor, form): VisitorForm<Create>,
) -> Result<Response, PageError> {
    let (name, email, came_from) = (form.name.trim().to_owned(), form.email.trim().to_owned(), form.from);
    let patch =
        OrganizationPatch { name: Some(name.clone()), email: Some(email.clone()), ..OrganizationPatch::default() };
    match web.control_plane.create_organization(&visitor.caller, &patch).await {
        Ok(made) => {
            // Where an empty list says what to do next.
            let address = format!("{}/workspaces", organization_address(&made.name));
            Ok(Flash::created("Organization", &made.name).redirect_to(&address))
        }
        Err(error) => {
            let form = FormContent { name, email, complaint: Complaint::of(error, &FIELDS)? };
            if came_from == WELCOME {
                let invitations = InvitationRow::all(&web, &visitor).await?;
                let page = landing(&web, &visitor, invitations, form);
                return Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page));
            }
            let page = organizations(&web, &visitor, PageQuery::default(), form).await?;
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}
