//! `taco var`

pub(crate) mod assignment;
mod effective;
pub(crate) mod owned;

use clap::{Args, Subcommand};

use super::{bindings, gone, workspaces};
use crate::EXIT_CODES;
use crate::confirmation::Confirmation;
use crate::failure::Failure;
use crate::process_env::ProcessEnv;
use crate::session::{Flags, Session};
use assignment::{Assignment, ImportedFile, category, key_and_value};
use owned::OwnedVariables;

/// Manage a workspace's variables
#[derive(Args, Debug)]
#[command(visible_alias = "variable", after_help = format!("\
Without =VALUE, the value is prompted for or read from standard input: secrets do not
belong on a command line.

Examples:
  taco var ls --ws acme/network --all
  taco var set region=eu
  taco var set 'zones=[\"a\", \"b\"]' --hcl
  taco var set AWS_SECRET_ACCESS_KEY --env --sensitive < key.txt
  taco var import prod.tfvars
  taco var rm region --yes

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List variables
    Ls {
        /// All that runs get, also from variable sets, and where each value is from
        #[arg(long)]
        all: bool,
    },
    /// Create or update a variable
    Set {
        /// Key, with or without its value
        #[arg(value_name = "KEY[=VALUE]")]
        variable: String,
        #[command(flatten)]
        assignment: Assignment,
    },
    /// Delete a variable
    Rm {
        /// Key of the variable
        key: String,
        /// The environment variable of that name
        #[arg(long, short)]
        env: bool,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Create or update all variables in a file
    Import(ImportedFile),
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    let name = session.target.workspace(None)?;
    // Before anything is asked of the server: what is wrong here is wrong anyway.
    let imported = match &arguments.verb {
        Verb::Import(import) => import.read()?,
        _ => Vec::new(),
    };
    let workspace = workspaces::find(&session, &name).await?.0;
    let owned = OwnedVariables {
        session: &session,
        path: ["workspaces", workspace.id(), "vars"].map(str::to_owned).into(),
        owner: name.to_string(),
        list_command: format!("taco var ls --ws {name}"),
        set_command: format!("taco var set --ws {name}"),
    };
    match &arguments.verb {
        Verb::Ls { all: false } => owned.list(&bindings::of_workspace(&session, &name, &workspace).await?).await,
        Verb::Ls { all: true } => effective::list(&session, &name, &workspace).await,
        Verb::Set { variable, assignment } => {
            let (key, value) = key_and_value(&session, variable)?;
            owned.set(assignment.attributes(&key, &value)).await
        }
        Verb::Rm { key, env, confirmation } => {
            let variable = owned.find(key, category(*env)).await?;
            confirmation.ask(&session, &format!("delete variable {key} of {name}"))?;
            gone(&session, variable.id(), &owned.remove(&variable).await?)
        }
        Verb::Import(_) => owned.import(imported).await,
    }
}
