//! `/app/{organization}/variable-sets`: variables that several workspaces share, and the form that makes a set.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{NewVariableSet, OrganizationSnapshot, PageRequest, VariableSetView};
use taco_domain::permission::{Action, Decision};
use taco_domain::variable_set::{VariableSet, VariableSetPatch};

use crate::choice::Choice;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Ticked, VisitorForm, typed};
use crate::navigation::{Section, variable_set_address};
use crate::page::Layout;
use crate::visitor::Visitor;
use crate::{Web, page, text};

struct Row {
    name: String,
    address: String,
    description: String,
    reach: String,
    priority: bool,
    variables: usize,
}

/// Scope of a set, in words.
pub(crate) fn reach_in_words(set: &VariableSet) -> String {
    let count = |number: usize, one: &str| match number {
        1 => format!("1 {one}"),
        more => format!("{more} {one}s"),
    };
    match (set.global, set.projects.len(), set.workspaces.len()) {
        (true, _, _) if set.parent.is_some() => "all workspaces of its project".to_owned(),
        (true, _, _) => "all workspaces".to_owned(),
        (false, 0, 0) => "nothing yet".to_owned(),
        (false, projects, 0) => count(projects, "project"),
        (false, 0, workspaces) => count(workspaces, "workspace"),
        (false, projects, workspaces) => format!("{}, {}", count(projects, "project"), count(workspaces, "workspace")),
    }
}

impl Row {
    fn of(organization: &str, view: &VariableSetView) -> Self {
        Self {
            name: view.set.name.to_string(),
            address: variable_set_address(organization, view.set.id),
            description: text::plain(&view.set.description),
            reach: reach_in_words(&view.set),
            priority: view.set.priority,
            variables: view.variables().count(),
        }
    }
}

/// Name and settings of a set, as forms contain them.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SetForm {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) global: Ticked,
    pub(crate) priority: Ticked,
    /// The project that is to own it.
    pub(crate) parent: String,
    #[serde(skip)]
    pub(crate) complaint: Complaint,
}

impl SetForm {
    pub(crate) fn patch(&self) -> VariableSetPatch {
        VariableSetPatch {
            name: Some(self.name.trim().to_owned()),
            description: Some(Some(typed(self.description.trim()))),
            global: Some(self.global.0),
            priority: Some(self.priority.0),
            ..VariableSetPatch::default()
        }
    }
}

#[derive(Template)]
#[template(path = "variable_sets.html")]
struct VariableSetsPage {
    layout: Layout,
    organization: String,
    sets: Vec<Row>,
    total: usize,
    query: String,
    form: SetForm,
    right: Decision,
    owners: Vec<Choice>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Search {
    search: String,
}

/// Possible owners of a set that the visitor creates: the organization, or projects.
fn owners(visitor: &Visitor, org: &OrganizationSnapshot, chosen: &str) -> Vec<Choice> {
    let whole = visitor.caller.may(Action::ManageVariableSets, org.resource()).allowed;
    let visible = org.visible_to(&visitor.caller);
    let may = |project| whole || visible.may_in_project(Action::WriteProjectVariableSets, project).allowed;
    let organization = whole.then(|| Choice::new("", "the organization", chosen));
    let projects = visible.projects().filter(|project| may(project));
    let projects = projects.map(|project| Choice::new(project.id, format!("the project {}", project.name), chosen));
    organization.into_iter().chain(projects).collect()
}

async fn page(
    web: &Web,
    visitor: &Visitor,
    organization: &str,
    search: Search,
    form: SetForm,
) -> Result<VariableSetsPage, PageError> {
    let caller = &visitor.caller;
    let org = web.control_plane.organization_named(caller, organization).await?;
    let query = Some(search.search.as_str()).filter(|query| !query.is_empty());
    let first = PageRequest::new(1, PageRequest::LARGEST_SIZE);
    let listed = web.control_plane.variable_sets(caller, organization, query, first).await?;
    let owners = owners(visitor, &org, &form.parent);
    let of_organization = caller.may(Action::ManageVariableSets, org.resource());
    Ok(VariableSetsPage {
        layout: Layout::for_visitor(web, visitor).in_organization(organization, Section::VariableSets),
        organization: organization.to_owned(),
        total: listed.total,
        sets: listed.items.iter().map(|view| Row::of(organization, view)).collect(),
        query: search.search,
        form,
        right: Decision { allowed: !owners.is_empty(), ..of_organization },
        owners,
    })
}

/// `GET /app/{organization}/variable-sets`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Path(organization): Path<String>,
    Query(search): Query<Search>,
) -> Result<Response, PageError> {
    let page = page(&web, &visitor, &organization, search, SetForm::default()).await?;
    Ok(page::render(StatusCode::OK, &page))
}

/// `POST /app/{organization}/variable-sets`
pub(crate) async fn create(
    State(web): State<Web>,
    Path(organization): Path<String>,
    VisitorForm(visitor, form): VisitorForm<SetForm>,
) -> Result<Response, PageError> {
    let parent = match form.parent.as_str() {
        "" => None,
        id => Some(id.parse().map_err(|_| PageError::not_found("project"))?),
    };
    let new = NewVariableSet { patch: form.patch(), parent, variables: Vec::new() };
    match web.control_plane.create_variable_set(&visitor.caller, &organization, new).await {
        Ok(view) => {
            let address = variable_set_address(&organization, view.set.id);
            Ok(Flash::created("Variable set", view.set.name.as_str()).redirect_to(&address))
        }
        Err(error) => {
            let form = SetForm { complaint: Complaint::of(error, &["name", "description"])?, ..form };
            let page = page(&web, &visitor, &organization, Search::default(), form).await?;
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use taco_domain::id::{OrganizationId, ProjectId, VariableSetId, WorkspaceId};

    use super::*;

    #[test]
    fn the_reach_of_a_set_is_told_in_words() {
        let home = OrganizationId::from_random([1; 16]).organization_prefix();
        let id = VariableSetId::within(home, [2; 16]);
        let mut set = VariableSet::new(id, "common".parse().expect("legal"), None, Timestamp::UNIX_EPOCH);
        assert_eq!(reach_in_words(&set), "nothing yet");
        set.projects.insert(ProjectId::within(home, [3; 16]));
        assert_eq!(reach_in_words(&set), "1 project");
        set.workspaces.extend([4, 5].map(|number| WorkspaceId::within(home, [number; 16])));
        assert_eq!(reach_in_words(&set), "1 project, 2 workspaces");
        set.global = true;
        assert_eq!(reach_in_words(&set), "all workspaces");
    }
}
