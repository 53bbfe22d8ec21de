//! `taco registry provider`

use std::fs;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use reqwest::Method;
use serde_json::json;

use crate::api::{about, one};
use crate::commands::{done, plain_list};
use crate::failure::{Failure, Kind};
use crate::output;
use crate::resource::Resource;
use crate::session::Session;

const GPG_KEYS: [&str; 5] = ["api", "registry", "private", "v2", "gpg-keys"];

#[derive(Subcommand, Debug)]
pub(super) enum Verb {
    /// List providers
    Ls,
    /// Publish a version of a provider from a directory with its archives, SHA256SUMS and SHA256SUMS.sig
    Publish {
        /// Directory with terraform-provider-NAME_VERSION_OS_ARCH.zip, …_SHA256SUMS and …_SHA256SUMS.sig
        directory: PathBuf,
        /// File with the public key of who signed it, added to the organization if it is new [default: its only key]
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        /// Protocol that it speaks, such as 6.0; repeat for several [default: 5.0]
        #[arg(long, value_name = "VERSION")]
        protocol: Vec<String>,
    },
}

pub(super) async fn run(session: &Session, verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::Ls => list(session).await,
        Verb::Publish { directory, key, protocol } => {
            let release = Release::read(directory)?;
            publish(session, &release, key.as_deref(), protocol).await
        }
    }
}

async fn list(session: &Session) -> Result<(), Failure> {
    let organization = session.target.organization(None)?;
    let path = ["organizations", &organization, "registry-providers"];
    let providers = session.api.list(&format!("providers of organization {organization}"), &path, &[]).await?.data;
    if session.json {
        return output::json(&plain_list(&providers));
    }
    let row = |provider: &Resource| {
        let address = ["namespace", "name"].map(|part| provider.text(part)).join("/");
        let versions = provider.related_ids("registry-provider-versions").count().to_string();
        [address.into(), versions.into(), output::time(provider, "created-at")]
    };
    let if_empty = "No providers. `taco registry provider publish DIR` publishes one.";
    session.table(["PROVIDER", "VERSIONS", "CREATED"], providers.iter().map(row), if_empty)
}

/// A version of a provider, as its files are named.
#[derive(PartialEq, Eq, Debug)]
struct Release {
    name: String,
    version: String,
    checksums: Vec<u8>,
    signature: Vec<u8>,
    archives: Vec<Archive>,
}

#[derive(PartialEq, Eq, Debug)]
struct Archive {
    path: PathBuf,
    filename: String,
    os: String,
    arch: String,
    shasum: String,
}

impl Release {
    fn read(directory: &Path) -> Result<Self, Failure> {
        let cannot =
            |error: std::io::Error| Failure::error(format!("{} cannot be read", directory.display())).because(error);
        let mut lists = Vec::new();
        for entry in fs::read_dir(directory).map_err(cannot)? {
            let name = entry.map_err(cannot)?.file_name().to_string_lossy().into_owned();
            lists.extend(name.strip_suffix("_SHA256SUMS").map(str::to_owned));
        }
        let [stem] = lists.as_slice() else {
            return Err(Failure::usage(format!("{} has {} files that end in _SHA256SUMS", directory.display(), lists.len()))
                .hint("give a directory with one release: its archives, terraform-provider-NAME_VERSION_SHA256SUMS and the .sig of it"));
        };
        let named = stem.strip_prefix("terraform-provider-").and_then(|rest| rest.rsplit_once('_'));
        let Some((name, version)) = named else {
            return Err(Failure::usage(format!("{stem}_SHA256SUMS is not named as releases are"))
                .hint("name it terraform-provider-NAME_VERSION_SHA256SUMS"));
        };
        let read = |name: String| {
            fs::read(directory.join(&name)).map_err(|error| {
                Failure::error(format!("{name} cannot be read"))
                    .because(error)
                    .hint("`gpg --detach-sign` makes the signature")
            })
        };
        let checksums = read(format!("{stem}_SHA256SUMS"))?;
        let signature = read(format!("{stem}_SHA256SUMS.sig"))?;
        let mut archives = Vec::new();
        for line in String::from_utf8_lossy(&checksums).lines() {
            let mut words = line.split_whitespace();
            let (Some(shasum), Some(filename)) = (words.next(), words.next()) else { continue };
            let filename = filename.trim_start_matches('*');
            let platform = filename.strip_prefix(&format!("{stem}_")).and_then(|rest| rest.strip_suffix(".zip"));
            if let Some((os, arch)) = platform.and_then(|platform| platform.split_once('_')) {
                let [filename, os, arch, shasum] = [filename, os, arch, shasum].map(str::to_owned);
                archives.push(Archive { path: directory.join(&filename), filename, os, arch, shasum });
            }
        }
        if archives.is_empty() {
            return Err(Failure::usage(format!("{stem}_SHA256SUMS names no archive"))
                .hint(format!("archives are named {stem}_OS_ARCH.zip")));
        }
        Ok(Self { name: name.to_owned(), version: version.to_owned(), checksums, signature, archives })
    }
}

