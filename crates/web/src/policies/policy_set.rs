//! `/app/{organization}/settings/policies/sets/{policy_set}`: one policy set, and what it has and applies to.

use std::collections::BTreeSet;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{PageRequest, PolicyFilter, PolicySetView, WorkspaceFilter};
use taco_domain::permission::Decision;
use taco_domain::policy_set::{PolicySetId, PolicySetPatch, PolicySetTargets};
use taco_domain::policy_words::PolicyKind;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, VisitorForm};
use crate::navigation::{Section, organization_address, workspace_address};
use crate::page::Layout;
use crate::policies::{HERE, SetForm, address_of, applies_to};
use crate::rail::Rail;
use crate::visitor::Visitor;
use crate::{Web, page};

#[derive(Template)]
#[template(path = "policy_set.html")]
struct PolicySetPage {
    layout: Layout,
    rail: Rail,
    address: String,
    right: Decision,
    id: PolicySetId,
    name: String,
    is_evaluated: bool,
    applies_to: String,
    /// Policies of the current version.
    versioned: Vec<VersionedRow>,
    /// Why the version that was sent last is not in use.
    broken: Option<String>,
    policies: Vec<Tick>,
    workspaces: Vec<Tick>,
    excluded: Vec<Linked>,
    projects: Vec<Linked>,
    parameters: Vec<ParameterRow>,
    form: SetForm,
}

struct VersionedRow {
    name: String,
    query: String,
    level: &'static str,
    description: String,
}

/// Something that can be in the set.
struct Tick {
    id: String,
    name: String,
    is_in: bool,
}

struct Linked {
    name: String,
    address: String,
}

struct ParameterRow {
    key: String,
    value: Option<String>,
}

async fn find(web: &Web, visitor: &Visitor, id: &str) -> Result<PolicySetView, PageError> {
    let id: PolicySetId = id.parse().map_err(|_| PageError::not_found("policy set"))?;
    Ok(web.control_plane.policy_set(&visitor.caller, id).await?)
}

impl PolicySetPage {
    async fn of(web: &Web, visitor: &Visitor, view: &PolicySetView) -> Result<Self, PageError> {
        let (plane, caller, set) = (&web.control_plane, &visitor.caller, &view.set);
        let organization = view.org.entry().name.to_string();
        let all = PageRequest::new(1, PageRequest::LARGEST_SIZE);
        let policies = plane.policies(caller, &organization, &PolicyFilter::default(), all).await?;
        let fitting = policies.items.iter().filter(|policy| policy.policy.kind == set.kind);
        let policies = fitting.map(|policy| Tick {
            id: policy.policy.id.to_string(),
            name: policy.policy.name.to_string(),
            is_in: set.policies.contains(&policy.policy.id),
        });
        let workspaces = plane.workspaces(caller, &organization, &WorkspaceFilter::default(), all).await?;
        let workspaces = workspaces.items.iter().map(|workspace| Tick {
            id: workspace.workspace.id.to_string(),
            name: workspace.workspace.name.to_string(),
            is_in: set.workspaces.contains(&workspace.workspace.id),
        });
        let excluded = view.workspaces_seen_by(caller, &set.workspace_exclusions).into_iter().map(|excluded| Linked {
            address: workspace_address(&organization, excluded.workspace.name.as_str()),
            name: excluded.workspace.name.to_string(),
        });
        let projects = view.projects_seen_by(caller, &set.projects).into_iter().map(|project| Linked {
            address: format!("{}/projects/{}", organization_address(&organization), project.project.id),
            name: project.project.name.to_string(),
        });
        let current = view.current_version();
        let versioned = current.iter().flat_map(|version| &version.version.policies).map(|policy| VersionedRow {
            name: policy.name.clone(),
            query: policy.query.clone(),
            level: policy.level.as_str(),
            description: policy.description.clone(),
        });
        let parameters = view
            .parameters()
            .into_iter()
            .map(|parameter| ParameterRow { value: parameter.shown_value().map(str::to_owned), key: parameter.key });
        Ok(Self {
            layout: Layout::for_visitor(web, visitor).in_organization(&organization, Section::Settings),
            rail: Rail::of_organization(&view.org, caller, HERE),
            address: format!("{}/sets/{}", address_of(&organization), set.id),
            right: view.may_manage(caller),
            id: set.id,
            name: set.name.to_string(),
            is_evaluated: set.kind == PolicyKind::Opa,
            applies_to: applies_to(view),
            versioned: versioned.collect(),
            broken: view.newest_version().and_then(|newest| newest.version.error),
            policies: policies.collect(),
            workspaces: workspaces.collect(),
            excluded: excluded.collect(),
            projects: projects.collect(),
            parameters: parameters.collect(),
            form: SetForm {
                name: set.name.to_string(),
                description: set.description.clone(),
                global: crate::form::Ticked(set.global),
                overridable: crate::form::Ticked(set.overridable),
                version: set.tool_version.clone().unwrap_or_default(),
                complaint: Complaint::default(),
            },
        })
    }
}

