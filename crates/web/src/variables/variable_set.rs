//! `/app/{organization}/variable-sets/{variable_set}`: one set, its variables, and what it applies to.

use std::collections::BTreeSet;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{Error, ListChange, VariableSetTargets, VariableSetView, WorkspaceRef};
use taco_domain::id::{ProjectId, VariableSetId, WorkspaceId};

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, Ticked, VisitorForm};
use crate::navigation::{organization_address, workspace_address};
use crate::page::Layout;
use crate::variable_form::VariableForm;
use crate::variable_holder::{Holder, Place, Subject};
use crate::variable_import::ImportForm;
use crate::variable_sets::{SetForm, reach_in_words};
use crate::variables::Row;
use crate::visitor::Visitor;
use crate::{Web, page};

/// So many workspaces are offered to choose from; others can be typed.
const MAX_OFFERED_WORKSPACES: usize = 200;

/// Something that the set applies to.
struct Target {
    kind: &'static str,
    id: String,
    name: String,
    address: String,
}

/// Content of the form that applies the set to something.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct TargetForm {
    workspace: String,
    project: String,
    #[serde(skip)]
    complaint: Complaint,
}

#[derive(Template)]
#[template(path = "variable_set.html")]
struct VariableSetPage {
    layout: Layout,
    holder: Holder,
    id: VariableSetId,
    reach: String,
    is_global: bool,
    owned_by: Option<String>,
    set: SetForm,
    own: Vec<Row>,
    targets: Vec<Target>,
    /// Number of targets that the visitor may not see.
    hidden_targets: usize,
    target: TargetForm,
    offered_projects: Vec<(ProjectId, String)>,
    offered_workspaces: Vec<String>,
    form: VariableForm,
    import: ImportForm,
}

impl VariableSetPage {
    async fn of(web: &Web, visitor: &Visitor, place: &Place) -> Result<Self, PageError> {
        let holder = Holder::find(web, visitor, place).await?;
        let Subject::VariableSet(view) = &holder.subject else { return Err(PageError::not_found("variable set")) };
        let (targets, hidden_targets) = targets(visitor, view, &holder.organization);
        let visible = view.org.visible_to(&visitor.caller);
        let inside = |project: ProjectId| view.set.parent.is_none_or(|parent| parent == project);
        let offered_workspaces = visible
            .workspaces()
            .filter(|workspace| inside(workspace.project) && !view.set.workspaces.contains(&workspace.id));
        let offered_projects =
            visible.projects().filter(|project| inside(project.id) && !view.set.projects.contains(&project.id));
        Ok(Self {
            layout: holder.layout(web, visitor),
            id: view.set.id,
            reach: reach_in_words(&view.set),
            is_global: view.set.global,
            owned_by: view.owner().map(|project| project.name.to_string()),
            set: SetForm {
                name: view.set.name.to_string(),
                description: view.set.description.clone(),
                global: Ticked(view.set.global),
                priority: Ticked(view.set.priority),
                ..SetForm::default()
            },
            own: view.variables().map(|row| Row::of(row, format!("{}/{}", holder.variables, row.id))).collect(),
            targets,
            hidden_targets,
            target: TargetForm::default(),
            offered_projects: offered_projects.map(|project| (project.id, project.name.to_string())).collect(),
            offered_workspaces: offered_workspaces
                .take(MAX_OFFERED_WORKSPACES)
                .map(|workspace| workspace.name.to_string())
                .collect(),
            form: VariableForm::default(),
            import: ImportForm::default(),
            holder,
        })
    }
}

/// Targets of the set that the visitor may see, and the number of those that they may not.
fn targets(visitor: &Visitor, view: &VariableSetView, organization: &str) -> (Vec<Target>, usize) {
    let visible = view.org.visible_to(&visitor.caller);
    let projects = view.set.projects.iter().filter_map(|id| visible.project(id));
    let workspaces = view.set.workspaces.iter().filter_map(|id| visible.workspace(id));
    let projects = projects.map(|project| Target {
        kind: "project",
        id: project.id.to_string(),
        name: project.name.to_string(),
        address: format!("{}/projects/{}", organization_address(organization), project.id),
    });
    let workspaces = workspaces.map(|workspace| Target {
        kind: "workspace",
        id: workspace.id.to_string(),
        name: workspace.name.to_string(),
        address: workspace_address(organization, workspace.name.as_str()),
    });
    let shown: Vec<Target> = projects.chain(workspaces).collect();
    let hidden = view.set.projects.len() + view.set.workspaces.len() - shown.len();
    (shown, hidden)
}

