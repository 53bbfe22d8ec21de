//! Tags with values: those a workspace or project carries, and those that count for it.

use axum::extract::State;
use serde::Serialize;
use taco_control_plane::{Caller, ControlPlane, WorkspaceRef, WorkspaceView};
use taco_domain::id::{Home, ProjectId, TagId, WorkspaceId};
use taco_domain::project::Project;
use taco_domain::tag::{TagBinding, Tags, effective_tags};

use crate::body::{Body, Sent};
use crate::document::{Document, Identifier, Resource};
use crate::error::ApiError;
use crate::path::InPath;

pub(crate) const KIND: &str = "tag-bindings";
pub(crate) const EFFECTIVE: &str = "effective-tag-bindings";

/// A tag on something.
pub(crate) struct Binding<'a> {
    /// What carries it, which makes the id unique.
    carrier: String,
    home: Home,
    key: &'a str,
    value: &'a str,
    /// The project it comes from, if it is not the carrier's own.
    inherited_from: Option<ProjectId>,
}

#[derive(Serialize)]
struct Attributes<'a> {
    key: &'a str,
    value: &'a str,
}

impl Binding<'_> {
    fn id(&self) -> String {
        let purpose = format!("{} {}", self.carrier, self.key);
        format!("tb-{}", TagId::derived(self.home, &purpose).characters())
    }

    pub(crate) fn identifier(&self, kind: &'static str) -> Identifier {
        Identifier::new(kind, self.id())
    }

    pub(crate) fn resource(&self, kind: &'static str) -> Resource {
        let resource = Resource::new(kind, self.id(), &Attributes { key: self.key, value: self.value });
        match self.inherited_from {
            Some(project) => resource.link("inherited-from", format!("/api/v2/projects/{project}")),
            None => resource,
        }
    }
}

fn own_bindings<'a>(carrier: &impl ToString, home: Home, tags: &'a Tags) -> Vec<Binding<'a>> {
    let carrier = carrier.to_string();
    let binding = |(key, value): (&'a taco_domain::name::TagKey, &'a String)| Binding {
        carrier: carrier.clone(),
        home,
        key: key.as_str(),
        value,
        inherited_from: None,
    };
    tags.iter().map(binding).collect()
}

/// A project inherits from nobody.
pub(crate) fn effective_bindings_of_project(project: &Project) -> Vec<Binding<'_>> {
    own_bindings(&project.id, project.id.home(), &project.tags)
}

/// A workspace's own, and those of its project.
pub(crate) fn effective_bindings(view: &WorkspaceView) -> Vec<Binding<'_>> {
    static NONE: Tags = Tags::new();
    let workspace = &view.workspace;
    let project = view.open.state.projects.get(&workspace.project).map_or(&NONE, |project| &project.tags);
    let binding = |tag: taco_domain::tag::EffectiveTag<'_>| (tag.key.as_str().to_owned(), tag.inherited);
    let inherited: Vec<(String, bool)> = effective_tags(&workspace.tags, project).into_iter().map(binding).collect();
    inherited
        .into_iter()
        .filter_map(|(key, inherited)| {
            let tags = if inherited { project } else { &workspace.tags };
            let (key, value) = tags.iter().find(|(name, _)| name.as_str() == key)?;
            Some(Binding {
                carrier: workspace.id.to_string(),
                home: workspace.id.home(),
                key: key.as_str(),
                value,
                inherited_from: inherited.then_some(workspace.project),
            })
        })
        .collect()
}

fn document(bindings: &[Binding<'_>], kind: &'static str) -> Document {
    Document::many(bindings.iter().map(|binding| binding.resource(kind)).collect())
}

/// The tags that a request's relationship names, if it has one.
pub(crate) fn sent_bindings<A>(sent: &Sent<A>, name: &str) -> Result<Option<Vec<TagBinding>>, ApiError> {
    let bindings = sent.to_many::<TagBinding>(name, KIND)?;
    Ok(bindings.map(|bindings| bindings.into_iter().map(|binding| binding.attributes).collect()))
}

fn bindings_in(body: Body) -> Result<Vec<TagBinding>, ApiError> {
    let bindings = body.resources::<TagBinding>(KIND)?;
    Ok(bindings.into_iter().map(|binding| binding.attributes).collect())
}

/// `GET /api/v2/workspaces/{workspace}/tag-bindings`
pub(crate) async fn of_workspace(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(workspace): InPath<WorkspaceId>,
) -> Result<Document, ApiError> {
    let workspace = control_plane.workspace_with_runs(&caller, &WorkspaceRef::Id(workspace)).await?.workspace;
    Ok(document(&own_bindings(&workspace.id, workspace.id.home(), &workspace.tags), KIND))
}

/// `PATCH /api/v2/workspaces/{workspace}/tag-bindings`
pub(crate) async fn add_to_workspace(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(workspace): InPath<WorkspaceId>,
    body: Body,
) -> Result<Document, ApiError> {
    let wanted = WorkspaceRef::Id(workspace);
    let workspace = control_plane.add_workspace_tags(&caller, &wanted, bindings_in(body)?).await?.workspace;
    Ok(document(&own_bindings(&workspace.id, workspace.id.home(), &workspace.tags), KIND))
}

/// `GET /api/v2/workspaces/{workspace}/effective-tag-bindings`
pub(crate) async fn effective_of_workspace(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(workspace): InPath<WorkspaceId>,
) -> Result<Document, ApiError> {
    let view = control_plane.workspace_with_runs(&caller, &WorkspaceRef::Id(workspace)).await?;
    Ok(document(&effective_bindings(&view), EFFECTIVE))
}

/// `GET /api/v2/projects/{project}/tag-bindings`
pub(crate) async fn of_project(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(project): InPath<ProjectId>,
) -> Result<Document, ApiError> {
    let view = control_plane.project(&caller, project).await?;
    Ok(document(&effective_bindings_of_project(&view.project), KIND))
}

/// `PATCH /api/v2/projects/{project}/tag-bindings`
pub(crate) async fn add_to_project(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(project): InPath<ProjectId>,
    body: Body,
) -> Result<Document, ApiError> {
    let view = control_plane.add_project_tags(&caller, project, bindings_in(body)?).await?;
    Ok(document(&effective_bindings_of_project(&view.project), KIND))
}

/// `GET /api/v2/projects/{project}/effective-tag-bindings`
pub(crate) async fn effective_of_project(
    State(control_plane): State<ControlPlane>,
    caller: Caller,
    InPath(project): InPath<ProjectId>,
) -> Result<Document, ApiError> {
    let view = control_plane.project(&caller, project).await?;
    Ok(document(&effective_bindings_of_project(&view.project), EFFECTIVE))
}
