//! Resources: things as the API shows them.

use crate::document::{Document, ResourceObject};
use crate::error::ApiError;
use crate::request::ApiRequest;

/// A thing as the API shows it: its resource object, and the related resources that can come along.
pub(crate) trait Resource: Sync {
    /// Its type on the wire.
    const KIND: &'static str;

    /// Names that a query's `include` can have, in the order in which they come along. Other names are ignored, because
    /// clients ask for things that taco does not have.
    const INCLUDES: &'static [&'static str] = &[];

    /// Its id, attributes, relationships and links, as far as the caller may see them.
    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError>;

    /// Adds what one of [`Self::INCLUDES`] names, if there is any and the caller may see it.
    fn include(
        &self,
        name: &str,
        request: &ApiRequest,
        document: &mut Document,
    ) -> impl Future<Output = Result<(), ApiError>> + Send {
        let _ = (name, request, document);
        async { Ok(()) }
    }
}
