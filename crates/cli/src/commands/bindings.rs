//! `taco bind`

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;

use super::variables::assignment::category;
use super::{done, gone, plain_list, workspaces};
use crate::EXIT_CODES;
use crate::api::{about, one};
use crate::confirmation::Confirmation;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::print::Cell;
use crate::process_env::ProcessEnv;
use crate::resource::Resource;
use crate::session::{Flags, Session, WorkspaceName};
use crate::spelling_hints::did_you_mean;

/// Bind variables to outputs of other workspaces
#[derive(Args, Debug)]
#[command(subcommand_negates_reqs = true, after_help = format!("\
Each plan takes the output as it is then, and is sensitive if the output is. The producer has to
share its state with the workspace. A bound variable has no value of its own.

Examples:
  taco bind cluster vpc_id network vpc_id
  taco bind cluster REGION network region --env
  taco bind ls cluster
  taco bind rm cluster vpc_id

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    /// Workspace that has the variable, or ORGANIZATION/WORKSPACE
    #[arg(required = true)]
    workspace: Option<String>,
    /// Key of the variable
    #[arg(required = true)]
    variable: Option<String>,
    /// Workspace that has the output
    #[arg(required = true)]
    producer: Option<String>,
    /// Name of the output
    #[arg(required = true)]
    output: Option<String>,
    /// An environment variable instead of a Terraform variable
    #[arg(long, short)]
    env: bool,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Bind a variable, also of a workspace that is named like a command here
    Add(NewBinding),
    /// List the bindings of a workspace
    Ls {
        /// Workspace, or ORGANIZATION/WORKSPACE [default: --ws, or of .taco.toml or the `cloud` block]
        workspace: Option<String>,
    },
    /// Remove a binding: later plans don't have the variable
    Rm {
        /// Workspace that has the variable, or ORGANIZATION/WORKSPACE
        workspace: String,
        /// Key of the variable
        variable: String,
        /// The environment variable of that name
        #[arg(long, short)]
        env: bool,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

#[derive(Args, Clone, Debug)]
struct NewBinding {
    /// Workspace that has the variable, or ORGANIZATION/WORKSPACE
    workspace: String,
    /// Key of the variable
    variable: String,
    /// Workspace that has the output
    producer: String,
    /// Name of the output
    output: String,
    /// An environment variable instead of a Terraform variable
    #[arg(long, short)]
    env: bool,
}

impl Arguments {
    /// What is typed without a verb. All of it is required then.
    fn bare(&self) -> NewBinding {
        let text = |argument: &Option<String>| argument.clone().unwrap_or_default();
        NewBinding {
            workspace: text(&self.workspace),
            variable: text(&self.variable),
            producer: text(&self.producer),
            output: text(&self.output),
            env: self.env,
        }
    }
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    match &arguments.verb {
        None => bind(&session, &arguments.bare()).await,
        Some(Verb::Add(new)) => bind(&session, new).await,
        Some(Verb::Ls { workspace }) => list(&session, workspace.as_deref()).await,
        Some(Verb::Rm { workspace, variable, env, confirmation }) => {
            remove(&session, workspace, variable, *env, confirmation).await
        }
    }
}

/// Where the value of a bound variable comes from.
pub(crate) fn source(binding: &Resource) -> String {
    format!("from {} → {}", binding.text("producer"), binding.text("output"))
}

/// The bindings of a workspace. A server that knows of none has none.
pub(crate) async fn of_workspace(
    session: &Session,
    name: &WorkspaceName,
    workspace: &Resource,
) -> Result<Vec<Resource>, Failure> {
    let path = ["workspaces", workspace.id(), "bindings"];
    match session.api.list(&format!("bindings of {name}"), &path, &[]).await {
        Ok(document) => Ok(document.data),
        Err(failure) if failure.kind == Kind::NotFound => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}

async fn list(session: &Session, workspace: Option<&str>) -> Result<(), Failure> {
    let name = session.target.workspace(workspace)?;
    let workspace = workspaces::find(session, &name).await?.0;
    let bindings = of_workspace(session, &name, &workspace).await?;
    if session.json {
        return output::json(&plain_list(&bindings));
    }
    let row = |binding: &Resource| {
        let [key, category, producer, output] =
            ["key", "category", "producer", "output"].map(|attribute| Cell::from(binding.text(attribute)));
        let note = match binding.get("overridden").as_bool() {
            Some(true) => "overridden by a priority set".to_owned(),
            _ => binding.text("problem"),
        };
        [key, category, producer, output, Cell::Marked(note)]
    };
    let if_empty = format!("No bindings. `taco bind {name} VARIABLE PRODUCER OUTPUT` creates one.");
    session.table(["KEY", "CATEGORY", "PRODUCER", "OUTPUT", "PROBLEM"], bindings.iter().map(row), &if_empty)
}

async fn bind(session: &Session, new: &NewBinding) -> Result<(), Failure> {
    let name = session.target.workspace(Some(&new.workspace))?;
    let producer = producer_in(&name, &new.producer)?;
    let workspace = workspaces::find(session, &name).await?.0;
    let attributes = json!({
        "key": new.variable, "category": category(new.env), "producer": producer, "output": new.output,
    });
    let body = about("bindings", attributes, json!({}));
    let path = ["workspaces", workspace.id(), "bindings"];
    let subject = format!("variable {} of {name}", new.variable);
    let bound = one(session.api.send(&subject, Method::POST, &path, &body).await?)?;
    let sentence = format!("Bound variable {} of {name} to {} of {producer}.", new.variable, new.output);
    let problem = bound.text("problem");
    match problem.is_empty() {
        true => done(session, &bound, &sentence),
        false => done(session, &bound, &format!("{sentence} A run now would fail: {problem}.")),
    }
}

/// The producer's name; bindings do not leave their organization.
fn producer_in<'a>(consumer: &WorkspaceName, producer: &'a str) -> Result<&'a str, Failure> {
    match producer.split_once('/') {
        None => Ok(producer),
        Some((organization, name)) if organization == consumer.organization => Ok(name),
        Some(_) => Err(Failure::usage(format!("{producer} is in another organization than {consumer}"))
            .because("bindings are within one organization")),
    }
}

