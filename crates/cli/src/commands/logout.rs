//! `taco logout`

use clap::Args;
use serde_json::json;

use crate::credentials::CredentialsFile;
use crate::failure::Failure;
use crate::output;
use crate::output_flags::OutputFlags;
use crate::process_env::ProcessEnv;
use crate::session::{Flags, Target};

/// Log out of a server
///
/// Removes the token from this machine. The token itself stays valid until it is revoked in your settings on the server.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  taco logout taco.example.com")]
pub struct Arguments {
    /// Server to log out of [default: the current one]
    #[arg(value_name = "HOST")]
    server: Option<String>,
    #[command(flatten)]
    output: OutputFlags,
}

pub(crate) fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let flags = Flags { host: arguments.server.clone(), ..Flags::default() };
    let host = Target::find(&flags, process_env)?.host;
    let forgotten = CredentialsFile::read(process_env)?.forget(&host)?;
    if arguments.output.json {
        return output::json(&json!({ "host": host.name, "forgotten": forgotten }));
    }
    if arguments.output.quiet {
        return Ok(());
    }
    output::line(&match forgotten {
        true => format!(
            "Logged out of {host}. The token itself is still valid; revoke it at {}app/settings/tokens.",
            host.address
        ),
        false => format!("You were not logged in to {host}."),
    })
}
