//! Error pages: each gives the reason, and the id under which the server's log tells more.

use std::any::Any;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::header::{HeaderValue, RETRY_AFTER};
use axum::http::{Extensions, HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use taco_control_plane::Error;

use crate::navigation::{Section, WorkspaceSection};
use crate::page::Layout;
use crate::theme::Theme;
use crate::visitor::Visitor;
use crate::{Web, login, page, workspace};

/// Reason why a handler has no page. Texts help the visitor and give nothing away.
#[derive(Clone, Debug)]
pub(crate) enum PageError {
    Page {
        status: StatusCode,
        title: &'static str,
        detail: String,
    },
    /// Redirect to the login, which leads back to this address.
    LogIn {
        next: String,
    },
}

impl PageError {
    pub(crate) fn new(status: StatusCode, title: &'static str, detail: impl Into<String>) -> Self {
        Self::Page { status, title, detail: detail.into() }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "Bad request", detail)
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not found", {
            let what = capitalized(what);
            format!("{what} not found, or you don't have access to it.")
        })
    }

    pub(crate) fn denied(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Not allowed", reason)
    }

    pub(crate) fn form_expired() -> Self {
        let detail = "This form has expired, or another site has sent it. Nothing was changed. \
                      Go back, reload the page and send it again.";
        Self::new(StatusCode::FORBIDDEN, "Form expired", detail)
    }
}

/// No wildcard: a new kind of error must choose its page.
impl From<Error> for PageError {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::NotFound(what) => Self::not_found(what),
            Error::Invalid { detail, .. } => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid value", detail),
            Error::Conflict(detail) => Self::new(StatusCode::CONFLICT, "Couldn't do that", detail),
            Error::Denied(reason) => Self::denied(reason),
            Error::Unauthorized(_) => Self::LogIn { next: String::new() },
            Error::TooLarge { .. } => Self::new(StatusCode::PAYLOAD_TOO_LARGE, "Too large", text),
            Error::TooManyRequests { detail, .. } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "Too many requests", detail)
            }
            Error::Unavailable(cause) => {
                tracing::warn!(event = "page_unavailable", %cause, "a page could not be shown");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "Unavailable", text)
            }
            Error::Corrupt(cause) => {
                tracing::error!(event = "page_corrupt_data", %cause, "a page met something damaged");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal error", text)
            }
            Error::Sealed(cause) => {
                tracing::error!(event = "page_decryption_failed", cause, "a page met something that no key opens");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal error", text)
            }
        }
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Response to a request whose handler panicked. Runs within the request's span, so the line has its id.
pub(crate) fn after_panic(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(event = "page_panicked", panic = text.unwrap_or("of another kind"), "a page's handler panicked");
    let detail = "Details are in the server log.";
    PageError::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal error", detail).into_response()
}

impl IntoResponse for PageError {
    /// The page itself is made by [`render`], which knows the request.
    fn into_response(self) -> Response {
        match &self {
            Self::LogIn { next } => Redirect::to(&login::address(next)).into_response(),
            Self::Page { status, .. } => {
                let mut response = status.into_response();
                if matches!(*status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
                    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
                }
                response.extensions_mut().insert(self);
                response
            }
        }
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    layout: Layout,
    status: u16,
    title: &'a str,
    detail: &'a str,
    request_id: &'a str,
}

/// Gives errors of handlers their page.
pub(crate) async fn render(State(web): State<Web>, request: Request, next: Next) -> Response {
    let id = request.headers().get("x-request-id").cloned();
    let (headers, extensions, path) =
        (request.headers().clone(), request.extensions().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    let Some(PageError::Page { status, title, detail }) = response.extensions().get::<PageError>() else {
        return response;
    };
    let page = ErrorPage {
        layout: layout(&web, &headers, &extensions, &path).await,
        status: status.as_u16(),
        title,
        detail,
        request_id: id.as_ref().and_then(|id| id.to_str().ok()).unwrap_or_default(),
    };
    let mut rendered = page::render(*status, &page);
    for (name, value) in response.headers() {
        rendered.headers_mut().entry(name).or_insert(value.clone());
    }
    rendered
}

/// Visitors who are logged in keep the header, and the navigation of the organization and workspace that the path names
/// if they may see these. If that cannot be found out, there is a page all the same.
async fn layout(web: &Web, headers: &HeaderMap, extensions: &Extensions, path: &str) -> Layout {
    let Ok(Some(visitor)) = Visitor::recognise(web, headers, extensions).await else {
        return Layout::of(web).themed(Theme::of(headers));
    };
    let layout = Layout::for_visitor(web, &visitor);
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let ["app", organization, rest @ ..] = segments.as_slice() else { return layout };
    let first = |parts: &[&str]| parts.first().copied().unwrap_or_default().to_owned();
    let mut layout = layout;
    if let ["workspaces", name, within @ ..] = rest {
        let wanted = workspace::named(((*organization).to_owned(), (*name).to_owned()));
        if let Ok(view) = web.control_plane.workspace(&visitor.caller, &wanted).await {
            layout = layout.in_workspace(organization, &view.workspace, WorkspaceSection::of_path(&first(within)));
        }
    }
    if layout.workspace.is_none() && web.control_plane.organization_named(&visitor.caller, organization).await.is_ok() {
        layout = layout.in_organization(organization, Section::of_path(&first(rest)));
    }
    layout
}

/// The router adds the header `allow`.
pub(crate) async fn no_such_method(method: Method) -> PageError {
    let detail = format!("{method} is not supported at this address.");
    PageError::new(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed", detail)
}
