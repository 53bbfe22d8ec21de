//! `taco run again`

use std::process::ExitCode;

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{Runs, start, watch};
use crate::api::{about, one};
use crate::failure::Failure;
use crate::resource::Resource;

/// Options that the new run takes from the old one.
const OPTIONS: [&str; 12] = [
    "message",
    "is-destroy",
    "refresh",
    "refresh-only",
    "plan-only",
    "save-plan",
    "auto-apply",
    "allow-empty-apply",
    "allow-config-generation",
    "target-addrs",
    "replace-addrs",
    "variables",
];

fn attributes(run: &Resource) -> Map<String, Value> {
    let mut attributes: Map<String, Value> = OPTIONS
        .into_iter()
        .map(|name| (name.to_owned(), run.get(name).clone()))
        .filter(|(_, value)| !value.is_null())
        .collect();
    // Only plans that are never applied may have another version than the workspace.
    if run.get("plan-only") == true {
        attributes.insert("terraform-version".to_owned(), run.get("terraform-version").clone());
    }
    attributes
}

pub(super) async fn again(
    runs: &Runs<'_>,
    run: Option<&str>,
    watches: bool,
    options: &watch::Options,
) -> Result<ExitCode, Failure> {
    watch::check(watches, options)?;
    let (old, beside) = runs.find(run).await?;
    let related = |kind: &str, name: &str| {
        old.related_id(name).map(|id| (name.to_owned(), json!({ "data": { "type": kind, "id": id } })))
    };
    let relationships: Map<String, Value> =
        [related("workspaces", "workspace"), related("configuration-versions", "configuration-version")]
            .into_iter()
            .flatten()
            .collect();
    let body = about("runs", attributes(&old).into(), relationships.into());
    let subject = format!("run {} again", old.id());
    let new = one(runs.session.api.send(&subject, Method::POST, &["runs"], &body).await?)?;
    start::tell(runs, &new, &runs.name_of(&old, &beside), watches || runs.session.is_local(), false, options).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Document;

    #[test]
    fn the_new_run_has_the_options_of_the_old_one() {
        let attributes_of_run = json!({
            "message": "m", "is-destroy": true, "target-addrs": ["a.b"], "replace-addrs": null, "plan-only": false,
            "status": "errored", "terraform-version": "1.11.4",
        });
        let document = Document::from(json!({ "data": { "id": "run-1", "attributes": attributes_of_run } }));
        let expected = json!({ "message": "m", "is-destroy": true, "target-addrs": ["a.b"], "plan-only": false });
        assert_eq!(Value::from(attributes(&document.data[0])), expected);
    }
}
