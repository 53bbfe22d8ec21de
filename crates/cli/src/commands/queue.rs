//! `taco queue`

use clap::Args;

use super::{plain_list, runs};
use crate::EXIT_CODES;
use crate::failure::Failure;
use crate::output;
use crate::process_env::ProcessEnv;
use crate::resource::{Document, Resource};
use crate::session::{Flags, Session};

/// Runs that no agent can have yet: they wait for another run, a lock, or someone's decision.
const NOT_READY: &str = "pending,confirmed,planned";

/// Show runs in progress and waiting, and what each waits for
#[derive(Args, Debug)]
#[command(after_help = format!("\
Examples:
  taco queue --org acme
  taco queue --json

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    let organization = session.target.organization(None)?;
    let subject = format!("runs of organization {organization}");
    let include = ("include", "workspace");
    let queue = ["organizations", &organization, "runs", "queue"];
    let mut queue = session.api.list(&subject, &queue, &[include]).await?;
    let others = ["organizations", &organization, "runs"];
    let others = session.api.list(&subject, &others, &[include, ("filter[status]", NOT_READY)]).await?;
    append(&mut queue, others);
    if session.json {
        return output::json(&plain_list(&queue.data));
    }
    let row = |run: &Resource| {
        let workspace = queue.related(run, "workspace").map(|workspace| workspace.text("name"));
        let (status, created) = (output::status(run, "status"), output::time(run, "created-at"));
        [run.id().into(), workspace.unwrap_or_default().into(), status, created, runs::waits(run).into()]
    };
    let if_empty = "The queue is empty: no run is running or waiting.";
    session.table(["RUN", "WORKSPACE", "STATUS", "CREATED", "WAITS"], queue.data.iter().map(row), if_empty)
}

/// Adds runs that are not there yet, the oldest first: one may move on between two questions.
fn append(queue: &mut Document, others: Document) {
    for run in others.data.into_iter().rev() {
        if !queue.data.iter().any(|known| known.id() == run.id()) {
            queue.data.push(run);
        }
    }
    queue.included.extend(others.included);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_that_moves_on_is_listed_once() {
        let document = |ids: &[&str]| {
            let data: serde_json::Value = ids.iter().map(|id| json!({ "id": id, "attributes": {} })).collect();
            Document::from(json!({ "data": data }))
        };
        let mut queue = document(&["run-2"]);
        append(&mut queue, document(&["run-4", "run-3", "run-2"]));
        let ids: Vec<&str> = queue.data.iter().map(Resource::id).collect();
        assert_eq!(ids, ["run-2", "run-3", "run-4"]);
    }
}
