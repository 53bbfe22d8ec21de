//! `taco run`

mod logs;
mod start;
mod watch;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use super::{done, plain_list, workspaces};
use crate::api::{about, one};
use crate::confirmation::Confirmation;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::process_env::ProcessEnv;
use crate::resource::{Document, Resource, in_words};
use crate::session::{Flags, Session};

/// Start, list, watch and decide about runs
#[derive(Args, Debug)]
#[command(after_help = "\
A RUN is an id such as run-4Tk9mXbq7cWvZpHn; without one it is the workspace's newest.
Flags that terraform has may have one dash, as there: -destroy, -target, -replace, -var.

Examples:
  taco run start . --ws acme/network --watch
  taco run start -destroy -target=aws_instance.web --message 'make room'
  taco run ls --status planned
  taco run logs --follow
  taco run apply run-4Tk9mXbq7cWvZpHn --yes --watch --timeout 15m
  taco run comment 'ask Jane first'

Exit codes:
  0  done; of watch: applied, or there is nothing to change
  1  error; of watch also: errored, canceled or discarded
  2  wrong command line; of watch: there are changes, which wait for `taco run apply`
     unless the run only plans
  3  not found, or not allowed
  4  conflict, such as a run that is over already
  5  the server cannot be reached
  124  watching took longer than --timeout allows; the run goes on
  130  stopped by Ctrl-C; the run goes on")]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Start a run, with the configuration in a directory or with the newest that the workspace has
    Start(start::Start),
    /// List runs of a workspace, or of the organization if no workspace is given, the newest first
    Ls {
        /// Only those in this status, such as planned; repeat it for several
        #[arg(long, value_name = "STATUS")]
        status: Vec<String>,
        /// How many, at most 100
        #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=100))]
        limit: u8,
    },
    /// Show a run, and why it waits
    Show { run: Option<String> },
    /// Show what a run does until it is over or needs someone
    Watch {
        run: Option<String>,
        #[command(flatten)]
        options: watch::Options,
    },
    /// Print the log of a run's plan, and of its apply if there is one
    Logs(logs::Logs),
    /// Confirm a run, so that its plan is applied
    Apply {
        run: Option<String>,
        #[command(flatten)]
        decision: Decision,
        #[command(flatten)]
        confirmation: Confirmation,
        /// Then show what it does, as `taco run watch`
        #[arg(long, short)]
        watch: bool,
        #[command(flatten)]
        options: watch::Options,
    },
    /// Say something about a run, for whoever looks at it
    Comment {
        /// What to say
        text: String,
        /// Run to say it about
        #[arg(long, value_name = "RUN")]
        run: Option<String>,
    },
    /// Discard a run: its plan is not applied
    Discard {
        run: Option<String>,
        #[command(flatten)]
        decision: Decision,
    },
    /// Cancel a run; what is under way is interrupted
    Cancel {
        run: Option<String>,
        #[command(flatten)]
        decision: Decision,
        /// Give up a run that did not react: what it was doing may be left half done
        #[arg(long)]
        force: bool,
    },
}

