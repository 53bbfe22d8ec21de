//! `taco deps`

use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;
use serde_json::{Value, json};
use taco_graph_picture::Edge;

use super::{done, given, gone, graph, workspaces};
use crate::EXIT_CODES;
use crate::api::{about, one};
use crate::confirmation::Confirmation;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::print::Cell;
use crate::process_env::ProcessEnv;
use crate::resource::Resource;
use crate::session::{Flags, Session, WorkspaceName};
use crate::spelling_hints::did_you_mean;

/// Maximum number of run triggers that a list proposes.
const MAX_PROPOSALS: usize = 5;

/// Manage dependencies: which workspace uses the outputs of which other
#[derive(Args, Debug)]
#[command(after_help = format!("\
Most dependencies are found by themselves, in states, plans and what runs read. Declare what leaves
no trace, and mute what does not count.

Examples:
  taco deps ls cluster
  taco deps declare cluster network --output vpc_id --output subnet_ids
  taco deps mute cluster network --reason 'only in a comment'
  taco deps policy cluster network auto
  taco deps trigger cluster network
  taco deps ack cluster network --reason 'same subnets, new order'

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List what a workspace uses and what uses it, or all dependencies
    Ls {
        /// Workspace, or ORGANIZATION/WORKSPACE [default: all of the organization]
        workspace: Option<String>,
    },
    /// Say that a workspace uses outputs of another
    Declare {
        #[command(flatten)]
        ends: Ends,
        /// Output that it uses; repeat for several [default: any of them]
        #[arg(long, value_name = "NAME")]
        output: Vec<String>,
    },
    /// Mute a dependency: it counts no more
    Mute {
        #[command(flatten)]
        ends: Ends,
        /// Reason, shown with the dependency
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Let a muted dependency count again
    Unmute {
        #[command(flatten)]
        ends: Ends,
    },
    /// Remove what was declared; what is seen to be used stays
    Rm {
        #[command(flatten)]
        ends: Ends,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Acknowledge: the consumer is up to date with its producer as it is now
    Ack {
        #[command(flatten)]
        ends: Ends,
        /// Reason, shown in the audit log
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Create a run trigger: applies that change outputs which the consumer uses start a run in it
    Trigger {
        #[command(flatten)]
        ends: Ends,
    },
    /// Set what happens to the consumer when outputs that it uses change
    Policy {
        #[command(flatten)]
        ends: Ends,
        /// Start a run (auto), only show it (notify), or let it not count (ignore)
        #[arg(value_enum)]
        policy: Policy,
    },
}

/// Both ends of a dependency.
#[derive(Args, Debug)]
struct Ends {
    /// Workspace that uses outputs, or ORGANIZATION/WORKSPACE
    consumer: String,
    /// Workspace whose outputs are used
    producer: String,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum Policy {
    /// Start a run
    Auto,
    /// Show it as stale
    Notify,
    /// Nothing; the change does not count
    Ignore,
}

impl Policy {
    fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Notify => "notify",
            Self::Ignore => "ignore",
        }
    }
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    match &arguments.verb {
        Verb::Ls { workspace } => list(&session, workspace.as_deref()).await,
        Verb::Declare { ends, output } => declare(&session, ends, output).await,
        Verb::Mute { ends, reason } => {
            let changes = given([("muted", Some(true.into())), ("reason", reason.clone().map(Value::from))]);
            change(&session, ends, changes.into(), "no longer counts").await
        }
        Verb::Unmute { ends } => change(&session, ends, json!({ "muted": false }), "counts again").await,
        Verb::Policy { ends, policy } => {
            let outcome = match policy {
                Policy::Auto => "starts a run of the consumer when outputs that it uses change",
                Policy::Notify => "shows the consumer as stale when outputs that it uses change",
                Policy::Ignore => "is ignored",
            };
            change(&session, ends, json!({ "policy": policy.word() }), outcome).await
        }
        Verb::Rm { ends, confirmation } => remove(&session, ends, confirmation).await,
        Verb::Trigger { ends } => trigger(&session, ends).await,
        Verb::Ack { ends, reason } => acknowledge(&session, ends, reason.as_deref()).await,
    }
}

async fn list(session: &Session, workspace: Option<&str>) -> Result<(), Failure> {
    let (organization, name) = match workspace {
        Some(workspace) => {
            let name = session.target.workspace(Some(workspace))?;
            // A name that is not there is an error, and not an empty list.
            workspaces::find(session, &name).await?;
            (name.organization, Some(name.name))
        }
        None => (session.target.organization(None)?, None),
    };
    let mut edges = graph::read(session, &organization).await?.edges;
    edges.retain(|edge| name.as_ref().is_none_or(|name| *name == edge.consumer || *name == edge.producer));
    edges.sort_by(|one, other| (&one.consumer, &one.producer).cmp(&(&other.consumer, &other.producer)));
    if session.json {
        let document = serde_json::to_value(&edges).map_err(|error| Failure::error(error.to_string()))?;
        return output::json(&document);
    }
    let row = |edge: &Edge| {
        let grades: Vec<&str> = edge.grades.iter().map(|grade| grade.word()).collect();
        let status = match edge.certain {
            true => Cell::Status(edge.status.word().to_owned()),
            false => Cell::Marked(format!("probably {}", edge.status)),
        };
        let policy = match (edge.muted, edge.policy) {
            (true, _) => "muted".to_owned(),
            (false, policy) => policy.map(|policy| policy.to_string()).unwrap_or_default(),
        };
        let [consumer, producer] = [&edge.consumer, &edge.producer].map(|name| Cell::from(name.as_str()));
        [consumer, producer, status, policy.into(), grades.join(",").into(), edge.outputs.join(", ").into()]
    };
    let headings = ["CONSUMER", "PRODUCER", "STATUS", "POLICY", "KNOWN BY", "OUTPUTS"];
    let if_empty = "No dependencies are known. `taco deps declare CONSUMER PRODUCER` declares one.";
    session.table(headings, edges.iter().map(row), if_empty)?;
    propose_triggers(session, &edges);
    Ok(())
}

/// Proposes run triggers, to people.
fn propose_triggers(session: &Session, edges: &[Edge]) {
    if !session.screen.is_terminal() || session.quiet {
        return;
    }
    for edge in edges.iter().filter(|edge| edge.proposes_trigger).take(MAX_PROPOSALS) {
        let Edge { consumer, producer, .. } = edge;
        eprintln!("`taco deps trigger {consumer} {producer}` runs {consumer} when outputs change that it uses.");
    }
}

/// A dependency on the server.
struct Found {
    dependency: Resource,
    consumer: WorkspaceName,
    producer: String,
}

impl Found {
    fn subject(&self) -> String {
        subject(&self.consumer, &self.producer)
    }

    fn id(&self) -> &str {
        self.dependency.id()
    }
}

fn subject(consumer: &WorkspaceName, producer: &str) -> String {
    format!("dependency of {consumer} on {producer}")
}

/// The producer's name; dependencies do not leave their organization.
fn producer_in<'a>(consumer: &WorkspaceName, producer: &'a str) -> Result<&'a str, Failure> {
    match producer.split_once('/') {
        Some((organization, name)) if organization == consumer.organization => Ok(name),
        // Addresses of states that are elsewhere have slashes too.
        Some(_) if producer.contains(':') => Ok(producer),
        Some(_) => Err(Failure::usage(format!("{producer} is in another organization than {consumer}"))
            .because("dependencies are within one organization")),
        None => Ok(producer),
    }
}

