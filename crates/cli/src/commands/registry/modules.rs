//! `taco registry module`

use std::path::PathBuf;

use clap::Subcommand;
use reqwest::Method;
use serde_json::json;

use crate::api::{about, one};
use crate::commands::{done, plain_list};
use crate::failure::{Failure, Kind};
use crate::output;
use crate::resource::Resource;
use crate::session::Session;
use crate::slug;

#[derive(Subcommand, Debug)]
pub(super) enum Verb {
    /// List modules
    Ls,
    /// Publish a directory as a version of a module; the module is created if it is new
    Publish {
        /// Directory with the module
        directory: PathBuf,
        /// Name of the module, such as network
        #[arg(long)]
        name: String,
        /// Provider that it is for, such as aws
        #[arg(long)]
        provider: String,
        /// Version, such as 1.2.0
        #[arg(long)]
        version: String,
        /// Commit that it was made from
        #[arg(long, value_name = "SHA")]
        commit: Option<String>,
    },
}

pub(super) async fn run(session: &Session, verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::Ls => list(session).await,
        Verb::Publish { directory, name, provider, version, commit } => {
            // Before anything is asked of the server: what is wrong here is wrong anyway.
            let archive = slug::pack(directory)?;
            publish(session, archive, (name, provider), version, commit.as_deref()).await
        }
    }
}

async fn list(session: &Session) -> Result<(), Failure> {
    let organization = session.target.organization(None)?;
    let path = ["organizations", &organization, "registry-modules"];
    let modules = session.api.list(&format!("modules of organization {organization}"), &path, &[]).await?.data;
    if session.json {
        return output::json(&plain_list(&modules));
    }
    let row = |module: &Resource| {
        let address = ["namespace", "name", "provider"].map(|part| module.text(part)).join("/");
        let versions = module.get("version-statuses").as_array().map_or(0, Vec::len).to_string();
        [address.into(), latest(module).into(), versions.into(), output::time(module, "updated-at")]
    };
    let if_empty = "No modules. `taco registry module publish DIR --name NAME --provider PROVIDER --version VERSION` publishes one.";
    session.table(["MODULE", "LATEST", "VERSIONS", "CHANGED"], modules.iter().map(row), if_empty)
}

/// The first version that can be used: the newest comes first.
fn latest(module: &Resource) -> String {
    let versions = module.get("version-statuses").as_array().into_iter().flatten();
    let mut usable = versions.filter(|version| version["status"] == "ok");
    usable.next().and_then(|version| version["version"].as_str()).unwrap_or("-").to_owned()
}

async fn publish(
    session: &Session,
    archive: Vec<u8>,
    (name, provider): (&str, &str),
    version: &str,
    commit: Option<&str>,
) -> Result<(), Failure> {
    let organization = session.target.organization(None)?;
    let address = format!("{organization}/{name}/{provider}");
    let modules = ["organizations", &organization, "registry-modules"];
    let of_module = [&modules[..], &["private", &organization, name, provider]].concat();
    let subject = format!("module {address}");
    match session.api.get(&subject, &of_module, &[]).await {
        Ok(_) => {}
        Err(error) if error.is(Kind::NotFound) => {
            let body = about("registry-modules", json!({ "name": name, "provider": provider }), json!({}));
            session.api.send(&subject, Method::POST, &modules, &body).await?;
        }
        Err(error) => return Err(error),
    }
    let subject = format!("version {version} of module {address}");
    let body = about("registry-module-versions", json!({ "version": version, "commit-sha": commit }), json!({}));
    let announced =
        one(session.api.send(&subject, Method::POST, &[&of_module[..], &["versions"]].concat(), &body).await?)?;
    let sent = session.api.upload(&subject, &announced.link("upload")?, archive).await;
    if let Err(error) = sent {
        // Otherwise the version would be taken, and there would be nothing in it.
        let of_version = [&of_module[..], &[version]].concat();
        let _ = session.api.delete(&subject, &of_version).await;
        return Err(error);
    }
    done(session, &announced, &format!("Published {address} {version}."))
}
