//! `taco policy`

mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use super::{done, gone, plain_list};
use crate::EXIT_CODES;
use crate::api::{about, one};
use crate::confirmation::Confirmation;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::process_env::ProcessEnv;
use crate::resource::Resource;
use crate::session::{Flags, Session};
use crate::slug;
use crate::spelling_hints::did_you_mean;

const KIND: &str = "policy-sets";

/// Manage policy sets: Rego that judges plans
#[derive(Args, Debug)]
#[command(after_help = format!("\
Examples:
  taco policy test policies --plan plan.json
  taco policy create security --global --overridable
  taco policy publish policies --set security
  taco policy ls
  taco run override

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List policy sets
    Ls,
    /// Create a policy set
    Create {
        /// Name of the policy set
        name: String,
        /// What it is for
        #[arg(long)]
        description: Option<String>,
        /// Apply it to all workspaces
        #[arg(long)]
        global: bool,
        /// Runs that it stops can go on when somebody who may overrides it
        #[arg(long)]
        overridable: bool,
        /// Version of OPA, such as 1.22.0 [default: the newest that agents have]
        #[arg(long, value_name = "VERSION")]
        opa_version: Option<String>,
    },
    /// Publish a directory with policies.hcl and *.rego as the version of a policy set
    Publish {
        /// Directory with the policies
        directory: PathBuf,
        /// Policy set, by name or ID
        #[arg(long = "set", value_name = "SET")]
        set: String,
    },
    /// Evaluate a directory with policies.hcl and *.rego on this computer
    Test(test::Options),
    /// Delete a policy set
    Rm {
        /// Policy set, by name or ID
        #[arg(value_name = "SET")]
        set: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<ExitCode, Failure> {
    if let Verb::Test(options) = &arguments.verb {
        return test::run(options, arguments.flags.output.json);
    }
    let session = Session::open(&arguments.flags, process_env).await?;
    match &arguments.verb {
        Verb::Ls => list(&session).await,
        Verb::Create { name, description, global, overridable, opa_version } => {
            let attributes = json!({
                "name": name, "kind": "opa", "description": description, "global": global,
                "overridable": overridable, "policy-tool-version": opa_version,
            });
            create(&session, name, attributes).await
        }
        Verb::Publish { directory, set } => {
            // Before anything is asked of the server: what is wrong here is wrong anyway.
            let archive = slug::pack(directory)?;
            publish(&session, archive, set).await
        }
        Verb::Rm { set, confirmation } => remove(&session, set, confirmation).await,
        Verb::Test(_) => Ok(()),
    }?;
    Ok(ExitCode::SUCCESS)
}

async fn all(session: &Session) -> Result<Vec<Resource>, Failure> {
    let organization = session.target.organization(None)?;
    let subject = format!("policy sets of organization {organization}");
    Ok(session.api.list(&subject, &["organizations", &organization, KIND], &[]).await?.data)
}

async fn list(session: &Session) -> Result<(), Failure> {
    let sets = all(session).await?;
    if session.json {
        return output::json(&plain_list(&sets));
    }
    let row = |set: &Resource| {
        let count = |name: &str| set.get(name).as_u64().unwrap_or_default();
        let applies = match set.get("global") == true {
            true => "all workspaces".to_owned(),
            false => format!("{} workspaces, {} projects", count("workspace-count"), count("project-count")),
        };
        let kind = match set.text("kind").as_str() {
            "sentinel" => "sentinel (not evaluated)".to_owned(),
            kind => kind.to_owned(),
        };
        [set.text("name"), kind, applies, count("policy-count").to_string(), set.id().to_owned()]
    };
    let if_empty = "No policy sets. `taco policy create NAME` creates one.";
    session.table(["SET", "KIND", "APPLIES TO", "POLICIES", "ID"], sets.iter().map(row), if_empty)
}

async fn find(session: &Session, wanted: &str) -> Result<Resource, Failure> {
    let all = all(session).await?;
    let same = |found: &&Resource| found.id() == wanted || found.text("name") == wanted;
    all.iter().find(same).cloned().ok_or_else(|| {
        let names = all.iter().filter_map(|one| one.get("name").as_str());
        Failure::new(Kind::NotFound, format!("policy set {wanted}: not found")).hint(did_you_mean(
            wanted,
            names,
            || "`taco policy ls` lists them".to_owned(),
        ))
    })
}

async fn create(session: &Session, name: &str, attributes: Value) -> Result<(), Failure> {
    let organization = session.target.organization(None)?;
    let subject = format!("policy set {name}");
    let path = ["organizations", &organization, KIND];
    let body = about(KIND, attributes, json!({}));
    let created = one(session.api.send(&subject, Method::POST, &path, &body).await?)?;
    done(session, &created, &format!("Created policy set {name}."))
}

async fn publish(session: &Session, archive: Vec<u8>, wanted: &str) -> Result<(), Failure> {
    let set = find(session, wanted).await?;
    let subject = format!("version of policy set {}", set.text("name"));
    let body = about("policy-set-versions", json!({}), json!({}));
    let announced = one(session.api.send(&subject, Method::POST, &[KIND, set.id(), "versions"], &body).await?)?;
    session.api.upload(&subject, &announced.link("upload")?, archive).await?;
    done(session, &announced, &format!("Published a version of policy set {}.", set.text("name")))
}

async fn remove(session: &Session, wanted: &str, confirmation: &Confirmation) -> Result<(), Failure> {
    let set = find(session, wanted).await?;
    let name = set.text("name");
    confirmation.ask(session, &format!("delete policy set {name}"))?;
    session.api.delete(&format!("policy set {name}"), &[KIND, set.id()]).await?;
    gone(session, set.id(), &format!("Deleted policy set {name}."))
}
