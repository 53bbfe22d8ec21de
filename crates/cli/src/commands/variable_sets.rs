//! `taco varset`

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::variables::assignment::{Assignment, ImportedFile, category, key_and_value};
use super::variables::owned::OwnedVariables;
use super::{done, given, gone, plain_list, projects, text, workspaces};
use crate::EXIT_CODES;
use crate::api::{about, one};
use crate::confirmation::Confirmation;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::process_env::ProcessEnv;
use crate::resource::Resource;
use crate::session::{Flags, Session, WorkspaceName};
use crate::spelling_hints::did_you_mean;

/// Manage variable sets, which workspaces share
#[derive(Args, Debug)]
#[command(after_help = format!("\
Where several sets and a workspace say different things, the workspace wins, then sets of
workspaces, of projects, of all; a set with --priority wins over them and over -var.

Examples:
  taco varset ls --org acme
  taco varset set aws --project platform --description 'keys for AWS'
  taco varset set aws AWS_SECRET_ACCESS_KEY --env --sensitive < key.txt
  taco varset import aws .env --sensitive
  taco varset ls aws
  taco varset rm aws --yes

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List variable sets, or the variables of one
    Ls {
        /// Set, by name or ID whose variables are wanted
        set: Option<String>,
    },
    /// Create or update a variable set, or a variable in it
    Set {
        /// Set, by name or ID
        set: String,
        /// Key of a variable, with or without its value
        #[arg(value_name = "KEY[=VALUE]")]
        variable: Option<String>,
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        assignment: Assignment,
    },
    /// Delete a variable set, or a variable in it
    Rm {
        /// Set, by name or ID
        set: String,
        /// Key of the variable
        key: Option<String>,
        /// The environment variable of that name
        #[arg(long, short)]
        env: bool,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Create or update all variables in a file
    Import {
        /// Set, by name or ID
        set: String,
        #[command(flatten)]
        import: ImportedFile,
    },
}

#[derive(Args, Debug)]
struct Settings {
    /// Apply to all workspaces of the organization
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    global: Option<bool>,
    /// Priority: overrides workspace variables and command-line values
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    priority: Option<bool>,
    /// Apply to this workspace; repeat for several. Replaces the current list
    #[arg(long, value_name = "NAME")]
    workspace: Vec<String>,
    /// Apply to this project; repeat for several. Replaces the current list
    #[arg(long, value_name = "PROJECT")]
    project: Vec<String>,
    /// Apply to no workspace and no project
    #[arg(long, conflicts_with_all = ["workspace", "project"])]
    nowhere: bool,
}

impl Settings {
    /// Attributes of the set; `description` is one of them if no variable is named.
    fn attributes(&self, description: Option<Value>) -> Map<String, Value> {
        given([
            ("global", self.global.map(Value::from)),
            ("priority", self.priority.map(Value::from)),
            ("description", description),
        ])
    }

    async fn relationships(&self, session: &Session, organization: &str) -> Result<Map<String, Value>, Failure> {
        let mut relationships = Map::new();
        let mut found = Vec::new();
        for name in &self.workspace {
            let name = WorkspaceName { organization: organization.to_owned(), name: name.clone() };
            found.push(json!({ "type": "workspaces", "id": workspaces::find(session, &name).await?.0.id() }));
        }
        if !found.is_empty() || self.nowhere {
            relationships.insert("workspaces".into(), json!({ "data": found }));
        }
        let mut found = Vec::new();
        for name in &self.project {
            found.push(json!({ "type": "projects", "id": projects::find(session, organization, name).await?.id() }));
        }
        if !found.is_empty() || self.nowhere {
            relationships.insert("projects".into(), json!({ "data": found }));
        }
        Ok(relationships)
    }
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    let organization = session.target.organization(None)?;
    let sets = Sets { session: &session, organization: &organization };
    match &arguments.verb {
        Verb::Ls { set: None } => sets.list().await,
        Verb::Ls { set: Some(set) } => sets.variables_of(&sets.find(set).await?).list(&[]).await,
        Verb::Set { set, variable, settings, assignment } => {
            sets.set(set, variable.as_deref(), settings, assignment).await
        }
        Verb::Rm { set, key: None, confirmation, .. } => sets.remove(set, confirmation).await,
        Verb::Rm { set, key: Some(key), env, confirmation } => {
            let set = sets.find(set).await?;
            let owned = sets.variables_of(&set);
            let variable = owned.find(key, category(*env)).await?;
            confirmation.ask(&session, &format!("delete variable {key} of {}", owned.owner))?;
            gone(&session, variable.id(), &owned.remove(&variable).await?)
        }
        Verb::Import { set, import } => {
            let variables = import.read()?;
            sets.variables_of(&sets.find(set).await?).import(variables).await
        }
    }
}

