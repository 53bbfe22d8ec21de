//! `taco walk`

mod code;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::plain_list;
use crate::EXIT_CODES;
use crate::api::{about, one};
use crate::failure::Failure;
use crate::output;
use crate::print::Cell;
use crate::process_env::ProcessEnv;
use crate::resource::Resource;
use crate::session::{Flags, Session};
use crate::status;

/// Plan, apply or destroy many workspaces, in the order of what they use of each other
#[derive(Args, Debug)]
#[command(after_help = format!("\
A walk runs a workspace only if something that it uses has changed, or its own configuration, variables or engine.
Approvals: --approve-each waits at every plan (the default), --approve-once at the first, --auto-approve at none.

Examples:
  taco walk plan --from network --watch
  taco walk apply --stale --auto-approve --watch
  taco walk apply --from network --to web --approve-once
  taco walk plan --all --code . --watch
  taco walk destroy --from staging-network
  taco walk show walk-4Tk9mXbq7cWvZpHn
  taco walk resume walk-4Tk9mXbq7cWvZpHn

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Plan workspaces in order; nothing is applied
    Plan(Begin),
    /// Plan and apply workspaces, each after those that it uses
    Apply(BeginApply),
    /// Destroy what workspaces manage, each before those that it uses
    Destroy(BeginDestroy),
    /// List walks
    Ls,
    /// Show a walk and each of its workspaces
    Show {
        /// Walk [default: the latest]
        walk: Option<String>,
    },
    /// Follow a walk until it is over or needs approval
    Watch {
        /// Walk [default: the latest]
        walk: Option<String>,
    },
    /// Approve plans that wait in a walk
    Approve {
        /// Walk [default: the latest]
        walk: Option<String>,
        /// Only this workspace; repeat for several
        #[arg(long = "workspace", alias = "unit", value_name = "WS")]
        units: Vec<String>,
        /// Watch the walk
        #[arg(long, short)]
        watch: bool,
    },
    /// Try again what failed, was blocked or canceled in a walk, and nothing else
    Resume {
        /// Walk [default: the latest]
        walk: Option<String>,
        /// Watch the walk
        #[arg(long, short)]
        watch: bool,
    },
    /// Cancel a walk: its runs are asked to stop, and no more begin
    Cancel {
        /// Walk [default: the latest]
        walk: Option<String>,
    },
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("units").required(true).args(["from", "stale", "subtree", "all"])))]
struct Begin {
    /// These workspaces, and all that use them, directly or not
    #[arg(long, value_name = "WS", num_args = 1.., value_delimiter = ',')]
    from: Vec<String>,
    /// Workspaces whose inputs have changed, and all that use them
    #[arg(long)]
    stale: bool,
    /// One workspace, and all that use it
    #[arg(long, value_name = "WS")]
    subtree: Option<String>,
    /// All workspaces
    #[arg(long)]
    all: bool,
    /// Only workspaces that lead to one of these
    #[arg(long, value_name = "WS", num_args = 1.., value_delimiter = ',')]
    to: Vec<String>,
    /// Maximum number of workspaces that run at a time [default: 10]
    #[arg(long, value_name = "NUMBER")]
    parallel: Option<u32>,
    /// After a failure: begin nothing more, or go on with what does not need it
    #[arg(long, value_enum, value_name = "WHAT", default_value = "stop")]
    on_fail: OnFail,
    /// Use the code in this directory: workspaces are found in it by their working directory
    #[arg(long, value_name = "DIR")]
    code: Option<PathBuf>,
    /// Watch the walk, as `taco walk watch` does
    #[arg(long, short)]
    watch: bool,
}

#[derive(Args, Debug)]
struct BeginApply {
    #[command(flatten)]
    begin: Begin,
    #[command(flatten)]
    approval: Approval,
}

#[derive(Args, Debug)]
struct BeginDestroy {
    #[command(flatten)]
    begin: Begin,
    #[command(flatten)]
    approval: Approval,
    /// Destroy also what workspaces outside of the walk use
    #[arg(long)]
    leave_consumers: bool,
}

#[derive(Args, Debug)]
#[group(multiple = false)]
struct Approval {
    /// Apply without asking
    #[arg(long)]
    auto_approve: bool,
    /// Wait for approval of each plan (the default)
    #[arg(long)]
    approve_each: bool,
    /// Wait for one approval, of the first plan, for the whole walk
    #[arg(long)]
    approve_once: bool,
}

