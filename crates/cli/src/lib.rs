//! `taco …` for people: a client of the API, and of nothing else. It works with any server that speaks it.
//!
//! [`Command`] is the part of the command line that belongs here. Each command asks a [`session::Session`] for the
//! server, the organization and the workspace it is about, and prints through [`output`].

mod api;
mod browser;
mod cloud_block;
mod colour;
mod commands;
mod confirmation;
mod credentials;
mod failure;
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod local;
mod log_lines;
mod oauth;
mod output;
mod output_flags;
mod plan_text;
pub mod print;
mod process_env;
mod progress;
mod project_config;
mod resource;
mod session;
mod short_help;
mod slug;
mod spelling;
mod spelling_hints;
mod state_file;
mod status;
mod time_text;
mod trusted_buckets;
mod unit;
mod user_config;
mod variable_file;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Subcommand;

use commands::{
    agents, audit_log, auth, bindings, completion, dependencies, graph, init, login, logout, notifications,
    organizations, outputs, policies, pools, projects, queue, registry, retention, runs, states, teams, tokens, up,
    users, variable_sets, variables, version, walks, whoami, why, workspaces,
};
use failure::Failure;
use local::OwnServer;
pub use local::{BoxFuture, Doors, LocalBucket, LocalServer, ServesBuckets};
use process_env::ProcessEnv;
pub use short_help::with_short_help;
pub use spelling::with_two_dashes;

/// Exit codes of every command here; a part of the help.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  error
  2  wrong command line
  3  not found, or not allowed
  4  conflict, such as a lock that someone else holds, or a name that is taken
  5  the server can't be reached
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
    Bind(bindings::Arguments),
    Plan(runs::directory::Plan),
    Apply(runs::directory::Apply),
    Destroy(runs::directory::Destroy),
    Up(up::Arguments),
    Run(runs::Arguments),
    Queue(queue::Arguments),
    Graph(graph::Arguments),
    Why(why::Arguments),
    Outputs(outputs::Arguments),
    Deps(dependencies::Arguments),
    Walk(walks::Arguments),
    Team(teams::Arguments),
    User(users::Arguments),
    Token(tokens::Arguments),
    Notification(notifications::Arguments),
    Policy(policies::Arguments),
    Pool(pools::Arguments),
    Agent(agents::Arguments),
    Registry(registry::Arguments),
    Retention(retention::Arguments),
    Version(version::Arguments),
    Init(init::Arguments),
    Completion(completion::Arguments),
}

/// The part of `taco audit` that asks a server.
pub type AuditLog = audit_log::Arguments;

/// Runs `taco audit ls`. `serves` is for a directory that names a bucket and no server.
pub fn run_audit_log(arguments: &AuditLog, serves: Arc<dyn ServesBuckets>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::from(error).report(),
    };
    let process_env = ProcessEnv::of_this_process(OwnServer(Some(serves)));
    let done = runtime.block_on(async {
        let done = audit_log::run(arguments, &process_env).await;
        process_env.own_server.stop().await;
        done
    });
    done.map(|()| ExitCode::SUCCESS).unwrap_or_else(|failure| failure.report())
}

/// Runs the command. `whole` is the command line of the program that these commands are a part of, and `serves` what it
/// does for a directory that names a bucket and no server.
pub fn run(command: &Command, whole: clap::Command, serves: Arc<dyn ServesBuckets>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::from(error).report(),
    };
    let process_env = ProcessEnv::of_this_process(OwnServer(Some(serves)));
    let done = runtime.block_on(async {
        let done = execute(command, &process_env, whole).await;
        process_env.own_server.stop().await;
        done
    });
    done.unwrap_or_else(|failure| failure.report())
}

async fn execute(command: &Command, process_env: &ProcessEnv, whole: clap::Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Login(arguments) => login::run(arguments, process_env).await,
        Command::Logout(arguments) => logout::run(arguments, process_env),
        Command::Whoami(arguments) => whoami::run(arguments, process_env).await,
        Command::Auth(arguments) => auth::run(arguments, process_env),
        Command::Org(arguments) => organizations::run(arguments, process_env).await,
        Command::Project(arguments) => projects::run(arguments, process_env).await,
        Command::Ws(arguments) => workspaces::run(arguments, process_env).await,
        Command::State(arguments) => states::run(arguments, process_env).await,
        Command::Var(arguments) => variables::run(arguments, process_env).await,
        Command::Varset(arguments) => variable_sets::run(arguments, process_env).await,
        Command::Bind(arguments) => bindings::run(arguments, process_env).await,
        Command::Plan(arguments) => return runs::directory::plan(arguments, process_env).await,
        Command::Apply(arguments) => return runs::directory::apply(arguments, process_env).await,
        Command::Destroy(arguments) => return runs::directory::destroy(arguments, process_env).await,
        Command::Up(arguments) => up::run(arguments, process_env).await,
        Command::Run(arguments) => return runs::run(arguments, process_env).await,
        Command::Walk(arguments) => return walks::run(arguments, process_env).await,
        Command::Queue(arguments) => queue::run(arguments, process_env).await,
        Command::Graph(arguments) => graph::run(arguments, process_env).await,
        Command::Why(arguments) => why::run(arguments, process_env).await,
        Command::Outputs(arguments) => return outputs::run(arguments, process_env).await,
        Command::Deps(arguments) => dependencies::run(arguments, process_env).await,
        Command::Team(arguments) => teams::run(arguments, process_env).await,
        Command::User(arguments) => users::run(arguments, process_env).await,
        Command::Token(arguments) => tokens::run(arguments, process_env).await,
        Command::Version(arguments) => version::run(arguments, process_env).await,
        Command::Notification(arguments) => notifications::run(arguments, process_env).await,
        Command::Policy(arguments) => return policies::run(arguments, process_env).await,
        Command::Pool(arguments) => pools::run(arguments, process_env).await,
        Command::Agent(arguments) => agents::run(arguments, process_env).await,
        Command::Registry(arguments) => registry::run(arguments, process_env).await,
        Command::Retention(arguments) => retention::run(arguments, process_env).await,
        Command::Init(arguments) => init::run(arguments, process_env).await,
        Command::Completion(arguments) => completion::run(arguments, whole),
    }
    .map(|()| ExitCode::SUCCESS)
}
