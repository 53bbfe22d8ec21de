//! `taco logout`

use clap::Args;
use serde_json::json;

use crate::credentials::CredentialsFile;
use crate::failure::Failure;
use crate::output;
use crate::output_flags::OutputFlags;
use crate::session::{Flags, Target};
use crate::surroundings::Surroundings;

/// Forget the token for a server
///
/// The token stays valid: revoke it in the server's settings if nobody shall use it any more.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  taco logout taco.example.com")]
pub struct Arguments {
    /// Server to log out from
    #[arg(value_name = "HOST")]
    server: Option<String>,
    #[command(flatten)]
    output: OutputFlags,
}

pub(crate) fn run(arguments: &Arguments, surroundings: &Surroundings) -> Result<(), Failure> {
    let flags = Flags { host: arguments.server.clone(), ..Flags::default() };
    let host = Target::find(&flags, surroundings)?.host;
    let forgotten = CredentialsFile::read(surroundings)?.forget(&host)?;
    if arguments.output.json {
        return output::json(&json!({ "host": host.name, "forgotten": forgotten }));
    }
    if arguments.output.quiet {
        return Ok(());
    }
    output::line(&match forgotten {
        true => format!("The token for {host} is forgotten. It stays valid until it is revoked there."),
        false => format!("There was no token for {host}."),
    })
}
