//! `taco project`

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

/// Manage projects, which group workspaces
#[derive(Args, Debug)]
#[command(after_help = format!("\
Examples:
  taco project ls --org acme
  taco project create platform --description 'What everyone builds on'
  taco project rm platform --yes

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List projects
    Ls,
    /// Show a project
    Show {
        /// Project, by name or ID
        project: String,
    },
    /// Create a project
    Create {
        /// Name of the project
        name: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// Edit a project
    Edit {
        /// Project, by name or ID
        project: String,
        /// New name
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        settings: Settings,
    },
    /// Delete a project; it must be empty
    Rm {
        /// Project, by name or ID
        project: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

#[derive(Args, Debug)]
struct Settings {
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Default execution mode of its workspaces: remote, local or agent
    #[arg(long, value_name = "MODE")]
    default_execution_mode: Option<String>,
    /// Plans that break outputs which others use: off, warn or stop; inherit for the organization's policy
    #[arg(long, value_name = "POLICY")]
    output_contract: Option<String>,
}

impl Settings {
    fn attributes(&self, name: Option<&String>) -> Map<String, Value> {
        given([
            ("name", name.cloned().map(Value::from)),
            ("description", text(&self.description)),
            ("default-execution-mode", text(&self.default_execution_mode)),
            ("taco-output-contract", contract_policy(self.output_contract.as_deref())),
        ])
    }
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    let organization = session.target.organization(None)?;
    match &arguments.verb {
        Verb::Ls => list(&session, &organization).await,
        Verb::Show { project } => show(&session, &find(&session, &organization, project).await?),
        Verb::Create { name, settings } => create(&session, &organization, name, settings).await,
        Verb::Edit { project, name, settings } => {
            edit(&session, &organization, project, settings.attributes(name.as_ref())).await
        }
        Verb::Rm { project, confirmation } => remove(&session, &organization, project, confirmation).await,
    }
}

/// The project of that name, or with that id.
pub(super) async fn find(session: &Session, organization: &str, project: &str) -> Result<Resource, Failure> {
    let subject = format!("project {project} of {organization}");
    if project.starts_with("prj-") {
        return one(session.api.get(&subject, &["projects", project], &[]).await?);
    }
    let path = ["organizations", organization, "projects"];
    let found = session.api.list(&subject, &path, &[("filter[names]", project)]).await?.data;
    if let Some(found) = found.into_iter().find(|found| found.get("name") == project) {
        return Ok(found);
    }
    let all = session.api.list(&subject, &path, &[]).await?.data;
    let names = all.iter().filter_map(|one| one.get("name").as_str());
    let list = || format!("`taco project ls --org {organization}` lists projects");
    Err(Failure::new(Kind::NotFound, format!("{subject}: not found"))
        .because("no project has this name, or your account may not see it")
        .hint(did_you_mean(project, names, list)))
}

async fn list(session: &Session, organization: &str) -> Result<(), Failure> {
    let subject = format!("projects of organization {organization}");
    let projects = session.api.list(&subject, &["organizations", organization, "projects"], &[]).await?.data;
    if session.json {
        return output::json(&plain_list(&projects));
    }
    let row = |project: &Resource| {
        let [name, workspaces, description] =
            ["name", "workspace-count", "description"].map(|attribute| project.text(attribute));
        [name, project.id().to_owned(), workspaces, description]
    };
    let if_empty = "No projects. `taco project create NAME` creates one.";
    session.table(["NAME", "ID", "WORKSPACES", "DESCRIPTION"], projects.iter().map(row), if_empty)
}

fn show(session: &Session, project: &Resource) -> Result<(), Failure> {
    if session.json {
        return output::json(&project.plain());
    }
    session.fields([
        ("name", output::text(project, "name")),
        ("id", project.id().into()),
        ("organization", project.related_id("organization").unwrap_or_default().into()),
        ("description", output::text(project, "description")),
        ("default execution", output::text(project, "default-execution-mode")),
        ("output contract", output::text(project, "taco-effective-output-contract")),
        ("workspaces", output::text(project, "workspace-count")),
        ("created", output::time(project, "created-at")),
    ])
}

async fn create(session: &Session, organization: &str, name: &str, settings: &Settings) -> Result<(), Failure> {
    let body = about("projects", settings.attributes(Some(&name.to_owned())).into(), json!({}));
    let path = ["organizations", organization, "projects"];
    let created =
        one(session.api.send(&format!("project {name} of {organization}"), Method::POST, &path, &body).await?)?;
    done(session, &created, &format!("Created project {name} ({}).", created.id()))
}

async fn edit(
    session: &Session,
    organization: &str,
    project: &str,
    attributes: Map<String, Value>,
) -> Result<(), Failure> {
    require_change(&attributes, &Map::new())?;
    let found = find(session, organization, project).await?;
    let body = about("projects", attributes.into(), json!({}));
    let subject = format!("project {project} of {organization}");
    let changed = one(session.api.send(&subject, Method::PATCH, &["projects", found.id()], &body).await?)?;
    done(session, &changed, &format!("Updated project {}.", changed.text("name")))
}

async fn remove(
    session: &Session,
    organization: &str,
    project: &str,
    confirmation: &Confirmation,
) -> Result<(), Failure> {
    let found = find(session, organization, project).await?;
    confirmation.ask(session, &format!("delete project {} of {organization}", found.text("name")))?;
    session.api.delete(&format!("project {project} of {organization}"), &["projects", found.id()]).await?;
    gone(session, found.id(), &format!("Deleted project {}.", found.text("name")))
}
