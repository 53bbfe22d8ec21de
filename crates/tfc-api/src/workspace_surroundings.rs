//! What clients want to have beside a workspace: its runs, its outputs, its README, and who has to do with it.

use axum::extract::State;
use serde::Serialize;
use taco_control_plane::{Caller, ControlPlane, OutputView, RunView, WorkspaceRef, WorkspaceView};
use taco_domain::Author;
use taco_domain::id::WorkspaceId;
use taco_domain::permission::Action;
use taco_domain::phase::PhaseKind;

use crate::address::Address;
use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;
use crate::query::Query;
use crate::{
    Api, configuration_versions, organizations, phases, projects, runs, state_versions, tag_bindings, users, workspaces,
};

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct WorkspaceOutput<'a> {
    name: &'a str,
    sensitive: bool,
    output_type: &'a str,
    value: Option<&'a serde_json::value::RawValue>,
}

/// An output as it stands beside a workspace.
fn output_resource(output: &OutputView) -> Resource {
    let attributes = WorkspaceOutput {
        name: &output.name,
        sensitive: output.sensitive,
        output_type: output.type_name,
        value: output.value.as_deref(),
    };
    Resource::new("workspace-outputs", output.id, &attributes)
}

const README: &str = "workspace-readme";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Readme {
    raw_markdown: String,
}

fn readme_resource(workspace: WorkspaceId, raw_markdown: String) -> Resource {
    Resource::new(README, workspace, &Readme { raw_markdown })
}

/// `GET /api/v2/workspaces/{workspace}/readme`
pub(crate) async fn readme(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(workspace): InPath<WorkspaceId>,
) -> Result<Document, ApiError> {
    let readme = control_plane.readme(&caller, &WorkspaceRef::Id(workspace)).await?;
    Ok(readme.map_or_else(Document::none, |readme| Document::one(readme_resource(workspace, readme))))
}

/// A workspace with what the query wants beside it.
pub(crate) async fn document(
    api: &Api,
    caller: &Caller,
    address: &Address,
    view: &WorkspaceView,
    query: &Query,
) -> Result<Document, ApiError> {
    let mut workspace = workspaces::resource(caller, view);
    let mut readme = None;
    let may_read_runs = caller.may(Action::ReadRuns, view.resource()).allowed;
    if query.includes("readme")
        && may_read_runs
        && let Some(raw_markdown) = api.control_plane.readme(caller, &WorkspaceRef::Id(view.workspace.id)).await?
    {
        workspace = workspace.has_one("readme", Identifier::new(README, view.workspace.id));
        readme = Some(readme_resource(view.workspace.id, raw_markdown));
    }
    let mut document = Document::one(workspace).including(readme);
    include(api, caller, address, view, query, &mut document).await?;
    Ok(document)
}

pub(crate) async fn include(
    api: &Api,
    caller: &Caller,
    address: &Address,
    view: &WorkspaceView,
    query: &Query,
    document: &mut Document,
) -> Result<(), ApiError> {
    let control_plane = &api.control_plane;
    if caller.may(Action::ReadRuns, view.resource()).allowed {
        include_runs(api, caller, address, view, query, document)?;
    }
    if query.includes("organization") {
        let organization = control_plane.organization(caller, view.open.entry().name.as_str()).await?;
        document.include(organizations::resource(caller, &organization));
    }
    if query.includes("project")
        && let Ok(project) = control_plane.project(caller, view.workspace.project).await
    {
        document.include(projects::resource(caller, &project));
    }
    if query.includes("locked-by")
        && let Some(Author::User(holder)) = view.workspace.lock.as_ref().map(|lock| lock.holder)
        && let Ok(user) = control_plane.user(caller, holder).await
    {
        document.include(users::resource(&user));
    }
    if query.includes("current-state-version")
        && let Ok(version) = control_plane.current_state_version(caller, view.workspace.id).await
    {
        document.include(state_versions::resource(api, caller, address, &version, None));
    }
    if query.includes("outputs") {
        let wanted = WorkspaceRef::Id(view.workspace.id);
        for output in control_plane.current_outputs(caller, &wanted).await.unwrap_or_default() {
            document.include(output_resource(&output));
        }
    }
    if query.includes("effective-tag-bindings") {
        for tag in tag_bindings::effective_bindings(view) {
            document.include(tag.resource(tag_bindings::EFFECTIVE));
        }
    }
    Ok(())
}

/// The current run and its parts, and the current configuration.
fn include_runs(
    api: &Api,
    caller: &Caller,
    address: &Address,
    view: &WorkspaceView,
    query: &Query,
    document: &mut Document,
) -> Result<(), ApiError> {
    let WorkspaceView { workspace, open } = view;
    if let Some(run) = open.state.current_run(workspace.id) {
        let run = RunView { run: run.clone(), workspace: workspace.clone(), open: open.clone() };
        let part = |name: &str| query.includes(&format!("current-run.{name}"));
        if query.includes("current-run") || part("plan") || part("configuration-version") {
            document.include(runs::resource(&api.control_plane, caller, &run)?);
        }
        if part("plan") {
            document.include(phases::resource(api, caller, address, &run, PhaseKind::Plan));
        }
        if part("configuration-version")
            && let Some(version) = run.configuration()
        {
            document.include(configuration_versions::resource(version, None));
        }
    }
    if query.includes("current-configuration-version")
        && let Some(version) = open.state.current_configuration(workspace.id)
    {
        document.include(configuration_versions::resource(version, None));
    }
    Ok(())
}