/// `GET /app/{organization}/settings/policies/sets/{policy_set}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path((_, set)): Path<(String, String)>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &set).await?;
    Ok(page::render(StatusCode::OK, &PolicySetPage::of(&web, &visitor, &view).await?))
}

/// `POST /app/{organization}/settings/policies/sets/{policy_set}`
pub(crate) async fn update(
    State(web): State<Web>,
    Path((_, set)): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<SetForm>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &set).await?;
    let patch = PolicySetPatch { kind: None, ..form.patch() };
    let page = PolicySetPage::of(&web, &visitor, &view).await?;
    match web.control_plane.update_policy_set(&visitor.caller, view.set.id, patch).await {
        Ok(view) => Ok(Flash::saved("Policy set", view.set.name.as_str()).redirect_to(&page.address)),
        Err(error) => {
            let complaint = Complaint::of(error, &["name", "description", "policy-tool-version"])?;
            let form = SetForm { complaint, ..form };
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &PolicySetPage { form, ..page }))
        }
    }
}

/// Policies and workspaces that are ticked, of those that the page showed.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ContentsForm {
    policy: Vec<String>,
    workspace: Vec<String>,
    shown_policy: Vec<String>,
    shown_workspace: Vec<String>,
}

/// What is in a list after the form: what the page did not show stays.
fn chosen<I: Ord + Copy + std::str::FromStr>(before: &BTreeSet<I>, shown: &[String], ticked: &[String]) -> BTreeSet<I> {
    let parsed = |ids: &[String]| ids.iter().filter_map(|id| id.parse().ok()).collect::<BTreeSet<I>>();
    let shown = parsed(shown);
    before.iter().copied().filter(|id| !shown.contains(id)).chain(parsed(ticked)).collect()
}

/// `POST /app/{organization}/settings/policies/sets/{policy_set}/contents`
pub(crate) async fn update_contents(
    State(web): State<Web>,
    Path((_, set)): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<ContentsForm>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &set).await?;
    let targets = PolicySetTargets {
        policies: Some(chosen(&view.set.policies, &form.shown_policy, &form.policy)),
        workspaces: Some(chosen(&view.set.workspaces, &form.shown_workspace, &form.workspace)),
        ..PolicySetTargets::default()
    };
    let patch = PolicySetPatch { targets, ..PolicySetPatch::default() };
    let view = web.control_plane.update_policy_set(&visitor.caller, view.set.id, patch).await?;
    let address = format!("{}/sets/{}", address_of(view.org.entry().name.as_str()), view.set.id);
    Ok(Flash::saved("Policy set", view.set.name.as_str()).redirect_to(&address))
}

/// `POST /app/{organization}/settings/policies/sets/{policy_set}/delete`
pub(crate) async fn delete(
    State(web): State<Web>,
    Path((organization, set)): Path<(String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &set).await?;
    web.control_plane.delete_policy_set(&visitor.caller, view.set.id).await?;
    Ok(Flash::deleted("Policy set", view.set.name.as_str()).redirect_to(&address_of(&organization)))
}
