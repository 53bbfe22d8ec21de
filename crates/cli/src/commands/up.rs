//! `taco up`

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::EXIT_CODES;
use crate::browser;
use crate::failure::Failure;
use crate::local::Doors;
use crate::output;
use crate::process_env::ProcessEnv;
use crate::session::{Flags, Session, Target};

/// Serve the bucket of a directory on this machine, with its pages, until Ctrl-C
///
/// The bucket is the one that .taco.toml or TACO_BUCKET names. There is no login: everyone on this machine is an admin.
/// `taco server` is for more than one person.
#[derive(Args, Debug)]
#[command(after_help = format!("\
Examples:
  taco up
  TACO_BUCKET=s3://acme-taco taco up --web

{EXIT_CODES}"))]
pub struct Arguments {
    /// Directory of the .taco.toml
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// Address on this machine; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Open the pages in the browser
    #[arg(long)]
    web: bool,
    #[command(flatten)]
    flags: Flags,
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let process_env = process_env.at(&arguments.directory);
    let target = Target::find(&arguments.flags, &process_env)?;
    let Some(bucket) = &target.bucket else {
        return Err(Failure::usage("there is no bucket to serve")
            .because(format!("{} names the server {}", target.chosen_by, target.host))
            .hint("set TACO_BUCKET, or put bucket = \"s3://acme-taco\" into .taco.toml"));
    };
    let session = Session::open_with(&arguments.flags, &process_env, Doors::OfMachine(arguments.listen)).await?;
    let page = &session.target.host.address;
    output::line(&format!("{bucket} is served at {page}"))?;
    if arguments.web {
        browser::open(page);
    }
    eprintln!("Everyone on this machine is an admin there. Ctrl-C stops it, when its runs have ended.");
    tokio::signal::ctrl_c().await?;
    Ok(())
}