async fn find(session: &Session, ends: &Ends) -> Result<Found, Failure> {
    let consumer = session.target.workspace(Some(&ends.consumer))?;
    let producer = producer_in(&consumer, &ends.producer)?;
    let (workspace, _) = workspaces::find(session, &consumer).await?;
    let path = ["workspaces", workspace.id(), "dependencies"];
    let known = session.api.list(&format!("dependencies of {consumer}"), &path, &[]).await?.data;
    let is_wanted = |dependency: &&Resource| dependency.text("producer") == producer;
    if let Some(dependency) = known.iter().find(is_wanted) {
        return Ok(Found { dependency: dependency.clone(), producer: producer.to_owned(), consumer });
    }
    let names: Vec<String> = known.iter().map(|dependency| dependency.text("producer")).collect();
    let hint =
        did_you_mean(producer, names.iter().map(String::as_str), || format!("`taco deps ls {consumer}` lists them"));
    Err(Failure::new(Kind::NotFound, format!("{}: not found", subject(&consumer, producer)))
        .because(format!("{} is not known to use it", consumer.name))
        .hint(hint))
}

async fn declare(session: &Session, ends: &Ends, outputs: &[String]) -> Result<(), Failure> {
    let consumer = session.target.workspace(Some(&ends.consumer))?;
    let producer = producer_in(&consumer, &ends.producer)?;
    let (workspace, _) = workspaces::find(session, &consumer).await?;
    let outputs = if outputs.is_empty() { Value::Null } else { json!(outputs) };
    let body = about("dependencies", json!({ "producer": producer, "outputs": outputs }), json!({}));
    let path = ["workspaces", workspace.id(), "dependencies"];
    let declared = one(session.api.send(&subject(&consumer, producer), Method::POST, &path, &body).await?)?;
    done(session, &declared, &format!("Declared that {consumer} uses outputs of {producer} ({}).", declared.id()))
}

