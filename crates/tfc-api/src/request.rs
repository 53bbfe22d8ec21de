//! One request to the API: who asks, what for, and the ways to answer.

use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body as HttpBody;
use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use taco_control_plane::{Caller, ControlPlane, Listed, WorkspaceRef};

use crate::Api;
use crate::address::Address;
use crate::body::{self, Body, RequestResource};
use crate::caller::{self, Credentials};
use crate::document::Document;
use crate::error::ApiError;
use crate::query::Query;
use crate::resource::Resource;

/// Result of a handler.
pub(crate) type Answer = Result<Response, ApiError>;

/// A handler without its type: all of them are called through one axum handler, so that what that does is compiled
/// once.
pub(crate) type Handler = Arc<dyn Fn(ApiRequest) -> BoxFuture<'static, Answer> + Send + Sync>;

/// A request of a caller who is recognised. A handler that has one need not check a token again.
pub(crate) struct ApiRequest {
    pub(crate) api: Api,
    pub(crate) control_plane: ControlPlane,
    pub(crate) caller: Caller,
    /// The address by which the client reached this server.
    pub(crate) address: Address,
    pub(crate) query: Query,
    pub(crate) parts: Parts,
    path: Vec<(String, String)>,
    /// A body cannot be shared between threads by itself.
    body: Mutex<HttpBody>,
}

