//! `/app/{organization}/registry/providers/{provider}`: one provider with its versions and platforms.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use taco_control_plane::{ProviderRef, ProviderVersionView, ProviderView};
use taco_domain::terraform_files::quoted;

use crate::error::PageError;
use crate::navigation::Section;
use crate::page::Layout;
use crate::registry::{address_of, host};
use crate::text::{Moment, size};
use crate::visitor::Visitor;
use crate::{Web, page};

#[derive(Template)]
#[template(path = "registry_provider.html")]
struct ProviderPage {
    layout: Layout,
    now: Timestamp,
    name: String,
    source: String,
    usage: String,
    versions: Vec<VersionRow>,
    /// Address of the list of providers.
    list: String,
}

struct VersionRow {
    version: String,
    published: Moment,
    protocols: String,
    key: String,
    is_signed: bool,
    platforms: Vec<PlatformRow>,
}

struct PlatformRow {
    name: String,
    /// Size of its archive; `None` until it arrives.
    size: Option<String>,
}

impl VersionRow {
    fn of(view: &ProviderVersionView) -> Self {
        let platform = |it: &taco_domain::provider_platform::ProviderPlatform| PlatformRow {
            name: format!("{}_{}", it.os.as_str(), it.arch.as_str()),
            size: it.archive.as_ref().map(|archive| size(archive.file.size)),
        };
        Self {
            version: view.version.version.to_string(),
            published: Moment(view.version.updated_at),
            protocols: view.version.protocols.join(", "),
            key: view.version.key_id.clone(),
            is_signed: view.version.is_signed(),
            platforms: view.platforms().map(platform).collect(),
        }
    }
}

/// Block with which a configuration requires the provider.
fn usage(host: &str, view: &ProviderView) -> String {
    let name = &view.provider.name;
    let address = format!("{}/{name}", view.namespace());
    let source = if view.provider.namespace.is_some() { address } else { format!("{host}/{address}") };
    let usable = view.version_views().into_iter().find(|version| !version.usable_platforms().is_empty());
    let version =
        usable.map(|it| format!("\n      version = {}", quoted(it.version.version.as_str()))).unwrap_or_default();
    format!(
        "terraform {{\n  required_providers {{\n    {name} = {{\n      source  = {}{version}\n    }}\n  }}\n}}",
        quoted(&source)
    )
}

#[derive(Deserialize)]
pub(crate) struct ProviderPath {
    organization: String,
    provider: String,
}

/// `GET /app/{organization}/registry/providers/{provider}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<ProviderPath>,
) -> Result<Response, PageError> {
    let missing = || PageError::not_found("provider");
    let wanted = ProviderRef::Id(path.provider.parse().map_err(|_| missing())?);
    let view = web.control_plane.registry_provider(&visitor.caller, &wanted).await?;
    let organization = view.org.entry().name.to_string();
    if organization != path.organization {
        return Err(missing());
    }
    let name = view.provider.name.to_string();
    let page = ProviderPage {
        layout: Layout::for_visitor(&web, &visitor)
            .in_organization(&organization, Section::Registry)
            .called(view.provider.id, &name),
        now: web.control_plane.now(),
        source: format!("{}/{name}", view.namespace()),
        usage: usage(&host(&web), &view),
        versions: view.version_views().iter().map(VersionRow::of).collect(),
        list: format!("{}/providers", address_of(&organization)),
        name,
    };
    Ok(page::render(StatusCode::OK, &page))
}
