//! Run tasks of organizations. Keys go in and never come out.

pub(crate) mod task_results;
pub(crate) mod task_stages;
pub(crate) mod workspace_run_tasks;

use serde::Serialize;
use taco_control_plane::RunTaskView;
use taco_domain::id::AgentPoolId;
use taco_domain::run_task::TaskEnforcement;
use taco_domain::run_task_patch::RunTaskPatch;
use taco_domain::task_stage::StageKind;

use crate::body::RequestResource;
use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::organizations;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;

pub(crate) const KIND: &str = "tasks";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    category: &'static str,
    name: &'a str,
    url: &'a str,
    description: &'a str,
    enabled: bool,
    hmac_key: Option<&'a str>,
    global_configuration: Option<Global<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Global<'a> {
    enabled: bool,
    stages: &'a [StageKind],
    enforcement_level: TaskEnforcement,
}

impl Resource for RunTaskView {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = &["workspace-tasks", "workspace-tasks.workspace"];

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let task = &self.task;
        let global = task.global.as_ref().map(|global| Global {
            enabled: global.enabled,
            stages: &global.stages,
            enforcement_level: global.enforcement,
        });
        let attributes = Attributes {
            category: "task",
            name: task.name.as_str(),
            url: &task.url,
            description: &task.description,
            enabled: task.enabled,
            hmac_key: None,
            global_configuration: global,
        };
        let uses = self.workspace_tasks(&request.caller).into_iter();
        let uses = uses.map(|one| Identifier::new(workspace_run_tasks::KIND, one.task.id));
        Ok(ResourceObject::new(KIND, task.id, &attributes)
            .has_one("organization", organizations::identifier(self.org.entry().name.as_str()))
            .has_many("workspace-tasks", uses)
            .link("self", format!("/api/v2/tasks/{}", task.id)))
    }

    async fn include(&self, name: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        let uses = self.workspace_tasks(&request.caller);
        match name {
            "workspace-tasks" => document.include_all(&uses, request),
            _ => uses.iter().try_for_each(|one| document.include_some(one.workspace().as_ref(), request)),
        }
    }
}

/// Requests through an agent's pool are not sent yet, and nobody should think that they are.
fn check_agent_pool(sent: &RequestResource<RunTaskPatch>) -> Result<(), ApiError> {
    let Some(pool) = sent.to_one::<String>("agent-pool")?.flatten() else { return Ok(()) };
    let detail = match pool.parse::<AgentPoolId>() {
        Ok(_) => "Agents do not forward requests: servers ask run tasks themselves, so leave the agent pool out",
        Err(_) => "The provided agent pool does not exist",
    };
    Err(ApiError::invalid("/data/relationships/agent-pool", detail))
}

/// `GET /api/v2/organizations/{organization}/tasks`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let (organization, page) = (request.organization()?, request.query.page()?);
    request.page(request.control_plane.run_tasks(&request.caller, organization, page).await?).await
}

/// `POST /api/v2/organizations/{organization}/tasks`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let sent = request.resource::<RunTaskPatch>(KIND).await?;
    check_agent_pool(&sent)?;
    let organization = request.organization()?;
    request.created(&request.control_plane.create_run_task(&request.caller, organization, sent.attributes).await?)
}

/// `GET /api/v2/tasks/{task}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.run_task(&request.caller, request.id("task")?).await?).await
}

/// `PATCH /api/v2/tasks/{task}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let id = request.id("task")?;
    let sent = request.resource::<RunTaskPatch>(KIND).await?;
    check_agent_pool(&sent)?;
    request.changed(&request.control_plane.update_run_task(&request.caller, id, sent.attributes).await?)
}

/// `DELETE /api/v2/tasks/{task}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_run_task(&request.caller, request.id("task")?).await?;
    no_content()
}