/// The id of the key that signs: that of a file, which is added if it is new, or the organization's only one.
async fn key_id(session: &Session, organization: &str, file: Option<&Path>) -> Result<String, Failure> {
    let query = [("filter[namespace]", organization)];
    let known = session.api.list("GPG keys", &GPG_KEYS, &query).await?.data;
    let Some(file) = file else {
        let ids: Vec<String> = known.iter().map(|key| key.text("key-id")).collect();
        return match ids.as_slice() {
            [one] => Ok(one.clone()),
            several => Err(Failure::usage(format!("organization {organization} has {} GPG keys", several.len())).hint(
                "name the public key of who signed the release: --key FILE, as `gpg --armor --export` prints it",
            )),
        };
    };
    let armor = fs::read_to_string(file)
        .map_err(|error| Failure::error(format!("{} cannot be read", file.display())).because(error))?;
    if let Some(key) = known.iter().find(|key| key.text("ascii-armor").trim() == armor.trim()) {
        return Ok(key.text("key-id"));
    }
    let body = about("gpg-keys", json!({ "namespace": organization, "ascii-armor": armor }), json!({}));
    Ok(one(session.api.send("GPG key", Method::POST, &GPG_KEYS, &body).await?)?.text("key-id"))
}

async fn publish(
    session: &Session,
    release: &Release,
    key: Option<&Path>,
    protocols: &[String],
) -> Result<(), Failure> {
    let organization = session.target.organization(None)?;
    let Release { name, version, .. } = release;
    let address = format!("{organization}/{name}");
    let key = key_id(session, &organization, key).await?;
    let providers = ["organizations", &organization, "registry-providers"];
    let of_provider = [&providers[..], &["private", &organization, name]].concat();
    let subject = format!("provider {address}");
    match session.api.get(&subject, &of_provider, &[]).await {
        Ok(_) => {}
        Err(error) if error.is(Kind::NotFound) => {
            let attributes = json!({ "name": name, "namespace": organization, "registry-name": "private" });
            let body = about("registry-providers", attributes, json!({}));
            session.api.send(&subject, Method::POST, &providers, &body).await?;
        }
        Err(error) => return Err(error),
    }
    let subject = format!("version {version} of provider {address}");
    let versions = [&of_provider[..], &["versions"]].concat();
    let of_version = [&versions[..], &[version.as_str()]].concat();
    // A version that was begun, and whose upload broke off, goes on where it is.
    let announced = match session.api.get(&subject, &of_version, &[]).await {
        Ok(document) => one(document)?,
        Err(error) if error.is(Kind::NotFound) => {
            let attributes = json!({ "version": version, "key-id": key, "protocols": protocols });
            let body = about("registry-provider-versions", attributes, json!({}));
            one(session.api.send(&subject, Method::POST, &versions, &body).await?)?
        }
        Err(error) => return Err(error),
    };
    if let Ok(link) = announced.link("shasums-upload") {
        session.api.upload(&subject, &link, release.checksums.clone()).await?;
    }
    if let Ok(link) = announced.link("shasums-sig-upload") {
        session.api.upload(&subject, &link, release.signature.clone()).await?;
    }
    let platforms = [&of_version[..], &["platforms"]].concat();
    for archive in &release.archives {
        let subject = format!("{} of version {version} of provider {address}", archive.filename);
        let of_platform = [&platforms[..], &[archive.os.as_str(), archive.arch.as_str()]].concat();
        let platform = match session.api.get(&subject, &of_platform, &[]).await {
            Ok(document) => one(document)?,
            Err(error) if error.is(Kind::NotFound) => {
                let attributes = json!({ "os": archive.os, "arch": archive.arch, "filename": archive.filename, "shasum": archive.shasum });
                let body = about("registry-provider-platforms", attributes, json!({}));
                one(session.api.send(&subject, Method::POST, &platforms, &body).await?)?
            }
            Err(error) => return Err(error),
        };
        if let Ok(link) = platform.link("provider-binary-upload") {
            let bytes = fs::read(&archive.path)
                .map_err(|error| Failure::error(format!("{} cannot be read", archive.path.display())).because(error))?;
            session.api.upload(&subject, &link, bytes).await?;
        }
    }
    let count = release.archives.len();
    let several = if count == 1 { "" } else { "s" };
    done(session, &announced, &format!("Published {address} {version} for {count} platform{several}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_by_the_names_of_its_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).expect("written");
        assert!(Release::read(directory.path()).is_err(), "nothing is there");
        let sum = "ab".repeat(32);
        let stem = "terraform-provider-my_cloud_1.2.0";
        write(&format!("{stem}_SHA256SUMS"), &format!("{sum}  {stem}_linux_amd64.zip\n{sum}  {stem}_manifest.json\n"));
        assert!(Release::read(directory.path()).is_err(), "it is not signed");
        write(&format!("{stem}_SHA256SUMS.sig"), "signature");
        let release = Release::read(directory.path()).expect("a release");
        assert_eq!((release.name.as_str(), release.version.as_str()), ("my_cloud", "1.2.0"));
        assert_eq!((release.archives.len(), release.archives[0].arch.as_str()), (1, "amd64"));
    }
}
