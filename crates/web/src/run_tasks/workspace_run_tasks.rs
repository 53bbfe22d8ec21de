//! `…/settings/run-tasks` of a workspace: which tasks are asked about its runs, when, and what a failure does.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{PageRequest, WorkspaceRef, WorkspaceRunTaskView, WorkspaceView};
use taco_domain::permission::Decision;
use taco_domain::run_task::TaskEnforcement;
use taco_domain::run_task_patch::WorkspaceRunTaskPatch;
use taco_domain::task_stage::StageKind;

use crate::choice::Choice;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, VisitorForm};
use crate::navigation::{WorkspaceSection, organization_address, workspace_address};
use crate::page::Layout;
use crate::rail::Rail;
use crate::run_task_form::levels;
use crate::visitor::Visitor;
use crate::{Web, page};

/// Parameters of an address.
#[derive(Deserialize, Debug)]
pub(crate) struct Place {
    organization: String,
    workspace: String,
    workspace_task: Option<String>,
}

impl Place {
    fn address(&self) -> String {
        format!("{}/settings/run-tasks", workspace_address(&self.organization, &self.workspace))
    }

    fn wanted(&self) -> WorkspaceRef {
        WorkspaceRef::Named { organization: self.organization.clone(), name: self.workspace.clone() }
    }

    async fn task(&self, web: &Web, visitor: &Visitor) -> Result<WorkspaceRunTaskView, PageError> {
        let view = web.control_plane.workspace(&visitor.caller, &self.wanted()).await?;
        let unknown = || PageError::not_found("workspace run task");
        let id = self.workspace_task.as_deref().unwrap_or_default().parse().map_err(|_| unknown())?;
        Ok(web.control_plane.workspace_run_task(&visitor.caller, view.workspace.id, id).await?)
    }
}

/// Content of the form.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TaskForm {
    task: String,
    level: String,
    stage: Vec<String>,
    #[serde(skip)]
    complaint: Complaint,
}

impl TaskForm {
    fn patch(&self) -> WorkspaceRunTaskPatch {
        WorkspaceRunTaskPatch {
            enforcement_level: Some(self.level.clone()),
            stage: None,
            stages: Some(self.stage.clone()),
            task: self.task.parse().ok(),
        }
    }
}

#[derive(Template)]
#[template(path = "workspace_run_tasks.html")]
struct TasksPage {
    layout: Layout,
    rail: Rail,
    address: String,
    rows: Vec<Row>,
    /// Tasks that are asked in all workspaces.
    global: Vec<String>,
    /// Tasks that can be added.
    tasks: Vec<Choice>,
    stages: Vec<Choice>,
    levels: Vec<Choice>,
    form: TaskForm,
    organization_tasks: String,
    right: Decision,
}

/// A task, as the list shows it.
struct Row {
    name: String,
    action: String,
    is_enabled: bool,
    stages: Vec<Choice>,
    levels: Vec<Choice>,
}

fn stages(chosen: &[String]) -> Vec<Choice> {
    let choice = |stage: StageKind| Choice {
        value: stage.to_string(),
        name: stage.in_words().to_owned(),
        chosen: chosen.iter().any(|one| one == stage.as_str()),
    };
    StageKind::ALL.into_iter().map(choice).collect()
}

impl Row {
    fn of(address: &str, view: &WorkspaceRunTaskView) -> Self {
        let task = view.run_task().map(|view| view.task);
        let chosen: Vec<String> = view.task.stages.iter().map(ToString::to_string).collect();
        Self {
            name: task.as_ref().map(|task| task.name.to_string()).unwrap_or_default(),
            action: format!("{address}/{}", view.task.id),
            is_enabled: task.is_some_and(|task| task.enabled),
            stages: stages(&chosen),
            levels: levels(view.task.enforcement.as_str()),
        }
    }
}

async fn render(
    web: &Web,
    visitor: &Visitor,
    place: &Place,
    status: StatusCode,
    form: TaskForm,
) -> Result<Response, PageError> {
    let view: WorkspaceView = web.control_plane.workspace(&visitor.caller, &place.wanted()).await?;
    let all = PageRequest::new(1, PageRequest::LARGEST_SIZE);
    let listed = web.control_plane.workspace_run_tasks(&visitor.caller, &place.wanted(), all).await?;
    let address = place.address();
    let task = |task: taco_domain::run_task::RunTask| Choice::new(task.id, &task.name, &form.task);
    let layout = Layout::for_visitor(web, visitor);
    let page = TasksPage {
        layout: layout.in_workspace(&place.organization, &view.workspace, WorkspaceSection::Settings),
        rail: Rail::of_workspace(&place.organization, &place.workspace, "/run-tasks"),
        rows: listed.items.iter().map(|view| Row::of(&address, view)).collect(),
        global: view.global_run_tasks().iter().map(|task| task.name.to_string()).collect(),
        tasks: view.unattached_run_tasks().into_iter().map(task).collect(),
        stages: stages(&form.stage),
        levels: levels(&form.level),
        organization_tasks: format!("{}/settings/run-tasks", organization_address(&place.organization)),
        right: view.may_attach_tasks(&visitor.caller),
        address,
        form,
    };
    Ok(page::render(status, &page))
}

/// `GET …/settings/run-tasks`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<Place>,
) -> Result<Response, PageError> {
    let form = TaskForm {
        level: TaskEnforcement::Advisory.to_string(),
        stage: vec![StageKind::PostPlan.to_string()],
        ..TaskForm::default()
    };
    render(&web, &visitor, &place, StatusCode::OK, form).await
}

/// `POST …/settings/run-tasks`
pub(crate) async fn attach(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<TaskForm>,
) -> Result<Response, PageError> {
    let view = web.control_plane.workspace(&visitor.caller, &place.wanted()).await?;
    match web.control_plane.create_workspace_run_task(&visitor.caller, view.workspace.id, form.patch()).await {
        Ok(view) => {
            let name = view.run_task().map(|view| view.task.name.to_string()).unwrap_or_default();
            Ok(Flash::says(format!("Run task {name} added.")).redirect_to(&place.address()))
        }
        Err(error) => {
            let complaint = Complaint::of(error, &["task", "enforcement-level", "stages"])?;
            render(&web, &visitor, &place, StatusCode::UNPROCESSABLE_ENTITY, TaskForm { complaint, ..form }).await
        }
    }
}

/// `POST …/settings/run-tasks/{workspace_task}`
pub(crate) async fn update(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<TaskForm>,
) -> Result<Response, PageError> {
    let before = place.task(&web, &visitor).await?.task;
    let name = |view: &WorkspaceRunTaskView| view.run_task().map(|view| view.task.name.to_string()).unwrap_or_default();
    let changed =
        web.control_plane.update_workspace_run_task(&visitor.caller, before.workspace, before.id, form.patch());
    match changed.await {
        Ok(view) => Ok(Flash::saved("Run task", name(&view)).redirect_to(&place.address())),
        Err(error) => {
            let complaint = Complaint::of(error, &["task", "enforcement-level", "stages"])?;
            render(&web, &visitor, &place, StatusCode::UNPROCESSABLE_ENTITY, TaskForm { complaint, ..form }).await
        }
    }
}

/// `POST …/settings/run-tasks/{workspace_task}/remove`
pub(crate) async fn remove(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let view = place.task(&web, &visitor).await?;
    let name = view.run_task().map(|view| view.task.name.to_string()).unwrap_or_default();
    web.control_plane.delete_workspace_run_task(&visitor.caller, view.task.workspace, view.task.id).await?;
    Ok(Flash::says(format!("Run task {name} removed.")).redirect_to(&place.address()))
}
