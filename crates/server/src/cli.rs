//! The command line of `taco`. Each command is a file in `commands/`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{admin, audit, config, doctor, rewrap, server};
use crate::config::ConfigError;
use crate::embedded_agent::SUPERVISE;
use crate::local::LocalHost;

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
  taco                                    Start a server with its data in your home directory
  taco login taco.example.com             Log in, for terraform and tofu too
  taco init --org acme --ws network       Use a workspace for this directory
  taco run start . --watch                Plan the configuration in this directory

`taco COMMAND --help` shows the commands and flags of each."
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
    let words = taco_cli::with_two_dashes(std::env::args_os());
    let command_line = command_line();
    let matches = command_line.clone().try_get_matches_from(words).unwrap_or_else(|error| error.exit());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let outcome = match cli.command {
        None => {
            // Whoever wanted to see the commands sees how; once, though the server starts itself again.
            if !crate::environment::is_hidden() {
                writeln!(io::stdout(), "Starting a server. `taco --help` lists all commands.").ok();
            }
            server::run(&server::Arguments::default())
        }
        Some(Command::Server(arguments)) => server::run(&arguments),
        Some(Command::Doctor(arguments)) => doctor::run(&arguments),
        Some(Command::Config(arguments)) => config::run(&arguments),
        Some(Command::Audit(arguments)) => audit::run(&arguments),
        Some(Command::Rewrap(arguments)) => rewrap::run(&arguments),
        Some(Command::Admin(arguments)) => admin::run(&arguments),
        Some(Command::People(command)) => Ok(taco_cli::run(&command, command_line, LocalHost::new())),
    };
    outcome.unwrap_or_else(|error| fail(&error))
}

/// The commands by what people want to do.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Getting started", &["login", "init", "whoami", "logout"]),
    ("A directory, with or without a server", &["plan", "apply", "destroy", "up"]),
    ("Daily work", &["run", "queue", "ws", "state", "var", "varset", "bind"]),
    ("States and their graph", &["graph", "why", "outputs", "deps", "walk"]),
    (
        "Administration",
        &[
            "org",
            "project",
            "team",
            "user",
            "token",
            "notification",
            "policy",
            "pool",
            "agent",
            "registry",
            "retention",
            "audit",
        ],
    ),
    ("Server", &["server", "doctor", "config", "admin", "rewrap"]),
    ("More", &["auth", "completion", "version", "help"]),
];

/// The command line, with its commands in groups and without the same flags in every help.
fn command_line() -> clap::Command {
    let command = taco_cli::with_short_help(Cli::command());
    let about = |name: &str| match command.find_subcommand(name).and_then(clap::Command::get_about) {
        Some(about) => about.to_string(),
        None => "Show help for a command".to_owned(),
    };
    let line = |name: &&str| format!("  {name:<14}{}\n", about(name));
    let group = |(title, names): &(&str, &[&str])| format!("{title}:\n{}", names.iter().map(line).collect::<String>());
    let groups = GROUPS.iter().map(group).collect::<Vec<_>>().join("\n");
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\nOptions:\n{{options}}{{after-help}}");
    command.help_template(template)
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
        command_line().debug_assert();
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.retain(|name| *name != "help");
        grouped.sort_unstable();
        let command = Cli::command();
        let mut all: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn everything_on_the_command_line_is_described() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            assert!(command.get_about().is_some(), "`{path}` has no description");
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{} of `{path}` has no description", argument.get_id());
            }
            command.get_subcommands().for_each(|command| check(command, &path));
        }
        check(&command_line(), "");
    }
}
