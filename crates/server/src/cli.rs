//! The command line of `taco`. Each command is a file in `commands/`.

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{admin, audit, config, doctor, rewrap, server};
use crate::config::ConfigError;
use crate::embedded_agent::SUPERVISE;

/// A wrong command line or configuration; clap uses the same.
const USAGE: u8 = 2;

/// Taco runs Terraform and OpenTofu for teams: it keeps states, queues runs, and needs nothing but a bucket.
#[derive(Parser, Debug)]
#[command(
    name = "taco",
    version,
    after_help = "\
Without a command, taco runs the server.

Examples:
  taco                                    Start a server that keeps its data in your home directory
  taco server --bucket s3://company-taco  Start a server on an S3 bucket
  taco doctor                             Check that the bucket can be trusted
  taco config show                        See every setting, its value and where it came from
  taco login taco.example.com             Log in, for terraform and tofu too
  taco state versions --ws acme/network   See all states that a workspace had
  taco run start . --ws acme/network -w   Plan what is in this directory, and watch it

Settings come from flags, then variables called TACO_…, then taco.toml, then defaults."
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand, Debug)]
enum Command {
    Server(server::Arguments),
    Doctor(doctor::Arguments),
    Config(config::Arguments),
    Audit(audit::Arguments),
    Rewrap(rewrap::Arguments),
    Admin(admin::Arguments),
    #[command(flatten)]
    People(Box<taco_cli::Command>),
}

/// Runs the command line.
pub fn run() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|first| first == SUPERVISE) {
        return taco_agent::supervise::main();
    }
    let outcome = match Cli::parse_from(taco_cli::with_two_dashes(std::env::args_os())).command {
        None => server::run(&server::Arguments::default()),
        Some(Command::Server(arguments)) => server::run(&arguments),
        Some(Command::Doctor(arguments)) => doctor::run(&arguments),
        Some(Command::Config(arguments)) => config::run(&arguments),
        Some(Command::Audit(arguments)) => audit::run(&arguments),
        Some(Command::Rewrap(arguments)) => rewrap::run(&arguments),
        Some(Command::Admin(arguments)) => admin::run(&arguments),
        Some(Command::People(command)) => Ok(taco_cli::run(&command, Cli::command())),
    };
    outcome.unwrap_or_else(|error| fail(&error))
}

/// Says in one line what went wrong.
fn fail(error: &anyhow::Error) -> ExitCode {
    // The reader of our output has seen enough, as in `taco … | head`.
    if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    eprintln!("error: {error:#}");
    if error.is::<ConfigError>() { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
