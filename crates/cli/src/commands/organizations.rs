//! `taco org`

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{contract_policy, done, given, gone, plain_list, require_change, text};
use crate::EXIT_CODES;
use crate::api::{about, one};
use crate::confirmation::Confirmation;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::process_env::ProcessEnv;
use crate::resource::Resource;
use crate::session::{Flags, Session};
use crate::spelling_hints::did_you_mean;

/// Manage organizations
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
        /// Name of the organization
        name: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// Edit an organization
    Edit {
        /// Organization
        name: String,
        /// New name
        #[arg(long = "name", value_name = "NAME")]
        new_name: Option<String>,
        #[command(flatten)]
        settings: Settings,
    },
    /// Delete an organization with everything in it
    Rm {
        /// Organization
        name: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

#[derive(Args, Debug)]
struct Settings {
    /// Contact address [default when created: your own]
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
    /// Default execution mode of its workspaces: remote, local or agent
    #[arg(long, value_name = "MODE")]
    default_execution_mode: Option<String>,
    /// Plans that break outputs which others use: off, warn or stop; inherit for the default, warn
    #[arg(long, value_name = "POLICY")]
    output_contract: Option<String>,
}

impl Settings {
    fn attributes(&self, name: Option<&String>) -> Map<String, Value> {
        given([
            ("name", name.cloned().map(Value::from)),
            ("email", text(&self.email)),
            ("default-execution-mode", text(&self.default_execution_mode)),
            ("taco-output-contract", contract_policy(self.output_contract.as_deref())),
        ])
    }
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
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
        let [name, email, execution] =
            ["name", "email", "default-execution-mode"].map(|attribute| output::text(organization, attribute));
        [name, email, execution, output::time(organization, "created-at")]
    };
    let if_empty = "No organizations. `taco org create NAME` creates one.";
    session.table(["NAME", "EMAIL", "EXECUTION", "CREATED"], organizations.iter().map(row), if_empty)
}

async fn show(session: &Session, name: Option<&str>) -> Result<(), Failure> {
    let name = session.target.organization(name)?;
    let found = session.api.get(&subject(&name), &["organizations", &name], &[]).await;
    let organization = match found {
        Ok(found) => one(found)?,
        Err(failure) => return Err(with_suggestion(session, &name, failure).await),
    };
    if session.json {
        return output::json(&organization.plain());
    }
    session.fields([
        ("name", output::text(&organization, "name")),
        ("id", output::text(&organization, "external-id")),
        ("email", output::text(&organization, "email")),
        ("default execution", output::text(&organization, "default-execution-mode")),
        ("output contract", output::text(&organization, "taco-output-contract")),
        ("created", output::time(&organization, "created-at")),
    ])
}

/// A failure to find an organization, with the one that may be meant.
pub(super) async fn with_suggestion(session: &Session, name: &str, failure: Failure) -> Failure {
    if failure.kind != Kind::NotFound {
        return failure;
    }
    let Ok(all) = session.api.list("organizations", &["organizations"], &[]).await else { return failure };
    let names = all.data.iter().filter_map(|one| one.get("name").as_str());
    failure.hint(did_you_mean(name, names, || {
        "`taco org ls` lists organizations; `taco whoami` shows your account".into()
    }))
}

async fn create(session: &Session, name: &str, settings: &Settings) -> Result<(), Failure> {
    let mut attributes = settings.attributes(Some(&name.to_owned()));
    if !attributes.contains_key("email") {
        let account = one(session.api.get("your account", &["account", "details"], &[]).await?)?;
        attributes.insert("email".to_owned(), account.get("email").clone());
    }
    let body = about("organizations", attributes.into(), json!({}));
    let created = one(session.api.send(&subject(name), Method::POST, &["organizations"], &body).await?)?;
    done(session, &created, &format!("Created organization {}.", created.text("name")))
}

async fn edit(session: &Session, name: &str, attributes: Map<String, Value>) -> Result<(), Failure> {
    require_change(&attributes, &Map::new())?;
    let body = about("organizations", attributes.into(), json!({}));
    let changed = one(session.api.send(&subject(name), Method::PATCH, &["organizations", name], &body).await?)?;
    done(session, &changed, &format!("Updated organization {}.", changed.text("name")))
}

async fn remove(session: &Session, name: &str, confirmation: &Confirmation) -> Result<(), Failure> {
    confirmation.ask(session, &format!("delete organization {name} with all its workspaces and states"))?;
    session.api.delete(&subject(name), &["organizations", name]).await?;
    gone(session, name, &format!("Deleted organization {name}."))
}
