//! `taco var ls --all`: the variables that runs get, and where each value is from.

use serde_json::{Map, Value};

use super::owned;
use crate::commands::bindings;
use crate::failure::Failure;
use crate::output;
use crate::resource::Resource;
use crate::session::{Session, WorkspaceName};

/// Owner of the workspace's own variables.
const WORKSPACE: &str = "workspace";

pub(super) async fn list(session: &Session, name: &WorkspaceName, workspace: &Resource) -> Result<(), Failure> {
    let subject = format!("variables of {name}");
    let path = ["workspaces", workspace.id(), "all-vars"];
    let variables = session.api.list(&subject, &path, &[]).await?.data;
    let sets = session.api.list(&subject, &["workspaces", workspace.id(), "varsets"], &[]).await?.data;
    let bound = bindings::of_workspace(session, name, workspace).await?;
    let counts = |binding: &&Resource| binding.get("overridden").as_bool() != Some(true);
    let variables: Vec<Resource> = variables.iter().chain(bound.iter().filter(counts)).cloned().collect();
    let source = |variable: &Resource| {
        if variable.is_a("bindings") {
            return "binding".to_owned();
        }
        let has = |set: &&Resource| set.related_ids("vars").any(|id| id == variable.id());
        sets.iter().find(has).map_or_else(|| WORKSPACE.to_owned(), |set| set.text("name"))
    };
    if session.json {
        let with_source = |variable: &Resource| {
            let mut plain: Map<String, Value> = variable.plain().as_object().cloned().unwrap_or_default();
            plain.insert("from".to_owned(), source(variable).into());
            Value::from(plain)
        };
        return output::json(&variables.iter().map(with_source).collect());
    }
    let row = |variable: &Resource| {
        let [key, category, hcl, description] =
            ["key", "category", "hcl", "description"].map(|attribute| variable.text(attribute));
        [key, owned::value(variable), category, hcl, source(variable), description]
    };
    let if_empty = format!("No variables. `taco var set KEY=VALUE --ws {name}` creates one.");
    session.table(["KEY", "VALUE", "CATEGORY", "HCL", "FROM", "DESCRIPTION"], variables.iter().map(row), if_empty)
}
