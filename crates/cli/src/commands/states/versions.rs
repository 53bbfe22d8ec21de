//! `taco state versions` and `rollback`

use reqwest::Method;
use serde_json::json;

use super::States;
use super::lock::while_locked;
use crate::api::{about, one};
use crate::commands::{done, plain_list};
use crate::confirmation::Confirmation;
use crate::failure::Failure;
use crate::output;
use crate::resource::Resource;

pub(super) async fn list(states: &States<'_>) -> Result<(), Failure> {
    let path = ["workspaces", states.id(), "state-versions"];
    let subject = format!("state versions of {}", states.name);
    let versions = states.session.api.list(&subject, &path, &[]).await?.data;
    if states.session.json {
        return output::json(&plain_list(&versions));
    }
    let row = |version: &Resource| {
        let [serial, size, terraform] = ["serial", "size", "terraform-version"].map(|name| output::text(version, name));
        // Servers other than taco tell only the id.
        let id = || version.related_id("created-by").unwrap_or_default().to_owned();
        let author = version.text("taco-created-by");
        let author = if author.is_empty() { id() } else { author };
        let (status, created) = (output::status(version, "status"), output::time(version, "created-at"));
        [serial, version.id().into(), status, size, terraform, created, author.into()]
    };
    let headings = ["SERIAL", "ID", "STATUS", "BYTES", "TERRAFORM", "CREATED", "BY"];
    let if_empty = format!("No states. `taco state push FILE --ws {}` uploads one, as does each apply.", states.name);
    states.session.table(headings, versions.iter().map(row), if_empty)
}

pub(super) async fn roll_back(states: &States<'_>, version: &str, confirmation: &Confirmation) -> Result<(), Failure> {
    let old = states.version(version).await?;
    let deed = format!("roll {} back to serial {}", states.name, old.text("serial"));
    confirmation.ask(states.session, &deed)?;
    let stored = while_locked(states, "taco state rollback", restore(states, &old)).await?;
    let (new, old) = (stored.text("serial"), old.text("serial"));
    done(states.session, &stored, &format!("Rolled {} back to serial {old}; it is now serial {new}.", states.name))
}

async fn restore(states: &States<'_>, old: &Resource) -> Result<Resource, Failure> {
    let from = json!({ "rollback-state-version": { "data": { "type": "state-versions", "id": old.id() } } });
    let body = about("state-versions", json!({}), from);
    let path = ["workspaces", states.id(), "state-versions"];
    one(states.session.api.send(&states.subject(old), Method::PATCH, &path, &body).await?)
}
