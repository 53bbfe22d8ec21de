//! Data retention of a workspace and of an organization: the policy, what it would delete, and the form for it.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::WorkspaceRef;
use taco_domain::permission::{Action, Decision};
use taco_domain::retention::RetentionPolicy;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, VisitorForm};
use crate::navigation::{Section, WorkspaceSection, organization_address, workspace_address};
use crate::page::Layout;
use crate::rail::Rail;
use crate::visitor::Visitor;
use crate::{Web, page};

#[derive(Deserialize)]
pub(crate) struct WorkspacePlace {
    organization: String,
    workspace: String,
}

impl WorkspacePlace {
    fn workspace(&self) -> WorkspaceRef {
        WorkspaceRef::Named { organization: self.organization.clone(), name: self.workspace.clone() }
    }

    fn address(&self) -> String {
        format!("{}/settings/retention", workspace_address(&self.organization, &self.workspace))
    }
}

fn organization_page(organization: &str) -> String {
    format!("{}/settings/retention", organization_address(organization))
}

/// The policy as the form has it.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RetentionForm {
    /// `delete`, `hold`, or empty for none.
    policy: String,
    days: String,
    #[serde(skip)]
    complaint: Complaint,
}

impl RetentionForm {
    fn of(policy: Option<RetentionPolicy>) -> Self {
        let (policy, days) = match policy {
            None => ("", String::new()),
            Some(RetentionPolicy::DontDelete) => ("hold", String::new()),
            Some(RetentionPolicy::DeleteOlderThanDays(days)) => ("delete", days.to_string()),
        };
        Self { policy: policy.to_owned(), days, complaint: Complaint::default() }
    }

    fn policy(&self) -> Result<Option<RetentionPolicy>, Complaint> {
        match self.policy.as_str() {
            "delete" => parsed(&self.days).map(Some),
            "hold" => Ok(Some(RetentionPolicy::DontDelete)),
            _ => Ok(None),
        }
    }
}

fn parsed(days: &str) -> Result<RetentionPolicy, Complaint> {
    let not_a_number = || Complaint::about_field("days", "Enter a number of days, such as 90");
    let days: i64 = days.trim().parse().map_err(|_| not_a_number())?;
    RetentionPolicy::delete_older_than(days).map_err(|error| Complaint::about_field("days", error.detail))
}

/// Days that somebody wants to try.
#[derive(Deserialize)]
pub(crate) struct Tried {
    #[serde(default)]
    days: String,
}

/// What a policy would delete now.
struct Preview {
    states: usize,
    configurations: usize,
    /// True for days that are tried, and not the policy that holds.
    is_trial: bool,
}

#[derive(Template)]
#[template(path = "retention.html")]
struct RetentionPage {
    layout: Layout,
    rail: Rail,
    name: String,
    address: String,
    right: Decision,
    form: RetentionForm,
    /// The organization's policy in words, on the page of a workspace.
    inherited: Option<String>,
    preview: Option<Preview>,
    tried: String,
    trial: Complaint,
}

fn in_words(policy: Option<RetentionPolicy>) -> String {
    match policy {
        None | Some(RetentionPolicy::DontDelete) => "keeps everything".to_owned(),
        Some(RetentionPolicy::DeleteOlderThanDays(1)) => "deletes data a day after it was replaced".to_owned(),
        Some(RetentionPolicy::DeleteOlderThanDays(days)) => format!("deletes data {days} days after it was replaced"),
    }
}

