//! The one table of pages. The router is made from it, and so are the tests that ask for every page and send every
//! form as every kind of visitor.

mod sample;
mod table;

use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{self, MethodRouter};

use crate::Web;

pub use taco_domain::permission::{Access, Case, Place};

/// One row of the table.
#[derive(Clone, Debug)]
pub struct Route {
    /// `GET` for what browsers look at, `POST` for the forms that they send.
    pub method: Method,
    /// With placeholders in braces, as `/app/{organization}`.
    pub path: &'static str,
    pub access: Access,
    /// Fields that get past the shape of the form, without its CSRF token; words in braces are placeholders for names.
    pub sample_form: &'static [(&'static str, &'static str)],
    /// A query without which the request makes no sense.
    pub sample_query: Option<&'static str>,
    service: MethodRouter<Web>,
}

/// All pages and forms.
pub fn all() -> Vec<Route> {
    table::groups().concat()
}

/// A page, or something else that browsers ask for.
fn get<H, T>(path: &'static str, access: Access, handler: H) -> Route
where
    H: Handler<T, Web>,
    T: 'static,
{
    Route::new(Method::GET, path, access, routing::get(handler))
}

/// A form that browsers send.
fn post<H, T>(path: &'static str, access: Access, handler: H) -> Route
where
    H: Handler<T, Web>,
    T: 'static,
{
    Route::new(Method::POST, path, access, routing::post(handler))
}

impl Route {
    fn new(method: Method, path: &'static str, access: Access, service: MethodRouter<Web>) -> Self {
        Self { method, path, access, sample_form: &[], sample_query: None, service }
    }

    fn form(self, sample_form: &'static [(&'static str, &'static str)]) -> Self {
        Self { sample_form, ..self }
    }

    fn query(self, sample_query: &'static str) -> Self {
        Self { sample_query: Some(sample_query), ..self }
    }

    /// Takes forms of up to so many bytes.
    fn body_limit(self, bytes: usize) -> Self {
        Self { service: self.service.layer(DefaultBodyLimit::max(bytes)), ..self }
    }

    /// True for a form that only someone who is logged in can send, and only from a page of theirs.
    pub fn needs_csrf_token(&self) -> bool {
        self.method == Method::POST && !matches!(self.access, Access::Public | Access::SignedAddress)
    }

    pub(crate) fn into_service(self) -> MethodRouter<Web> {
        self.service
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_users_come_to_pages() {
        for route in all() {
            assert!(
                !matches!(route.access, Access::Token | Access::OrganizationToken),
                "{} {}",
                route.method,
                route.path
            );
        }
    }
}
