//! `/app/{organization}/settings/run-tasks`: programs that can be asked about runs.

pub(crate) mod run_task_form;
pub(crate) mod workspace_run_tasks;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{PageRequest, RunTaskView};
use taco_domain::permission::{Action, Decision};

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Nothing, VisitorForm};
use crate::navigation::{Section, organization_address};
use crate::page::Layout;
use crate::rail::Rail;
use crate::text::plain;
use crate::visitor::Visitor;
use crate::{Web, page};

/// Parameters of an address.
#[derive(Deserialize, Debug)]
pub(crate) struct TaskPlace {
    pub(crate) organization: String,
    pub(crate) task: Option<String>,
}

impl TaskPlace {
    /// The page that lists the tasks.
    pub(crate) fn address(&self) -> String {
        format!("{}/settings/run-tasks", organization_address(&self.organization))
    }

    /// The task that the address names, if it is one of this organization.
    pub(crate) async fn task(&self, web: &Web, visitor: &Visitor) -> Result<RunTaskView, PageError> {
        let unknown = || PageError::not_found("run task");
        let id = self.task.as_deref().unwrap_or_default().parse().map_err(|_| unknown())?;
        let view = web.control_plane.run_task(&visitor.caller, id).await?;
        if view.org.entry().name.as_str() == self.organization { Ok(view) } else { Err(unknown()) }
    }
}

#[derive(Template)]
#[template(path = "run_tasks.html")]
struct RunTasksPage {
    layout: Layout,
    rail: Rail,
    address: String,
    rows: Vec<Row>,
    right: Decision,
}

/// A task, as the list shows it.
struct Row {
    name: String,
    address: String,
    url: String,
    description: String,
    is_enabled: bool,
    workspaces: usize,
    /// Stages in which it is asked in all workspaces.
    global: Option<String>,
}

impl Row {
    fn of(visitor: &Visitor, address: &str, view: &RunTaskView) -> Self {
        let task = &view.task;
        let global = task.global.as_ref().filter(|global| global.enabled).map(|global| {
            let stages: Vec<&str> = global.stages.iter().map(|stage| stage.in_words()).collect();
            format!("{}, {}", stages.join(", "), global.enforcement)
        });
        Self {
            name: task.name.to_string(),
            address: format!("{address}/{}", task.id),
            url: plain(&task.url),
            description: plain(&task.description),
            is_enabled: task.enabled,
            workspaces: view.workspace_tasks(&visitor.caller).len(),
            global,
        }
    }
}

/// `GET …/settings/run-tasks`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<TaskPlace>,
) -> Result<Response, PageError> {
    let all = PageRequest::new(1, PageRequest::LARGEST_SIZE);
    let listed = web.control_plane.run_tasks(&visitor.caller, &place.organization, all).await?;
    let org = web.control_plane.organization_named(&visitor.caller, &place.organization).await?;
    let address = place.address();
    let page = RunTasksPage {
        layout: Layout::for_visitor(&web, &visitor).in_organization(&place.organization, Section::Settings),
        rail: Rail::of_organization(&org, &visitor.caller, "/run-tasks"),
        rows: listed.items.iter().map(|view| Row::of(&visitor, &address, view)).collect(),
        right: visitor.caller.may(Action::ManageRunTasks, org.resource()),
        address,
    };
    Ok(page::render(StatusCode::OK, &page))
}

/// `POST …/settings/run-tasks/{task}/delete`
pub(crate) async fn delete(
    State(web): State<Web>,
    Path(place): Path<TaskPlace>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let view = place.task(&web, &visitor).await?;
    web.control_plane.delete_run_task(&visitor.caller, view.task.id).await?;
    Ok(Flash::deleted("Run task", view.task.name.as_str()).redirect_to(&place.address()))
}
