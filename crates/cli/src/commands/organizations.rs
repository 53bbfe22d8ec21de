//! `taco org`

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{done, given, gone, plain_list, require_change, text};
use crate::EXIT_CODES;
use crate::api::{about, one};
use crate::confirmation::Confirmation;
use crate::failure::Failure;
use crate::output;
use crate::process_env::ProcessEnv;
use crate::resource::Resource;
use crate::session::{Flags, Session};

/// List, show, create, edit and delete organizations
#[derive(Args, Debug)]
#[command(visible_alias = "organization", after_help = format!("\
Examples:
  taco org ls
  taco org create acme --email ops@acme.example
  taco org show acme --json

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List organizations
    Ls,
    /// Show an organization
    Show {
        /// Organization [default: as --org]
        name: Option<String>,
    },
    /// Create an organization
    Create {
        name: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// Change an organization
    Edit {
        name: String,
        /// New name
        #[arg(long = "name", value_name = "NAME")]
        new_name: Option<String>,
        #[command(flatten)]
        settings: Settings,
    },
    /// Delete an organization with everything in it
    Rm {
        name: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

#[derive(Args, Debug)]
struct Settings {
    /// Address for messages [default when created: your own]
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
    /// Where runs happen unless projects and workspaces say otherwise: remote, local or agent
    #[arg(long, value_name = "MODE")]
    default_execution_mode: Option<String>,
}

impl Settings {
    fn attributes(&self, name: Option<&String>) -> Map<String, Value> {
        given([
            ("name", name.cloned().map(Value::from)),
            ("email", text(&self.email)),
            ("default-execution-mode", text(&self.default_execution_mode)),
        ])
    }
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env)?;
    match &arguments.verb {
        Verb::Ls => list(&session).await,
        Verb::Show { name } => show(&session, name.as_deref()).await,
        Verb::Create { name, settings } => create(&session, name, settings).await,
        Verb::Edit { name, new_name, settings } => edit(&session, name, settings.attributes(new_name.as_ref())).await,
        Verb::Rm { name, confirmation } => remove(&session, name, confirmation).await,
    }
}

fn subject(name: &str) -> String {
    format!("organization {name}")
}

async fn list(session: &Session) -> Result<(), Failure> {
    let organizations = session.api.list("organizations", &["organizations"], &[]).await?.data;
    if session.json {
        return output::json(&plain_list(&organizations));
    }
    let row = |organization: &Resource| {
        ["name", "email", "default-execution-mode", "created-at"].map(|attribute| organization.text(attribute))
    };
    output::table(["NAME", "EMAIL", "EXECUTION", "CREATED"], organizations.iter().map(row))
}

async fn show(session: &Session, name: Option<&str>) -> Result<(), Failure> {
    let name = session.target.organization(name)?;
    let organization = one(session.api.get(&subject(&name), &["organizations", &name], &[]).await?)?;
    if session.json {
        return output::json(&organization.plain());
    }
    output::fields(&[
        ("name", organization.text("name")),
        ("id", organization.text("external-id")),
        ("email", organization.text("email")),
        ("default execution", organization.text("default-execution-mode")),
        ("created", organization.text("created-at")),
    ])
}

async fn create(session: &Session, name: &str, settings: &Settings) -> Result<(), Failure> {
    let mut attributes = settings.attributes(Some(&name.to_owned()));
    if !attributes.contains_key("email") {
        let account = one(session.api.get("your account", &["account", "details"], &[]).await?)?;
        attributes.insert("email".to_owned(), account.get("email").clone());
    }
    let body = about("organizations", attributes.into(), json!({}));
    let created = one(session.api.send(&subject(name), Method::POST, &["organizations"], &body).await?)?;
    done(session, &created, &format!("Organization {} is there.", created.text("name")))
}

async fn edit(session: &Session, name: &str, attributes: Map<String, Value>) -> Result<(), Failure> {
    require_change(&attributes, &Map::new())?;
    let body = about("organizations", attributes.into(), json!({}));
    let changed = one(session.api.send(&subject(name), Method::PATCH, &["organizations", name], &body).await?)?;
    done(session, &changed, &format!("Organization {} is changed.", changed.text("name")))
}

async fn remove(session: &Session, name: &str, confirmation: &Confirmation) -> Result<(), Failure> {
    confirmation.ask(session, &format!("delete organization {name} with all its workspaces and states"))?;
    session.api.delete(&subject(name), &["organizations", name]).await?;
    gone(session, name, &format!("Organization {name} is deleted."))
}