async fn remove(
    session: &Session,
    workspace: &str,
    variable: &str,
    env: bool,
    confirmation: &Confirmation,
) -> Result<(), Failure> {
    let name = session.target.workspace(Some(workspace))?;
    let workspace = workspaces::find(session, &name).await?.0;
    let bindings = of_workspace(session, &name, &workspace).await?;
    let is_wanted = |binding: &&Resource| binding.text("key") == variable && binding.text("category") == category(env);
    let subject = format!("binding of {variable} of {name}");
    let Some(binding) = bindings.iter().find(is_wanted) else {
        let keys: Vec<String> = bindings.iter().map(|binding| binding.text("key")).collect();
        let hint = did_you_mean(variable, keys.iter().map(String::as_str), || {
            format!("`taco bind ls {name}` lists them; --env is the other category")
        });
        return Err(Failure::new(Kind::NotFound, format!("{subject}: not found"))
            .because(format!("no variable {variable} of category {} is bound", category(env)))
            .hint(hint));
    };
    confirmation.ask(session, &format!("remove the {subject}"))?;
    session.api.delete(&subject, &["bindings", binding.id()]).await?;
    gone(session, binding.id(), &format!("Removed the {subject}."))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches, Parser};

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parsed(line: &str) -> Result<Arguments, clap::Error> {
        let matches = Line::command().try_get_matches_from(line.split(' '))?;
        Ok(Line::from_arg_matches(&matches)?.arguments)
    }

    #[test]
    fn the_bare_form_and_the_verbs_live_beside_each_other() {
        let bare = parsed("bind cluster vpc_id network id --env --json").expect("a binding");
        assert!(bare.verb.is_none());
        let new = bare.bare();
        let texts = [&new.workspace, &new.variable, &new.producer, &new.output].map(String::as_str);
        assert_eq!((texts, new.env), (["cluster", "vpc_id", "network", "id"], true));
        assert!(matches!(parsed("bind ls cluster --json").expect("a list").verb, Some(Verb::Ls { .. })));
        assert!(matches!(parsed("bind rm cluster ls --env").expect("a removal").verb, Some(Verb::Rm { .. })));
        assert!(matches!(parsed("bind add ls ls ls ls").expect("a binding").verb, Some(Verb::Add(_))));
        let missing = parsed("bind cluster vpc_id network").expect_err("an output is missing");
        assert!(missing.to_string().contains("<OUTPUT>"), "{missing}");
    }

    #[test]
    fn producers_are_named_with_and_without_their_organization() {
        let consumer = WorkspaceName { organization: "acme".into(), name: "app".into() };
        assert_eq!(producer_in(&consumer, "acme/network").expect("a name"), "network");
        assert!(producer_in(&consumer, "other/network").is_err());
    }
}
