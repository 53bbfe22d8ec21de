//! `/app/{organization}/settings/policies`: policy sets and policies of an organization.

pub(crate) mod policy;
pub(crate) mod policy_set;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{PageRequest, PolicyFilter, PolicySetView, PolicyView};
use taco_domain::permission::{Action, Decision};
use taco_domain::policy::PolicyPatch;
use taco_domain::policy_set::PolicySetPatch;
use taco_domain::policy_words::PolicyKind;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Ticked, VisitorForm, typed};
use crate::navigation::{Section, organization_address};
use crate::page::Layout;
use crate::rail::Rail;
use crate::visitor::Visitor;
use crate::{Web, page};

/// End of the address of all these pages.
pub(crate) const HERE: &str = "/policies";

#[derive(Template)]
#[template(path = "policies.html")]
struct PoliciesPage {
    layout: Layout,
    rail: Rail,
    address: String,
    right: Decision,
    sets: Vec<SetRow>,
    set_total: usize,
    policies: Vec<PolicyRow>,
    policy_total: usize,
    new_set: SetForm,
    new_policy: PolicyForm,
}

struct SetRow {
    name: String,
    address: String,
    is_evaluated: bool,
    applies_to: String,
    policies: usize,
}

struct PolicyRow {
    name: String,
    address: String,
    is_evaluated: bool,
    level: &'static str,
    sets: usize,
    has_code: bool,
}

/// Content of the form for a new set.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SetForm {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) global: Ticked,
    pub(crate) overridable: Ticked,
    pub(crate) version: String,
    #[serde(skip)]
    pub(crate) complaint: Complaint,
}

/// Content of the form for a new policy.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PolicyForm {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) query: String,
    pub(crate) level: String,
    pub(crate) code: String,
    #[serde(skip)]
    pub(crate) complaint: Complaint,
}

/// Address of the list.
pub(crate) fn address_of(organization: &str) -> String {
    format!("{}/settings{HERE}", organization_address(organization))
}

/// What a set applies to, in few words.
pub(crate) fn applies_to(view: &PolicySetView) -> String {
    let set = &view.set;
    let excluded = set.workspace_exclusions.len() + set.project_exclusions.len();
    let mut words = match (set.global, set.projects.len(), set.workspaces.len()) {
        (true, _, _) => "All workspaces".to_owned(),
        (false, 0, 0) => "No workspaces".to_owned(),
        (false, projects, 0) => counted(projects, "project"),
        (false, 0, workspaces) => counted(workspaces, "workspace"),
        (false, projects, workspaces) => {
            format!("{} and {}", counted(projects, "project"), counted(workspaces, "workspace"))
        }
    };
    if excluded > 0 {
        words.push_str(&format!(", {excluded} excluded"));
    }
    words
}

fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

impl PoliciesPage {
    async fn of(web: &Web, visitor: &Visitor, organization: &str) -> Result<Self, PageError> {
        let (plane, caller) = (&web.control_plane, &visitor.caller);
        let view = plane.organization(caller, organization).await?;
        let all = PageRequest::new(1, PageRequest::LARGEST_SIZE);
        let sets = plane.policy_sets(caller, organization, &PolicyFilter::default(), all).await?;
        let policies = plane.policies(caller, organization, &PolicyFilter::default(), all).await?;
        let address = address_of(view.org.entry().name.as_str());
        let set_row = |set: &PolicySetView| SetRow {
            name: set.set.name.to_string(),
            address: format!("{address}/sets/{}", set.set.id),
            is_evaluated: set.set.kind == PolicyKind::Opa,
            applies_to: applies_to(set),
            policies: set.policy_count(),
        };
        let policy_row = |policy: &PolicyView| PolicyRow {
            name: policy.policy.name.to_string(),
            address: format!("{address}/{}", policy.policy.id),
            is_evaluated: policy.policy.kind == PolicyKind::Opa,
            level: policy.policy.level.as_str(),
            sets: policy.set_count(),
            has_code: policy.policy.code.is_some(),
        };
        Ok(Self {
            layout: Layout::for_visitor(web, visitor).in_organization(organization, Section::Settings),
            rail: Rail::of_organization(&view.org, caller, HERE),
            right: caller.may(Action::ManagePolicies, view.org.resource()),
            sets: sets.items.iter().map(set_row).collect(),
            set_total: sets.total,
            policies: policies.items.iter().map(policy_row).collect(),
            policy_total: policies.total,
            new_set: SetForm::default(),
            new_policy: PolicyForm { level: "mandatory".to_owned(), ..PolicyForm::default() },
            address,
        })
    }

    fn again(mut self, change: impl FnOnce(&mut Self)) -> Response {
        change(&mut self);
        page::render(StatusCode::UNPROCESSABLE_ENTITY, &self)
    }
}

/// `GET /app/{organization}/settings/policies`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Path(organization): Path<String>,
) -> Result<Response, PageError> {
    Ok(page::render(StatusCode::OK, &PoliciesPage::of(&web, &visitor, &organization).await?))
}

impl SetForm {
    /// The request that the form makes.
    pub(crate) fn patch(&self) -> PolicySetPatch {
        PolicySetPatch {
            name: Some(self.name.trim().to_owned()),
            description: Some(Some(typed(&self.description))),
            kind: Some(PolicyKind::Opa.to_string()),
            global: Some(self.global.0),
            overridable: Some(Some(self.overridable.0)),
            policy_tool_version: Some(Some(self.version.trim().to_owned())),
            ..PolicySetPatch::default()
        }
    }
}

/// `POST /app/{organization}/settings/policies/sets`
pub(crate) async fn create_set(
    State(web): State<Web>,
    Path(organization): Path<String>,
    VisitorForm(visitor, form): VisitorForm<SetForm>,
) -> Result<Response, PageError> {
    match web.control_plane.create_policy_set(&visitor.caller, &organization, form.patch()).await {
        Ok(view) => {
            let address = format!("{}/sets/{}", address_of(&organization), view.set.id);
            Ok(Flash::created("Policy set", view.set.name.as_str()).redirect_to(&address))
        }
        Err(error) => {
            let complaint = Complaint::of(error, &["name", "description", "policy-tool-version"])?;
            let page = PoliciesPage::of(&web, &visitor, &organization).await?;
            Ok(page.again(|page| page.new_set = SetForm { complaint, ..form }))
        }
    }
}

impl PolicyForm {
    /// The request that the form makes.
    pub(crate) fn patch(&self) -> PolicyPatch {
        PolicyPatch {
            name: Some(self.name.trim().to_owned()),
            kind: Some(PolicyKind::Opa.to_string()),
            description: Some(Some(typed(&self.description))),
            query: Some(Some(self.query.trim().to_owned())),
            enforcement_level: Some(self.level.clone()),
            enforce: None,
        }
    }
}

/// `POST /app/{organization}/settings/policies`
pub(crate) async fn create_policy(
    State(web): State<Web>,
    Path(organization): Path<String>,
    VisitorForm(visitor, form): VisitorForm<PolicyForm>,
) -> Result<Response, PageError> {
    match web.control_plane.create_policy(&visitor.caller, &organization, form.patch()).await {
        Ok(view) => {
            let address = format!("{}/{}", address_of(&organization), view.policy.id);
            Ok(Flash::created("Policy", view.policy.name.as_str()).redirect_to(&address))
        }
        Err(error) => {
            let complaint = Complaint::of(error, &["name", "description", "query", "enforcement-level"])?;
            let page = PoliciesPage::of(&web, &visitor, &organization).await?;
            Ok(page.again(|page| page.new_policy = PolicyForm { complaint, ..form }))
        }
    }
}
