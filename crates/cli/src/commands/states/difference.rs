//! `taco state diff`

use serde_json::{Value, json};

use super::States;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::resource::Resource;
use crate::state_file::{OutputChange, ResourceChange, difference};

pub(super) async fn show(states: &States<'_>, old: Option<&str>, new: &str) -> Result<(), Failure> {
    let new = states.version(new).await?;
    let old = match old {
        Some(old) => states.version(old).await?,
        None => before(states, &new).await?,
    };
    let found = difference(&states.file(&old).await?, &states.file(&new).await?);
    if states.session.json {
        let version = |version: &Resource| json!({ "id": version.id(), "serial": version.get("serial") });
        let (resources, outputs) = (&found.resources, &found.outputs);
        let document =
            json!({ "old": version(&old), "new": version(&new), "resources": resources, "outputs": outputs });
        return output::json(&document);
    }
    let resources = found.resources.iter().map(row_of_resource);
    output::table(["", "WHAT", "CHANGE"], resources.chain(found.outputs.iter().map(row_of_output)))
}

/// The version that was there before another one.
async fn before(states: &States<'_>, version: &Resource) -> Result<Resource, Failure> {
    let mut versions = states.versions().await?.into_iter().skip_while(|other| other.id() != version.id()).skip(1);
    versions.next().ok_or_else(|| {
        let what = format!("{} is the first: there is nothing to compare it with", states.subject(version));
        Failure::new(Kind::NotFound, what)
    })
}

fn row_of_resource(change: &ResourceChange) -> [String; 3] {
    [change.action.sign().to_owned(), change.address.clone(), change.attributes.join(", ")]
}

fn row_of_output(change: &OutputChange) -> [String; 3] {
    let values = match change {
        OutputChange { sensitive: true, .. } => "(sensitive)".to_owned(),
        OutputChange { before: Value::Null, after, .. } => after.to_string(),
        OutputChange { before, after: Value::Null, .. } => before.to_string(),
        OutputChange { before, after, .. } => format!("{before} → {after}"),
    };
    [change.action.sign().to_owned(), format!("output.{}", change.name), values]
}