/// `GET /app/{organization}/variable-sets/{variable_set}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<Place>,
) -> Result<Response, PageError> {
    let page = VariableSetPage::of(&web, &visitor, &place).await?;
    Ok(page::render(StatusCode::OK, &page))
}

/// `POST /app/{organization}/variable-sets/{variable_set}`
pub(crate) async fn update(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<SetForm>,
) -> Result<Response, PageError> {
    let page = VariableSetPage::of(&web, &visitor, &place).await?;
    match web.control_plane.update_variable_set(&visitor.caller, page.id, form.patch()).await {
        Ok(_) => Ok(Flash::saved("Variable set", form.name.trim()).redirect_to(&page.holder.page)),
        Err(error) => {
            let set = SetForm { complaint: Complaint::of(error, &["name", "description"])?, ..form };
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &VariableSetPage { set, ..page }))
        }
    }
}

/// Target that was chosen in a form.
async fn chosen(
    web: &Web,
    visitor: &Visitor,
    organization: &str,
    form: &TargetForm,
) -> Result<VariableSetTargets, Error> {
    let unknown = |what: &'static str, name: &str| {
        Error::invalid(what, format!("No {what} {name:?} in this organization, or you have no access to it"))
    };
    if let Some(id) = Some(form.project.trim()).filter(|id| !id.is_empty()) {
        let id: ProjectId = id.parse().map_err(|_| unknown("project", id))?;
        return Ok(VariableSetTargets::Projects(BTreeSet::from([id])));
    }
    let name = form.workspace.trim();
    if name.is_empty() {
        return Err(Error::invalid("workspace", "Choose a project, or type the name of a workspace"));
    }
    // Lists remove by id, people add by name.
    if let Ok(id) = name.parse::<WorkspaceId>() {
        return Ok(VariableSetTargets::Workspaces(BTreeSet::from([id])));
    }
    let wanted = WorkspaceRef::Named { organization: organization.to_owned(), name: name.to_owned() };
    match web.control_plane.workspace(&visitor.caller, &wanted).await {
        Ok(view) => Ok(VariableSetTargets::Workspaces(BTreeSet::from([view.workspace.id]))),
        Err(Error::NotFound(_)) => Err(unknown("workspace", name)),
        Err(error) => Err(error),
    }
}

async fn change_targets(
    web: &Web,
    visitor: &Visitor,
    place: &Place,
    form: TargetForm,
    change: ListChange,
) -> Result<Response, PageError> {
    let page = VariableSetPage::of(web, visitor, place).await?;
    let changed = match chosen(web, visitor, &page.holder.organization, &form).await {
        Ok(targets) => web.control_plane.apply_variable_set(&visitor.caller, page.id, targets, change).await,
        Err(error) => Err(error),
    };
    match changed {
        Ok(_) => Ok(Flash::says("Scope of the variable set saved.").redirect_to(&page.holder.page)),
        Err(error) => {
            let target = TargetForm { complaint: Complaint::of(error, &["workspace", "project"])?, ..form };
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &VariableSetPage { target, ..page }))
        }
    }
}

/// `POST /app/{organization}/variable-sets/{variable_set}/apply`
pub(crate) async fn apply(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<TargetForm>,
) -> Result<Response, PageError> {
    change_targets(&web, &visitor, &place, form, ListChange::Add).await
}

/// `POST /app/{organization}/variable-sets/{variable_set}/withdraw`
pub(crate) async fn withdraw(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<TargetForm>,
) -> Result<Response, PageError> {
    change_targets(&web, &visitor, &place, form, ListChange::Remove).await
}

/// `POST /app/{organization}/variable-sets/{variable_set}/delete`
pub(crate) async fn delete(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let holder = Holder::find(&web, &visitor, &place).await?;
    let Subject::VariableSet(view) = &holder.subject else { return Err(PageError::not_found("variable set")) };
    web.control_plane.delete_variable_set(&visitor.caller, view.set.id).await?;
    let list = format!("{}/variable-sets", organization_address(&holder.organization));
    Ok(Flash::deleted("Variable set", view.set.name.as_str()).redirect_to(&list))
}