impl ApiRequest {
    /// Recognises the caller. Everything else about the request is looked at when a handler wants it.
    async fn read(api: Api, request: Request, credentials: Credentials) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let caller = caller::recognise(&api, &mut parts, credentials).await?;
        let named = RawPathParams::from_request_parts(&mut parts, &()).await.map_err(|_| ApiError::not_found())?;
        let path = named.iter().map(|(word, name)| (word.to_owned(), name.to_owned())).collect();
        Ok(Self {
            control_plane: api.control_plane.clone(),
            address: Address::of_request(&parts, &api),
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            api,
            caller,
            parts,
            path,
            body: Mutex::new(body),
        })
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.parts.uri
    }

    /// The value of a placeholder in the route's path.
    pub(crate) fn name(&self, word: &str) -> Result<&str, ApiError> {
        let found = self.path.iter().find(|(name, _)| name == word);
        found.map(|(_, value)| value.as_str()).ok_or_else(ApiError::not_found)
    }

    /// The id that is the value of a placeholder. A malformed one is answered 404, like a missing one.
    pub(crate) fn id<I: FromStr>(&self, word: &str) -> Result<I, ApiError> {
        self.name(word)?.parse().map_err(|_| ApiError::not_found())
    }

    /// The id that the path names last.
    pub(crate) fn last_id<I: FromStr>(&self) -> Result<I, ApiError> {
        let last = self.path.last().ok_or_else(ApiError::not_found)?;
        last.1.parse().map_err(|_| ApiError::not_found())
    }

    /// The name of the organization in the path.
    pub(crate) fn organization(&self) -> Result<&str, ApiError> {
        self.name("organization")
    }

    /// The workspace in the path: by its id, or by its organization and its name.
    pub(crate) fn workspace(&self) -> Result<WorkspaceRef, ApiError> {
        match self.organization() {
            Ok(organization) => {
                let name = self.name("workspace")?.to_owned();
                Ok(WorkspaceRef::Named { organization: organization.to_owned(), name })
            }
            Err(_) => self.id("workspace").map(WorkspaceRef::Id),
        }
    }

    /// The workspace that a query names, at paths from before workspaces had their own.
    pub(crate) fn workspace_in_query(&self) -> Result<WorkspaceRef, ApiError> {
        Ok(WorkspaceRef::Named {
            organization: self.query.required("filter[organization][name]")?.to_owned(),
            name: self.query.required("filter[workspace][name]")?.to_owned(),
        })
    }

    /// The body as it comes, for what is too large to be held. It can be taken once.
    pub(crate) fn take_body(&self) -> HttpBody {
        std::mem::take(&mut *self.body.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) async fn body(&self) -> Result<Body, ApiError> {
        let body = self.take_body();
        body::read(&self.parts.headers, body, body::MAX_BODY_BYTES).await
    }

    /// The one resource object that the body has.
    pub(crate) async fn resource<A: DeserializeOwned>(&self, kind: &str) -> Result<RequestResource<A>, ApiError> {
        self.body().await?.resource(kind)
    }

    /// Its attributes, where nothing else matters.
    pub(crate) async fn attributes<A: DeserializeOwned>(&self, kind: &str) -> Result<A, ApiError> {
        Ok(self.resource::<A>(kind).await?.attributes)
    }

    /// The ids of the resource identifiers that the body lists.
    pub(crate) async fn ids<I: FromStr<Err: std::fmt::Display>, C: FromIterator<I>>(
        &self,
        kind: &str,
    ) -> Result<C, ApiError> {
        self.body().await?.ids(kind)
    }

    /// One resource, with the related ones that the query asks for.
    pub(crate) async fn one<R: Resource>(&self, thing: &R) -> Answer {
        Ok(self.document(thing).await?.into_response())
    }

    pub(crate) async fn document<R: Resource>(&self, thing: &R) -> Result<Document, ApiError> {
        let mut document = Document::one(thing.object(self)?);
        self.include(std::slice::from_ref(thing), &mut document).await?;
        Ok(document)
    }

    /// One page of a list, with the related resources that the query asks for.
    pub(crate) async fn page<R: Resource>(&self, listed: Listed<R>) -> Answer {
        let mut document = self.page_document(&listed)?;
        self.include(&listed.items, &mut document).await?;
        Ok(document.into_response())
    }

    /// The same for lists that have no pages when they are empty.
    pub(crate) async fn page_from_none<R: Resource>(&self, listed: Listed<R>) -> Answer {
        let mut document = self.page_document(&listed)?.counting_pages_from_none();
        self.include(&listed.items, &mut document).await?;
        Ok(document.into_response())
    }

    /// One page of a list with which nothing comes along.
    pub(crate) fn page_without_includes<R: Resource>(&self, listed: &Listed<R>) -> Answer {
        Ok(self.page_document(listed)?.into_response())
    }

    pub(crate) fn page_document<R: Resource>(&self, listed: &Listed<R>) -> Result<Document, ApiError> {
        let objects = listed.items.iter().map(|thing| thing.object(self)).collect::<Result<_, _>>()?;
        Ok(Document::page(Listed { items: objects, page: listed.page, total: listed.total }))
    }

    /// The page that the query asks for, of a list that is there as a whole.
    pub(crate) async fn page_of<R: Resource>(&self, all: impl IntoIterator<Item = R>) -> Answer {
        self.page(Listed::from_all(all, self.query.page()?)).await
    }

    /// A list without pages.
    pub(crate) async fn all<R: Resource>(&self, things: &[R]) -> Answer {
        let objects = things.iter().map(|thing| thing.object(self)).collect::<Result<_, _>>()?;
        let mut document = Document::many(objects);
        self.include(things, &mut document).await?;
        Ok(document.into_response())
    }

    /// Adds the related resources of these things that the query asks for.
    pub(crate) async fn include<R: Resource>(&self, things: &[R], document: &mut Document) -> Result<(), ApiError> {
        let asked: Vec<&str> = R::INCLUDES.iter().copied().filter(|name| self.query.includes(name)).collect();
        for thing in things {
            for name in &asked {
                thing.include(name, self, document).await?;
            }
        }
        Ok(())
    }

    /// A resource as it is after a change. Related ones come along with what is read, not with what is written.
    pub(crate) fn changed<R: Resource>(&self, thing: &R) -> Answer {
        Ok(Document::one(thing.object(self)?).into_response())
    }

    /// A resource that was made just now.
    pub(crate) fn created<R: Resource>(&self, thing: &R) -> Answer {
        Ok((StatusCode::CREATED, self.changed(thing)?).into_response())
    }
}

/// An answer that says nothing more than that it is done.
pub(crate) fn no_content() -> Answer {
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// An answer that says nothing more than that it will be done.
pub(crate) fn accepted() -> Answer {
    Ok(StatusCode::ACCEPTED.into_response())
}

/// The one axum handler of all routes that take a token.
pub(crate) async fn dispatch(api: Api, credentials: Credentials, handler: Handler, request: Request) -> Response {
    match ApiRequest::read(api, request, credentials).await {
        Ok(request) => handler(request).await.into_response(),
        Err(error) => error.into_response(),
    }
}
