//! `/app/{organization}/registry`: modules and providers that an organization publishes.

pub(crate) mod registry_module;
pub(crate) mod registry_provider;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use taco_control_plane::{ModuleFilter, ModuleView, ProviderFilter, ProviderView};

use crate::error::PageError;
use crate::list_page::ListPage;
use crate::navigation::{Section, organization_address};
use crate::page::Layout;
use crate::pagination::{self, PageQuery};
use crate::runs::OrganizationPath;
use crate::terraform::host_name;
use crate::text::Moment;
use crate::visitor::Visitor;
use crate::{Web, page};

pub(crate) fn address_of(organization: &str) -> String {
    format!("{}/registry", organization_address(organization))
}

#[derive(Template)]
#[template(path = "registry.html")]
struct RegistryPage {
    layout: Layout,
    now: Timestamp,
    /// Address of the registry.
    address: String,
    kind: Kind,
    list: ListPage<Row>,
    organization: String,
}

/// What the page lists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Modules,
    Providers,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Modules => "modules",
            Self::Providers => "providers",
        }
    }

    fn is(&self, word: &str) -> bool {
        self.word() == word
    }
}

struct Row {
    /// As configurations write it, without the host.
    source: String,
    address: String,
    is_public: bool,
    latest: Option<String>,
    /// Reason why the latest version should not be used.
    is_deprecated: bool,
    versions: usize,
    updated: Moment,
}

impl Row {
    fn of_module(view: &ModuleView, address: &str) -> Self {
        let latest = view.latest();
        Self {
            source: format!("{}/{}/{}", view.namespace(), view.module.name, view.module.provider),
            address: format!("{address}/modules/{}", view.module.id),
            is_public: view.module.namespace.is_some(),
            latest: latest.map(|version| version.version.to_string()),
            is_deprecated: latest.is_some_and(|version| version.deprecation.is_some()),
            versions: view.versions().len(),
            updated: Moment(view.versions().iter().map(|it| it.updated_at).max().unwrap_or(view.module.updated_at)),
        }
    }

    fn of_provider(view: &ProviderView, address: &str) -> Self {
        let versions = view.versions();
        Self {
            source: format!("{}/{}", view.namespace(), view.provider.name),
            address: format!("{address}/providers/{}", view.provider.id),
            is_public: view.provider.namespace.is_some(),
            latest: versions.first().map(|version| version.version.to_string()),
            is_deprecated: false,
            versions: versions.len(),
            updated: Moment(versions.iter().map(|it| it.updated_at).max().unwrap_or(view.provider.updated_at)),
        }
    }
}

fn show(
    web: &Web,
    visitor: &Visitor,
    organization: String,
    kind: Kind,
    list: ListPage<Row>,
) -> Result<Response, PageError> {
    let page = RegistryPage {
        layout: Layout::for_visitor(web, visitor).in_organization(&organization, Section::Registry),
        now: web.control_plane.now(),
        address: address_of(&organization),
        kind,
        list,
        organization,
    };
    Ok(page::render(StatusCode::OK, &page))
}

/// `GET /app/{organization}/registry`
pub(crate) async fn modules(
    State(web): State<Web>,
    visitor: Visitor,
    Path(OrganizationPath { organization }): Path<OrganizationPath>,
    Query(wanted): Query<PageQuery>,
) -> Result<Response, PageError> {
    let (search, address) = (wanted.search.trim(), address_of(&organization));
    let filter = ModuleFilter { search: Some(search.to_owned()), ..ModuleFilter::default() };
    let number = pagination::asked_for(&wanted.page);
    let listed = web.control_plane.registry_modules(&visitor.caller, &organization, &filter, number).await?;
    let list = ListPage::of(address.clone(), search, listed, |view| Row::of_module(&view, &address));
    show(&web, &visitor, organization, Kind::Modules, list)
}

/// `GET /app/{organization}/registry/providers`
pub(crate) async fn providers(
    State(web): State<Web>,
    visitor: Visitor,
    Path(OrganizationPath { organization }): Path<OrganizationPath>,
    Query(wanted): Query<PageQuery>,
) -> Result<Response, PageError> {
    let (search, address) = (wanted.search.trim(), address_of(&organization));
    let filter = ProviderFilter { search: Some(search.to_owned()), ..ProviderFilter::default() };
    let number = pagination::asked_for(&wanted.page);
    let listed = web.control_plane.registry_providers(&visitor.caller, &organization, &filter, number).await?;
    let list = ListPage::of(format!("{address}/providers"), search, listed, |view| Row::of_provider(&view, &address));
    show(&web, &visitor, organization, Kind::Providers, list)
}

/// The host under which configurations name this registry.
pub(crate) fn host(web: &Web) -> String {
    host_name(&web.address)
}
