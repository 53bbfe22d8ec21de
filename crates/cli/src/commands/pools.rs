//! `taco pool`

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

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

/// Manage agent pools and their tokens
#[derive(Args, Debug)]
#[command(after_help = format!("\
Examples:
  taco pool create rack-1 --org acme
  taco pool token create rack-1 --description 'runner host 7' > token
  taco-agent --server https://taco.example.com --token-file token
  taco ws create acme/network --execution-mode agent --agent-pool rack-1
  taco pool token ls rack-1

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List agent pools
    Ls,
    /// Create an agent pool
    Create {
        /// Name of the pool
        name: String,
        /// Only this workspace may use it; repeat for several [default: all workspaces]
        #[arg(long, value_name = "NAME")]
        workspace: Vec<String>,
        /// Only workspaces of this project may use it; repeat for several [default: all]
        #[arg(long, value_name = "PROJECT")]
        project: Vec<String>,
    },
    /// Delete an agent pool
    Rm {
        /// Pool, by name or ID
        pool: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Manage agent tokens of a pool
    #[command(subcommand)]
    Token(TokenVerb),
}

#[derive(Subcommand, Debug)]
enum TokenVerb {
    /// List agent tokens
    Ls {
        /// Pool, by name or ID
        pool: String,
    },
    /// Create an agent token and print it; it is shown once
    Create {
        /// Pool, by name or ID
        pool: String,
        /// What uses it
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// Delete an agent token: agents with it are disconnected
    Rm {
        /// ID of the token, such as at-4Tk9mXbq7cWvZpHn
        token: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    match &arguments.verb {
        Verb::Ls => list(&session).await,
        Verb::Create { name, workspace, project } => create(&session, name, workspace, project).await,
        Verb::Rm { pool, confirmation } => remove(&session, pool, confirmation).await,
        Verb::Token(TokenVerb::Ls { pool }) => list_tokens(&session, pool).await,
        Verb::Token(TokenVerb::Create { pool, description }) => create_token(&session, pool, description).await,
        Verb::Token(TokenVerb::Rm { token, confirmation }) => {
            confirmation.ask(&session, &format!("delete token {token}"))?;
            session.api.delete(&format!("token {token}"), &["authentication-tokens", token]).await?;
            gone(&session, token, &format!("Deleted token {token}."))
        }
    }
}

/// All agent pools of an organization.
pub(super) async fn all(session: &Session, organization: &str) -> Result<Vec<Resource>, Failure> {
    let subject = format!("agent pools of organization {organization}");
    Ok(session.api.list(&subject, &["organizations", organization, "agent-pools"], &[]).await?.data)
}

pub(super) async fn find(session: &Session, pool: &str) -> Result<Resource, Failure> {
    find_in(session, &session.target.organization(None)?, pool).await
}

pub(super) async fn find_in(session: &Session, organization: &str, pool: &str) -> Result<Resource, Failure> {
    let same = |found: &&Resource| found.id() == pool || found.text("name").eq_ignore_ascii_case(pool);
    let all = all(session, organization).await?;
    all.iter().find(same).cloned().ok_or_else(|| {
        let names = all.iter().filter_map(|one| one.get("name").as_str());
        let list = || format!("`taco pool ls --org {organization}` lists agent pools");
        Failure::new(Kind::NotFound, format!("agent pool {pool}: not found"))
            .because(format!("it is not in organization {organization}, or your account may not see it"))
            .hint(did_you_mean(pool, names, list))
    })
}

async fn list(session: &Session) -> Result<(), Failure> {
    let pools = all(session, &session.target.organization(None)?).await?;
    if session.json {
        return output::json(&plain_list(&pools));
    }
    let row = |pool: &Resource| {
        let [name, agents, everyone] =
            ["name", "agent-count", "organization-scoped"].map(|attribute| output::text(pool, attribute));
        [name, pool.id().into(), agents, everyone, output::time(pool, "created-at")]
    };
    let if_empty = "No agent pools. `taco pool create NAME` creates one.";
    session.table(["NAME", "POOL", "AGENTS", "FOR ALL", "CREATED"], pools.iter().map(row), if_empty)
}

async fn create(session: &Session, name: &str, workspaces: &[String], projects: &[String]) -> Result<(), Failure> {
    let organization = session.target.organization(None)?;
    let mut allowed = Map::new();
    let mut found = Vec::new();
    for name in workspaces {
        let name = WorkspaceName { organization: organization.clone(), name: name.clone() };
        found.push(json!({ "type": "workspaces", "id": workspaces::find(session, &name).await?.0.id() }));
    }
    allowed.insert("allowed-workspaces".to_owned(), json!({ "data": found }));
    let mut found = Vec::new();
    for name in projects {
        found.push(json!({ "type": "projects", "id": projects::find(session, &organization, name).await?.id() }));
    }
    allowed.insert("allowed-projects".to_owned(), json!({ "data": found }));
    let limited = !(workspaces.is_empty() && projects.is_empty());
    let attributes = json!({ "name": name, "organization-scoped": !limited });
    let relationships = if limited { allowed } else { Map::new() };
    let body = about("agent-pools", attributes, relationships.into());
    let path = ["organizations", &organization, "agent-pools"];
    let pool = one(session.api.send(&format!("agent pool {name}"), Method::POST, &path, &body).await?)?;
    done(session, &pool, &format!("Created agent pool {name} ({}).", pool.id()))
}

async fn remove(session: &Session, pool: &str, confirmation: &Confirmation) -> Result<(), Failure> {
    let pool = find(session, pool).await?;
    let name = pool.text("name");
    confirmation.ask(session, &format!("delete agent pool {name}"))?;
    session.api.delete(&format!("agent pool {name}"), &["agent-pools", pool.id()]).await?;
    gone(session, pool.id(), &format!("Deleted agent pool {name}."))
}

async fn list_tokens(session: &Session, pool: &str) -> Result<(), Failure> {
    let pool = find(session, pool).await?;
    let subject = format!("tokens of agent pool {}", pool.text("name"));
    let tokens = session.api.list(&subject, &["agent-pools", pool.id(), "authentication-tokens"], &[]).await?.data;
    if session.json {
        return output::json(&plain_list(&tokens));
    }
    let row = |token: &Resource| {
        let [created, used] = ["created-at", "last-used-at"].map(|attribute| output::time(token, attribute));
        [token.id().into(), created, used, output::text(token, "description")]
    };
    let if_empty = format!("No tokens. `taco pool token create {}` creates one.", pool.text("name"));
    session.table(["TOKEN", "CREATED", "LAST USED", "DESCRIPTION"], tokens.iter().map(row), if_empty)
}

async fn create_token(session: &Session, pool: &str, description: &Option<String>) -> Result<(), Failure> {
    let pool = find(session, pool).await?;
    let attributes: Value = given([("description", text(description))]).into();
    let body = about("authentication-tokens", attributes, json!({}));
    let path = ["agent-pools", pool.id(), "authentication-tokens"];
    let subject = format!("token of agent pool {}", pool.text("name"));
    let token = one(session.api.send(&subject, Method::POST, &path, &body).await?)?;
    // Nothing else, so that it can be written to a file.
    if session.json { output::json(&token.plain()) } else { output::line(&token.text("token")) }
}
