//! `taco registry`

mod modules;
mod providers;

use clap::{Args, Subcommand};

use crate::EXIT_CODES;
use crate::failure::Failure;
use crate::process_env::ProcessEnv;
use crate::session::{Flags, Session};

/// Publish modules and providers in the private registry
#[derive(Args, Debug)]
#[command(after_help = format!("\
Examples:
  taco registry module publish . --name network --provider aws --version 1.2.0
  taco registry module ls
  taco registry provider publish ./dist --key public-key.asc
  taco registry provider ls

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    noun: Noun,
}

#[derive(Subcommand, Debug)]
enum Noun {
    /// Modules
    #[command(subcommand)]
    Module(modules::Verb),
    /// Providers
    #[command(subcommand)]
    Provider(providers::Verb),
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    match &arguments.noun {
        Noun::Module(verb) => modules::run(&session, verb).await,
        Noun::Provider(verb) => providers::run(&session, verb).await,
    }
}
