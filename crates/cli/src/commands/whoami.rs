//! `taco whoami`

use clap::Args;

use crate::EXIT_CODES;
use crate::api::one;
use crate::failure::Failure;
use crate::output;
use crate::process_env::ProcessEnv;
use crate::session::{Flags, Session};

/// Show your account on the server
#[derive(Args, Debug)]
#[command(after_help = format!("\
Examples:
  taco whoami
  taco whoami --host taco.example.com --json

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    let account = one(session.api.get("your account", &["account", "details"], &[]).await?)?;
    if session.json {
        return output::json(&account.plain());
    }
    session.fields([
        ("username", account.text("username")),
        ("email", account.text("email")),
        ("id", account.id().to_owned()),
        ("site admin", account.text("is-site-admin")),
        ("host", session.target.host.name.clone()),
    ])
}
