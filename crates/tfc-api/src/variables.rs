//! Variables of workspaces and of variable sets. Values that are sensitive go in and never come out.

pub(crate) mod bindings;
pub(crate) mod variable_sets;

use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::VariableRef;
use taco_domain::id::WorkspaceId;
use taco_domain::variable::{Variable, VariableCategory, VariableOwner, VariablePatch};

use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::workspaces;

pub(crate) const KIND: &str = "vars";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    key: &'a str,
    value: Option<&'a str>,
    sensitive: bool,
    category: VariableCategory,
    hcl: bool,
    created_at: Timestamp,
    description: &'a str,
    version_id: String,
}

impl Resource for Variable {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let attributes = Attributes {
            key: &self.key,
            value: self.shown_value(),
            sensitive: self.sensitive(),
            category: self.category,
            hcl: self.hcl,
            created_at: self.created_at,
            description: &self.description,
            version_id: self.version_id(),
        };
        let object = ResourceObject::new(KIND, self.id, &attributes);
        Ok(match self.owner {
            VariableOwner::Workspace(id) => object
                .has_one("configurable", Identifier::new(workspaces::KIND, id))
                .related(format!("/api/v2/workspaces/{id}"))
                .link("self", format!("/api/v2/workspaces/{id}/vars/{}", self.id)),
            VariableOwner::VariableSet(id) => object
                .has_one("varset", Identifier::new(variable_sets::KIND, id))
                .related(format!("/api/v2/varsets/{id}"))
                .link("self", format!("/api/v2/varsets/{id}/relationships/vars/{}", self.id)),
        })
    }
}

/// The workspace or the variable set in the path.
fn owner(request: &ApiRequest) -> Result<VariableOwner, ApiError> {
    match request.name("variable_set") {
        Ok(_) => request.id("variable_set").map(VariableOwner::VariableSet),
        Err(_) => request.id("workspace").map(VariableOwner::Workspace),
    }
}

fn wanted(request: &ApiRequest) -> Result<VariableRef, ApiError> {
    Ok(VariableRef { id: request.last_id()?, owner: Some(owner(request)?) })
}

/// A variable at a path from before workspaces had paths of their own for them.
fn wanted_by_id(request: &ApiRequest) -> Result<VariableRef, ApiError> {
    Ok(VariableRef { id: request.id("variable")?, owner: None })
}

/// `GET /api/v2/workspaces/{workspace}/vars` and `GET /api/v2/varsets/{variable_set}/relationships/vars`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    request.all(&request.control_plane.variables(&request.caller, owner(&request)?).await?).await
}

/// `GET /api/v2/workspaces/{workspace}/all-vars`
pub(crate) async fn list_effective(request: ApiRequest) -> Answer {
    request.all(&request.control_plane.effective_variables(&request.caller, &request.workspace()?).await?).await
}

/// `POST /api/v2/workspaces/{workspace}/vars` and `POST /api/v2/varsets/{variable_set}/relationships/vars`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let (owner, patch) = (owner(&request)?, request.attributes(KIND).await?);
    request.created(&request.control_plane.create_variable(&request.caller, owner, patch).await?)
}

/// `GET /api/v2/workspaces/{workspace}/vars/{variable}`, and the same of a variable set
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.variable(&request.caller, wanted(&request)?).await?).await
}

/// `PATCH /api/v2/workspaces/{workspace}/vars/{variable}`, and the same of a variable set
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let (variable, patch) = (wanted(&request)?, request.attributes(KIND).await?);
    request.changed(&request.control_plane.update_variable(&request.caller, variable, patch).await?)
}

/// `DELETE /api/v2/workspaces/{workspace}/vars/{variable}`, and the same of a variable set
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_variable(&request.caller, wanted(&request)?).await?;
    no_content()
}

/// `GET /api/v2/vars?filter[organization][name]=…&filter[workspace][name]=…`
pub(crate) async fn list_by_name(request: ApiRequest) -> Answer {
    request.all(&request.control_plane.variables_in(&request.caller, &request.workspace_in_query()?).await?).await
}

/// `POST /api/v2/vars`
pub(crate) async fn create_by_relationship(request: ApiRequest) -> Answer {
    let sent = request.resource::<VariablePatch>(KIND).await?;
    let workspace: Option<WorkspaceId> = match sent.to_one("workspace")?.flatten() {
        Some(workspace) => Some(workspace),
        None => sent.to_one("configurable")?.flatten(),
    };
    let pointer = "/data/relationships/workspace";
    let workspace = workspace.ok_or_else(|| ApiError::invalid(pointer, "The workspace must be given"))?;
    let owner = VariableOwner::Workspace(workspace);
    request.created(&request.control_plane.create_variable(&request.caller, owner, sent.attributes).await?)
}

/// `PATCH /api/v2/vars/{variable}`
pub(crate) async fn update_by_id(request: ApiRequest) -> Answer {
    let (variable, patch) = (wanted_by_id(&request)?, request.attributes(KIND).await?);
    request.changed(&request.control_plane.update_variable(&request.caller, variable, patch).await?)
}

/// `DELETE /api/v2/vars/{variable}`
pub(crate) async fn delete_by_id(request: ApiRequest) -> Answer {
    request.control_plane.delete_variable(&request.caller, wanted_by_id(&request)?).await?;
    no_content()
}
