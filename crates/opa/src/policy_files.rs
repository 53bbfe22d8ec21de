//! Files of a policy set: `policies.hcl` or `policies.json` names the policies, and `*.rego` are their modules.

use std::collections::{BTreeMap, BTreeSet};

use hcl_edit::expr::Expression;
use hcl_edit::structure::Body;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of policies that a set names.
pub const MAX_POLICIES: usize = 200;
/// Maximum size of one module, and of all modules of a set together.
pub const MAX_POLICY_BYTES: usize = 10 * 1024 * 1024;
/// Files that name the policies of a set. One of them has to be there.
pub const DEFINITION_FILES: [&str; 2] = ["policies.hcl", "policies.json"];

const LONGEST_NAME: usize = 90;
const LONGEST_QUERY: usize = 1_000;
const LONGEST_DESCRIPTION: usize = 1_000;

/// What a policy that finds something does to a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyLevel {
    /// It is told, and nothing else.
    Advisory,
    /// The run stops.
    Mandatory,
}

/// A policy as the set's file names it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct PolicyDefinition {
    pub name: String,
    /// Its answer is a list: empty if there is nothing to complain about.
    pub query: String,
    pub level: PolicyLevel,
    #[serde(default)]
    pub description: String,
}

/// The files of a set that matter, checked.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct PolicyFiles {
    pub policies: Vec<PolicyDefinition>,
    /// Modules by path.
    pub modules: BTreeMap<String, String>,
}

/// Files that are no policy set. The text names the file, and what is wrong.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("{0}")]
pub struct InvalidPolicySet(pub String);

/// True for files that a set is made of. Tests of policies are not a part of it.
pub fn is_policy_file(path: &str) -> bool {
    DEFINITION_FILES.contains(&path) || (path.ends_with(".rego") && !path.ends_with("_test.rego"))
}

impl PolicyFiles {
    /// Reads the files of a set, by path.
    pub fn read(files: &BTreeMap<String, Vec<u8>>) -> Result<Self, InvalidPolicySet> {
        let mut modules = BTreeMap::new();
        let mut size = 0;
        for (path, bytes) in files.iter().filter(|(path, _)| path.ends_with(".rego") && is_policy_file(path)) {
            size += bytes.len();
            if size > MAX_POLICY_BYTES {
                let detail = format!("{path}: the modules of a set may have {MAX_POLICY_BYTES} bytes together");
                return Err(InvalidPolicySet(detail));
            }
            let text = std::str::from_utf8(bytes).map_err(|error| {
                InvalidPolicySet(format!("{path}: it is not UTF-8 from byte {}", error.valid_up_to()))
            })?;
            modules.insert(path.clone(), text.to_owned());
        }
        let named = DEFINITION_FILES.into_iter().find_map(|name| Some((name, files.get(name)?)));
        let Some((name, bytes)) = named else {
            let detail = "The set has neither policies.hcl nor policies.json: one of them names its policies, for example \
                          policy \"tags\" { query = \"data.terraform.tags.deny\" }";
            return Err(InvalidPolicySet(detail.to_owned()));
        };
        let text = std::str::from_utf8(bytes).map_err(|_| InvalidPolicySet(format!("{name}: it is not UTF-8")))?;
        let policies = if name.ends_with(".hcl") { from_hcl(text) } else { from_json(text) };
        let policies = policies.map_err(|why| InvalidPolicySet(format!("{name}:{why}")))?;
        check(&policies).map_err(|why| InvalidPolicySet(format!("{name}: {why}")))?;
        if modules.is_empty() {
            return Err(InvalidPolicySet("The set has no *.rego file".to_owned()));
        }
        Ok(Self { policies, modules })
    }
}

