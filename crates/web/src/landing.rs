//! `/app`: what to type next.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::error::PageError;
use crate::page::Layout;
use crate::visitor::Visitor;
use crate::{Web, page, terraform};

#[derive(Template)]
#[template(path = "landing.html")]
struct LandingPage<'a> {
    layout: Layout,
    username: &'a str,
    site: &'a str,
    host: String,
    /// For terraform's configuration, where it cannot find our services itself.
    host_block: Option<String>,
}

/// `GET /app`
pub(crate) async fn show(State(web): State<Web>, visitor: Visitor) -> Result<Response, PageError> {
    let page = LandingPage {
        layout: Layout::for_visitor(&web, &visitor),
        username: visitor.user.username.as_str(),
        site: web.address.as_str().trim_end_matches('/'),
        host: terraform::host_name(&web.address),
        host_block: (web.address.scheme() == "http").then(|| terraform::host_block(&web.address)),
    };
    Ok(page::render(StatusCode::OK, &page))
}
