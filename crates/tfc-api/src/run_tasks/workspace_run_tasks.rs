//! Run tasks of workspaces.

use serde::Serialize;
use taco_control_plane::WorkspaceRunTaskView;
use taco_domain::run_task::TaskEnforcement;
use taco_domain::run_task_patch::WorkspaceRunTaskPatch;
use taco_domain::task_stage::StageKind;

use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::{run_tasks, workspaces};

pub(crate) const KIND: &str = "workspace-tasks";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    enforcement_level: TaskEnforcement,
    /// The first of the stages: older clients know one.
    stage: Option<StageKind>,
    stages: &'a [StageKind],
}

impl Resource for WorkspaceRunTaskView {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let own = &self.task;
        let attributes =
            Attributes { enforcement_level: own.enforcement, stage: own.stages.first().copied(), stages: &own.stages };
        Ok(ResourceObject::new(KIND, own.id, &attributes)
            .has_one("task", Identifier::new(run_tasks::KIND, own.task))
            .has_one("workspace", Identifier::new(workspaces::KIND, own.workspace))
            .link("self", format!("/api/v2/workspaces/{}/tasks/{}", own.workspace, own.id)))
    }
}

/// `GET /api/v2/workspaces/{workspace}/tasks`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let (workspace, page) = (request.workspace()?, request.query.page()?);
    request.page(request.control_plane.workspace_run_tasks(&request.caller, &workspace, page).await?).await
}

/// `POST /api/v2/workspaces/{workspace}/tasks`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let workspace = request.id("workspace")?;
    let sent = request.resource::<WorkspaceRunTaskPatch>(KIND).await?;
    let task = sent.to_one("task")?.flatten();
    let patch = WorkspaceRunTaskPatch { task, ..sent.attributes };
    request.created(&request.control_plane.create_workspace_run_task(&request.caller, workspace, patch).await?)
}

/// `GET /api/v2/workspaces/{workspace}/tasks/{workspace_task}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let (workspace, id) = (request.id("workspace")?, request.id("workspace_task")?);
    request.one(&request.control_plane.workspace_run_task(&request.caller, workspace, id).await?).await
}

/// `PATCH /api/v2/workspaces/{workspace}/tasks/{workspace_task}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let (workspace, id) = (request.id("workspace")?, request.id("workspace_task")?);
    let patch = request.attributes::<WorkspaceRunTaskPatch>(KIND).await?;
    request.changed(&request.control_plane.update_workspace_run_task(&request.caller, workspace, id, patch).await?)
}

/// `DELETE /api/v2/workspaces/{workspace}/tasks/{workspace_task}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    let (workspace, id) = (request.id("workspace")?, request.id("workspace_task")?);
    request.control_plane.delete_workspace_run_task(&request.caller, workspace, id).await?;
    no_content()
}