fn from_hcl(text: &str) -> Result<Vec<PolicyDefinition>, String> {
    let body: Body = text.parse().map_err(|error: hcl_edit::parser::Error| {
        let place = error.location();
        format!("{}:{}: {}", place.line(), place.column(), error.message())
    })?;
    let mut policies = Vec::new();
    for structure in body.iter() {
        let Some(block) = structure.as_block() else {
            return Err(" only policy blocks are expected here".to_owned());
        };
        let label = block.labels.first().map(|label| label.as_str().to_owned()).unwrap_or_default();
        if block.ident.as_str() != "policy" || block.labels.len() != 1 {
            let what = block.ident.as_str();
            return Err(format!(" a block is policy \"NAME\" {{ … }}; this one begins with {what}"));
        }
        let mut fields = BTreeMap::new();
        for attribute in block.body.iter() {
            let Some(attribute) = attribute.as_attribute() else {
                return Err(format!(" policy {label:?} has a block in it; only attributes are expected"));
            };
            let value = match &attribute.value {
                Expression::String(text) => text.as_str().to_owned(),
                _ => return Err(format!(" {} of policy {label:?} must be a text", attribute.key.as_str())),
            };
            fields.insert(attribute.key.as_str().to_owned(), value);
        }
        policies.push(definition(label, &fields)?);
    }
    Ok(policies)
}

/// `{"policy": {"NAME": {…}}}` as HCL spells it in JSON, or a list of such objects.
fn from_json(text: &str) -> Result<Vec<PolicyDefinition>, String> {
    let document: Value =
        serde_json::from_str(text).map_err(|error| format!("{}:{}: this is no JSON", error.line(), error.column()))?;
    let blocks = match &document["policy"] {
        Value::Array(blocks) => blocks.clone(),
        Value::Object(block) => vec![Value::Object(block.clone())],
        _ => return Err(" there must be an object \"policy\" with a policy under each name".to_owned()),
    };
    let mut policies = Vec::new();
    for block in &blocks {
        for (name, body) in block.as_object().ok_or(" policy must be an object")? {
            let bodies = match body {
                Value::Array(bodies) => bodies.as_slice(),
                one => std::slice::from_ref(one),
            };
            for body in bodies {
                let mut fields = BTreeMap::new();
                for (key, value) in body.as_object().ok_or_else(|| format!(" policy {name:?} must be an object"))? {
                    let value = value.as_str().ok_or_else(|| format!(" {key} of policy {name:?} must be a text"))?;
                    fields.insert(key.clone(), value.to_owned());
                }
                policies.push(definition(name.clone(), &fields)?);
            }
        }
    }
    Ok(policies)
}

fn definition(name: String, fields: &BTreeMap<String, String>) -> Result<PolicyDefinition, String> {
    const KNOWN: [&str; 3] = ["query", "enforcement_level", "description"];
    if let Some(unknown) = fields.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!(" policy {name:?} has no attribute {unknown}; it has {}", KNOWN.join(", ")));
    }
    let level = match fields.get("enforcement_level").map(String::as_str) {
        None | Some("advisory") => PolicyLevel::Advisory,
        Some("mandatory") => PolicyLevel::Mandatory,
        Some(other) => {
            return Err(format!(" enforcement_level of policy {name:?} is advisory or mandatory; it is {other:?}"));
        }
    };
    let query = fields.get("query").cloned().unwrap_or_default();
    let description = fields.get("description").cloned().unwrap_or_default();
    Ok(PolicyDefinition { name, query, level, description })
}

fn check(policies: &[PolicyDefinition]) -> Result<(), String> {
    if policies.is_empty() {
        return Err("it names no policy".to_owned());
    }
    if policies.len() > MAX_POLICIES {
        return Err(format!("it names {} policies; a set has at most {MAX_POLICIES}", policies.len()));
    }
    let mut names = BTreeSet::new();
    for policy in policies {
        let name = &policy.name;
        let is_legal = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_legal) {
            return Err(format!(
                "the name of a policy has letters, numbers, hyphens and underscores, at most {LONGEST_NAME}; one is {:?}",
                name.chars().take(100).collect::<String>()
            ));
        }
        if !names.insert(name) {
            return Err(format!("there are two policies {name:?}"));
        }
        if policy.query.trim().is_empty() {
            return Err(format!("policy {name:?} needs a query, such as data.terraform.deny"));
        }
        if policy.query.len() > LONGEST_QUERY || policy.query.chars().any(char::is_control) {
            return Err(format!("the query of policy {name:?} must be one line of at most {LONGEST_QUERY} bytes"));
        }
        if policy.description.chars().count() > LONGEST_DESCRIPTION {
            return Err(format!("the description of policy {name:?} has more than {LONGEST_DESCRIPTION} characters"));
        }
    }
    Ok(())
}
