//! The one table of routes. The router is made from it, and so are the API reference, and the tests that call every
//! route with every kind of caller.

mod sample;
mod table;

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::handler::Handler as AxumHandler;
use axum::routing::{MethodFilter, MethodRouter, any, on};
pub use taco_domain::permission::{Access, Case, Place};

use crate::Api;
use crate::caller::Credentials;
use crate::crud::{self, Crud};
use crate::request::{Answer, ApiRequest, Handler, dispatch};

/// Comparison of a route with Terraform Cloud's API.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InTerraformCloud {
    Same,
    Differs(&'static str),
    Missing,
}

/// One row of the table.
#[derive(Clone)]
pub struct Route {
    /// Usually one; where clients may choose among several, all of them.
    pub methods: &'static [&'static str],
    pub path: &'static str,
    pub access: Access,
    pub subject: Subject,
    /// A sentence about what it does.
    pub summary: Cow<'static, str>,
    pub in_terraform_cloud: InTerraformCloud,
    /// A body that says enough to get past the shape; words in braces are placeholders for names.
    pub sample_body: &'static str,
    /// A query without which the request makes no sense.
    pub sample_query: Option<&'static str>,
    endpoint: Endpoint,
}

#[derive(Clone)]
enum Endpoint {
    /// For callers with a token.
    Api(Handler, Credentials),
    /// For everyone, or for those who know the URL.
    Open(Box<MethodRouter<Api>>),
}

/// Subject of some routes: a section of the API reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subject {
    pub title: &'static str,
    /// The page of Terraform Cloud's API documentation.
    pub page: Option<&'static str>,
}

/// Routes about one subject.
fn group(title: &'static str, page: Option<&'static str>, rows: Vec<Route>) -> Vec<Route> {
    rows.into_iter().map(|route| Route { subject: Subject { title, page }, ..route }).collect()
}

/// All routes, grouped by what they are about.
pub fn all() -> Vec<Route> {
    table::groups().concat()
}

/// A route for callers with a token.
fn route<H, F>(methods: &'static [&'static str], path: &'static str, access: Access, handler: H) -> Route
where
    H: Fn(ApiRequest) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let handler: Handler = Arc::new(move |request| Box::pin(handler(request)));
    Route::new(methods, path, access, Endpoint::Api(handler, Credentials::Bearer))
}

fn get<H, F>(path: &'static str, access: Access, handler: H) -> Route
where
    H: Fn(ApiRequest) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    route(&["GET"], path, access, handler)
}

fn post<H, F>(path: &'static str, access: Access, handler: H) -> Route
where
    H: Fn(ApiRequest) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    route(&["POST"], path, access, handler)
}

fn patch<H, F>(path: &'static str, access: Access, handler: H) -> Route
where
    H: Fn(ApiRequest) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    route(&["PATCH"], path, access, handler)
}

fn delete<H, F>(path: &'static str, access: Access, handler: H) -> Route
where
    H: Fn(ApiRequest) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    route(&["DELETE"], path, access, handler)
}

/// A route that takes no token.
fn open<H, T>(methods: &'static [&'static str], path: &'static str, access: Access, handler: H) -> Route
where
    H: AxumHandler<T, Api>,
    T: 'static,
{
    Route::new(methods, path, access, Endpoint::Open(Box::new(by_method(methods, handler))))
}

/// Access that the five routes of a plain noun ask of their callers.
struct Rights {
    list: Access,
    create: Access,
    read: Access,
    update: Access,
    delete: Access,
}

impl Rights {
    fn new(read: Access, write: Access) -> Self {
        Self { list: read, create: write, read, update: write, delete: write }
    }
}

/// The five routes of a plain noun, such as `an SSH key`: at the path of the list, and at the path of one.
fn crud<T: Crud>(noun: &str, of_list: &'static str, of_one: &'static str, rights: Rights) -> Vec<Route> {
    let bare = noun.split_once(' ').map_or(noun, |(_, bare)| bare);
    vec![
        get(of_list, rights.list, crud::list::<T>).says(format!("Lists an organization's {bare}s.")),
        post(of_list, rights.create, crud::create::<T>).says(format!("Makes {noun}.")),
        get(of_one, rights.read, crud::read::<T>).says(format!("Shows {noun}.")),
        patch(of_one, rights.update, crud::update::<T>).says(format!("Changes {noun}.")),
        delete(of_one, rights.delete, crud::delete::<T>).says(format!("Deletes {noun}.")),
    ]
}

impl Route {
    fn new(methods: &'static [&'static str], path: &'static str, access: Access, endpoint: Endpoint) -> Self {
        Self {
            methods,
            path,
            access,
            subject: Subject { title: "", page: None },
            summary: Cow::Borrowed(""),
            in_terraform_cloud: InTerraformCloud::Same,
            sample_body: sample::NAMED,
            sample_query: None,
            endpoint,
        }
    }

    fn says(self, summary: impl Into<Cow<'static, str>>) -> Self {
        Self { summary: summary.into(), ..self }
    }

    fn body(self, sample_body: &'static str) -> Self {
        Self { sample_body, ..self }
    }

    fn query(self, sample_query: &'static str) -> Self {
        Self { sample_query: Some(sample_query), ..self }
    }

    fn differs(self, how: &'static str) -> Self {
        Self { in_terraform_cloud: InTerraformCloud::Differs(how), ..self }
    }

    fn only_in_taco(self) -> Self {
        Self { in_terraform_cloud: InTerraformCloud::Missing, ..self }
    }

    /// Takes a token also as the password of Basic authentication.
    fn or_basic(self) -> Self {
        match self.endpoint {
            Endpoint::Api(handler, _) => Self { endpoint: Endpoint::Api(handler, Credentials::BearerOrBasic), ..self },
            Endpoint::Open(_) => self,
        }
    }

    pub(crate) fn into_service(self) -> MethodRouter<Api> {
        match self.endpoint {
            Endpoint::Open(service) => *service,
            Endpoint::Api(handler, credentials) => {
                by_method(self.methods, move |State(api): State<Api>, request: Request| {
                    dispatch(api, credentials, Arc::clone(&handler), request)
                })
            }
        }
    }
}

fn by_method<H, T>(methods: &[&str], handler: H) -> MethodRouter<Api>
where
    H: AxumHandler<T, Api>,
    T: 'static,
{
    let standard = |method: &&str| match *method {
        "GET" => Some(MethodFilter::GET),
        "POST" => Some(MethodFilter::POST),
        "PUT" => Some(MethodFilter::PUT),
        "PATCH" => Some(MethodFilter::PATCH),
        "DELETE" => Some(MethodFilter::DELETE),
        _ => None,
    };
    let filter: Option<Vec<MethodFilter>> = methods.iter().map(standard).collect();
    match filter.and_then(|filters| filters.into_iter().reduce(MethodFilter::or)) {
        Some(filter) => on(filter, handler),
        // The router knows standard methods alone; such a handler looks at the method itself.
        None => any(handler),
    }
}
