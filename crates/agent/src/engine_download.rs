//! Downloads engines, and trusts only bytes whose checksum is in a list that their vendors signed, or that somebody has
//! pinned. An attacker who can change what comes from a mirror, or on the way, can do no more than block it.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Cursor, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use semver::Version;
use serde_json::Value;
use sha2::{Digest, Sha256};
use taco_agent_protocol::Engine;
use tokio::time::Instant;
use url::Url;

use crate::engine::InstalledEngine;
use crate::engine_trust::EngineTrust;
use crate::engine_version::VersionRequest;
use crate::options::{EngineMirror, Options};

const INDEX_TIMEOUT: Duration = Duration::from_secs(3);
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(600);
/// Time to cache which versions there are, or that there was no response.
const INDEX_CACHE_LIFETIME: Duration = Duration::from_secs(600);
/// Lists of versions and of checksums, and signatures.
const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;
const MAX_ARCHIVE_BYTES: usize = 1024 * 1024 * 1024;

/// Cached index of an engine's versions: `None` if there was no response.
#[derive(Clone)]
struct Index {
    asked_at: Instant,
    versions: Option<Vec<Version>>,
}

pub(crate) struct Downloads {
    store: PathBuf,
    mirror: EngineMirror,
    trust: EngineTrust,
    indexes: Arc<Mutex<HashMap<Engine, Index>>>,
    /// Two phases that need the same engine download it once.
    turn: tokio::sync::Mutex<()>,
}

impl Downloads {
    pub(crate) fn new(store: PathBuf, options: &Options) -> Self {
        let (mirror, trust) = (options.engine_mirror.clone(), options.engine_trust.clone());
        Self { store, mirror, trust, indexes: Arc::default(), turn: tokio::sync::Mutex::default() }
    }

    /// The newest version that can be had and is allowed. A phase waits for an answer at most once: what was known is
    /// believed while it is asked again.
    pub(crate) async fn newest(&self, engine: Engine, wanted: &VersionRequest) -> Option<Version> {
        let address = self.index_address(engine)?;
        let known = self.indexes.lock().unwrap_or_else(PoisonError::into_inner).get(&engine).cloned();
        let is_fresh = known.as_ref().is_some_and(|index| index.asked_at.elapsed() < INDEX_CACHE_LIFETIME);
        let index = match known {
            Some(index) if is_fresh => index,
            known => {
                let asking = tokio::spawn(ask(engine, address, self.indexes.clone()));
                match known {
                    Some(index) => index,
                    None => asking.await.ok()?,
                }
            }
        };
        index.versions?.into_iter().filter(|version| wanted.allows(version)).max()
    }

    pub(crate) async fn download(&self, engine: Engine, version: &Version) -> Result<InstalledEngine, String> {
        let _turn = self.turn.lock().await;
        let directory = self.store.join(engine.to_string()).join(version.to_string());
        let program = directory.join(engine.to_string());
        let found = InstalledEngine { engine, program: program.clone(), version: version.clone() };
        if program.is_file() {
            return Ok(found);
        }
        let base = self.release_address(engine, version).ok_or("downloads are switched off on this agent")?;
        let archive = format!("{engine}_{version}_{}_{}.zip", platform(), architecture());
        let (expected, who) = match self.trust.pinned(&archive) {
            Some(pinned) => (pinned.to_owned(), "pinned"),
            None => (self.signed_checksum(engine, version, &base, &archive).await?, "published"),
        };
        let bytes = fetch(&format!("{base}/{archive}"), DOWNLOAD_TIMEOUT, MAX_ARCHIVE_BYTES).await?;
        let actual = hex::encode(Sha256::digest(&bytes));
        if actual != expected {
            return Err(format!("{base}/{archive} has the checksum {actual}; {who} is {expected}"));
        }
        let name = engine.to_string();
        let unpacked = tokio::task::spawn_blocking(move || unpack(&bytes, &name, &directory));
        unpacked.await.map_err(|error| error.to_string())?.map_err(|error| format!("{archive}: {error}"))?;
        tracing::info!(%engine, %version, "downloaded");
        Ok(found)
    }

    /// The checksum of an archive from the list that came with it, which has to be signed.
    async fn signed_checksum(
        &self,
        engine: Engine,
        version: &Version,
        base: &str,
        archive: &str,
    ) -> Result<String, String> {
        if base.starts_with("http:") {
            return Err(format!(
                "{base} is a plain http address, and what comes from it anyone on the way could have changed: use https, \
                 or pin the checksum of {archive} in the file of engine_checksums (--engine-checksums)"
            ));
        }
        let list = format!("{base}/{engine}_{version}_SHA256SUMS");
        let sums = fetch(&list, INDEX_TIMEOUT * 5, MAX_LIST_BYTES).await?;
        let mut refused = String::new();
        for ending in signature_endings(engine) {
            let address = format!("{list}.{ending}");
            match fetch(&address, INDEX_TIMEOUT * 5, MAX_LIST_BYTES).await {
                Ok(signature) => {
                    let checked = self.trust.check(engine, &sums, &signature);
                    checked.map_err(|reason| {
                        format!(
                            "{list} is not believed: the signature {address} {reason}. Keys can be added with engine_keys \
                             (--engine-keys), and checksums be pinned with engine_checksums (--engine-checksums)"
                        )
                    })?;
                    return checksum(&String::from_utf8_lossy(&sums), archive)
                        .ok_or_else(|| format!("{base} has no {archive} among its checksums"));
                }
                Err(error) => refused = error,
            }
        }
        Err(format!("{list} is not believed without a signature: {refused}"))
    }

