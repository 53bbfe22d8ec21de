//! The explorer: a row for each workspace, for an overview of an organization.

use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{WorkspaceFilter, WorkspaceOrder, WorkspaceView};
use taco_domain::attribute::shown;
use taco_domain::id::{ProjectId, RunId, WorkspaceId};
use taco_domain::permission::Action;
use taco_domain::run_status::RunStatus;

use crate::document::ResourceObject;
use crate::error::ApiError;
use crate::query::Query;
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;

/// Attributes of a row. `null` is what taco does not count: drift and checks, modules and providers of a state.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Row<'a> {
    organization_name: &'a str,
    project_name: Option<&'a str>,
    project_external_id: ProjectId,
    external_id: WorkspaceId,
    workspace_name: &'a str,
    workspace_created_at: Timestamp,
    workspace_updated_at: Timestamp,
    workspace_terraform_version: &'a str,
    state_version_terraform_version: Option<&'a str>,
    current_run_external_id: Option<RunId>,
    current_run_status: Option<RunStatus>,
    current_run_applied_at: Option<Timestamp>,
    vcs_repo_identifier: Option<&'a str>,
    all_checks_succeeded: Option<bool>,
    checks_errored: Option<u64>,
    checks_failed: Option<u64>,
    checks_passed: Option<u64>,
    checks_unknown: Option<u64>,
    drifted: Option<bool>,
    resources_drifted: Option<u64>,
    resources_undrifted: Option<u64>,
    module_count: Option<u64>,
    modules: Option<&'a str>,
    provider_count: Option<u64>,
    providers: Option<&'a str>,
}

/// A workspace as the explorer shows it.
struct ExplorerRow(WorkspaceView);

impl Resource for ExplorerRow {
    const KIND: &'static str = "visibility-workspace";

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let WorkspaceView { workspace, org } = &self.0;
        let (run, state) = (self.0.current_run(), self.0.current_state_version());
        let attributes = Row {
            organization_name: org.entry().name.as_str(),
            project_name: self.0.project().map(|project| project.name.as_str()),
            project_external_id: workspace.project,
            external_id: workspace.id,
            workspace_name: workspace.name.as_str(),
            workspace_created_at: workspace.created_at,
            workspace_updated_at: workspace.updated_at,
            workspace_terraform_version: &workspace.terraform_version,
            state_version_terraform_version: state.and_then(|state| state.terraform_version.as_deref()),
            current_run_external_id: run.map(|run| run.id),
            current_run_status: run.map(|run| run.status),
            current_run_applied_at: run.and_then(|run| run.timestamps.get("applied-at").copied()),
            vcs_repo_identifier: workspace.vcs_repository.as_ref().map(|repository| repository.identifier.as_str()),
            all_checks_succeeded: None,
            checks_errored: None,
            checks_failed: None,
            checks_passed: None,
            checks_unknown: None,
            drifted: None,
            resources_drifted: None,
            resources_undrifted: None,
            module_count: None,
            modules: None,
            provider_count: None,
            providers: None,
        };
        Ok(ResourceObject::new(Self::KIND, workspace.id, &attributes))
    }
}

/// The order that a query asks for. Unknown filters are refused: the answer would look as if they had been applied.
fn order(query: &Query) -> Result<WorkspaceOrder, ApiError> {
    match query.get("type") {
        Some("workspaces") => {}
        other => {
            let sent = other.map(|kind| format!("; it is {}", shown(kind))).unwrap_or_default();
            return Err(ApiError::parameter("type", format!("type must be workspaces, the only one there is{sent}")));
        }
    }
    if query.has_any("filter[") {
        return Err(ApiError::parameter("filter", "The explorer has no filters: it shows all workspaces"));
    }
    match query.get("sort") {
        None | Some("workspace_name") => Ok(WorkspaceOrder::Name),
        Some("-workspace_name") => Ok(WorkspaceOrder::NameReversed),
        Some(other) => {
            let detail = format!("sort must be workspace_name or -workspace_name; it is {}", shown(other));
            Err(ApiError::parameter("sort", detail))
        }
    }
}

/// `GET /api/v2/organizations/{organization}/explorer?type=workspaces`: those that the caller may see.
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, query, .. } = &request;
    let organization = request.organization()?;
    // Before anything is said about the query: a stranger learns nothing from it.
    let org = control_plane.organization_named(caller, organization).await?;
    caller.require(Action::ReadDirectory, org.resource(), "organization")?;
    let filter = WorkspaceFilter { order: order(query)?, ..WorkspaceFilter::default() };
    let listed = control_plane.workspaces(caller, organization, &filter, query.page()?).await?;
    request.page(listed.map(ExplorerRow)).await
}
