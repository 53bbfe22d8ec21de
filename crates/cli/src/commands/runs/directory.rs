//! `taco plan`, `taco apply` and `taco destroy`: a run of the configuration in a directory, from its start to its end.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};

use super::start::{Start, begin};
use super::{Runs, contract, may, watch};
use crate::api::{about, one};
use crate::commands::workspaces;
use crate::confirmation::Confirmation;
use crate::failure::{Failure, Kind};
use crate::process_env::ProcessEnv;
use crate::resource::Resource;
use crate::session::{Flags, Session, WorkspaceName};
use crate::slug;
use crate::unit::Unit;

const HELP: &str = "\
Where .taco.toml or TACO_BUCKET names a bucket and nothing names a server, the command serves the bucket itself and
stops when it is done. The workspace is that of .taco.toml or the `cloud` block, or is called as the directory is.

Exit codes:
  0  success; plan: nothing to change
  1  error, or the run was canceled or discarded
  2  wrong command line; plan: there are changes
  3  not found, or not allowed
  4  conflict, such as a lock that someone else holds
  5  the server can't be reached
  124  --timeout is over
  130  stopped by Ctrl-C";

/// Plan the configuration in a directory; nothing is applied
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct Plan {
    #[command(flatten)]
    run: RunOfDirectory,
    /// Plan to destroy everything the workspace manages
    #[arg(long)]
    destroy: bool,
    /// Refresh state only
    #[arg(long, conflicts_with = "destroy")]
    refresh_only: bool,
    #[command(flatten)]
    flags: Flags,
}

/// Plan and apply the configuration in a directory
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct Apply {
    #[command(flatten)]
    run: RunOfDirectory,
    /// Refresh state only
    #[arg(long)]
    refresh_only: bool,
    #[command(flatten)]
    approval: Approval,
    #[command(flatten)]
    flags: Flags,
}

/// Destroy everything that the workspace of a directory manages
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct Destroy {
    #[command(flatten)]
    run: RunOfDirectory,
    #[command(flatten)]
    approval: Approval,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Args, Debug)]
struct RunOfDirectory {
    /// Directory of the configuration
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// Message, shown with the run
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
    /// Limit the run to this resource or module; repeat for several
    #[arg(long, value_name = "ADDRESS")]
    target: Vec<String>,
    /// Replace this resource; repeat for several
    #[arg(long, value_name = "ADDRESS")]
    replace: Vec<String>,
    /// Variable of this run only; lists and maps as HCL. Repeat for several
    #[arg(long, value_name = "KEY=VALUE")]
    var: Vec<String>,
    #[command(flatten)]
    options: watch::Options,
}

#[derive(Args, Debug)]
struct Approval {
    /// Apply without asking
    #[arg(long)]
    auto_approve: bool,
    #[command(flatten)]
    confirmation: Confirmation,
}

impl Approval {
    fn is_given(&self) -> bool {
        self.auto_approve || self.confirmation.is_given()
    }
}

/// What comes after the plan.
enum Then<'a> {
    Nothing,
    Apply(&'a Approval),
}

/// What a run is to change.
struct Change {
    destroy: bool,
    refresh_only: bool,
}

pub(crate) async fn plan(arguments: &Plan, process_env: &ProcessEnv) -> Result<ExitCode, Failure> {
    let kind = Change { destroy: arguments.destroy, refresh_only: arguments.refresh_only };
    run(&arguments.run, &arguments.flags, kind, Then::Nothing, process_env).await
}

pub(crate) async fn apply(arguments: &Apply, process_env: &ProcessEnv) -> Result<ExitCode, Failure> {
    let kind = Change { destroy: false, refresh_only: arguments.refresh_only };
    run(&arguments.run, &arguments.flags, kind, Then::Apply(&arguments.approval), process_env).await
}

pub(crate) async fn destroy(arguments: &Destroy, process_env: &ProcessEnv) -> Result<ExitCode, Failure> {
    let kind = Change { destroy: true, refresh_only: false };
    run(&arguments.run, &arguments.flags, kind, Then::Apply(&arguments.approval), process_env).await
}

