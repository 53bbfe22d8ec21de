//! SSH keys. Their values go in and never come out.

use serde::Serialize;
use taco_domain::ssh_key::SshKey;

use crate::document::ResourceObject;
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;

pub(crate) const KIND: &str = "ssh-keys";

#[derive(Serialize)]
struct Attributes<'a> {
    name: &'a str,
}

impl Resource for SshKey {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        Ok(ResourceObject::new(KIND, self.id, &Attributes { name: self.name.as_str() })
            .link("self", format!("/api/v2/ssh-keys/{}", self.id)))
    }
}

/// `GET /api/v2/organizations/{organization}/ssh-keys`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let (organization, page) = (request.organization()?, request.query.page()?);
    request.page(request.control_plane.ssh_keys(&request.caller, organization, page).await?).await
}

/// `POST /api/v2/organizations/{organization}/ssh-keys`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let patch = request.attributes(KIND).await?;
    let organization = request.organization()?;
    request.created(&request.control_plane.create_ssh_key(&request.caller, organization, patch).await?)
}

/// `GET /api/v2/ssh-keys/{key}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.ssh_key(&request.caller, request.id("key")?).await?).await
}

/// `PATCH /api/v2/ssh-keys/{key}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let (key, patch) = (request.id("key")?, request.attributes(KIND).await?);
    request.changed(&request.control_plane.update_ssh_key(&request.caller, key, patch).await?)
}

/// `DELETE /api/v2/ssh-keys/{key}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_ssh_key(&request.caller, request.id("key")?).await?;
    no_content()
}
