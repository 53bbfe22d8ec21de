//! The caller's own account.

use taco_control_plane::AccountPatch;

use crate::request::{Answer, ApiRequest};
use crate::users;

/// `GET /api/v2/account/details`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.account(&request.caller).await?).await
}

/// `PATCH /api/v2/account/update`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let patch: AccountPatch = request.attributes(users::KIND).await?;
    let account = request.control_plane.account(&request.caller).await?;
    request.changed(&request.control_plane.update_user(&request.caller, account.id, patch).await?)
}
