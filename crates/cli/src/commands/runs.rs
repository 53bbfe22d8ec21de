//! `taco run`

mod again;
mod contract;
pub(crate) mod directory;
mod logs;
mod plan;
mod policies;
mod start;
mod tasks;
mod watch;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};
use url::Url;

use super::{done, plain_list, workspaces};
use crate::api::{about, one};
use crate::browser;
use crate::confirmation::Confirmation;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::print::Cell;
use crate::process_env::ProcessEnv;
use crate::resource::{Document, Resource, in_words};
use crate::session::{Flags, Session, WorkspaceName};
use crate::status;

/// Start, watch, approve and list runs
#[derive(Args, Debug)]
#[command(after_help = "\
A RUN is an ID such as run-4Tk9mXbq7cWvZpHn. Terraform's flags may have one dash: -destroy.

Examples:
  taco run start . --ws acme/network --watch
  taco run start -destroy -target=aws_instance.web --message 'make room'
  taco run ls --status failed
  taco run again --watch
  taco run logs --follow
  taco run apply run-4Tk9mXbq7cWvZpHn --yes --watch --timeout 15m
  taco run comment 'ask Jane first'

Exit codes:
  0  success; watching: applied, or nothing to change
  1  error; watching: the run failed, or was canceled or discarded
  2  wrong command line; watching: there are changes, which need `taco run apply`
     unless the run is plan-only
  3  not found, or not allowed
  4  conflict, such as a run that is over already
  5  the server can't be reached
  124  --timeout is over; the run continues
  130  stopped by Ctrl-C; the run continues")]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Start a run, with the configuration in a directory or the latest one
    Start(start::Start),
    /// List runs of the workspace, or of the organization
    Ls {
        /// Only runs in this status, such as failed or planned; repeat for several
        #[arg(long, value_name = "STATUS")]
        status: Vec<String>,
        /// How many
        #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=100))]
        limit: u8,
    },
    /// Show a run, its plan, and why it waits
    Show {
        /// Run [default: the workspace's latest]
        run: Option<String>,
        /// Print only the plan, with all its attributes
        #[arg(long, conflicts_with = "web")]
        plan: bool,
        /// Open its page in the browser
        #[arg(long)]
        web: bool,
    },
    /// Follow a run until it is over or needs approval
    Watch {
        /// Run [default: the workspace's latest]
        run: Option<String>,
        /// Open its page in the browser too
        #[arg(long)]
        web: bool,
        #[command(flatten)]
        options: watch::Options,
    },
    /// Print the logs of a run's plan and apply
    Logs(logs::Logs),
    /// Start a new run with the configuration and options of an earlier one
    #[command(alias = "retry")]
    Again {
        /// Run [default: the workspace's latest]
        run: Option<String>,
        /// Watch the new run, as `taco run watch` does
        #[arg(long, short)]
        watch: bool,
        #[command(flatten)]
        options: watch::Options,
    },
    /// Approve a run, so that its plan is applied
    Apply {
        /// Run [default: the workspace's latest]
        run: Option<String>,
        #[command(flatten)]
        decision: Decision,
        /// Apply it although it breaks outputs that other workspaces use
        #[arg(long)]
        accept_output_changes: bool,
        #[command(flatten)]
        confirmation: Confirmation,
        /// Watch the run, as `taco run watch` does
        #[arg(long, short)]
        watch: bool,
        #[command(flatten)]
        options: watch::Options,
    },
    /// Comment on a run
    Comment {
        /// Text of the comment
        text: String,
        /// Run [default: the workspace's latest]
        #[arg(long, value_name = "RUN")]
        run: Option<String>,
    },
    /// Discard a run's plan
    Discard {
        /// Run [default: the workspace's latest]
        run: Option<String>,
        #[command(flatten)]
        decision: Decision,
    },
    /// Let a run go on that mandatory policies have stopped
    Override {
        /// Run [default: the workspace's latest]
        run: Option<String>,
        #[command(flatten)]
        decision: Decision,
    },
    /// Cancel a run, also while it plans or applies
    Cancel {
        /// Run [default: the workspace's latest]
        run: Option<String>,
        #[command(flatten)]
        decision: Decision,
        /// Give up on a run that does not react; resources may be left half done
        #[arg(long)]
        force: bool,
    },
}

#[derive(Args, Debug)]
struct Decision {
    /// Comment, shown with the run
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
}

