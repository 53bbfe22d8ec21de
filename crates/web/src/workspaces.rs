//! `/app/{organization}/workspaces`: the list with its filters, and the form for a new one.

pub(crate) mod tag_lines;
pub(crate) mod workspace;
pub(crate) mod workspace_control;
pub(crate) mod workspace_general;
pub(crate) mod workspace_lock;
pub(crate) mod workspace_query;
pub(crate) mod workspace_settings;
pub(crate) mod workspace_sharing;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use taco_control_plane::{Caller, Error, Listed, OrganizationSnapshot, PageRequest, ProjectFilter, WorkspaceView};
use taco_domain::execution::ExecutionMode;
use taco_domain::id::ProjectId;
use taco_domain::permission::Action;
use taco_domain::project::Project;
use taco_domain::workspace::{WorkspacePatch, WorkspaceSource};

use crate::badge::Badge;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, VisitorForm};
use crate::live::Version;
use crate::navigation::{Section, organization_address, run_address, workspace_address};
use crate::page::Layout;
use crate::pagination::{self, Pagination};
use crate::text::Moment;
use crate::visitor::Visitor;
use crate::workspace_control::holder_of;
use crate::workspace_query::{Choice, WorkspaceQuery};
use crate::{Web, page, terraform};

/// Fields next to which the form can show an error.
const FIELDS: [&str; 3] = ["name", "description", "terraform-version"];

#[derive(Template)]
#[template(path = "workspaces.html", blocks = ["list"])]
struct WorkspacesPage {
    layout: Layout,
    version: Version,
    /// Without a query.
    address: String,
    wanted: WorkspaceQuery,
    /// There is no workspace at all, as far as the visitor can see.
    is_empty: bool,
    statuses: Vec<Choice>,
    sorts: Vec<Choice>,
    projects: Vec<ProjectChoice>,
    has_default_project: bool,
    rows: Vec<Row>,
    pages: Pagination,
    now: Timestamp,
    form: FormContent,
    /// Reason why the visitor may not create a workspace, if so.
    refusal: Option<String>,
    host: String,
    host_block: Option<String>,
    cloud_block: String,
}

struct ProjectChoice {
    id: ProjectId,
    name: String,
    is_default: bool,
}

struct Row {
    name: String,
    address: String,
    project: ProjectId,
    project_name: String,
    tags: Vec<TagLink>,
    badge: Option<Badge>,
    run_address: String,
    resources: u64,
    changed: Moment,
    locked_by: Option<String>,
}

struct TagLink {
    text: String,
    address: String,
}

impl Row {
    fn of(view: &WorkspaceView, list: &str) -> Self {
        let WorkspaceView { workspace, org } = view;
        let (organization, name) = (org.entry().name.as_str(), workspace.name.as_str());
        let run = view.current_run();
        let tags = workspace.tags.iter().map(|(key, value)| {
            let text = if value.is_empty() { key.to_string() } else { format!("{key}:{value}") };
            TagLink { address: format!("{list}?{}", WorkspaceQuery::tagged(&text).in_address()), text }
        });
        Self {
            address: workspace_address(organization, name),
            name: name.to_owned(),
            project: workspace.project,
            project_name: view.project().map_or_else(String::new, |it| it.name.to_string()),
            tags: tags.collect(),
            badge: run.map(|run| Badge::of_run(run.status)),
            run_address: run.map(|run| run_address(organization, name, run.id)).unwrap_or_default(),
            resources: workspace.resource_count,
            changed: Moment(view.latest_change()),
            locked_by: workspace.lock.as_ref().map(holder_of),
        }
    }
}

/// Content of the form for a new workspace.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct FormContent {
    name: String,
    description: String,
    project: String,
    execution_mode: String,
    engine: String,
    version: String,
    #[serde(skip)]
    complaint: Complaint,
}

impl FormContent {
    fn patch(&self) -> Result<WorkspacePatch, PageError> {
        let some = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let project = some(&self.project).map(|id| id.parse().map_err(|_| PageError::not_found("project")));
        Ok(WorkspacePatch {
            name: Some(self.name.trim().to_owned()),
            description: Some(some(&self.description)),
            project: project.transpose()?,
            execution_mode: some(&self.execution_mode),
            engine: some(&self.engine),
            terraform_version: some(&self.version),
            ..WorkspacePatch::default()
        })
    }
}

