//! `taco version`

use clap::Args;
use serde_json::{Value, json};

use crate::EXIT_CODES;
use crate::failure::Failure;
use crate::output;
use crate::process_env::ProcessEnv;
use crate::session::{ChosenBy, Flags, Session, Target};

/// Show the version of taco, and of the server
#[derive(Args, Debug)]
#[command(after_help = format!("\
Examples:
  taco version
  taco version --host taco.example.com --json

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    // A bucket has no server but this program.
    if Target::find(&arguments.flags, process_env)?.bucket.is_some() {
        return match arguments.flags.output.json {
            true => output::json(&json!({ "version": version, "server": null })),
            false => output::line(&format!("taco {version}")),
        };
    }
    let session = Session::open(&arguments.flags, process_env).await?;
    let host = &session.target.host;
    // Whoever has no server wants to know the version of the program alone.
    let server = match session.target.chosen_by {
        ChosenBy::Nobody => None,
        _ => Some(session.api.versions().await?),
    };
    if session.json {
        let server = server.map(
            |server| json!({ "host": host.name, "version": server.get("server"), "engines": server.get("engines") }),
        );
        return output::json(&json!({ "version": version, "server": server }));
    }
    output::line(&format!("taco {version}"))?;
    if let Some(server) = server {
        let version = server.get("server").and_then(Value::as_str).unwrap_or("of unknown version");
        output::line(&format!("server {version} at {host}"))?;
    }
    Ok(())
}
