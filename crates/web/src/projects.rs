//! `/app/{organization}/projects`: workspaces that belong together.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{Error, PageRequest, ProjectFilter, ProjectView, WorkspaceFilter};
use taco_domain::id::ProjectId;
use taco_domain::permission::Action;
use taco_domain::project::{Project, ProjectPatch};

use crate::choice::Choice;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, VisitorForm};
use crate::list_page::ListPage;
use crate::navigation::{Section, organization_address};
use crate::page::Layout;
use crate::pagination::{self, PageQuery};
use crate::text::{self, Moment};
use crate::visitor::Visitor;
use crate::{Web, contract_choice, page, tag_lines};

/// Fields next to which the form can show an error.
const FIELDS: [&str; 4] = ["name", "description", "tags", "taco-output-contract"];

#[derive(Template)]
#[template(path = "projects.html")]
struct ProjectsPage {
    layout: Layout,
    list: ListPage<Row>,
    form: FormContent,
    /// Reason why the visitor may not create a project, if so.
    refusal: Option<String>,
}

#[derive(Template)]
#[template(path = "project.html")]
struct ProjectPage {
    layout: Layout,
    address: String,
    project: Row,
    created: Moment,
    workspaces_address: String,
    workspaces: Vec<(String, String)>,
    /// Number of workspaces that are not listed.
    left_out: usize,
    form: FormContent,
    contracts: Vec<Choice>,
    update: Result<(), String>,
    delete: Result<(), String>,
}

struct Row {
    id: ProjectId,
    name: String,
    description: String,
    workspaces: usize,
    execution: String,
    is_default: bool,
}

impl Row {
    fn of(view: &ProjectView) -> Self {
        let project = &view.project;
        let own = project.default_execution.map(|execution| execution.mode.to_string());
        let inherited = || format!("{} (organization default)", view.default_execution().mode);
        Self {
            id: project.id,
            name: project.name.to_string(),
            description: text::plain(&project.description),
            workspaces: view.workspace_count(),
            execution: own.unwrap_or_else(inherited),
            is_default: view.is_default(),
        }
    }
}

/// Content of the form for a project.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct FormContent {
    name: String,
    description: String,
    /// One per line: `key` or `key=value`.
    tags: String,
    /// Empty where the organization's policy counts; absent where the form does not have it.
    output_contract: Option<String>,
    #[serde(skip)]
    complaint: Complaint,
}

impl FormContent {
    fn of(project: &Project) -> Self {
        Self {
            name: project.name.to_string(),
            description: project.description.clone(),
            tags: tag_lines::lines(&project.tags),
            output_contract: Some(project.output_contract.map(|policy| policy.to_string()).unwrap_or_default()),
            complaint: Complaint::default(),
        }
    }

    fn patch(&self) -> Result<ProjectPatch, Error> {
        let tags = tag_lines::bindings(&self.tags).map_err(|detail| Error::invalid("tags", detail))?;
        Ok(ProjectPatch {
            name: Some(self.name.trim().to_owned()),
            description: Some(Some(self.description.trim().to_owned())),
            tag_bindings: Some(tags),
            output_contract: contract_choice::asked(self.output_contract.as_ref()),
            ..ProjectPatch::default()
        })
    }
}

/// `GET /app/{organization}/projects`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Path(organization): Path<String>,
    Query(wanted): Query<PageQuery>,
) -> Result<Response, PageError> {
    let page = projects(&web, &visitor, &organization, wanted, FormContent::default()).await?;
    Ok(page::render(StatusCode::OK, &page))
}

async fn projects(
    web: &Web,
    visitor: &Visitor,
    organization: &str,
    wanted: PageQuery,
    form: FormContent,
) -> Result<ProjectsPage, Error> {
    let org = web.control_plane.organization_named(&visitor.caller, organization).await?;
    let name = org.entry().name.as_str();
    let search = wanted.search.trim();
    let filter = ProjectFilter { query: Some(search.to_owned()), ..ProjectFilter::default() };
    let number = pagination::asked_for(&wanted.page);
    let listed = web.control_plane.projects(&visitor.caller, name, &filter, number).await?;
    let address = format!("{}/projects", organization_address(name));
    let decision = visitor.caller.may(Action::CreateProject, org.resource());
    Ok(ProjectsPage {
        layout: Layout::for_visitor(web, visitor).in_organization(name, Section::Projects),
        list: ListPage::of(address, search, listed, |view| Row::of(&view)),
        form,
        refusal: (!decision.allowed).then(|| decision.reason.into_owned()),
    })
}

