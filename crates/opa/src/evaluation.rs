//! One policy and one plan: how `opa` is asked, and what its answer means.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::check::RegoSyntax;

/// What a policy says about a plan.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// There is nothing to complain about.
    Passed,
    /// What it found, each as the policy says it.
    Failed(Vec<Value>),
    /// It said nothing that can be understood, which never counts as passed.
    Errored(String),
}

/// The document that policies see as `input`: the plan as the engine shows it, the run, and the set's parameters. The
/// plan is copied as it is, and never in memory.
pub fn write_input(path: &Path, plan: &Path, run: &Value, parameters: &Value) -> io::Result<()> {
    let mut input = BufWriter::new(File::create(path)?);
    write!(input, "{{\"run\":{run},\"parameters\":{parameters},\"plan\":")?;
    io::copy(&mut File::open(plan)?, &mut input)?;
    input.write_all(b"}")?;
    input.flush()
}

/// Arguments with which `opa` answers `query` about `input`.
pub fn eval_arguments(
    syntax: RegoSyntax,
    capabilities: &Path,
    modules: &Path,
    input: &Path,
    query: &str,
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> =
        ["eval", "--format", "json", syntax.option(), "--capabilities"].map(OsString::from).into();
    arguments.push(capabilities.into());
    arguments.extend(["--data".into(), modules.into(), "--input".into(), input.into()]);
    // A query cannot be taken for an option.
    arguments.extend(["--".into(), query.into()]);
    arguments
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    errors: Vec<Told>,
    #[serde(default)]
    result: Vec<Outcome>,
}

#[derive(Deserialize)]
struct Told {
    message: String,
    #[serde(default)]
    location: Option<Location>,
}

#[derive(Deserialize)]
struct Location {
    #[serde(default)]
    file: String,
    #[serde(default)]
    row: u64,
}

#[derive(Deserialize)]
struct Outcome {
    #[serde(default)]
    expressions: Vec<Expression>,
}

#[derive(Deserialize)]
struct Expression {
    value: Value,
}

/// What an answer of `opa eval` means. Only an empty list is a pass.
pub fn verdict(answer: &[u8]) -> Verdict {
    let Ok(answer) = serde_json::from_slice::<Answer>(answer) else {
        return Verdict::Errored("opa gave no answer".to_owned());
    };
    if let Some(error) = answer.errors.first() {
        let place = error.location.as_ref().filter(|place| !place.file.is_empty());
        let file = |place: &Location| {
            let name = place.file.rsplit_once("/modules/").map_or(place.file.as_str(), |(_, name)| name);
            format!("{name}:{}: ", place.row)
        };
        return Verdict::Errored(format!("{}{}", place.map(file).unwrap_or_default(), error.message));
    }
    let values: Vec<Value> = answer.result.into_iter().flat_map(|it| it.expressions).map(|it| it.value).collect();
    match <[Value; 1]>::try_from(values) {
        Ok([Value::Array(found)]) if found.is_empty() => Verdict::Passed,
        Ok([Value::Array(found)]) => Verdict::Failed(found),
        Ok([other]) => {
            let kind = match other {
                Value::Object(_) => "an object",
                Value::Bool(_) => "a boolean",
                Value::String(_) => "a text",
                Value::Number(_) => "a number",
                Value::Null | Value::Array(_) => "null",
            };
            Verdict::Errored(format!("the query must answer with a list or a set; it answered with {kind}"))
        }
        Err(none) if none.is_empty() => Verdict::Errored(
            "the query is undefined: there is no such rule, or it is neither a set nor a list for this plan".to_owned(),
        ),
        Err(_) => Verdict::Errored("the query must have one answer; it has several".to_owned()),
    }
}