    fn index_address(&self, engine: Engine) -> Option<String> {
        match (&self.mirror, engine) {
            (EngineMirror::Nowhere, _) => None,
            (EngineMirror::At(base), _) => Some(format!("{}/{engine}/index.json", trimmed(base))),
            (EngineMirror::Makers, Engine::Terraform) => {
                Some("https://releases.hashicorp.com/terraform/index.json".to_owned())
            }
            (EngineMirror::Makers, Engine::Tofu) => Some("https://get.opentofu.org/tofu/api.json".to_owned()),
        }
    }

    fn release_address(&self, engine: Engine, version: &Version) -> Option<String> {
        match (&self.mirror, engine) {
            (EngineMirror::Nowhere, _) => None,
            (EngineMirror::At(base), _) => Some(format!("{}/{engine}/{version}", trimmed(base))),
            (EngineMirror::Makers, Engine::Terraform) => {
                Some(format!("https://releases.hashicorp.com/terraform/{version}"))
            }
            (EngineMirror::Makers, Engine::Tofu) => {
                Some(format!("https://github.com/opentofu/opentofu/releases/download/v{version}"))
            }
        }
    }
}

async fn ask(engine: Engine, address: String, indexes: Arc<Mutex<HashMap<Engine, Index>>>) -> Index {
    let versions = fetch_index(&address).await;
    if let Err(error) = &versions {
        tracing::info!(%engine, error, "which versions there are is not known");
    }
    let index = Index { asked_at: Instant::now(), versions: versions.ok() };
    indexes.lock().unwrap_or_else(PoisonError::into_inner).insert(engine, index.clone());
    index
}

pub(crate) fn trimmed(base: &Url) -> &str {
    base.as_str().trim_end_matches('/')
}

pub(crate) fn platform() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    }
}

pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

/// Suffixes of signature files, at the vendors and in mirrors.
fn signature_endings(engine: Engine) -> &'static [&'static str] {
    match engine {
        Engine::Terraform => &["sig"],
        Engine::Tofu => &["gpgsig", "sig"],
    }
}

async fn fetch_index(address: &str) -> Result<Vec<Version>, String> {
    let bytes = fetch(address, INDEX_TIMEOUT, MAX_LIST_BYTES).await?;
    let document: Value = serde_json::from_slice(&bytes).map_err(|error| format!("{address}: {error}"))?;
    Ok(versions(&document))
}

/// HashiCorp's index has the versions as keys, OpenTofu's as a list of objects.
fn versions(document: &Value) -> Vec<Version> {
    let texts: Vec<&str> = match &document["versions"] {
        Value::Object(versions) => versions.keys().map(String::as_str).collect(),
        Value::Array(versions) => versions.iter().filter_map(|version| version["id"].as_str()).collect(),
        _ => Vec::new(),
    };
    texts.into_iter().filter_map(|text| Version::parse(text.trim_start_matches('v')).ok()).collect()
}

pub(crate) async fn fetch(address: &str, timeout: Duration, max_bytes: usize) -> Result<Vec<u8>, String> {
    if let Ok(url) = Url::parse(address)
        && let Ok(path) = url.to_file_path()
    {
        return tokio::fs::read(&path).await.map_err(|error| format!("{}: {error}", path.display()));
    }
    let described = |error: reqwest::Error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{address}: {}{cause}", error.without_url())
    };
    // No redirects from https to http.
    let client = reqwest::Client::builder().timeout(timeout).https_only(address.starts_with("https:"));
    let client = client.build().map_err(described)?;
    let response = client.get(address).send().await.and_then(reqwest::Response::error_for_status);
    let mut response = response.map_err(described)?;
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(described)? {
        if bytes.len() + piece.len() > max_bytes {
            return Err(format!("{address} is larger than {max_bytes} bytes"));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn checksum(sums: &str, archive: &str) -> Option<String> {
    let line = sums.lines().find_map(|line| line.strip_suffix(archive)?.strip_suffix([' ', '*']))?;
    Some(line.trim().to_ascii_lowercase())
}

/// Puts the program where it is found, all at once: an agent that dies here leaves nothing that looks whole.
fn unpack(bytes: &[u8], name: &str, directory: &Path) -> io::Result<()> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(io::Error::other)?;
    let mut entry = archive.by_name(name).map_err(io::Error::other)?;
    let parent = directory.parent().unwrap_or(directory);
    fs::create_dir_all(parent)?;
    let fresh = tempfile::tempdir_in(parent)?;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(fresh.path().join(name))?;
    let mut buffer = vec![0; 1024 * 1024];
    loop {
        match entry.read(&mut buffer)? {
            0 => break,
            count => file.write_all(&buffer[..count])?,
        }
    }
    drop(file);
    fs::set_permissions(fresh.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    fs::rename(fresh.keep(), directory)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_makers_lists_of_versions_are_read() {
        let expected: Vec<Version> = vec![Version::new(1, 11, 4), Version::new(1, 12, 0)];
        let hashicorp = json!({ "name": "terraform", "versions": { "1.11.4": {}, "1.12.0": {} } });
        assert_eq!(versions(&hashicorp), expected);
        assert_eq!(versions(&json!({ "versions": [{ "id": "1.11.4" }, { "id": "v1.12.0" }] })), expected);
    }

    #[test]
    fn a_checksum_is_found_by_the_whole_name() {
        let sums = "AA  terraform_1.11.4_linux_amd64.zip\nbb *terraform_1.11.4_linux_arm64.zip\n";
        assert_eq!(checksum(sums, "terraform_1.11.4_linux_amd64.zip").as_deref(), Some("aa"));
        assert_eq!(checksum(sums, "terraform_1.11.4_linux_arm64.zip").as_deref(), Some("bb"));
        assert_eq!(checksum(sums, "1.11.4_linux_amd64.zip"), None);
    }
}