async fn change(session: &Session, ends: &Ends, changes: Value, outcome: &str) -> Result<(), Failure> {
    let found = find(session, ends).await?;
    let body = about("dependencies", changes, json!({}));
    let path = ["dependencies", found.id()];
    let changed = one(session.api.send(&found.subject(), Method::PATCH, &path, &body).await?)?;
    done(session, &changed, &format!("The {} {outcome}.", found.subject()))
}

async fn acknowledge(session: &Session, ends: &Ends, reason: Option<&str>) -> Result<(), Failure> {
    let found = find(session, ends).await?;
    let attributes = given([("reason", reason.map(Value::from))]);
    let body = about("dependencies", attributes.into(), json!({}));
    let path = ["dependencies", found.id(), "actions", "acknowledge"];
    let changed = one(session.api.send(&found.subject(), Method::POST, &path, &body).await?)?;
    let sentence = format!("{} is up to date with {} as it is now, by your word.", found.consumer, found.producer);
    done(session, &changed, &sentence)
}

async fn trigger(session: &Session, ends: &Ends) -> Result<(), Failure> {
    let found = find(session, ends).await?;
    let [Some(consumer), Some(producer)] = ["consumer", "producer"].map(|end| found.dependency.related_id(end)) else {
        return Err(Failure::error(format!("{}: no run trigger is possible", found.subject()))
            .because("one of them is no workspace of this organization that you may see"));
    };
    let relationships = json!({ "sourceable": { "data": { "type": "workspaces", "id": producer } } });
    let body = about("run-triggers", json!({ "taco-only-when-outputs-changed": true }), relationships);
    let path = ["workspaces", consumer, "run-triggers"];
    let made = one(session.api.send(&found.subject(), Method::POST, &path, &body).await?)?;
    let (consumer, producer) = (&found.consumer.name, &found.producer);
    let sentence =
        format!("Applies of {producer} that change outputs which {consumer} uses start a run ({}).", made.id());
    done(session, &made, &sentence)
}

async fn remove(session: &Session, ends: &Ends, confirmation: &Confirmation) -> Result<(), Failure> {
    let found = find(session, ends).await?;
    confirmation.ask(session, &format!("remove the declared {}", found.subject()))?;
    session.api.delete(&found.subject(), &["dependencies", found.id()]).await?;
    gone(session, found.id(), &format!("Removed the declared {}.", found.subject()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn producers_are_named_with_and_without_their_organization() {
        let consumer = WorkspaceName { organization: "acme".into(), name: "app".into() };
        let named = |producer| producer_in(&consumer, producer).map(str::to_owned);
        assert_eq!(named("network").expect("a name"), "network");
        assert_eq!(named("acme/network").expect("a name"), "network");
        assert_eq!(named("s3://bucket/network.tfstate").expect("an address"), "s3://bucket/network.tfstate");
        assert!(named("other/network").is_err());
    }
}
