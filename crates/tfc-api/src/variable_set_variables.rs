//! Variables of variable sets.

use taco_control_plane::VariableRef;
use taco_domain::variable::VariableOwner;

use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::variables::KIND;

fn owner(request: &ApiRequest) -> Result<VariableOwner, ApiError> {
    request.id("variable_set").map(VariableOwner::VariableSet)
}

fn wanted(request: &ApiRequest) -> Result<VariableRef, ApiError> {
    Ok(VariableRef { id: request.id("set_variable")?, owner: Some(owner(request)?) })
}

/// `GET /api/v2/varsets/{variable_set}/relationships/vars`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    request.all(&request.control_plane.variables(&request.caller, owner(&request)?).await?).await
}

/// `POST /api/v2/varsets/{variable_set}/relationships/vars`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let (owner, patch) = (owner(&request)?, request.attributes(KIND).await?);
    request.created(&request.control_plane.create_variable(&request.caller, owner, patch).await?)
}

/// `GET /api/v2/varsets/{variable_set}/relationships/vars/{set_variable}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.variable(&request.caller, wanted(&request)?).await?).await
}

/// `PATCH /api/v2/varsets/{variable_set}/relationships/vars/{set_variable}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let (variable, patch) = (wanted(&request)?, request.attributes(KIND).await?);
    request.changed(&request.control_plane.update_variable(&request.caller, variable, patch).await?)
}

/// `DELETE /api/v2/varsets/{variable_set}/relationships/vars/{set_variable}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_variable(&request.caller, wanted(&request)?).await?;
    no_content()
}
