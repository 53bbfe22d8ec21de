//! Reserved tag keys.

use jiff::Timestamp;
use serde::Serialize;
use taco_domain::reserved_tag_key::ReservedTagKey;

use crate::document::ResourceObject;
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;

const KIND: &str = "reserved-tag-keys";

#[derive(Serialize)]
struct Attributes<'a> {
    key: &'a str,
    #[serde(rename = "disable-overrides")]
    disable_overrides: bool,
    // Clients read these two with underscores.
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl Resource for ReservedTagKey {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let Self { key, disable_overrides, created_at, updated_at, .. } = self;
        let attributes = Attributes {
            key: key.as_str(),
            disable_overrides: *disable_overrides,
            created_at: *created_at,
            updated_at: *updated_at,
        };
        Ok(ResourceObject::new(KIND, self.id, &attributes)
            .link("self", format!("/api/v2/reserved-tag-keys/{}", self.id)))
    }
}

/// `GET /api/v2/organizations/{organization}/reserved-tag-keys`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let ApiRequest { control_plane, caller, query, .. } = &request;
    request.page(control_plane.reserved_tag_keys(caller, request.organization()?, query.page()?).await?).await
}

/// `POST /api/v2/organizations/{organization}/reserved-tag-keys`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let patch = request.attributes(KIND).await?;
    let ApiRequest { control_plane, caller, .. } = &request;
    request.created(&control_plane.create_reserved_tag_key(caller, request.organization()?, patch).await?)
}

/// `PATCH /api/v2/reserved-tag-keys/{reserved_tag_key}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let (key, patch) = (request.id("reserved_tag_key")?, request.attributes(KIND).await?);
    request.changed(&request.control_plane.update_reserved_tag_key(&request.caller, key, patch).await?)
}

/// `DELETE /api/v2/reserved-tag-keys/{reserved_tag_key}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_reserved_tag_key(&request.caller, request.id("reserved_tag_key")?).await?;
    no_content()
}
