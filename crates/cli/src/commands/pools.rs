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

/// List, create and delete agent pools, and the tokens with which agents come
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
        name: String,
        /// Workspace that alone may use it; repeat it for several [default: all of the organization]
        #[arg(long, value_name = "NAME")]
        workspace: Vec<String>,
        /// Project whose workspaces alone may use it; repeat it for several [default: all of the organization]
        #[arg(long, value_name = "PROJECT")]
        project: Vec<String>,
    },
    /// Delete an agent pool
    Rm {
        /// Name or id of the pool
        pool: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// List, create and delete the tokens of a pool
    #[command(subcommand)]
    Token(TokenVerb),
}

#[derive(Subcommand, Debug)]
enum TokenVerb {
    /// List the tokens of a pool
    Ls {
        /// Name or id of the pool
        pool: String,
    },
    /// Create a token, and print it: it is not shown again
    Create {
        /// Name or id of the pool
        pool: String,
        /// Who uses it
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// Delete a token: agents that have it are turned away
    Rm {
        /// Id of the token, such as at-4Tk9mXbq7cWvZpHn
        token: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env)?;
    match &arguments.verb {
        Verb::Ls => list(&session).await,
        Verb::Create { name, workspace, project } => create(&session, name, workspace, project).await,
        Verb::Rm { pool, confirmation } => remove(&session, pool, confirmation).await,
        Verb::Token(TokenVerb::Ls { pool }) => list_tokens(&session, pool).await,
        Verb::Token(TokenVerb::Create { pool, description }) => create_token(&session, pool, description).await,
        Verb::Token(TokenVerb::Rm { token, confirmation }) => {
            confirmation.ask(&session, &format!("delete token {token}"))?;
            session.api.delete(&format!("token {token}"), &["authentication-tokens", token]).await?;
            gone(&session, token, &format!("Token {token} is deleted."))
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
    let same = |found: &Resource| found.id() == pool || found.text("name").eq_ignore_ascii_case(pool);
    all(session, organization).await?.into_iter().find(same).ok_or_else(|| {
        Failure::new(Kind::NotFound, format!("agent pool {pool}: not found"))
            .because(format!("it is not in organization {organization}, or your account may not see it"))
            .hint(format!("`taco pool ls --org {organization}` lists agent pools"))
    })
}

async fn list(session: &Session) -> Result<(), Failure> {
    let pools = all(session, &session.target.organization(None)?).await?;
    if session.json {
        return output::json(&plain_list(&pools));
    }
    let row = |pool: &Resource| {
        let [name, agents, everyone, created] =
            ["name", "agent-count", "organization-scoped", "created-at"].map(|attribute| pool.text(attribute));
        [name, pool.id().to_owned(), agents, everyone, created]
    };
    output::table(["NAME", "POOL", "AGENTS", "FOR ALL", "CREATED"], pools.iter().map(row))
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
    done(session, &pool, &format!("Agent pool {name} is there, as {}.", pool.id()))
}

async fn remove(session: &Session, pool: &str, confirmation: &Confirmation) -> Result<(), Failure> {
    let pool = find(session, pool).await?;
    let name = pool.text("name");
    confirmation.ask(session, &format!("delete agent pool {name}"))?;
    session.api.delete(&format!("agent pool {name}"), &["agent-pools", pool.id()]).await?;
    gone(session, pool.id(), &format!("Agent pool {name} is deleted."))
}

async fn list_tokens(session: &Session, pool: &str) -> Result<(), Failure> {
    let pool = find(session, pool).await?;
    let subject = format!("tokens of agent pool {}", pool.text("name"));
    let tokens = session.api.list(&subject, &["agent-pools", pool.id(), "authentication-tokens"], &[]).await?.data;
    if session.json {
        return output::json(&plain_list(&tokens));
    }
    let row = |token: &Resource| {
        let [created, used, description] =
            ["created-at", "last-used-at", "description"].map(|attribute| token.text(attribute));
        [token.id().to_owned(), created, used, description]
    };
    output::table(["TOKEN", "CREATED", "LAST USED", "DESCRIPTION"], tokens.iter().map(row))
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
