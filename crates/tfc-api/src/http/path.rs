//! Names in the paths of signed URLs, which take no token.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

/// Names in a path. A malformed id is answered 404, like a missing one.
pub(crate) struct ApiPath<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for ApiPath<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(named) = Path::<T>::from_request_parts(parts, state).await.map_err(|_| ApiError::not_found())?;
        Ok(Self(named))
    }
}