async fn workspace_page(
    web: &Web,
    visitor: &Visitor,
    place: &WorkspacePlace,
    tried: &str,
    form: Option<RetentionForm>,
) -> Result<RetentionPage, PageError> {
    let (caller, control_plane) = (&visitor.caller, &web.control_plane);
    let wanted = place.workspace();
    let view = control_plane.workspace(caller, &wanted).await?;
    let (trial, policy) = match (tried, parsed(tried)) {
        ("", _) => (Complaint::default(), None),
        (_, Ok(policy)) => (Complaint::default(), Some(policy)),
        (_, Err(complaint)) => (complaint, None),
    };
    let holds = policy.is_some() || view.retention().is_some();
    let preview = match holds {
        true => {
            let expired = control_plane.preview_retention(caller, &wanted, policy).await?;
            let (states, configurations) = (expired.states.len(), expired.configurations.len());
            Some(Preview { states, configurations, is_trial: policy.is_some() })
        }
        false => None,
    };
    let organization = control_plane.organization(caller, &place.organization).await?.organization.retention;
    let layout = Layout::for_visitor(web, visitor);
    Ok(RetentionPage {
        layout: layout.in_workspace(&place.organization, &view.workspace, WorkspaceSection::Settings),
        rail: Rail::of_workspace(&place.organization, &place.workspace, "/retention"),
        name: view.workspace.name.to_string(),
        address: place.address(),
        right: caller.may(Action::DeleteStateForGood, view.resource()),
        form: form.unwrap_or_else(|| RetentionForm::of(view.workspace.retention)),
        inherited: Some(in_words(organization)),
        preview,
        tried: tried.to_owned(),
        trial,
    })
}

/// `GET …/workspaces/{workspace}/settings/retention`
pub(crate) async fn show_of_workspace(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<WorkspacePlace>,
    Query(tried): Query<Tried>,
) -> Result<Response, PageError> {
    Ok(page::render(StatusCode::OK, &workspace_page(&web, &visitor, &place, &tried.days, None).await?))
}

/// `POST …/workspaces/{workspace}/settings/retention`
pub(crate) async fn save_of_workspace(
    State(web): State<Web>,
    Path(place): Path<WorkspacePlace>,
    VisitorForm(visitor, form): VisitorForm<RetentionForm>,
) -> Result<Response, PageError> {
    let policy = match form.policy() {
        Ok(policy) => policy,
        Err(complaint) => {
            let form = RetentionForm { complaint, ..form };
            let page = workspace_page(&web, &visitor, &place, "", Some(form)).await?;
            return Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page));
        }
    };
    web.control_plane.set_workspace_retention(&visitor.caller, &place.workspace(), policy).await?;
    Ok(Flash::says("Retention policy saved.").redirect_to(&place.address()))
}

#[derive(Deserialize)]
pub(crate) struct OrganizationPlace {
    organization: String,
}

async fn page_of_organization(
    web: &Web,
    visitor: &Visitor,
    organization: &str,
    form: Option<RetentionForm>,
) -> Result<RetentionPage, PageError> {
    let caller = &visitor.caller;
    let view = web.control_plane.organization(caller, organization).await?;
    // Its settings are for its members; a run's token sees the organization, too.
    caller.require(Action::ReadDirectory, view.org.resource(), "organization")?;
    Ok(RetentionPage {
        layout: Layout::for_visitor(web, visitor).in_organization(organization, Section::Settings),
        rail: Rail::of_organization(&view.org, caller, "/retention"),
        name: organization.to_owned(),
        address: organization_page(organization),
        right: caller.may(Action::UpdateOrganization, view.org.resource()),
        form: form.unwrap_or_else(|| RetentionForm::of(view.organization.retention)),
        inherited: None,
        preview: None,
        tried: String::new(),
        trial: Complaint::default(),
    })
}

/// `GET /app/{organization}/settings/retention`
pub(crate) async fn show_of_organization(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<OrganizationPlace>,
) -> Result<Response, PageError> {
    Ok(page::render(StatusCode::OK, &page_of_organization(&web, &visitor, &place.organization, None).await?))
}

/// `POST /app/{organization}/settings/retention`
pub(crate) async fn save_of_organization(
    State(web): State<Web>,
    Path(place): Path<OrganizationPlace>,
    VisitorForm(visitor, form): VisitorForm<RetentionForm>,
) -> Result<Response, PageError> {
    let policy = match form.policy() {
        Ok(policy) => policy,
        Err(complaint) => {
            let form = RetentionForm { complaint, ..form };
            let page = page_of_organization(&web, &visitor, &place.organization, Some(form)).await?;
            return Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page));
        }
    };
    web.control_plane.set_organization_retention(&visitor.caller, &place.organization, policy).await?;
    Ok(Flash::says("Retention policy saved.").redirect_to(&organization_page(&place.organization)))
}
