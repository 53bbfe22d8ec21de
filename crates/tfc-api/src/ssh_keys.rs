//! SSH keys. Their values go in and never come out.

use serde::Serialize;
use taco_control_plane::{Error, Listed, PageRequest, SshKeyPatch};
use taco_domain::ssh_key::{SshKey, SshKeyId};

use crate::crud::Crud;
use crate::document::ResourceObject;
use crate::error::ApiError;
use crate::request::ApiRequest;
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

impl Crud for SshKey {
    type Id = SshKeyId;
    type Patch = SshKeyPatch;

    async fn list(request: &ApiRequest, organization: &str, page: PageRequest) -> Result<Listed<Self>, Error> {
        request.control_plane.ssh_keys(&request.caller, organization, page).await
    }

    async fn create(request: &ApiRequest, organization: &str, patch: SshKeyPatch) -> Result<Self, Error> {
        request.control_plane.create_ssh_key(&request.caller, organization, patch).await
    }

    async fn read(request: &ApiRequest, id: SshKeyId) -> Result<Self, Error> {
        request.control_plane.ssh_key(&request.caller, id).await
    }

    async fn update(request: &ApiRequest, id: SshKeyId, patch: SshKeyPatch) -> Result<Self, Error> {
        request.control_plane.update_ssh_key(&request.caller, id, patch).await
    }

    async fn delete(request: &ApiRequest, id: SshKeyId) -> Result<(), Error> {
        request.control_plane.delete_ssh_key(&request.caller, id).await
    }
}
