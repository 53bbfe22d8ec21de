//! Related resources of a workspace: its runs, its outputs, its README, and who has to do with it.

use axum::response::IntoResponse;
use serde::Serialize;
use taco_control_plane::{OutputView, RunView, WorkspaceRef, WorkspaceView};
use taco_domain::id::WorkspaceId;
use taco_domain::permission::Action;
use taco_domain::phase::PhaseKind;

use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;
use crate::{phases, tag_bindings, users};

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct WorkspaceOutput<'a> {
    name: &'a str,
    sensitive: bool,
    output_type: &'a str,
    value: Option<&'a serde_json::value::RawValue>,
}

/// An output as it is included with a workspace.
fn output_object(output: &OutputView) -> ResourceObject {
    let attributes = WorkspaceOutput {
        name: &output.name,
        sensitive: output.sensitive,
        output_type: output.type_name,
        value: output.value.as_deref(),
    };
    ResourceObject::new("workspace-outputs", output.id, &attributes)
}

const README: &str = "workspace-readme";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Readme {
    raw_markdown: String,
}

fn readme_object(workspace: WorkspaceId, raw_markdown: String) -> ResourceObject {
    ResourceObject::new(README, workspace, &Readme { raw_markdown })
}

/// `GET /api/v2/workspaces/{workspace}/readme`
pub(crate) async fn readme(request: ApiRequest) -> Answer {
    let workspace = request.id("workspace")?;
    let readme = request.control_plane.readme(&request.caller, &WorkspaceRef::Id(workspace)).await?;
    let document = readme.map_or_else(Document::none, |readme| Document::one(readme_object(workspace, readme)));
    Ok(document.into_response())
}

/// One workspace with the resources that the query includes. Its README comes with no list.
pub(crate) async fn document(request: &ApiRequest, view: &WorkspaceView) -> Result<Document, ApiError> {
    let id = view.workspace.id;
    let mut workspace = view.object(request)?;
    let mut readme = None;
    let may_read_runs = request.caller.may(Action::ReadRuns, view.resource()).allowed;
    if request.query.includes("readme")
        && may_read_runs
        && let Some(raw_markdown) = request.control_plane.readme(&request.caller, &WorkspaceRef::Id(id)).await?
    {
        workspace = workspace.has_one("readme", Identifier::new(README, id));
        readme = Some(readme_object(id, raw_markdown));
    }
    let mut document = Document::one(workspace).including(readme);
    request.include(std::slice::from_ref(view), &mut document).await?;
    Ok(document)
}

/// Related resources that can come with a workspace.
pub(crate) const INCLUDES: &[&str] = &[
    "current-run",
    "current-run.plan",
    "current-run.configuration-version",
    "current-configuration-version",
    "organization",
    "project",
    "locked-by",
    "current-state-version",
    "outputs",
    "effective-tag-bindings",
];

pub(crate) async fn include(
    name: &str,
    request: &ApiRequest,
    view: &WorkspaceView,
    document: &mut Document,
) -> Result<(), ApiError> {
    let WorkspaceView { workspace, org } = view;
    let ApiRequest { control_plane, caller, .. } = request;
    match name {
        "organization" => {
            let organization = control_plane.organization(caller, org.entry().name.as_str()).await?;
            document.include(organization.object(request)?);
        }
        "project" => {
            let project = control_plane.project(caller, workspace.project).await.ok();
            document.include_some(project.as_ref(), request)?;
        }
        "locked-by" => {
            if let Some(lock) = &workspace.lock {
                users::include(&lock.holder, request, document).await?;
            }
        }
        "current-state-version" => {
            let version = control_plane.current_state_version(caller, workspace.id).await.ok();
            document.include_some(version.as_ref(), request)?;
        }
        "outputs" => {
            let wanted = WorkspaceRef::Id(workspace.id);
            for output in control_plane.current_outputs(caller, &wanted).await.unwrap_or_default() {
                document.include(output_object(&output));
            }
        }
        "effective-tag-bindings" => {
            for tag in tag_bindings::effective_bindings(view) {
                document.include(tag.object(tag_bindings::EFFECTIVE));
            }
        }
        _ if caller.may(Action::ReadRuns, view.resource()).allowed => include_run(name, request, view, document)?,
        _ => {}
    }
    Ok(())
}

/// The current run and its parts, and the current configuration.
fn include_run(
    name: &str,
    request: &ApiRequest,
    view: &WorkspaceView,
    document: &mut Document,
) -> Result<(), ApiError> {
    if name == "current-configuration-version" {
        return document.include_some(view.current_configuration(), request);
    }
    let Some(run) = view.current_run() else { return Ok(()) };
    let run = RunView { run: run.clone(), workspace: view.workspace.clone(), org: view.org.clone(), reader: None };
    document.include(run.object(request)?);
    match name {
        "current-run.plan" => document.include(phases::object(request, &run, PhaseKind::Plan)),
        "current-run.configuration-version" => document.include_some(run.configuration(), request)?,
        _ => {}
    }
    Ok(())
}