impl Approval {
    fn word(&self) -> &'static str {
        match (self.auto_approve, self.approve_once) {
            (true, _) => "auto",
            (_, true) => "once",
            _ => "each",
        }
    }
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum OnFail {
    Stop,
    Continue,
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<ExitCode, Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    let walks = Walks { session: &session };
    match &arguments.verb {
        Verb::Plan(begin) => return walks.begin("plan", begin, Map::new()).await,
        Verb::Apply(apply) => {
            let more = Map::from_iter([("approval".to_owned(), apply.approval.word().into())]);
            return walks.begin("apply", &apply.begin, more).await;
        }
        Verb::Destroy(destroy) => {
            let more = Map::from_iter([
                ("approval".to_owned(), destroy.approval.word().into()),
                ("leave-consumers".to_owned(), destroy.leave_consumers.into()),
            ]);
            return walks.begin("destroy", &destroy.begin, more).await;
        }
        Verb::Ls => walks.list().await,
        Verb::Show { walk } => walks.show(walk.as_deref()).await,
        Verb::Watch { walk } => {
            let id = walks.id(walk.as_deref()).await?;
            return watch::watch(&walks, &id).await;
        }
        Verb::Approve { walk, units, watch } => {
            let id = walks.id(walk.as_deref()).await?;
            return walks.act(&id, "approve", &json!({ "units": units }), "Approved in", *watch).await;
        }
        Verb::Resume { walk, watch } => {
            let id = walks.id(walk.as_deref()).await?;
            return walks.act(&id, "resume", &json!({}), "Resumed", *watch).await;
        }
        Verb::Cancel { walk } => {
            let id = walks.id(walk.as_deref()).await?;
            return walks.act(&id, "cancel", &json!({}), "Canceling", false).await;
        }
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Walks of an organization.
struct Walks<'a> {
    session: &'a Session,
}

impl Walks<'_> {
    async fn begin(&self, kind: &str, begin: &Begin, more: Map<String, Value>) -> Result<ExitCode, Failure> {
        let organization = self.session.target.organization(None)?;
        let on_fail = match begin.on_fail {
            OnFail::Stop => "stop",
            OnFail::Continue => "continue",
        };
        let mut attributes = json!({
            "kind": kind, "from": begin.from, "stale": begin.stale, "subtree": begin.subtree, "all": begin.all,
            "to": begin.to, "parallel": begin.parallel, "on-fail": on_fail,
        });
        attributes.as_object_mut().into_iter().for_each(|all| all.extend(more.clone()));
        if let Some(directory) = &begin.code {
            attributes["code"] = code::upload(self.session, &organization, directory).await?.into();
        }
        let path = ["organizations", &organization, "walks"];
        let body = about("walks", attributes, json!({}));
        let walk = one(self.session.api.send("the walk", Method::POST, &path, &body).await?)?;
        if begin.watch || self.session.is_local() {
            return watch::watch(self, walk.id()).await;
        }
        self.tell(&walk, &format!("Started {} over {}", walk.id(), units_in(&walk)))
    }

    /// A walk's id, or that of the organization's latest.
    async fn id(&self, walk: Option<&str>) -> Result<String, Failure> {
        if let Some(walk) = walk {
            return Ok(walk.to_owned());
        }
        let organization = self.session.target.organization(None)?;
        let path = ["organizations", &organization, "walks"];
        let latest = self.session.api.get("walks", &path, &[("page[size]", "1")]).await?;
        let latest = latest.data.first().map(|walk| walk.id().to_owned());
        latest.ok_or_else(|| {
            Failure::error(format!("organization {organization} has no walk yet"))
                .hint("`taco walk plan --from WS` starts one")
        })
    }

    async fn read(&self, id: &str) -> Result<(Resource, Vec<Resource>), Failure> {
        let subject = format!("walk {id}");
        let walk = one(self.session.api.get(&subject, &["walks", id], &[]).await?)?;
        let nodes = self.session.api.get(&subject, &["walks", id, "nodes"], &[]).await?;
        Ok((walk, nodes.data))
    }

    async fn list(&self) -> Result<(), Failure> {
        let organization = self.session.target.organization(None)?;
        let subject = format!("walks of organization {organization}");
        let walks = self.session.api.list(&subject, &["organizations", &organization, "walks"], &[]).await?;
        if self.session.json {
            return output::json(&plain_list(&walks.data));
        }
        let row = |walk: &Resource| -> [Cell; 6] {
            [
                walk.id().into(),
                walk.text("kind").into(),
                output::status(walk, "state"),
                counts_in(walk).into(),
                walk.text("selection").into(),
                output::time(walk, "created-at"),
            ]
        };
        let if_empty = "No walks yet. `taco walk plan --from WS` starts one.";
        let headings = ["WALK", "KIND", "STATE", "WORKSPACES", "CHOICE", "CREATED"];
        self.session.table(headings, walks.data.iter().map(row), if_empty)
    }

    async fn show(&self, walk: Option<&str>) -> Result<(), Failure> {
        let id = self.id(walk).await?;
        let (walk, nodes) = self.read(&id).await?;
        if self.session.json {
            return output::json(&document(&walk, &nodes));
        }
        if self.session.quiet {
            return output::line(&walk.text("state"));
        }
        let fields: [(&'static str, Cell); 7] = [
            ("Walk", walk.id().into()),
            ("Kind", walk.text("kind").into()),
            ("State", output::status(&walk, "state")),
            ("Choice", walk.text("selection").into()),
            ("Started by", walk.text("created-by-name").into()),
            ("Started", output::time(&walk, "created-at")),
            ("Ended", output::time(&walk, "ended-at")),
        ];
        self.session.fields(fields)?;
        output::line("")?;
        let row = |node: &Resource| -> [Cell; 4] {
            let run = node.get("runs").as_array().and_then(|runs| runs.last()).and_then(Value::as_str);
            let (state, run) = (output::status(node, "state"), run.unwrap_or_default().into());
            [node.text("unit").into(), state, run, node.text("reason").into()]
        };
        self.session.table(["WORKSPACE", "STATE", "RUN", "WHY"], nodes.iter().map(row), "The walk has no workspaces.")
    }

    async fn act(&self, id: &str, action: &str, body: &Value, deed: &str, watches: bool) -> Result<ExitCode, Failure> {
        let path = ["walks", id, "actions", action];
        let walk = one(self.session.api.send(&format!("walk {id}"), Method::POST, &path, body).await?)?;
        if watches || (self.session.is_local() && action != "cancel") {
            return watch::watch(self, id).await;
        }
        self.tell(&walk, &format!("{deed} {id}"))
    }

    fn tell(&self, walk: &Resource, sentence: &str) -> Result<ExitCode, Failure> {
        match (self.session.json, self.session.quiet) {
            (true, _) => output::json(&walk.plain())?,
            (false, true) => output::line(walk.id())?,
            (false, false) => {
                output::line(&format!("{sentence}."))?;
                eprintln!("`taco walk watch {id}` follows it, `taco walk show {id}` shows it.", id = walk.id());
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The shape of a walk that scripts rely on.
fn document(walk: &Resource, nodes: &[Resource]) -> Value {
    let mut whole = walk.plain();
    let nodes: Vec<Value> = nodes.iter().map(Resource::plain).collect();
    if let Some(fields) = whole.as_object_mut() {
        fields.insert("nodes".to_owned(), nodes.into());
    }
    whole
}

fn units_in(walk: &Resource) -> String {
    let counts = walk.get("counts").as_object();
    let total: u64 = counts.into_iter().flat_map(Map::values).filter_map(Value::as_u64).sum();
    if total == 1 { "1 workspace".to_owned() } else { format!("{total} workspaces") }
}

/// Numbers of units by state: `3 done, 1 failed`.
fn counts_in(walk: &Resource) -> String {
    let counts = walk.get("counts").as_object().into_iter().flatten();
    let texts: Vec<String> = counts.map(|(state, count)| format!("{count} {}", status::in_words(state))).collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Document;

    #[test]
    fn a_walk_is_one_document_with_its_nodes() {
        let resource = |value: Value| Document::from(json!({ "data": value })).data.remove(0);
        let counts = json!({ "cut_off": 2, "done": 1 });
        let walk = resource(json!({ "id": "walk-1", "attributes": { "state": "done", "counts": counts } }));
        let node = json!({ "unit": "web", "state": "done", "result": "changed", "reason": "x", "runs": ["run-1"] });
        let node = resource(json!({ "id": "wn-1", "attributes": node }));
        let document = document(&walk, &[node]);
        assert_eq!((&document["id"], &document["state"]), (&json!("walk-1"), &json!("done")));
        assert_eq!((&document["nodes"][0]["unit"], &document["nodes"][0]["runs"]), (&json!("web"), &json!(["run-1"])));
        assert_eq!((units_in(&walk), counts_in(&walk)), ("3 workspaces".to_owned(), "2 cut off, 1 done".to_owned()));
    }
}
