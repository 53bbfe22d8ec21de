//! A policy that is managed by itself: its code is uploaded, and sets name it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes};
use taco_words::id_kinds;

use crate::attribute::{InvalidAttribute, nullable, shown};
use crate::author::Author;
use crate::name::{NameKey, name_kinds};
use crate::policy_words::{EnforcementLevel, PolicyFile, PolicyKind, check_query, check_text};

const LONGEST_NAME: usize = 90;
const LONGEST_PATH: usize = 300;

id_kinds! {
    /// A policy that is managed by itself.
    PolicyId = "pol";
}

name_kinds! {
    PolicyName: |name| check_policy_name(name);
}

/// Letters, numbers, hyphens and underscores.
pub(crate) fn check_policy_name(name: &str) -> Result<(), InvalidAttribute> {
    let legal = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let refuse = |what: String| Err(InvalidAttribute::new("name", format!("Name {what}")));
    match () {
        () if name.is_empty() => refuse("can't be blank".to_owned()),
        () if !name.chars().all(legal) => {
            refuse(format!("may only contain letters, numbers, hyphens and underscores; it is {}", shown(name)))
        }
        () if name.len() > LONGEST_NAME => {
            refuse(format!("is too long (maximum is {LONGEST_NAME} characters); it is {}", shown(name)))
        }
        () => Ok(()),
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Policy {
    pub id: PolicyId,
    pub name: PolicyName,
    pub kind: PolicyKind,
    #[serde(default)]
    pub description: String,
    /// What is asked of it; Sentinel has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    pub level: EnforcementLevel,
    /// Name of its file, as a client wants it to be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its code; `None` before it is uploaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<PolicyFile>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub created_by: Author,
}

impl Policy {
    /// Name of its file.
    pub fn file_name(&self) -> String {
        self.path.clone().unwrap_or_else(|| format!("{}.{}", self.name, self.kind.extension()))
    }
}

impl Record for Policy {
    const KIND: &'static str = "policy";
    const NOUN: &'static str = "policy";
    const UNIQUE: &'static [&'static str] = &["name"];
    type Id = PolicyId;
    type Indexes = PolicyIndexes;

    fn id(&self) -> &PolicyId {
        &self.id
    }
}

indexes! {
    pub struct PolicyIndexes for Policy {
        /// The order of lists.
        pub name: NameKey, unique "name" => |policy| [policy.name.key()];
    }
}

/// The attributes of a request that makes or changes a policy, spelled as on the wire.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct PolicyPatch {
    pub name: Option<String>,
    pub kind: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub description: Option<Option<String>>,
    #[serde(deserialize_with = "nullable")]
    pub query: Option<Option<String>>,
    pub enforcement_level: Option<String>,
    /// An older spelling of the level.
    #[serde(deserialize_with = "nullable")]
    pub enforce: Option<Option<Vec<Enforce>>>,
}

#[derive(Clone, Default, Deserialize, Debug)]
#[serde(default)]
pub struct Enforce {
    pub path: Option<String>,
    pub mode: Option<String>,
}

impl PolicyPatch {
    /// A new policy.
    pub fn create(&self, id: PolicyId, by: Author, now: Timestamp) -> Result<Policy, InvalidAttribute> {
        let kind = self.kind.as_deref().filter(|kind| !kind.is_empty());
        let kind = kind.map_or(Ok(PolicyKind::Sentinel), str::parse)?;
        let blank = Policy {
            id,
            name: self.name.as_deref().unwrap_or_default().parse()?,
            kind,
            description: String::new(),
            query: None,
            level: EnforcementLevel::default_of(kind),
            path: None,
            code: None,
            created_at: now,
            updated_at: now,
            created_by: by,
        };
        let policy = self.apply(&blank, now)?;
        if kind == PolicyKind::Opa && policy.query.is_none() {
            return Err(check_query("")
                .err()
                .unwrap_or_else(|| InvalidAttribute::new("query", "Query can't be blank")));
        }
        Ok(policy)
    }

    /// The policy after the request. Kind and name stay as they are.
    pub fn apply(&self, before: &Policy, now: Timestamp) -> Result<Policy, InvalidAttribute> {
        let mut changed = before.clone();
        if let Some(description) = &self.description {
            changed.description = check_text(description.as_deref().unwrap_or_default())?;
        }
        // Sentinel has a `main`, and clients send a query nonetheless.
        if let (Some(Some(query)), PolicyKind::Opa) = (&self.query, before.kind) {
            changed.query = Some(check_query(query)?);
        }
        let enforce = self.enforce.iter().flatten().flatten().next();
        if let Some(enforce) = enforce {
            if let Some(mode) = enforce.mode.as_deref().filter(|mode| !mode.is_empty()) {
                changed.level = EnforcementLevel::parse(mode, before.kind)?;
            }
            if let Some(path) = enforce.path.as_deref().filter(|path| !path.is_empty()) {
                changed.path = Some(check_path(path)?);
            }
        }
        if let Some(level) = self.enforcement_level.as_deref().filter(|level| !level.is_empty()) {
            changed.level = EnforcementLevel::parse(level, before.kind)?;
        }
        if changed != *before {
            changed.updated_at = now;
        }
        Ok(changed)
    }
}

fn check_path(path: &str) -> Result<String, InvalidAttribute> {
    if path.len() > LONGEST_PATH || path.chars().any(char::is_control) {
        let detail = format!("Path must be the name of a file of at most {LONGEST_PATH} bytes; it is {}", shown(path));
        return Err(InvalidAttribute::new("enforce", detail));
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(json: &str) -> Result<Policy, InvalidAttribute> {
        let patch: PolicyPatch = serde_json::from_str(json).expect(json);
        patch.create(PolicyId::from_random([1; 16]), Author::Taco, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_policy_says_what_it_is_asked_and_how_strict_it_is() {
        let opa = create(r#"{"name":"tags","kind":"opa","query":"data.a.deny"}"#).expect("legal");
        assert_eq!((opa.level, opa.file_name().as_str()), (EnforcementLevel::Advisory, "tags.rego"));
        let old =
            create(r#"{"name":"tags","enforce":[{"path":"a.sentinel","mode":"soft-mandatory"}]}"#).expect("legal");
        assert_eq!((old.kind, old.level), (PolicyKind::Sentinel, EnforcementLevel::SoftMandatory));
        assert_eq!(old.file_name(), "a.sentinel");
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name() {
        for (json, attribute) in [
            (r#"{"name":"","kind":"opa","query":"data.a"}"#, "name"),
            (r#"{"name":"a b","kind":"opa","query":"data.a"}"#, "name"),
            (r#"{"name":"a","kind":"rego","query":"data.a"}"#, "kind"),
            (r#"{"name":"a","kind":"opa"}"#, "query"),
            (r#"{"name":"a","kind":"opa","query":" "}"#, "query"),
            (r#"{"name":"a","kind":"opa","query":"a\nb"}"#, "query"),
            (r#"{"name":"a","kind":"opa","query":"a","enforcement-level":"hard-mandatory"}"#, "enforcement-level"),
            (r#"{"name":"a","enforcement-level":"mandatory"}"#, "enforcement-level"),
        ] {
            assert_eq!(create(json).expect_err(json).attribute, attribute, "{json}");
        }
    }
}
