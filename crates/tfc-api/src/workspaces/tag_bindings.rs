//! Tags with values: those a workspace or project carries, and those that count for it.

use axum::response::IntoResponse;
use serde::Serialize;
use taco_control_plane::WorkspaceView;
use taco_domain::id::{OrganizationPrefix, ProjectId, TagId};
use taco_domain::project::Project;
use taco_domain::tag::{TagBinding, Tags, effective_tags};
use taco_domain::workspace::Workspace;

use crate::body::RequestResource;
use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest};

pub(crate) const KIND: &str = "tag-bindings";
pub(crate) const EFFECTIVE: &str = "effective-tag-bindings";

/// A tag on something.
pub(crate) struct Binding<'a> {
    /// The thing that carries it, which makes the id unique.
    carrier: String,
    prefix: OrganizationPrefix,
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
        format!("tb-{}", TagId::derived(self.prefix, &purpose).characters())
    }

    pub(crate) fn identifier(&self, kind: &'static str) -> Identifier {
        Identifier::new(kind, self.id())
    }

    pub(crate) fn object(&self, kind: &'static str) -> ResourceObject {
        let object = ResourceObject::new(kind, self.id(), &Attributes { key: self.key, value: self.value });
        match self.inherited_from {
            Some(project) => object.link("inherited-from", format!("/api/v2/projects/{project}")),
            None => object,
        }
    }
}

fn own_bindings<'a>(carrier: &impl ToString, prefix: OrganizationPrefix, tags: &'a Tags) -> Vec<Binding<'a>> {
    let carrier = carrier.to_string();
    let binding = |(key, value): (&'a taco_domain::name::TagKey, &'a String)| Binding {
        carrier: carrier.clone(),
        prefix,
        key: key.as_str(),
        value,
        inherited_from: None,
    };
    tags.iter().map(binding).collect()
}

fn own_bindings_of_workspace(workspace: &Workspace) -> Vec<Binding<'_>> {
    own_bindings(&workspace.id, workspace.id.organization_prefix(), &workspace.tags)
}

/// A project inherits no tags.
pub(crate) fn effective_bindings_of_project(project: &Project) -> Vec<Binding<'_>> {
    own_bindings(&project.id, project.id.organization_prefix(), &project.tags)
}

/// A workspace's own, and those of its project.
pub(crate) fn effective_bindings(view: &WorkspaceView) -> Vec<Binding<'_>> {
    static NONE: Tags = Tags::new();
    let workspace = &view.workspace;
    let project = view.project().map_or(&NONE, |project| &project.tags);
    let binding = |tag: taco_domain::tag::EffectiveTag<'_>| (tag.key.as_str().to_owned(), tag.inherited);
    let inherited: Vec<(String, bool)> = effective_tags(&workspace.tags, project).into_iter().map(binding).collect();
    inherited
        .into_iter()
        .filter_map(|(key, inherited)| {
            let tags = if inherited { project } else { &workspace.tags };
            let (key, value) = tags.iter().find(|(name, _)| name.as_str() == key)?;
            Some(Binding {
                carrier: workspace.id.to_string(),
                prefix: workspace.id.organization_prefix(),
                key: key.as_str(),
                value,
                inherited_from: inherited.then_some(workspace.project),
            })
        })
        .collect()
}

fn answer(bindings: &[Binding<'_>], kind: &'static str) -> Answer {
    Ok(Document::many(bindings.iter().map(|binding| binding.object(kind)).collect()).into_response())
}

/// The tags that a request's relationship names, if it has one.
pub(crate) fn sent_bindings<A>(sent: &RequestResource<A>, name: &str) -> Result<Option<Vec<TagBinding>>, ApiError> {
    let bindings = sent.to_many::<TagBinding>(name, KIND)?;
    Ok(bindings.map(|bindings| bindings.into_iter().map(|binding| binding.attributes).collect()))
}

async fn bindings_in(request: &ApiRequest) -> Result<Vec<TagBinding>, ApiError> {
    let bindings = request.body().await?.resources::<TagBinding>(KIND)?;
    Ok(bindings.into_iter().map(|binding| binding.attributes).collect())
}

/// `GET /api/v2/workspaces/{workspace}/tag-bindings`
pub(crate) async fn of_workspace(request: ApiRequest) -> Answer {
    let view = request.control_plane.workspace_with_runs(&request.caller, &request.workspace()?).await?;
    answer(&own_bindings_of_workspace(&view.workspace), KIND)
}

/// `PATCH /api/v2/workspaces/{workspace}/tag-bindings`
pub(crate) async fn add_to_workspace(request: ApiRequest) -> Answer {
    let (workspace, tags) = (request.workspace()?, bindings_in(&request).await?);
    let view = request.control_plane.add_workspace_tags(&request.caller, &workspace, tags).await?;
    answer(&own_bindings_of_workspace(&view.workspace), KIND)
}

/// `GET /api/v2/workspaces/{workspace}/effective-tag-bindings`
pub(crate) async fn effective_of_workspace(request: ApiRequest) -> Answer {
    let view = request.control_plane.workspace_with_runs(&request.caller, &request.workspace()?).await?;
    answer(&effective_bindings(&view), EFFECTIVE)
}

/// `GET /api/v2/projects/{project}/tag-bindings`
pub(crate) async fn of_project(request: ApiRequest) -> Answer {
    let view = request.control_plane.project(&request.caller, request.id("project")?).await?;
    answer(&effective_bindings_of_project(&view.project), KIND)
}

/// `PATCH /api/v2/projects/{project}/tag-bindings`
pub(crate) async fn add_to_project(request: ApiRequest) -> Answer {
    let (project, tags) = (request.id("project")?, bindings_in(&request).await?);
    let view = request.control_plane.add_project_tags(&request.caller, project, tags).await?;
    answer(&effective_bindings_of_project(&view.project), KIND)
}

/// `GET /api/v2/projects/{project}/effective-tag-bindings`
pub(crate) async fn effective_of_project(request: ApiRequest) -> Answer {
    let view = request.control_plane.project(&request.caller, request.id("project")?).await?;
    answer(&effective_bindings_of_project(&view.project), EFFECTIVE)
}
