//! `taco …` for people: a client of the API, and of nothing else. It works with any server that speaks it.
//!
//! [`Command`] is the part of the command line that belongs here. Each command asks a [`session::Session`] for the
//! server, the organization and the workspace it is about, and prints through [`output`].

mod api;
mod cloud_block;
mod commands;
mod confirmation;
mod credentials;
mod failure;
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod log_lines;
mod oauth;
mod output;
mod output_flags;
pub mod print;
mod process_env;
mod project_config;
mod resource;
mod session;
mod slug;
mod spelling;
mod state_file;
mod user_config;
mod variable_file;

use std::process::ExitCode;

use clap::Subcommand;

use commands::{
    agents, auth, completion, init, login, logout, organizations, pools, projects, queue, runs, states, variable_sets,
    variables, whoami, workspaces,
};
use failure::Failure;
use process_env::ProcessEnv;
pub use spelling::with_two_dashes;

/// Exit codes of every command here; a part of the help.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  error
  2  wrong command line, or something is missing on it
  3  not found, or not allowed
  4  conflict, such as a lock that someone else holds
  5  the server cannot be reached
  124  it took longer than --timeout allows
  130  stopped by Ctrl-C";

/// The commands for people.
#[derive(Subcommand, Debug)]
pub enum Command {
    Login(login::Arguments),
    Logout(logout::Arguments),
    Whoami(whoami::Arguments),
    Auth(auth::Arguments),
    Org(organizations::Arguments),
    Project(projects::Arguments),
    Ws(workspaces::Arguments),
    State(states::Arguments),
    Var(variables::Arguments),
    Varset(variable_sets::Arguments),
    Run(runs::Arguments),
    Queue(queue::Arguments),
    Pool(pools::Arguments),
    Agent(agents::Arguments),
    Init(init::Arguments),
    Completion(completion::Arguments),
}

/// Runs the command. `whole` is the command line of the program that these commands are a part of.
pub fn run(command: &Command, whole: clap::Command) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::from(error).report(),
    };
    let process_env = ProcessEnv::of_this_process();
    let done = runtime.block_on(async {
        match command {
            Command::Login(arguments) => login::run(arguments, &process_env).await,
            Command::Logout(arguments) => logout::run(arguments, &process_env),
            Command::Whoami(arguments) => whoami::run(arguments, &process_env).await,
            Command::Auth(arguments) => auth::run(arguments, &process_env),
            Command::Org(arguments) => organizations::run(arguments, &process_env).await,
            Command::Project(arguments) => projects::run(arguments, &process_env).await,
            Command::Ws(arguments) => workspaces::run(arguments, &process_env).await,
            Command::State(arguments) => states::run(arguments, &process_env).await,
            Command::Var(arguments) => variables::run(arguments, &process_env).await,
            Command::Varset(arguments) => variable_sets::run(arguments, &process_env).await,
            Command::Run(arguments) => return runs::run(arguments, &process_env).await,
            Command::Queue(arguments) => queue::run(arguments, &process_env).await,
            Command::Pool(arguments) => pools::run(arguments, &process_env).await,
            Command::Agent(arguments) => agents::run(arguments, &process_env).await,
            Command::Init(arguments) => init::run(arguments, &process_env).await,
            Command::Completion(arguments) => completion::run(arguments, whole),
        }
        .map(|()| ExitCode::SUCCESS)
    });
    done.unwrap_or_else(|failure| failure.report())
}