async fn run(
    wanted: &RunOfDirectory,
    flags: &Flags,
    kind: Change,
    then: Then<'_>,
    process_env: &ProcessEnv,
) -> Result<ExitCode, Failure> {
    if !wanted.directory.is_dir() {
        return Err(Failure::usage(format!("{} is no directory", wanted.directory.display()))
            .hint("give the directory that has the configuration"));
    }
    let session = Session::open(flags, &process_env.at(&wanted.directory)).await?;
    if let Then::Apply(approval) = &then
        && !approval.is_given()
        && !session.may_ask()
    {
        return Err(Failure::usage("confirmation required to apply a plan")
            .because("there is no terminal to ask on, or --no-input was given")
            .hint("add --auto-approve, or use `taco plan`"));
    }
    let runs = Runs { session: &session };
    let unit = Unit::find(&session.target, &wanted.directory)?;
    let workspace = workspace(&session, &unit).await?;
    let root = unit.root_of_upload(&workspace.text("working-directory"))?;
    let archive = slug::pack(&root)?;
    let start = Start {
        directory: Some(root),
        message: wanted.message.clone(),
        destroy: kind.destroy,
        target: wanted.target.clone(),
        replace: wanted.replace.clone(),
        var: wanted.var.clone(),
        refresh_only: kind.refresh_only,
        plan_only: matches!(then, Then::Nothing),
        auto_apply: Some(matches!(&then, Then::Apply(approval) if approval.is_given()))
            .filter(|_| matches!(then, Then::Apply(_))),
        watch: true,
        web: false,
        options: wanted.options.clone(),
    };
    let begun = begin(&runs, &start, &unit.workspace, &workspace, Some(archive)).await?;
    let Then::Apply(approval) = then else { return watch::watch(&runs, begun.id(), &wanted.options).await };
    let options = watch::Options { asks_later: !approval.is_given(), ..wanted.options.clone() };
    let code = watch::watch(&runs, begun.id(), &options).await?;
    let (run, beside) = runs.read(begun.id()).await?;
    if !may(&run, "is-confirmable") || watch::is_interrupted(code) {
        return Ok(code);
    }
    contract::print(&run);
    if approval.is_given() {
        // Something has stopped it that a flag for everything does not answer.
        return Ok(code);
    }
    let deed = runs.deed(&run, &beside);
    if let Err(no) = approval.confirmation.ask_until_interrupted(&session, &deed).await {
        // Nobody else waits for an answer.
        runs.act(&run, "discard", &json!({})).await?;
        return Err(no);
    }
    runs.act(&run, "apply", &json!({ "accept-output-changes": true })).await?;
    watch::watch(&runs, run.id(), &watch::Options { after_plan: true, ..wanted.options.clone() }).await
}

/// The workspace of a unit. In a bucket that commands serve themselves it is made when it is missing; on a server others
/// decide about that.
async fn workspace(session: &Session, unit: &Unit) -> Result<Resource, Failure> {
    let missing = match workspaces::find(session, &unit.workspace).await {
        Ok((found, _)) => return Ok(found),
        Err(failure) if failure.is(Kind::NotFound) => failure,
        Err(failure) => return Err(failure),
    };
    if !session.is_local() {
        return Err(missing.hint(format!("`taco ws create {}` creates it", unit.workspace)));
    }
    let WorkspaceName { organization, name } = &unit.workspace;
    let subject = format!("organization {organization}");
    let path = ["organizations", organization.as_str()];
    match session.api.get(&subject, &path, &[]).await {
        Ok(_) => {}
        Err(failure) if failure.is(Kind::NotFound) => {
            let account = one(session.api.get("your account", &["account", "details"], &[]).await?)?;
            let attributes = json!({ "name": organization, "email": account.get("email") });
            let body = about("organizations", attributes, json!({}));
            session.api.send(&subject, Method::POST, &["organizations"], &body).await?;
            tell(session, &format!("Created organization {organization}."));
        }
        Err(failure) => return Err(failure),
    }
    // Whoever can open the bucket can read all states in it anyway.
    let mut attributes = json!({ "name": name, "execution-mode": "remote", "global-remote-state": true });
    let working_directory = unit.working_directory()?;
    if let Some(directory) = &working_directory {
        attributes["working-directory"] = Value::from(directory.as_str());
    }
    let body = about("workspaces", attributes, json!({}));
    let path = ["organizations", organization.as_str(), "workspaces"];
    let subject = format!("workspace {}", unit.workspace);
    let made = one(session.api.send(&subject, Method::POST, &path, &body).await?)?;
    let within = working_directory.map(|directory| format!(" for {directory} of its repository")).unwrap_or_default();
    tell(session, &format!("Created workspace {}{within}, named after {}.", unit.workspace, unit.named_after));
    Ok(made)
}

fn tell(session: &Session, sentence: &str) {
    if !session.quiet {
        eprintln!("{sentence}");
    }
}
