//! `providers.v1`: how terraform and tofu find and download providers.

use axum::Json;
use axum::response::IntoResponse;
use serde_json::{Map, Value, json};
use taco_control_plane::{ProviderVersionView, SignedUrlPurpose};

use crate::request::{Answer, ApiRequest};
use crate::signed_url::signed;

/// `GET …/{namespace}/{provider_name}/versions`
pub(crate) async fn versions(request: ApiRequest) -> Answer {
    let (namespace, name) = (request.name("namespace")?, request.name("provider_name")?);
    let provider = request.control_plane.provider_at(&request.caller, namespace, name).await?;
    let entry = |view: ProviderVersionView| {
        let platforms = view.usable_platforms();
        let platforms: Vec<Value> =
            platforms.iter().map(|it| json!({ "os": it.os.as_str(), "arch": it.arch.as_str() })).collect();
        let is_usable = !platforms.is_empty();
        let entry =
            json!({ "version": view.version.version, "protocols": view.version.protocols, "platforms": platforms });
        is_usable.then_some(entry)
    };
    let versions: Vec<Value> = provider.version_views().into_iter().filter_map(entry).collect();
    Ok(Json(json!({ "versions": versions })).into_response())
}

/// `GET …/{version}/download/{os}/{arch}`
pub(crate) async fn download(request: ApiRequest) -> Answer {
    let address = (request.name("namespace")?, request.name("provider_name")?);
    let (version, platform) = (request.name("version")?, (request.name("os")?, request.name("arch")?));
    let control_plane = &request.control_plane;
    let (view, key) = control_plane.provider_platform_at(&request.caller, address, version, platform).await?;
    let (found, version) = (&view.platform, &view.version.version);
    // tofu takes all platforms into its lock file at once.
    let packages: Map<String, Value> = view
        .version
        .usable_platforms()
        .into_iter()
        .filter_map(|platform| {
            let archive = platform.archive.as_ref()?;
            let hashes = [format!("zh:{}", archive.file.sha256), archive.h1.clone()];
            let package = json!({ "hashes": hashes, "package_size": archive.file.size });
            Some((format!("{}_{}", platform.os.as_str(), platform.arch.as_str()), package))
        })
        .collect();
    let document = json!({
        "protocols": version.protocols,
        "os": found.os.as_str(),
        "arch": found.arch.as_str(),
        "filename": found.filename,
        "download_url": signed(&request, SignedUrlPurpose::DownloadProvider, found.id),
        "shasums_url": signed(&request, SignedUrlPurpose::DownloadChecksums, version.id),
        "shasums_signature_url": signed(&request, SignedUrlPurpose::DownloadSignature, version.id),
        "shasum": found.shasum,
        "signing_keys": { "gpg_public_keys": [{
            "key_id": key.key_id,
            "ascii_armor": key.ascii_armor,
            "trust_signature": key.trust_signature,
            "source": key.source,
            "source_url": key.source_url,
        }] },
        "packages": packages,
    });
    Ok(Json(document).into_response())
}