/// `POST /app/{organization}/projects`
pub(crate) async fn create(
    State(web): State<Web>,
    Path(organization): Path<String>,
    VisitorForm(visitor, form): VisitorForm<FormContent>,
) -> Result<Response, PageError> {
    let made = match form.patch() {
        Ok(patch) => web.control_plane.create_project(&visitor.caller, &organization, patch).await,
        Err(error) => Err(error),
    };
    match made {
        Ok(made) => Ok(Flash::created("Project", made.project.name.as_str()).redirect_to(&address_of(&made))),
        Err(error) => {
            let form = FormContent { complaint: Complaint::of(error, &FIELDS)?, ..form };
            let page = projects(&web, &visitor, &organization, PageQuery::default(), form).await?;
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

fn list_address(view: &ProjectView) -> String {
    format!("{}/projects", organization_address(view.org.entry().name.as_str()))
}

fn address_of(view: &ProjectView) -> String {
    format!("{}/{}", list_address(view), view.project.id)
}

/// The project that a path names, if the organization has it.
async fn find(web: &Web, visitor: &Visitor, (organization, id): (String, String)) -> Result<ProjectView, PageError> {
    let id = id.parse().map_err(|_| PageError::not_found("project"))?;
    let view = web.control_plane.project(&visitor.caller, id).await?;
    if view.org.entry().name.as_str() != organization {
        return Err(PageError::not_found("project"));
    }
    Ok(view)
}

/// `GET /app/{organization}/projects/{project}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<(String, String)>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, path).await?;
    let form = FormContent::of(&view.project);
    Ok(page::render(StatusCode::OK, &project_page(&web, &visitor, &view, form).await?))
}

async fn project_page(
    web: &Web,
    visitor: &Visitor,
    view: &ProjectView,
    form: FormContent,
) -> Result<ProjectPage, PageError> {
    let organization = view.org.entry().name.as_str();
    let filter = WorkspaceFilter { project: Some(view.project.id), ..WorkspaceFilter::default() };
    let first = PageRequest::new(1, pagination::ROWS);
    let listed = web.control_plane.workspaces(&visitor.caller, organization, &filter, first).await?;
    let link = |name: &str| (name.to_owned(), crate::navigation::workspace_address(organization, name));
    let may = |action: Action| {
        let decision = visitor.caller.may(action, view.resource());
        if decision.allowed { Ok(()) } else { Err(decision.reason.into_owned()) }
    };
    Ok(ProjectPage {
        layout: Layout::for_visitor(web, visitor)
            .in_organization(organization, Section::Projects)
            .called(view.project.id, view.project.name.as_str()),
        address: address_of(view),
        project: Row::of(view),
        created: Moment(view.project.created_at),
        workspaces_address: format!("{}/workspaces?project={}", organization_address(organization), view.project.id),
        left_out: listed.total.saturating_sub(listed.items.len()),
        workspaces: listed.items.iter().map(|view| link(view.workspace.name.as_str())).collect(),
        contracts: contract_choice::offered(
            form.output_contract.as_deref(),
            Some(("Organization default", view.inherited_contract_policy())),
        ),
        form,
        update: may(Action::UpdateProject),
        delete: may(Action::DeleteProject).and_then(|()| view.is_deletable()),
    })
}

/// `POST /app/{organization}/projects/{project}`
pub(crate) async fn update(
    State(web): State<Web>,
    Path(path): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<FormContent>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, path).await?;
    let changed = match form.patch() {
        Ok(patch) => web.control_plane.update_project(&visitor.caller, view.project.id, patch).await,
        Err(error) => Err(error),
    };
    match changed {
        Ok(changed) => Ok(Flash::saved("Project", changed.project.name.as_str()).redirect_to(&address_of(&changed))),
        Err(error) => {
            let form = FormContent { complaint: Complaint::of(error, &FIELDS)?, ..form };
            let page = project_page(&web, &visitor, &view, form).await?;
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

/// `POST /app/{organization}/projects/{project}/delete`
pub(crate) async fn delete(
    State(web): State<Web>,
    Path(path): Path<(String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, path).await?;
    web.control_plane.delete_project(&visitor.caller, view.project.id).await?;
    Ok(Flash::deleted("Project", view.project.name.as_str()).redirect_to(&list_address(&view)))
}
