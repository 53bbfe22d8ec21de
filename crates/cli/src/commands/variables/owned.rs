//! The variables of one workspace or one variable set, on the server.

use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::api::{about, one};
use crate::commands::{bindings, done, plain_list};
use crate::failure::{Failure, Kind};
use crate::output;
use crate::resource::Resource;
use crate::session::Session;

pub(crate) struct OwnedVariables<'a> {
    pub(crate) session: &'a Session,
    /// Path where they are listed.
    pub(crate) path: Vec<String>,
    /// Name of their owner in messages, such as `acme/network`.
    pub(crate) owner: String,
    /// Command that sets one of this owner, for hints.
    pub(crate) set_command: String,
    /// Command that lists them for this owner, for hints.
    pub(crate) list_command: String,
}

/// Result of writing a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Created,
    Changed,
    Unchanged,
}

impl Written {
    fn in_words(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "updated",
            Self::Unchanged => "unchanged",
        }
    }
}

impl OwnedVariables<'_> {
    fn path_with<'p>(&'p self, id: Option<&'p str>) -> Vec<&'p str> {
        self.path.iter().map(String::as_str).chain(id).collect()
    }

    async fn all(&self) -> Result<Vec<Resource>, Failure> {
        let subject = format!("variables of {}", self.owner);
        Ok(self.session.api.list(&subject, &self.path_with(None), &[]).await?.data)
    }

    /// Lists them, and `bound` ones with where their values come from.
    pub(crate) async fn list(&self, bound: &[Resource]) -> Result<(), Failure> {
        let if_empty = format!("No variables. `{} KEY=VALUE` creates one.", self.set_command);
        print(self.session, &self.all().await?, bound, &if_empty)
    }

    fn subject(&self, key: &str) -> String {
        format!("variable {key} of {}", self.owner)
    }

    /// Creates a variable, or changes the one that has its key and category among `known`.
    async fn write(&self, known: &[Resource], attributes: Map<String, Value>) -> Result<(Resource, Written), Failure> {
        let key = attributes.get("key").and_then(Value::as_str).unwrap_or_default().to_owned();
        let found = known.iter().find(|variable| is(variable, &attributes));
        let subject = self.subject(&key);
        let (method, id, written) = match found {
            Some(variable) if attributes.iter().all(|(name, value)| variable.get(name) == value) => {
                return Ok((variable.clone(), Written::Unchanged));
            }
            Some(variable) => (Method::PATCH, Some(variable.id()), Written::Changed),
            None => (Method::POST, None, Written::Created),
        };
        let body = about("vars", attributes.into(), json!({}));
        let sent = self.session.api.send(&subject, method, &self.path_with(id), &body).await?;
        Ok((one(sent)?, written))
    }

    pub(crate) async fn set(&self, attributes: Map<String, Value>) -> Result<(), Failure> {
        let (variable, written) = self.write(&self.all().await?, attributes).await?;
        let (key, verb) = (variable.text("key"), if written == Written::Created { "Created" } else { "Updated" });
        done(
            self.session,
            &variable,
            &match written {
                Written::Unchanged => format!("Variable {key} of {} is unchanged.", self.owner),
                Written::Created | Written::Changed => format!("{verb} variable {key} of {}.", self.owner),
            },
        )
    }

    /// Writes several variables, and tells what became of each.
    pub(crate) async fn import(&self, variables: Vec<Map<String, Value>>) -> Result<(), Failure> {
        let mut known = self.all().await?;
        let mut done = Vec::new();
        for attributes in variables {
            let (variable, written) = self.write(&known, attributes).await?;
            // A file may name a key twice; as in a shell, the last one counts.
            known.retain(|other| other.id() != variable.id());
            known.push(variable.clone());
            done.push((variable, written));
        }
        if self.session.json {
            let resources: Vec<_> = done.into_iter().map(|(variable, _)| variable).collect();
            return output::json(&plain_list(&resources));
        }
        let row = |(variable, written): &(Resource, Written)| {
            [variable.text("key"), variable.text("category"), written.in_words().to_owned()]
        };
        self.session.table(["KEY", "CATEGORY", "RESULT"], done.iter().map(row), "The file has no variables.")
    }

    pub(crate) async fn find(&self, key: &str, category: &str) -> Result<Resource, Failure> {
        let wanted = json!({ "key": key, "category": category });
        let wanted = wanted.as_object().cloned().unwrap_or_default();
        let found = self.all().await?.into_iter().find(|variable| is(variable, &wanted));
        found.ok_or_else(|| {
            Failure::new(Kind::NotFound, format!("{}: not found", self.subject(key)))
                .because(format!("there is no such variable of category {category}"))
                .hint(format!("`{}` lists them; --env is the other category", self.list_command))
        })
    }

    pub(crate) async fn remove(&self, variable: &Resource) -> Result<String, Failure> {
        let key = variable.text("key");
        self.session.api.delete(&self.subject(&key), &self.path_with(Some(variable.id()))).await?;
        Ok(format!("Deleted variable {key} of {}.", self.owner))
    }
}

fn is(variable: &Resource, wanted: &Map<String, Value>) -> bool {
    ["key", "category"].iter().all(|name| Some(variable.get(name)) == wanted.get(*name))
}

/// Prints variables. The server sends no value for what is sensitive.
pub(crate) fn print(
    session: &Session,
    variables: &[Resource],
    bound: &[Resource],
    if_empty: &str,
) -> Result<(), Failure> {
    let all: Vec<Resource> = variables.iter().chain(bound).cloned().collect();
    if session.json {
        return output::json(&plain_list(&all));
    }
    let row = |variable: &Resource| {
        let [key, category, hcl, description] =
            ["key", "category", "hcl", "description"].map(|name| variable.text(name));
        [key, value(variable), category, hcl, description]
    };
    session.table(["KEY", "VALUE", "CATEGORY", "HCL", "DESCRIPTION"], all.iter().map(row), if_empty)
}

/// A variable's value, as far as it is shown.
pub(crate) fn value(variable: &Resource) -> String {
    if variable.is_a("bindings") {
        return bindings::source(variable);
    }
    let sensitive = variable.get("sensitive") == &Value::Bool(true);
    if sensitive { "(sensitive)".to_owned() } else { variable.text("value") }
}
