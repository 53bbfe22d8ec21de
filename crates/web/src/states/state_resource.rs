//! `…/states/{id}/resources?address=…`: one resource of a state, with the attributes of its instances.

use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use taco_control_plane::StateResource;
use taco_domain::json_tree::HIDDEN;
use taco_domain::resource_detail::{InstanceDetail, ResourceDetail};
use url::form_urlencoded::Serializer;

use crate::error::PageError;
use crate::navigation::WorkspaceSection;
use crate::page::Layout;
use crate::state::{StatePath, find};
use crate::state_parts::{provider_name, shortened};
use crate::states::StateRow;
use crate::text::plain;
use crate::visitor::Visitor;
use crate::workspace::address_of;
use crate::{Web, page};

/// With more instances than this each is folded.
const MAX_OPEN_INSTANCES: usize = 3;

/// Address of the page of a resource. `state` is the address of the state's page.
pub(crate) fn resource_address(state: &str, resource: &str) -> String {
    let query = Serializer::new(String::new()).append_pair("address", resource).finish();
    format!("{state}/resources?{query}")
}

#[derive(Template)]
#[template(path = "state_resource.html")]
struct ResourcePage {
    layout: Layout,
    /// Of the state's page.
    address: String,
    version: StateRow,
    name: String,
    detail: Result<Detail, String>,
}

struct Detail {
    kind: &'static str,
    module: String,
    provider: String,
    instances: Vec<Instance>,
    total: usize,
    /// Address of the page with all instances, where not all are shown.
    all: Option<String>,
    depends_on: Vec<Link>,
    used_by: Vec<Link>,
}

struct Instance {
    address: String,
    status: Option<String>,
    deposed: Option<String>,
    attributes: Vec<Attribute>,
    open: bool,
}

struct Attribute {
    path: String,
    value: String,
    is_hidden: bool,
}

struct Link {
    name: String,
    address: String,
}

impl Instance {
    fn of(instance: InstanceDetail, open: bool) -> Self {
        let attribute = |(path, value): (String, String)| Attribute {
            path: shortened(&path),
            is_hidden: value == HIDDEN,
            value: shortened(&value),
        };
        Self {
            address: plain(&instance.address),
            status: instance.status.as_deref().map(plain),
            deposed: instance.deposed.as_deref().map(plain),
            attributes: instance.attributes.into_iter().map(attribute).collect(),
            open,
        }
    }
}

impl Detail {
    fn of(resource: ResourceDetail, state: &str) -> Self {
        let link = |name: &String| Link { name: plain(name), address: resource_address(state, name) };
        let open = resource.instances.len() <= MAX_OPEN_INSTANCES;
        let is_whole = resource.instances.len() == resource.total;
        Self {
            kind: if resource.is_data { "Data source" } else { "Managed resource" },
            module: plain(&resource.module),
            provider: plain(provider_name(&resource.provider)),
            all: (!is_whole).then(|| resource_address(state, &resource.address)),
            depends_on: resource.depends_on.iter().map(link).collect(),
            used_by: resource.used_by.iter().map(link).collect(),
            total: resource.total,
            instances: resource.instances.into_iter().map(|instance| Instance::of(instance, open)).collect(),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct AddressQuery {
    address: String,
}

/// `GET /app/{organization}/workspaces/{workspace}/states/{id}/resources`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    path: StatePath,
    Query(AddressQuery { address: wanted }): Query<AddressQuery>,
) -> Result<Response, PageError> {
    let (workspace, state) = find(&web, &visitor, path).await?;
    let overview = address_of(&workspace);
    let address = format!("{overview}/states/{}", state.version.id);
    if wanted.is_empty() {
        return Ok(Redirect::to(&format!("{address}#resources")).into_response());
    }
    let found = web.control_plane.state_resource(&visitor.caller, state.version.id, wanted.clone()).await?;
    let StateResource { state, result } = found;
    let organization = workspace.org.entry().name.as_str();
    let page = ResourcePage {
        layout: Layout::for_visitor(&web, &visitor)
            .in_workspace(organization, &workspace.workspace, WorkspaceSection::States)
            .called(state.version.id, &format!("Serial {}", state.version.serial)),
        version: StateRow::of(&state, &overview),
        name: result.as_ref().map_or_else(|_| shortened(&wanted), |resource| plain(&resource.address)),
        detail: result.map(|resource| Detail::of(resource, &address)).map_err(|refusal| refusal.to_string()),
        address,
    };
    Ok(page::render(StatusCode::OK, &page))
}