/// `GET /app/{organization}/workspaces`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Path(organization): Path<String>,
    Query(wanted): Query<WorkspaceQuery>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let version = Version::current(&web, &visitor, &organization).await?;
    if version.is_known(&headers) {
        return Ok(version.not_modified());
    }
    let form = FormContent { project: wanted.project.clone(), ..FormContent::default() };
    let page = workspaces(&web, &visitor, &organization, wanted, form, version).await?;
    Ok(page.version.answer(&headers, &page.as_list(), &page))
}

async fn workspaces(
    web: &Web,
    visitor: &Visitor,
    organization: &str,
    wanted: WorkspaceQuery,
    form: FormContent,
    version: Version,
) -> Result<WorkspacesPage, Error> {
    let (caller, control_plane) = (&visitor.caller, &web.control_plane);
    let number = pagination::asked_for(&wanted.page);
    let filter = wanted.filter();
    let listed = async {
        match &filter {
            Some(filter) => control_plane.workspaces(caller, organization, filter, number).await,
            None => Ok(Listed::from_all([], number)),
        }
    };
    let (all, first) = (ProjectFilter::default(), PageRequest::new(1, pagination::ROWS));
    // At once, so that one look into the bucket serves them all.
    let (org, listed, projects) = tokio::try_join!(
        control_plane.organization_named(caller, organization),
        listed,
        control_plane.projects(caller, organization, &all, first),
    )?;
    let name = org.entry().name.as_str();
    let choice =
        |project: &Project, is_default| ProjectChoice { id: project.id, name: project.name.to_string(), is_default };
    let mut projects: Vec<ProjectChoice> =
        projects.items.iter().map(|view| choice(&view.project, view.is_default())).collect();
    // Of many projects only the first are offered; one that is asked for is always among them.
    if let Ok(id) = wanted.project.parse::<ProjectId>()
        && projects.iter().all(|project| project.id != id)
        && let Some(project) = org.visible_to(caller).project(&id)
    {
        projects.insert(0, choice(project, false));
    }
    let refusal = why_none_may_be_made(caller, &org, &projects);
    let address = format!("{}/workspaces", organization_address(name));
    let list = |wanted: &WorkspaceQuery| format!("{address}?{}", wanted.in_address());
    Ok(WorkspacesPage {
        version,
        is_empty: listed.total == 0 && !wanted.narrows(),
        layout: Layout::for_visitor(web, visitor).in_organization(name, Section::Workspaces),
        statuses: wanted.statuses().map(|(choice, wanted)| choice.leading_to(list(&wanted))).collect(),
        sorts: wanted.sorts().map(|(choice, wanted)| choice.leading_to(list(&wanted))).collect(),
        refusal,
        has_default_project: projects.iter().any(|project| project.is_default),
        projects,
        pages: Pagination::of(&listed, |number| list(&wanted.on_page(number))),
        rows: listed.items.iter().map(|view| Row::of(view, &address)).collect(),
        now: control_plane.now(),
        form,
        host: terraform::host_name(&web.address),
        host_block: terraform::needed_host_block(&web.address),
        cloud_block: terraform::cloud_block(&web.address, name, "my-workspace"),
        address,
        wanted,
    })
}

/// None, if the caller may make a workspace in one of the projects.
fn why_none_may_be_made(caller: &Caller, org: &OrganizationSnapshot, projects: &[ProjectChoice]) -> Option<String> {
    let visible = org.visible_to(caller);
    let offered = projects.iter().filter_map(|choice| visible.project(&choice.id));
    let decisions = offered.map(|project| visible.may_in_project(Action::CreateWorkspace, project));
    let mut decisions: Vec<_> = decisions.chain([caller.may(Action::CreateWorkspace, org.resource())]).collect();
    if decisions.iter().any(|decision| decision.allowed) { None } else { Some(decisions.remove(0).reason.into_owned()) }
}

/// `POST /app/{organization}/workspaces`
pub(crate) async fn create(
    State(web): State<Web>,
    Path(organization): Path<String>,
    VisitorForm(visitor, form): VisitorForm<FormContent>,
) -> Result<Response, PageError> {
    let made =
        web.control_plane.create_workspace(&visitor.caller, &organization, form.patch()?, WorkspaceSource::Page).await;
    match made {
        Ok(WorkspaceView { workspace, org }) => {
            let address = workspace_address(org.entry().name.as_str(), workspace.name.as_str());
            Ok(Flash::created("Workspace", workspace.name.as_str()).redirect_to(&address))
        }
        Err(error) => {
            let form = FormContent { complaint: Complaint::of(error, &FIELDS)?, ..form };
            let version = Version::current(&web, &visitor, &organization).await?;
            let page = workspaces(&web, &visitor, &organization, WorkspaceQuery::default(), form, version).await?;
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}
