//! `modules.v1`: how terraform and tofu find and download modules.

use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::IntoResponse;
use serde_json::{Value, json};
use taco_control_plane::{ModuleDocs, ModulePart, ModuleVersionView, ModuleView, SignedUrlPurpose};
use taco_domain::module_version::ModuleVersion;

use crate::error::ApiError;
use crate::request::{Answer, ApiRequest};
use crate::signed_url::signed;

const LOCATION: HeaderName = HeaderName::from_static("x-terraform-get");

async fn module_in(request: &ApiRequest) -> Result<ModuleView, ApiError> {
    let [namespace, name, provider] =
        [request.name("namespace")?, request.name("module_name")?, request.name("module_provider")?];
    Ok(request.control_plane.module_at(&request.caller, namespace, name, provider).await?)
}

async fn version_in(request: &ApiRequest) -> Result<ModuleVersionView, ApiError> {
    let [namespace, name, provider] =
        [request.name("namespace")?, request.name("module_name")?, request.name("module_provider")?];
    let version = request.name("version").ok();
    Ok(request.control_plane.module_version_at(&request.caller, namespace, name, provider, version).await?)
}

/// `GET …/{namespace}/{module_name}/{module_provider}/versions`
pub(crate) async fn versions(request: ApiRequest) -> Answer {
    let module = module_in(&request).await?;
    let usable = module.versions().into_iter().filter(|version| version.usable().is_some());
    let versions: Vec<Value> = usable.map(version_entry).collect();
    Ok(Json(json!({ "modules": [{ "versions": versions }] })).into_response())
}

fn version_entry(version: &ModuleVersion) -> Value {
    match &version.deprecation {
        None => json!({ "version": version.version }),
        Some(deprecation) => json!({
            "version": version.version,
            "deprecation": { "reason": deprecation.reason, "link": deprecation.link },
        }),
    }
}

/// `GET …/{version}/download`: terraform knows the header alone. Without a version it is the latest.
pub(crate) async fn download(request: ApiRequest) -> Answer {
    let view = version_in(&request).await?;
    let address = signed(&request, SignedUrlPurpose::DownloadModule, view.version.id);
    // The engines look at the query to know that it has to be unpacked.
    let location = format!("{address}/archive.tar.gz?archive=tar.gz");
    let mut headers = HeaderMap::new();
    headers.insert(LOCATION, HeaderValue::try_from(location).map_err(|_| ApiError::not_found())?);
    Ok((StatusCode::NO_CONTENT, headers).into_response())
}

/// `GET …/{module_provider}[/{version}]`
pub(crate) async fn details(request: ApiRequest) -> Answer {
    let view = version_in(&request).await?;
    let docs = request.control_plane.module_docs(&view).await?.unwrap_or_default();
    Ok(Json(details_of(&view, &docs)).into_response())
}

fn details_of(view: &ModuleVersionView, docs: &ModuleDocs) -> Value {
    let (module, version) = (&view.module.module, view.version.version.as_str());
    let namespace = view.module.namespace();
    let address = format!("{namespace}/{}/{}", module.name, module.provider);
    let siblings = view.module.versions().into_iter().filter(|version| version.usable().is_some());
    let parts = |parts: &[ModulePart]| -> Vec<Value> { parts.iter().map(part).collect() };
    json!({
        "id": format!("{address}/{version}"),
        "owner": "",
        "namespace": namespace,
        "name": module.name,
        "version": version,
        "provider": module.provider,
        "provider_logo_url": "",
        "description": "",
        "source": "",
        "tag": "",
        "published_at": view.version.updated_at,
        "downloads": 0,
        "verified": false,
        "root": part(&docs.root),
        "submodules": parts(&docs.submodules),
        "examples": parts(&docs.examples),
        "providers": [module.provider],
        "versions": siblings.map(|version| version.version.as_str()).collect::<Vec<_>>(),
    })
}

fn part(part: &ModulePart) -> Value {
    let inputs = part.inputs.iter().map(|input| {
        json!({ "name": input.name, "type": input.constraint, "description": input.description,
                "default": input.default.as_deref().unwrap_or_default(), "required": input.is_required(),
                "sensitive": input.sensitive, "nullable": input.nullable })
    });
    let outputs = part
        .outputs
        .iter()
        .map(|output| json!({ "name": output.name, "description": output.description, "sensitive": output.sensitive }));
    let providers = part.providers.iter().map(|provider| {
        let namespace = provider.source.rsplit('/').nth(1).unwrap_or("hashicorp");
        json!({ "name": provider.name, "namespace": namespace, "source": provider.source, "version": provider.version })
    });
    let calls = part.module_calls.iter();
    let calls = calls.map(|call| json!({ "name": call.name, "source": call.source, "version": call.version }));
    let managed = part.resources.iter().filter(|resource| !resource.data);
    let empty = part.inputs.is_empty() && part.outputs.is_empty() && part.resources.is_empty();
    json!({
        "path": part.path,
        "name": part.path.rsplit('/').next().unwrap_or_default(),
        "readme": part.readme.as_deref().unwrap_or_default(),
        "empty": empty && part.module_calls.is_empty(),
        "inputs": inputs.collect::<Vec<_>>(),
        "outputs": outputs.collect::<Vec<_>>(),
        "dependencies": calls.collect::<Vec<_>>(),
        "provider_dependencies": providers.collect::<Vec<_>>(),
        "resources": managed.map(|it| json!({ "name": it.name, "type": it.kind })).collect::<Vec<_>>(),
    })
}