impl Decision {
    fn body(&self) -> Value {
        json!({ "comment": self.comment })
    }
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<ExitCode, Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    let runs = Runs { session: &session };
    match &arguments.verb {
        Verb::Start(start) => return start::start(&runs, start).await,
        Verb::Ls { status, limit } => runs.list(status, *limit).await,
        Verb::Show { run, plan, web } => runs.show(run.as_deref(), *plan, *web).await,
        Verb::Watch { run, web, options } => {
            let (run, beside) = runs.find(run.as_deref()).await?;
            if *web {
                browser::open(&runs.page(&run, &beside));
            }
            return watch::watch(&runs, run.id(), options).await;
        }
        Verb::Again { run, watch, options } => return again::again(&runs, run.as_deref(), *watch, options).await,
        Verb::Logs(wanted) => logs::print(&runs, wanted).await,
        Verb::Apply { run, decision, accept_output_changes, confirmation, watch, options } => {
            watch::check(*watch, options)?;
            let (run, beside) = runs.find(run.as_deref()).await?;
            if !confirmation.is_given() && session.may_ask() {
                plan::show_before_question(&runs, &run, &beside).await;
                contract::print(&run);
            }
            confirmation.ask(&session, &runs.deed(&run, &beside))?;
            let body = json!({ "comment": decision.comment, "accept-output-changes": accept_output_changes });
            if *watch || session.is_local() {
                runs.act(&run, "apply", &body).await?;
                let options = watch::Options { after_plan: true, ..options.clone() };
                return watch::watch(&runs, run.id(), &options).await;
            }
            runs.decide(&run, "apply", &body, "Approved").await
        }
        Verb::Comment { text, run } => {
            let run = runs.find(run.as_deref()).await?.0;
            runs.comment(&run, text).await
        }
        Verb::Discard { run, decision } => {
            let run = runs.find(run.as_deref()).await?.0;
            runs.decide(&run, "discard", &decision.body(), "Discarded").await
        }
        Verb::Override { run, decision } => {
            let run = runs.find(run.as_deref()).await?.0;
            runs.decide(&run, "override-policies", &decision.body(), "Overrode the policies of").await
        }
        Verb::Cancel { run, decision, force } => {
            let run = runs.find(run.as_deref()).await?.0;
            let action = if *force { "force-cancel" } else { "cancel" };
            runs.decide(&run, action, &decision.body(), "Canceling").await
        }
    }?;
    Ok(ExitCode::SUCCESS)
}

