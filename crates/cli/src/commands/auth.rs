//! `taco auth`

use clap::{Args, Subcommand};
use serde_json::json;

use crate::EXIT_CODES;
use crate::credentials;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::process_env::ProcessEnv;
use crate::session::{Flags, Target};

/// Manage authentication
#[derive(Args, Debug)]
#[command(after_help = format!("\
Examples:
  curl -H \"Authorization: Bearer $(taco auth token)\" https://taco.example.com/api/v2/account/details
  TF_HTTP_PASSWORD=$(taco auth token) terraform init

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Print the token in use, for scripts
    Token,
}

pub(crate) fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let Verb::Token = arguments.verb;
    let target = Target::find(&arguments.flags, process_env)?;
    let host = &target.host;
    let token = credentials::token(&target, process_env)?.ok_or_else(|| {
        Failure::new(Kind::NotFound, format!("you are not logged in to {host}"))
            .because("no token for it was found")
            .hint(format!("run `taco login {host}`, or set TACO_TOKEN"))
    })?;
    if arguments.flags.output.json {
        return output::json(&json!({ "host": host.name, "token": token.text, "source": token.source }));
    }
    // Nothing else, so that it can be handed on.
    output::line(&token.text)
}
