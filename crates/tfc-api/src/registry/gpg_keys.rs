//! GPG keys of those who sign providers.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::{GpgKeyView, NewGpgKey};

use crate::document::ResourceObject;
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;

const KIND: &str = "gpg-keys";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    ascii_armor: &'a str,
    key_id: &'a str,
    namespace: &'a str,
    source: &'a str,
    source_url: Option<&'a str>,
    trust_signature: &'a str,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl Resource for GpgKeyView {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let key = &self.key;
        let attributes = Attributes {
            ascii_armor: &key.ascii_armor,
            key_id: &key.key_id,
            namespace: self.namespace(),
            source: &key.source,
            source_url: key.source_url.as_deref(),
            trust_signature: &key.trust_signature,
            created_at: key.created_at,
            updated_at: key.updated_at,
        };
        let path = format!("/api/registry/private/v2/gpg-keys/{}/{}", self.namespace(), key.key_id);
        Ok(ResourceObject::new(KIND, key.id, &attributes).link("self", path))
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Patch {
    namespace: Option<String>,
}

/// `GET /api/registry/private/v2/gpg-keys`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let namespaces = request.query.all("filter[namespace]");
    if namespaces.is_empty() {
        let detail = "filter[namespace] must be given: the name of an organization, or of several with commas";
        return Err(ApiError::parameter("filter[namespace]", detail));
    }
    let page = request.query.page()?;
    request.page_from_none(request.control_plane.gpg_keys(&request.caller, &namespaces, page).await?).await
}

/// `POST /api/registry/private/v2/gpg-keys`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let new: NewGpgKey = request.attributes(KIND).await?;
    request.created(&request.control_plane.create_gpg_key(&request.caller, new).await?)
}

/// `GET /api/registry/private/v2/gpg-keys/{namespace}/{key_id}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let (namespace, key) = (request.name("namespace")?, request.name("key_id")?);
    request.one(&request.control_plane.gpg_key(&request.caller, namespace, key).await?).await
}

/// `PATCH /api/registry/private/v2/gpg-keys/{namespace}/{key_id}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let patch: Patch = request.attributes(KIND).await?;
    let (namespace, key) = (request.name("namespace")?, request.name("key_id")?);
    let target = patch.namespace.as_deref().unwrap_or(namespace);
    request.changed(&request.control_plane.move_gpg_key(&request.caller, namespace, key, target).await?)
}

/// `DELETE /api/registry/private/v2/gpg-keys/{namespace}/{key_id}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    let (namespace, key) = (request.name("namespace")?, request.name("key_id")?);
    request.control_plane.delete_gpg_key(&request.caller, namespace, key).await?;
    no_content()
}
