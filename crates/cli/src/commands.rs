//! The commands, each in the file that its noun or verb names.

pub(crate) mod agents;
pub(crate) mod audit_log;
pub(crate) mod auth;
pub(crate) mod bindings;
pub(crate) mod completion;
pub(crate) mod dependencies;
pub(crate) mod graph;
pub(crate) mod init;
pub(crate) mod login;
pub(crate) mod logout;
pub(crate) mod notifications;
pub(crate) mod organizations;
pub(crate) mod outputs;
pub(crate) mod policies;
pub(crate) mod pools;
pub(crate) mod projects;
pub(crate) mod queue;
pub(crate) mod registry;
pub(crate) mod retention;
pub(crate) mod runs;
pub(crate) mod states;
pub(crate) mod teams;
pub(crate) mod tokens;
pub(crate) mod up;
pub(crate) mod users;
pub(crate) mod variable_sets;
pub(crate) mod variables;
pub(crate) mod version;
pub(crate) mod walks;
pub(crate) mod whoami;
pub(crate) mod why;
pub(crate) mod workspaces;

use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::output;
use crate::resource::Resource;
use crate::session::Session;

/// Attributes of a request: those that were given.
fn given<const N: usize>(attributes: [(&str, Option<Value>); N]) -> Map<String, Value> {
    attributes.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn text(value: &Option<String>) -> Option<Value> {
    value.clone().map(Value::from)
}

/// A policy for output contracts, if one was given; `inherit` stands for none of its own.
fn contract_policy(policy: Option<&str>) -> Option<Value> {
    policy.map(|policy| if policy == "inherit" { Value::Null } else { policy.into() })
}

/// A change that changes nothing was meant in another way.
fn require_change(attributes: &Map<String, Value>, relationships: &Map<String, Value>) -> Result<(), Failure> {
    if attributes.is_empty() && relationships.is_empty() {
        return Err(Failure::usage("nothing to change").hint("--help lists what can be changed"));
    }
    Ok(())
}

/// Tells what was done, to a person in a sentence.
fn done(session: &Session, resource: &Resource, sentence: &str) -> Result<(), Failure> {
    tell(session, || resource.plain(), sentence)
}

/// Tells that something is gone.
fn gone(session: &Session, id: &str, sentence: &str) -> Result<(), Failure> {
    tell(session, || serde_json::json!({ "id": id, "deleted": true }), sentence)
}

fn tell(session: &Session, document: impl FnOnce() -> Value, sentence: &str) -> Result<(), Failure> {
    match (session.json, session.quiet) {
        (true, _) => output::json(&document()),
        (false, true) => Ok(()),
        (false, false) => output::line(sentence),
    }
}

fn plain_list(resources: &[Resource]) -> Value {
    resources.iter().map(Resource::plain).collect()
}