fn is_named(set: &Resource, name: &str) -> bool {
    set.id() == name || set.text("name").eq_ignore_ascii_case(name)
}

/// The variable sets of an organization.
struct Sets<'a> {
    session: &'a Session,
    organization: &'a str,
}

impl<'a> Sets<'a> {
    fn path(&self) -> [&str; 3] {
        ["organizations", self.organization, "varsets"]
    }

    async fn all(&self) -> Result<Vec<Resource>, Failure> {
        let subject = format!("variable sets of organization {}", self.organization);
        Ok(self.session.api.list(&subject, &self.path(), &[]).await?.data)
    }

    async fn known(&self, name: &str) -> Result<Option<Resource>, Failure> {
        Ok(self.all().await?.into_iter().find(|set| is_named(set, name)))
    }

    async fn find(&self, name: &str) -> Result<Resource, Failure> {
        let all = self.all().await?;
        all.iter().find(|set| is_named(set, name)).cloned().ok_or_else(|| {
            let names = all.iter().filter_map(|one| one.get("name").as_str());
            let list = || format!("`taco varset ls --org {}` lists variable sets", self.organization);
            Failure::new(Kind::NotFound, format!("variable set {name}: not found"))
                .because(format!("it is not in organization {}, or your account may not see it", self.organization))
                .hint(did_you_mean(name, names, list))
        })
    }

    fn variables_of(&self, set: &Resource) -> OwnedVariables<'a> {
        let name = set.text("name");
        OwnedVariables {
            session: self.session,
            path: ["varsets", set.id(), "relationships", "vars"].map(str::to_owned).into(),
            list_command: format!("taco varset ls '{name}' --org {}", self.organization),
            set_command: format!("taco varset set '{name}' --org {}", self.organization),
            owner: format!("variable set {name}"),
        }
    }

    async fn list(&self) -> Result<(), Failure> {
        let sets = self.all().await?;
        if self.session.json {
            return output::json(&plain_list(&sets));
        }
        let row = |set: &Resource| {
            ["name", "global", "priority", "var-count", "workspace-count", "project-count", "description"]
                .map(|attribute| set.text(attribute))
        };
        let if_empty = "No variable sets. `taco varset set NAME` creates one.";
        let headings = ["NAME", "GLOBAL", "PRIORITY", "VARIABLES", "WORKSPACES", "PROJECTS", "DESCRIPTION"];
        self.session.table(headings, sets.iter().map(row), if_empty)
    }

    async fn set(
        &self,
        name: &str,
        variable: Option<&str>,
        settings: &Settings,
        assignment: &Assignment,
    ) -> Result<(), Failure> {
        if variable.is_none() && assignment.is_about_a_variable() {
            return Err(Failure::usage("no variable is given")
                .because("--env, --hcl and --sensitive are about a variable")
                .hint(format!("add its key: taco varset set {name} KEY=VALUE")));
        }
        let variable = variable.map(|variable| key_and_value(self.session, variable)).transpose()?;
        let description = if variable.is_none() { text(&assignment.description) } else { None };
        let mut attributes = settings.attributes(description);
        let relationships = settings.relationships(self.session, self.organization).await?;
        let subject = format!("variable set {name}");
        let (set, sentence) = match self.known(name).await? {
            Some(set) if attributes.is_empty() && relationships.is_empty() => (set, "Unchanged:"),
            Some(set) => {
                let body = about("varsets", attributes.into(), relationships.into());
                let path = ["varsets", set.id()];
                (one(self.session.api.send(&subject, Method::PATCH, &path, &body).await?)?, "Updated")
            }
            None => {
                attributes.insert("name".to_owned(), name.into());
                let body = about("varsets", attributes.into(), relationships.into());
                (one(self.session.api.send(&subject, Method::POST, &self.path(), &body).await?)?, "Created")
            }
        };
        match variable {
            Some((key, value)) => self.variables_of(&set).set(assignment.attributes(&key, &value)).await,
            None => done(self.session, &set, &format!("{sentence} variable set {}.", set.text("name"))),
        }
    }

    async fn remove(&self, name: &str, confirmation: &Confirmation) -> Result<(), Failure> {
        let set = self.find(name).await?;
        let (name, variables) = (set.text("name"), set.text("var-count"));
        confirmation.ask(self.session, &format!("delete variable set {name} with its {variables} variables"))?;
        self.session.api.delete(&format!("variable set {name}"), &["varsets", set.id()]).await?;
        gone(self.session, set.id(), &format!("Deleted variable set {name}."))
    }
}
