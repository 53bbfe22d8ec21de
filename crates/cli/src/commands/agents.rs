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

/// List the agents of an organization's pools
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
    /// List agents; those within servers belong to no pool, and are not among them
    Ls {
        /// Only those of this pool, by name or id
        #[arg(long, value_name = "POOL")]
        pool: Option<String>,
    },
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env)?;
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
        let [name, status, address, heard, version] =
            ["name", "status", "ip-address", "last-ping-at", "taco-version"].map(|attribute| agent.text(attribute));
        [name, pool.clone(), status, address, heard, version, agent.id().to_owned()]
    };
    output::table(["NAME", "POOL", "STATUS", "ADDRESS", "LAST HEARD", "VERSION", "AGENT"], agents.iter().map(row))
}
