//! Bindings: variables of a workspace that take their values from other workspaces' outputs.

use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{BindingView, NewBinding};
use taco_domain::variable::VariableCategory;

use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::workspaces;

const KIND: &str = "bindings";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    key: &'a str,
    category: VariableCategory,
    /// Name of the producer.
    producer: &'a str,
    output: &'a str,
    created_at: Timestamp,
    created_by: String,
    /// Reason why a run would get no value now.
    problem: Option<&'a str>,
    /// A variable set with priority has the same key.
    overridden: bool,
}

impl Resource for BindingView {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let binding = &self.binding;
        let attributes = Attributes {
            key: &binding.key,
            category: binding.category,
            producer: &self.producer,
            output: &binding.output,
            created_at: binding.created_at,
            created_by: self.org.name_of(&binding.created_by),
            problem: self.problem.as_deref(),
            overridden: self.is_overridden,
        };
        let unit = |id| Identifier::new(workspaces::KIND, id);
        Ok(ResourceObject::new(KIND, binding.id, &attributes)
            .has_one("workspace", unit(binding.workspace))
            .related(format!("/api/v2/workspaces/{}", binding.workspace))
            .has_optional("producer", binding.producer.filter(|_| self.sees_producer).map(unit))
            .link("self", format!("/api/v2/bindings/{}", binding.id)))
    }
}

/// `GET /api/v2/workspaces/{workspace}/bindings`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let (workspace, page) = (request.workspace()?, request.query.page()?);
    request.page(request.control_plane.bindings(&request.caller, &workspace, page).await?).await
}

/// `POST /api/v2/workspaces/{workspace}/bindings`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let workspace = request.workspace()?;
    let new: NewBinding = request.attributes(KIND).await?;
    request.created(&request.control_plane.create_binding(&request.caller, &workspace, new).await?)
}

/// `GET /api/v2/bindings/{binding}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.binding(&request.caller, request.id("binding")?).await?).await
}

/// `DELETE /api/v2/bindings/{binding}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_binding(&request.caller, request.id("binding")?).await?;
    no_content()
}
