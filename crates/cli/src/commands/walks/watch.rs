//! `taco walk watch`

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

use super::{Walks, document};
use crate::failure::Failure;
use crate::output;
use crate::resource::Resource;
use crate::status;

/// Interval of asking for a walk that goes on.
const WALK_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Exit code of `terraform plan -detailed-exitcode`: it succeeded, and there are changes.
const CHANGES_EXIT_CODE: u8 = 2;

/// Exit code that shells give to what Ctrl-C ended.
const INTERRUPTED_EXIT_CODE: u8 = 130;

/// Tells what a walk does until it is over or needs someone. Ctrl-C ends the watching, not the walk.
pub(super) async fn watch(walks: &Walks<'_>, id: &str) -> Result<ExitCode, Failure> {
    tokio::select! {
        ended = watch_until_settled(walks, id) => ended,
        _ = tokio::signal::ctrl_c() => {
            if walks.session.is_local() {
                eprintln!("\nWhat runs is finished, and no more begins. `taco walk resume {id}` goes on, `taco walk cancel {id}` stops it.");
                return Ok(ExitCode::from(INTERRUPTED_EXIT_CODE));
            }
            eprintln!("\nThe walk continues. `taco walk watch {id}` shows it again, `taco walk cancel {id}` stops it.");
            Ok(ExitCode::from(INTERRUPTED_EXIT_CODE))
        }
    }
}

async fn watch_until_settled(walks: &Walks<'_>, id: &str) -> Result<ExitCode, Failure> {
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    loop {
        let (walk, nodes) = walks.read(id).await?;
        for node in &nodes {
            let line = in_words(node);
            let is_news = told.get(node.id()) != Some(&line) && node.get("state") != "waiting";
            if is_news && !walks.session.quiet && !walks.session.json {
                output::line(&line)?;
            }
            told.insert(node.id().to_owned(), line);
        }
        let Some(code) = ending(&walk, &nodes) else {
            tokio::time::sleep(walks.session.poll_interval(WALK_POLL_INTERVAL)).await;
            continue;
        };
        if walks.session.json {
            output::json(&document(&walk, &nodes))?;
        } else {
            output::line(&format!("Walk {id} {}.", sentence(&walk.text("state"))))?;
        }
        if walk.get("state") == "needs_approval" {
            eprintln!("`taco walk approve {id}` lets it go on, `taco walk cancel {id}` stops it.");
        }
        return match code {
            Some(code) => Ok(ExitCode::from(code)),
            None => Err(Failure::error(format!("walk {id} {}", sentence(&walk.text("state")))).hint(format!(
                "`taco walk show {id}` says why, `taco walk resume {id}` tries again what was not done"
            ))),
        };
    }
}

fn in_words(node: &Resource) -> String {
    let (unit, state, reason) = (node.text("unit"), status::in_words(&node.text("state")), node.text("reason"));
    let separator = if reason.is_empty() { "" } else { ": " };
    format!("{unit} {state}{separator}{reason}")
}

fn sentence(state: &str) -> String {
    match state {
        "failed" => "failed".to_owned(),
        "canceled" => "was canceled".to_owned(),
        other => format!("is {}", status::in_words(other)),
    }
}

/// Exit code of a walk that rests, `None` in it for a failure; `None` while it goes on.
fn ending(walk: &Resource, nodes: &[Resource]) -> Option<Option<u8>> {
    let only_plans = walk.get("kind") == "plan";
    let changed =
        || nodes.iter().any(|node| node.get("result") == "changed" || node.get("may-change") == &Value::Bool(true));
    match walk.text("state").as_str() {
        "done" if only_plans && changed() => Some(Some(CHANGES_EXIT_CODE)),
        "done" => Some(Some(0)),
        "needs_approval" => Some(Some(CHANGES_EXIT_CODE)),
        "failed" | "canceled" => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resource::Document;

    #[test]
    fn it_ends_as_terraform_would() {
        let resource = |value: Value| Document::from(json!({ "data": { "attributes": value } })).data.remove(0);
        let node = |result: &str| resource(json!({ "result": result }));
        let walk = |kind: &str, state: &str| resource(json!({ "kind": kind, "state": state }));
        assert_eq!(ending(&walk("plan", "done"), &[node("changed")]), Some(Some(2)));
        assert_eq!(ending(&walk("plan", "done"), &[node("cut_off")]), Some(Some(0)));
        assert_eq!(ending(&walk("apply", "done"), &[node("changed")]), Some(Some(0)));
        assert_eq!(ending(&walk("apply", "needs_approval"), &[]), Some(Some(2)));
        assert_eq!(ending(&walk("apply", "failed"), &[]), Some(None));
        assert_eq!(ending(&walk("apply", "running"), &[]), None);
    }
}
