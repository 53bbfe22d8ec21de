//! The form for one run task of an organization.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::RunTaskView;
use taco_domain::permission::{Action, Decision};
use taco_domain::run_task::TaskEnforcement;
use taco_domain::run_task_patch::{GlobalPatch, RunTaskPatch};
use taco_domain::task_stage::StageKind;

use crate::choice::Choice;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Ticked, VisitorForm};
use crate::navigation::Section;
use crate::page::Layout;
use crate::rail::Rail;
use crate::run_tasks::TaskPlace;
use crate::visitor::Visitor;
use crate::{Web, page};

const FIELDS: &[&str] = &["name", "url", "description", "hmac-key", "enabled", "global-configuration"];

/// Content of the form.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RunTaskForm {
    name: String,
    url: String,
    description: String,
    /// Nothing keeps the one that is there.
    key: String,
    removes_key: Ticked,
    enabled: Ticked,
    /// It is asked in all workspaces.
    global: Ticked,
    stage: Vec<String>,
    level: String,
    #[serde(skip)]
    complaint: Complaint,
}

impl RunTaskForm {
    fn blank() -> Self {
        Self {
            enabled: Ticked(true),
            stage: vec![StageKind::PostPlan.to_string()],
            level: TaskEnforcement::Advisory.to_string(),
            ..Self::default()
        }
    }

    fn of(view: &RunTaskView) -> Self {
        let task = &view.task;
        let global = task.global.clone().unwrap_or_default();
        Self {
            name: task.name.to_string(),
            url: task.url.clone(),
            description: task.description.clone(),
            key: String::new(),
            removes_key: Ticked(false),
            enabled: Ticked(task.enabled),
            global: Ticked(global.enabled),
            stage: global.stages.iter().map(ToString::to_string).collect(),
            level: global.enforcement.to_string(),
            complaint: Complaint::default(),
        }
    }

    fn patch(&self) -> RunTaskPatch {
        let global = GlobalPatch {
            enabled: Some(self.global.0),
            stages: (self.global.0 || !self.stage.is_empty()).then(|| self.stage.clone()),
            enforcement_level: Some(self.level.clone()),
        };
        let key = match self.removes_key.0 {
            true => Some(None),
            false => (!self.key.is_empty()).then(|| Some(self.key.clone())),
        };
        RunTaskPatch {
            name: Some(self.name.trim().to_owned()),
            url: Some(self.url.trim().to_owned()),
            description: Some(Some(self.description.trim().to_owned())),
            category: Some("task".to_owned()),
            hmac_key: key,
            enabled: Some(self.enabled.0),
            global_configuration: Some(Some(global)),
        }
    }

    /// The same after a refusal; a key is typed again.
    fn refused(self, complaint: Complaint) -> Self {
        Self { complaint, key: String::new(), ..self }
    }
}

#[derive(Template)]
#[template(path = "run_task.html")]
struct RunTaskPage {
    layout: Layout,
    rail: Rail,
    /// Address to which the form is submitted.
    action: String,
    form: RunTaskForm,
    stages: Vec<Choice>,
    levels: Vec<Choice>,
    exists: bool,
    has_key: bool,
    /// Names of workspaces that use it.
    workspaces: Vec<String>,
    right: Decision,
}

impl RunTaskPage {
    async fn new(
        web: &Web,
        visitor: &Visitor,
        place: &TaskPlace,
        form: RunTaskForm,
        before: Option<&RunTaskView>,
    ) -> Result<Self, PageError> {
        let org = web.control_plane.organization_named(&visitor.caller, &place.organization).await?;
        let layout = Layout::for_visitor(web, visitor).in_organization(&place.organization, Section::Settings);
        let stage = |stage: StageKind| Choice {
            value: stage.to_string(),
            name: stage.in_words().to_owned(),
            chosen: form.stage.iter().any(|chosen| chosen == stage.as_str()),
        };
        let uses = before.map(|view| view.workspace_tasks(&visitor.caller)).unwrap_or_default();
        let workspaces = uses.iter().filter_map(|one| one.workspace()).map(|view| view.workspace.name.to_string());
        Ok(Self {
            layout: match before {
                Some(view) => layout.called(view.task.id, view.task.name.as_str()),
                None => layout,
            },
            rail: Rail::of_organization(&org, &visitor.caller, "/run-tasks"),
            action: before.map_or(place.address(), |view| format!("{}/{}", place.address(), view.task.id)),
            stages: StageKind::ALL.into_iter().map(stage).collect(),
            levels: levels(&form.level),
            exists: before.is_some(),
            has_key: before.is_some_and(|view| view.task.sealed_hmac_key.is_some()),
            workspaces: workspaces.collect(),
            right: visitor.caller.may(Action::ManageRunTasks, org.resource()),
            form,
        })
    }
}

/// What a task that fails can do, to choose from.
pub(crate) fn levels(chosen: &str) -> Vec<Choice> {
    let words = |level: TaskEnforcement| match level {
        TaskEnforcement::Advisory => "Advisory: the run goes on",
        TaskEnforcement::Mandatory => "Mandatory: the run stops",
    };
    TaskEnforcement::ALL.into_iter().map(|level| Choice::new(level, words(level), chosen)).collect()
}

/// `GET …/settings/run-tasks/new`
pub(crate) async fn show_new(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<TaskPlace>,
) -> Result<Response, PageError> {
    // Whoever may not list them may not make one.
    let first = taco_control_plane::PageRequest::new(1, 1);
    web.control_plane.run_tasks(&visitor.caller, &place.organization, first).await?;
    let page = RunTaskPage::new(&web, &visitor, &place, RunTaskForm::blank(), None).await?;
    Ok(page::render(StatusCode::OK, &page))
}

/// `POST …/settings/run-tasks`
pub(crate) async fn create(
    State(web): State<Web>,
    Path(place): Path<TaskPlace>,
    VisitorForm(visitor, form): VisitorForm<RunTaskForm>,
) -> Result<Response, PageError> {
    match web.control_plane.create_run_task(&visitor.caller, &place.organization, form.patch()).await {
        Ok(view) => Ok(Flash::created("Run task", view.task.name.as_str()).redirect_to(&place.address())),
        Err(error) => {
            let form = form.refused(Complaint::of(error, FIELDS)?);
            let page = RunTaskPage::new(&web, &visitor, &place, form, None).await?;
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

/// `GET …/settings/run-tasks/{task}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<TaskPlace>,
) -> Result<Response, PageError> {
    let view = place.task(&web, &visitor).await?;
    let page = RunTaskPage::new(&web, &visitor, &place, RunTaskForm::of(&view), Some(&view)).await?;
    Ok(page::render(StatusCode::OK, &page))
}

/// `POST …/settings/run-tasks/{task}`
pub(crate) async fn update(
    State(web): State<Web>,
    Path(place): Path<TaskPlace>,
    VisitorForm(visitor, form): VisitorForm<RunTaskForm>,
) -> Result<Response, PageError> {
    let before = place.task(&web, &visitor).await?;
    match web.control_plane.update_run_task(&visitor.caller, before.task.id, form.patch()).await {
        Ok(view) => Ok(Flash::saved("Run task", view.task.name.as_str()).redirect_to(&place.address())),
        Err(error) => {
            let form = form.refused(Complaint::of(error, FIELDS)?);
            let page = RunTaskPage::new(&web, &visitor, &place, form, Some(&before)).await?;
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}
