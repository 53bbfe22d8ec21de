//! Plain nouns: things of an organization that are listed, made, read, changed and deleted, and nothing else about it
//! is special. Such a noun says which verbs of the control plane these are; path, body and status are the same for all.

use std::str::FromStr;

use serde::de::DeserializeOwned;
use taco_control_plane::{Error, Listed, PageRequest};

use crate::body::RequestResource;
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;

/// A noun with the five plain verbs.
pub(crate) trait Crud: Resource + Send + Sized + 'static {
    type Id: FromStr + Send;
    /// Attributes that a request can set.
    type Patch: DeserializeOwned + Send;

    /// Reads relationships that a body may have besides the attributes.
    fn patch(sent: RequestResource<Self::Patch>) -> Result<Self::Patch, ApiError> {
        Ok(sent.attributes)
    }

    fn list(
        request: &ApiRequest,
        organization: &str,
        page: PageRequest,
    ) -> impl Future<Output = Result<Listed<Self>, Error>> + Send;

    fn create(
        request: &ApiRequest,
        organization: &str,
        patch: Self::Patch,
    ) -> impl Future<Output = Result<Self, Error>> + Send;

    fn read(request: &ApiRequest, id: Self::Id) -> impl Future<Output = Result<Self, Error>> + Send;

    fn update(
        request: &ApiRequest,
        id: Self::Id,
        patch: Self::Patch,
    ) -> impl Future<Output = Result<Self, Error>> + Send;

    fn delete(request: &ApiRequest, id: Self::Id) -> impl Future<Output = Result<(), Error>> + Send;
}

pub(crate) async fn list<T: Crud>(request: ApiRequest) -> Answer {
    request.page(T::list(&request, request.organization()?, request.query.page()?).await?).await
}

pub(crate) async fn create<T: Crud>(request: ApiRequest) -> Answer {
    let patch = T::patch(request.resource(T::KIND).await?)?;
    request.created(&T::create(&request, request.organization()?, patch).await?)
}

pub(crate) async fn read<T: Crud>(request: ApiRequest) -> Answer {
    request.one(&T::read(&request, request.last_id()?).await?).await
}

pub(crate) async fn update<T: Crud>(request: ApiRequest) -> Answer {
    let id = request.last_id()?;
    let patch = T::patch(request.resource(T::KIND).await?)?;
    request.changed(&T::update(&request, id, patch).await?)
}

pub(crate) async fn delete<T: Crud>(request: ApiRequest) -> Answer {
    T::delete(&request, request.last_id()?).await?;
    no_content()
}
