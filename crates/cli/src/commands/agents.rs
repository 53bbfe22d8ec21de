//! `taco agent`

use clap::{Args, Subcommand};
use serde_json::Value;

use super::pools;
use crate::EXIT_CODES;
use crate::failure::Failure;
use crate::output;
use crate::process_env::ProcessEnv;
use crate::resource::Resource;
use crate::session::{Flags, Session};

/// List agents
#[derive(Args, Debug)]
#[command(after_help = format!("\
Examples:
  taco agent ls --org acme
  taco agent ls --pool rack-1

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List agents, without the servers' built-in ones
    Ls {
        /// Only agents of this pool, by name or ID
        #[arg(long, value_name = "POOL")]
        pool: Option<String>,
    },
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    let Verb::Ls { pool } = &arguments.verb;
    let pools = match pool {
        Some(pool) => vec![pools::find(&session, pool).await?],
        None => pools::all(&session, &session.target.organization(None)?).await?,
    };
    let mut agents: Vec<(String, Resource)> = Vec::new();
    for pool in &pools {
        let subject = format!("agents of pool {}", pool.text("name"));
        let found = session.api.list(&subject, &["agent-pools", pool.id(), "agents"], &[]).await?;
        agents.extend(found.data.into_iter().map(|agent| (pool.text("name"), agent)));
    }
    if session.json {
        let all: Value = agents.iter().map(|(_, agent)| agent.plain()).collect();
        return output::json(&all);
    }
    let row = |(pool, agent): &(String, Resource)| {
        let [name, address, version] = ["name", "ip-address", "taco-version"].map(|name| output::text(agent, name));
        let (status, seen) = (output::status(agent, "status"), output::time(agent, "last-ping-at"));
        [name, pool.as_str().into(), status, address, seen, version, agent.id().into()]
    };
    let headings = ["NAME", "POOL", "STATUS", "ADDRESS", "LAST SEEN", "VERSION", "AGENT"];
    let if_empty = "No agents. `taco pool token create POOL` creates a token to start one with.";
    session.table(headings, agents.iter().map(row), if_empty)
}