#[derive(Args, Debug)]
struct Decision {
    /// Why, for whoever looks at the run
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<ExitCode, Failure> {
    let session = Session::open(&arguments.flags, process_env)?;
    let runs = Runs { session: &session };
    match &arguments.verb {
        Verb::Start(start) => return start::start(&runs, start).await,
        Verb::Ls { status, limit } => runs.list(status, *limit).await,
        Verb::Show { run } => runs.show(run.as_deref()).await,
        Verb::Watch { run, options } => {
            let id = runs.find(run.as_deref()).await?.0.id().to_owned();
            return watch::watch(&runs, &id, options).await;
        }
        Verb::Logs(wanted) => logs::print(&runs, wanted).await,
        Verb::Apply { run, decision, confirmation, watch, options } => {
            watch::check(*watch, options)?;
            let (run, beside) = runs.find(run.as_deref()).await?;
            confirmation.ask(&session, &format!("apply {} ({})", run.id(), changes(&run, &beside)))?;
            if *watch {
                runs.act(&run, "apply", decision).await?;
                let options = watch::Options { after_plan: true, ..options.clone() };
                return watch::watch(&runs, run.id(), &options).await;
            }
            runs.decide(&run, "apply", decision, "is confirmed").await
        }
        Verb::Comment { text, run } => {
            let run = runs.find(run.as_deref()).await?.0;
            runs.comment(&run, text).await
        }
        Verb::Discard { run, decision } => {
            let run = runs.find(run.as_deref()).await?.0;
            runs.decide(&run, "discard", decision, "is discarded").await
        }
        Verb::Cancel { run, decision, force } => {
            let run = runs.find(run.as_deref()).await?.0;
            let action = if *force { "force-cancel" } else { "cancel" };
            runs.decide(&run, action, decision, "is told to stop").await
        }
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Reasons why a run waits, in one text; empty if it does not.
pub(super) fn waits(run: &Resource) -> String {
    let reasons = run.get("taco-wait-reasons").as_array().map(Vec::as_slice).unwrap_or_default();
    reasons.iter().map(|reason| in_words(&reason["detail"])).collect::<Vec<_>>().join("; ")
}

/// Changes found by a run's plan, as far as they are known.
fn changes(run: &Resource, beside: &Document) -> String {
    let Some(plan) = beside.related(run, "plan").filter(|plan| plan.get("status") == "finished") else {
        return String::new();
    };
    let count = |name: &str| plan.text(&format!("resource-{name}"));
    format!("+{} ~{} -{}", count("additions"), count("changes"), count("destructions"))
}

fn may(run: &Resource, action: &str) -> bool {
    run.get("actions").get(action) == Some(&Value::Bool(true))
}

struct Runs<'a> {
    session: &'a Session,
}

impl Runs<'_> {
    /// A run with its plan, its apply and its workspace included.
    async fn read(&self, id: &str) -> Result<(Resource, Document), Failure> {
        let include = [("include", "plan,apply,workspace")];
        let found = self.session.api.get(&format!("run {id}"), &["runs", id], &include).await.map_err(|failure| {
            failure.hint_if(Kind::NotFound, || "`taco run ls` lists runs; `taco whoami` is your account".to_owned())
        })?;
        let run = found.data.first().cloned();
        Ok((run.ok_or_else(|| Failure::error(format!("run {id}: the server's answer is empty")))?, found))
    }

    /// The run that an argument means.
    async fn find(&self, argument: Option<&str>) -> Result<(Resource, Document), Failure> {
        if let Some(id) = argument {
            return self.read(id).await;
        }
        let name = self.session.target.workspace(None)?;
        let workspace = workspaces::find(self.session, &name).await?.0;
        let path = ["workspaces", workspace.id(), "runs"];
        let newest = self.session.api.get(&format!("runs of {name}"), &path, &[("page[size]", "1")]).await?;
        match newest.data.first() {
            Some(run) => self.read(run.id()).await,
            None => Err(Failure::new(Kind::NotFound, format!("{name} has no run yet"))
                .hint(format!("`taco run start . --ws {name}` starts one with what is in this directory"))),
        }
    }

    async fn list(&self, statuses: &[String], limit: u8) -> Result<(), Failure> {
        let Session { api, target, json, .. } = self.session;
        let (limit, statuses) = (limit.to_string(), statuses.join(","));
        let mut query = vec![("include", "plan,workspace"), ("page[size]", limit.as_str())];
        if !statuses.is_empty() {
            query.push(("filter[status]", &statuses));
        }
        let found = match target.workspace(None) {
            Ok(name) => {
                let workspace = workspaces::find(self.session, &name).await?.0;
                api.get(&format!("runs of {name}"), &["workspaces", workspace.id(), "runs"], &query).await?
            }
            Err(_) => {
                let organization = target.organization(None)?;
                let subject = format!("runs of organization {organization}");
                api.get(&subject, &["organizations", &organization, "runs"], &query).await?
            }
        };
        if *json {
            return output::json(&plain_list(&found.data));
        }
        let row = |run: &Resource| {
            let workspace = found.related(run, "workspace").map(|workspace| workspace.text("name"));
            let [status, created, message] = ["status", "created-at", "message"].map(|name| run.text(name));
            [run.id().to_owned(), workspace.unwrap_or_default(), status, changes(run, &found), created, message]
        };
        output::table(["RUN", "WORKSPACE", "STATUS", "CHANGES", "CREATED", "MESSAGE"], found.data.iter().map(row))
    }

    async fn show(&self, argument: Option<&str>) -> Result<(), Failure> {
        let (run, beside) = self.find(argument).await?;
        if self.session.json {
            return output::json(&run.plain());
        }
        let workspace = beside.related(&run, "workspace").map(|workspace| workspace.text("name"));
        let agent = |phase: &Resource| in_words(&phase.get("execution-details")["agent-name"]);
        let phase = |name: &str| {
            let phase = beside.related(&run, name)?;
            let parts = [phase.text("status"), agent(phase), phase.text("taco-error")];
            Some(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "))
        };
        output::fields(&[
            ("run", run.id().to_owned()),
            ("workspace", workspace.unwrap_or_default()),
            ("status", run.text("status")),
            ("waits", waits(&run)),
            ("message", run.text("message")),
            ("changes", changes(&run, &beside)),
            ("plan", phase("plan").unwrap_or_default()),
            ("apply", phase("apply").unwrap_or_default()),
            ("destroy", run.text("is-destroy")),
            ("plan only", run.text("plan-only")),
            ("auto-apply", run.text("auto-apply")),
            ("targets", run.text("target-addrs")),
            ("source", run.text("source")),
            ("configuration", run.related_id("configuration-version").unwrap_or_default().to_owned()),
            ("created", run.text("created-at")),
        ])
    }

    /// Asks for something to be done to a run.
    async fn act(&self, run: &Resource, action: &str, decision: &Decision) -> Result<(), Failure> {
        let body = json!({ "comment": decision.comment });
        let path = ["runs", run.id(), "actions", action];
        let hint = || format!("`taco run show {}` tells how it stands", run.id());
        let sent = self.session.api.send(&format!("run {}", run.id()), Method::POST, &path, &body).await;
        sent.map(drop).map_err(|failure| failure.hint_if(Kind::Conflict, hint))
    }

    async fn comment(&self, run: &Resource, text: &str) -> Result<(), Failure> {
        let body = about("comments", json!({ "body": text }), json!({}));
        let path = ["runs", run.id(), "comments"];
        let comment = one(self.session.api.send(&format!("run {}", run.id()), Method::POST, &path, &body).await?)?;
        done(self.session, &comment, &format!("It stands at run {}.", run.id()))
    }

    async fn decide(&self, run: &Resource, action: &str, decision: &Decision, sentence: &str) -> Result<(), Failure> {
        self.act(run, action, decision).await?;
        let path = ["runs", run.id()];
        let after = one(self.session.api.get(&format!("run {}", run.id()), &path, &[]).await?)?;
        let sentence = format!("Run {} {sentence}; its status is {}.", run.id(), after.text("status"));
        done(self.session, &after, &sentence)
    }
}