/// What the plan was given for bound variables: `vpc_id from network → id (commit 3)`.
fn bound(run: &Resource) -> String {
    let given = run.get("taco-bound-variables").as_array().into_iter().flatten();
    let words = given.map(|given| {
        let text = |name: &str| in_words(&given[name]);
        let env = if given["category"] == "env" { "env " } else { "" };
        let when = match (&given["announced-by"], text("commit").as_str()) {
            (Value::String(run), _) => format!(" (as the plan of {run} announces it)"),
            (_, "") => String::new(),
            (_, commit) => format!(" (commit {commit})"),
        };
        format!("{env}{} from {} → {}{when}", text("variable"), text("producer"), text("output"))
    });
    words.collect::<Vec<_>>().join(", ")
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

/// Name of whoever started a run, as far as it is known.
fn author(run: &Resource, beside: &Document) -> String {
    beside.related(run, "created-by").map(|user| user.text("username")).unwrap_or_default()
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
        let include = [("include", "plan,apply,workspace,created_by")];
        let found = self.session.api.get(&format!("run {id}"), &["runs", id], &include).await.map_err(|failure| {
            failure.hint_if(Kind::NotFound, || "`taco run ls` lists runs; `taco whoami` shows your account".to_owned())
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
            None => Err(Failure::new(Kind::NotFound, format!("{name} has no runs yet"))
                .hint(format!("`taco run start . --ws {name}` starts one with what is in this directory"))),
        }
    }

    /// Workspace of a run.
    fn name_of(&self, run: &Resource, beside: &Document) -> WorkspaceName {
        let workspace = beside.related(run, "workspace");
        let organization = workspace.and_then(|workspace| workspace.related_id("organization")).unwrap_or_default();
        let name = workspace.map(|workspace| workspace.text("name")).unwrap_or_default();
        WorkspaceName { organization: organization.to_owned(), name }
    }

    /// Address of a run's page.
    fn page(&self, run: &Resource, beside: &Document) -> Url {
        browser::run_page(&self.session.target.host, &self.name_of(run, beside), run.id())
    }

    /// What applying a run does, after "do you want to".
    fn deed(&self, run: &Resource, beside: &Document) -> String {
        let plan = beside.related(run, "plan");
        let count =
            |name: &str| plan.and_then(|plan| plan.get(&format!("resource-{name}")).as_u64()).unwrap_or_default();
        let (add, change, destroy) = (count("additions"), count("changes"), count("destructions"));
        let (id, name) = (run.id(), self.name_of(run, beside));
        if run.get("is-destroy") == true {
            let resources = if destroy == 1 { "resource" } else { "resources" };
            return format!("DESTROY {destroy} {resources} of {name} with {id}; this can't be undone");
        }
        if let Some(number) = contract::broken_workspaces(run) {
            let workspaces = if number == 1 { "workspace" } else { "workspaces" };
            return format!("apply {id} to {name} and BREAK {number} {workspaces} that use its outputs");
        }
        format!("apply {id} to {name} ({add} to add, {change} to change, {destroy} to destroy)")
    }

    async fn list(&self, statuses: &[String], limit: u8) -> Result<(), Failure> {
        let Session { api, target, json, .. } = self.session;
        let statuses: Vec<String> = statuses.iter().map(|word| status::on_the_wire(word)).collect();
        let (limit, statuses) = (limit.to_string(), statuses.join(","));
        let mut query = vec![("include", "plan,workspace,created_by"), ("page[size]", limit.as_str())];
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
            let (status, created) = (output::status(run, "status"), output::time(run, "created-at"));
            let (id, workspace) = (Cell::from(run.id()), workspace.unwrap_or_default().into());
            let changes = changes(run, &found).into();
            [id, workspace, status, changes, author(run, &found).into(), created, output::text(run, "message")]
        };
        let headings = ["RUN", "WORKSPACE", "STATUS", "CHANGES", "BY", "CREATED", "MESSAGE"];
        let if_empty = match statuses.is_empty() {
            true => "No runs. `taco run start .` starts one with the configuration in this directory.",
            false => "No runs match.",
        };
        self.session.table(headings, found.data.iter().map(row), if_empty)
    }

    async fn show(&self, argument: Option<&str>, only_plan: bool, web: bool) -> Result<(), Failure> {
        let (run, beside) = self.find(argument).await?;
        if web {
            return browser::show(&self.page(&run, &beside));
        }
        if only_plan {
            return match plan::read(self, &run, &beside).await? {
                Some(plan) => plan::print(self, &run, &plan),
                None => Err(Failure::new(Kind::NotFound, format!("run {} has no plan", run.id()))
                    .because(format!("the run {}", status::sentence(&run.text("status"))))),
            };
        }
        if self.session.json {
            return output::json(&run.plain());
        }
        let workspace = beside.related(&run, "workspace").map(|workspace| workspace.text("name"));
        let agent = |phase: &Resource| in_words(&phase.get("execution-details")["agent-name"]);
        let phase = |name: &str| {
            let phase = beside.related(&run, name)?;
            let parts = [status::in_words(&phase.text("status")), agent(phase), phase.text("taco-error")];
            Some(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "))
        };
        let text = |attribute: &str| output::text(&run, attribute);
        self.session.fields([
            ("run", Cell::from(run.id())),
            ("workspace", workspace.unwrap_or_default().into()),
            ("status", output::status(&run, "status")),
            ("waits", Cell::Marked(waits(&run))),
            ("breaks", Cell::Marked(contract::in_words(&run))),
            ("policies", policies::in_words(&run).into()),
            ("message", text("message")),
            ("changes", changes(&run, &beside).into()),
            ("plan", phase("plan").unwrap_or_default().into()),
            ("apply", phase("apply").unwrap_or_default().into()),
            ("destroy", text("is-destroy")),
            ("plan only", text("plan-only")),
            ("auto-apply", text("auto-apply")),
            ("targets", text("target-addrs")),
            ("bound", bound(&run).into()),
            ("source", text("source")),
            ("by", author(&run, &beside).into()),
            ("configuration", run.related_id("configuration-version").unwrap_or_default().into()),
            ("created", output::time(&run, "created-at")),
            ("url", self.page(&run, &beside).as_str().into()),
        ])?;
        // A pipe gets rows and nothing else; `--plan` is for those who want it there.
        if self.session.screen.is_terminal() && !self.session.quiet {
            plan::show(self, &run, &beside).await?;
        }
        Ok(())
    }

    /// Asks for something to be done to a run.
    async fn act(&self, run: &Resource, action: &str, body: &Value) -> Result<(), Failure> {
        let path = ["runs", run.id(), "actions", action];
        let wants_word = action == "apply" && body["accept-output-changes"] != true && may(run, "is-confirmable");
        let hint = || match wants_word && contract::stops(run) {
            true => format!("`taco run apply {} --accept-output-changes` applies it all the same", run.id()),
            false => format!("`taco run show {}` has details", run.id()),
        };
        let sent = self.session.api.send(&format!("run {}", run.id()), Method::POST, &path, body).await;
        sent.map(drop).map_err(|failure| failure.hint_if(Kind::Conflict, hint))
    }

    async fn comment(&self, run: &Resource, text: &str) -> Result<(), Failure> {
        let body = about("comments", json!({ "body": text }), json!({}));
        let path = ["runs", run.id(), "comments"];
        let comment = one(self.session.api.send(&format!("run {}", run.id()), Method::POST, &path, &body).await?)?;
        done(self.session, &comment, &format!("Commented on run {}.", run.id()))
    }

    async fn decide(&self, run: &Resource, action: &str, body: &Value, sentence: &str) -> Result<(), Failure> {
        self.act(run, action, body).await?;
        let path = ["runs", run.id()];
        let after = one(self.session.api.get(&format!("run {}", run.id()), &path, &[]).await?)?;
        let status = after.text("status");
        let rest = match status.as_str() {
            "discarded" | "canceled" => String::new(),
            status => format!("; it {}", status::sentence(status)),
        };
        let sentence = if status == "canceled" { "Canceled" } else { sentence };
        done(self.session, &after, &format!("{sentence} run {}{rest}.", run.id()))
    }
}
