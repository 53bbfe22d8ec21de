//! Variables of workspaces and variable sets.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use taco_tables::{KeyBytes, Record, SortKey, indexes, references};
pub use taco_words::variable::VariableCategory;

use crate::attribute::{InvalidAttribute, is_plain_text, nullable, shown};
use crate::id::{VariableId, VariableSetId, WorkspaceId};
use crate::organization::set;

const LONGEST_KEY: usize = 128;
pub(crate) const LARGEST_VALUE: usize = 256 * 1024;
const LONGEST_DESCRIPTION: usize = 512;

/// Owner of a variable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum VariableOwner {
    Workspace(WorkspaceId),
    VariableSet(VariableSetId),
}

impl SortKey for VariableOwner {
    fn encode(&self, key: &mut KeyBytes) {
        match self {
            Self::Workspace(id) => (0_u8, *id).encode(key),
            Self::VariableSet(id) => (1_u8, *id).encode(key),
        }
    }
}

/// A value as stored in the bucket. A sensitive one is encrypted by the writer of the record, and never shown again;
/// this crate cannot read it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum StoredValue {
    Plain(String),
    Sealed(String),
}

/// Encrypts values and decrypts them again.
pub trait Vault {
    type Error: From<InvalidAttribute>;

    fn seal(&self, plain: &str) -> Result<String, Self::Error>;
    fn open(&self, sealed: &str) -> Result<String, Self::Error>;
}

/// A variable of a workspace or of a variable set.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Variable {
    pub id: VariableId,
    pub owner: VariableOwner,
    pub key: String,
    pub value: StoredValue,
    pub description: String,
    pub category: VariableCategory,
    /// The value is an expression, not a text. It means nothing in the environment.
    pub hcl: bool,
    /// Number of times it was written.
    pub version: u64,
    pub created_at: Timestamp,
}

impl Variable {
    pub fn sensitive(&self) -> bool {
        matches!(self.value, StoredValue::Sealed(_))
    }

    /// Value as shown to everyone who may see the variable.
    pub fn shown_value(&self) -> Option<&str> {
        match &self.value {
            StoredValue::Plain(value) => Some(value),
            StoredValue::Sealed(_) => None,
        }
    }

    /// Changes with every write, so that clients notice it.
    pub fn version_id(&self) -> String {
        hex::encode(Sha256::new().chain_update(self.id.to_string()).chain_update(self.version.to_be_bytes()).finalize())
    }
}

impl Record for Variable {
    const KIND: &'static str = "variable";
    const PART_OF: &'static [&'static str] = &["owner"];
    const CONCERNS_EVERYTHING: bool = true;
    type Id = VariableId;
    type Indexes = VariableIndexes;

    fn id(&self) -> &VariableId {
        &self.id
    }

    references! {
        "owner": WorkspaceId, cascade(|variables, id| {
            variables.by().owner_and_key.under(&VariableOwner::Workspace(*id))
        });
        "owner": VariableSetId, cascade(|variables, id| {
            variables.by().owner_and_key.under(&VariableOwner::VariableSet(*id))
        });
    }

    fn sealed_mut(&mut self) -> Vec<(String, &mut String)> {
        match &mut self.value {
            StoredValue::Sealed(sealed) => vec![(self.id.to_string(), sealed)],
            StoredValue::Plain(_) => Vec::new(),
        }
    }
}

indexes! {
    pub struct VariableIndexes for Variable {
        /// The order of lists within an owner.
        pub owner_and_key: (VariableOwner, String, VariableCategory), unique "key" => |variable| {
            [(variable.owner, variable.key.clone(), variable.category)]
        };
    }
}

/// The attributes of a request that makes or changes a variable, spelled as on the wire.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct VariablePatch {
    pub key: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub value: Option<Option<String>>,
    #[serde(deserialize_with = "nullable")]
    pub description: Option<Option<String>>,
    pub category: Option<String>,
    pub hcl: Option<bool>,
    pub sensitive: Option<bool>,
}

/// The value may be secret.
impl fmt::Debug for VariablePatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "VariablePatch({:?})", self.key)
    }
}

impl VariablePatch {
    /// The first version of a variable. Whether its key is free, the caller finds out.
    pub fn create<V: Vault>(
        &self,
        id: VariableId,
        owner: VariableOwner,
        now: Timestamp,
        vault: &V,
    ) -> Result<Variable, V::Error> {
        let Some(category) = &self.category else {
            return Err(refusal("category", format!("can't be blank: it is {CATEGORIES}")).into());
        };
        let blank = Variable {
            id,
            owner,
            key: String::new(),
            value: StoredValue::Plain(String::new()),
            description: String::new(),
            category: parse_category(category)?,
            hcl: false,
            version: 0,
            created_at: now,
        };
        let created = self.apply(&blank, vault)?;
        check_key(&created.key, created.category)?;
        Ok(created)
    }

    /// The variable after the request. Whether its key is free, the caller finds out.
    pub fn apply<V: Vault>(&self, variable: &Variable, vault: &V) -> Result<Variable, V::Error> {
        let mut changed = Variable { version: variable.version + 1, ..variable.clone() };
        if let Some(category) = &self.category {
            changed.category = parse_category(category)?;
        }
        set(&mut changed.key, self.key.clone());
        if self.key.is_some() || changed.category != variable.category {
            check_key(&changed.key, changed.category)?;
        }
        if let Some(description) = &self.description {
            changed.description = description.clone().unwrap_or_default();
            check_description(&changed.description)?;
        }
        set(&mut changed.hcl, self.hcl);
        if variable.sensitive() && self.sensitive == Some(false) {
            let detail = "cannot become false again: delete the variable and create another";
            return Err(refusal("sensitive", detail).into());
        }
        let sent = self.value.as_ref().map(|value| value.as_deref().unwrap_or_default());
        if let Some(value) = sent {
            check_value(value)?;
        }
        if changed.hcl && changed.category == VariableCategory::Terraform {
            match (sent, &variable.value) {
                (Some(value), _) => check_expression(value)?,
                (None, StoredValue::Plain(value)) => check_expression(value)?,
                (None, StoredValue::Sealed(sealed)) if !variable.hcl || variable.category != changed.category => {
                    check_expression(&vault.open(sealed)?)?;
                }
                (None, StoredValue::Sealed(_)) => {}
            }
        }
        let sensitive = self.sensitive.unwrap_or(variable.sensitive());
        changed.value = match (sent, &variable.value) {
            (Some(value), _) if sensitive => StoredValue::Sealed(vault.seal(value)?),
            (Some(value), _) => StoredValue::Plain(value.to_owned()),
            (None, StoredValue::Plain(value)) if sensitive => StoredValue::Sealed(vault.seal(value)?),
            (None, kept) => kept.clone(),
        };
        Ok(changed)
    }
}

const CATEGORIES: &str = "\"terraform\" or \"env\"";

fn refusal(attribute: &'static str, what: impl fmt::Display) -> InvalidAttribute {
    let mut title = attribute.to_owned();
    title[..1].make_ascii_uppercase();
    InvalidAttribute::new(attribute, format!("{title} {what}"))
}

fn parse_category(text: &str) -> Result<VariableCategory, InvalidAttribute> {
    match text {
        "terraform" => Ok(VariableCategory::Terraform),
        "env" => Ok(VariableCategory::Env),
        _ => Err(refusal("category", format!("must be {CATEGORIES}; it is {}", shown(text)))),
    }
}

pub(crate) fn check_key(key: &str, category: VariableCategory) -> Result<(), InvalidAttribute> {
    let (others, allowed) = match category {
        VariableCategory::Terraform => ("_-", "letters, numbers, underscores and hyphens"),
        VariableCategory::Env => ("_-.", "letters, numbers, underscores, hyphens and dots"),
    };
    let legal = |character: char| character.is_ascii_alphanumeric() || others.contains(character);
    match () {
        () if key.is_empty() => Err(refusal("key", "can't be blank")),
        () if key.chars().count() > LONGEST_KEY => {
            Err(refusal("key", format!("is too long (maximum is {LONGEST_KEY} characters); it is {}", shown(key))))
        }
        () if !key.chars().all(legal) => {
            Err(refusal("key", format!("may only contain {allowed}; it is {}", shown(key))))
        }
        () => Ok(()),
    }
}

/// Texts about values never show them: they may be secret.
fn check_value(value: &str) -> Result<(), InvalidAttribute> {
    if value.len() > LARGEST_VALUE {
        let detail = format!("is too long (maximum is {LARGEST_VALUE} bytes); it has {} bytes", value.len());
        return Err(refusal("value", detail));
    }
    if value.contains('\0') {
        return Err(refusal("value", "must not contain the character NUL: no program takes it"));
    }
    Ok(())
}

fn check_description(text: &str) -> Result<(), InvalidAttribute> {
    if text.chars().count() > LONGEST_DESCRIPTION || !is_plain_text(text) {
        let detail = format!("may have at most {LONGEST_DESCRIPTION} visible characters; it is {}", shown(text));
        return Err(refusal("description", detail));
    }
    Ok(())
}

fn check_expression(value: &str) -> Result<(), InvalidAttribute> {
    taco_words::variable::check_expression(value).map_err(|error| refusal("value", error.to_string()))
}

/// A variable that a request gives to one run. Its value is an expression, as `-var` becomes one; plain text, which
/// programs send in place of one, is left for the engine to judge.
pub(crate) fn check_run_variable(key: &str, value: &str) -> Result<(), InvalidAttribute> {
    const ATTRIBUTE: &str = "variables";
    let refuse = |error: InvalidAttribute| InvalidAttribute::new(ATTRIBUTE, format!("{}: {error}", shown(key)));
    check_key(key, VariableCategory::Terraform).map_err(refuse)?;
    check_value(value).map_err(refuse)?;
    match value.contains(['"', '[', ']', '{', '}', '$']) {
        true => check_expression(value).map_err(refuse),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::OrganizationId;

    /// Seals by turning the text around.
    struct Mirror;

    impl Vault for Mirror {
        type Error = InvalidAttribute;

        fn seal(&self, plain: &str) -> Result<String, InvalidAttribute> {
            Ok(plain.chars().rev().collect())
        }

        fn open(&self, sealed: &str) -> Result<String, InvalidAttribute> {
            self.seal(sealed)
        }
    }

    fn patch(json: &str) -> VariablePatch {
        serde_json::from_str(json).expect(json)
    }

    fn create(json: &str) -> Result<Variable, InvalidAttribute> {
        let prefix = OrganizationId::from_random([7; 16]).organization_prefix();
        let owner = VariableOwner::Workspace(WorkspaceId::within(prefix, [1; 16]));
        patch(json).create(VariableId::within(prefix, [2; 16]), owner, Timestamp::UNIX_EPOCH, &Mirror)
    }

    fn given(json: &str) -> Variable {
        create(json).expect(json)
    }

    #[test]
    fn a_sensitive_value_is_sealed_and_stays_so() {
        let secret = given(r#"{"key":"k","value":"abc","category":"env","sensitive":true}"#);
        assert_eq!((secret.value.clone(), secret.shown_value()), (StoredValue::Sealed("cba".into()), None));
        let changed = patch(r#"{"value":"xyz"}"#).apply(&secret, &Mirror).expect("legal");
        assert_eq!(changed.value, StoredValue::Sealed("zyx".into()));
        let renamed = patch(r#"{"key":"other"}"#).apply(&changed, &Mirror).expect("legal");
        assert_eq!(renamed.value, changed.value);
        assert_eq!(patch(r#"{"sensitive":false}"#).apply(&secret, &Mirror).expect_err("no").attribute, "sensitive");
        let plain = given(r#"{"key":"k","value":"abc","category":"env","sensitive":false}"#);
        assert_eq!(plain.shown_value(), Some("abc"));
        let sealed = patch(r#"{"sensitive":true}"#).apply(&plain, &Mirror).expect("legal");
        assert_eq!(sealed.value, StoredValue::Sealed("cba".into()));
    }

    #[test]
    fn every_write_has_a_version_of_its_own() {
        let first = given(r#"{"key":"k","category":"terraform"}"#);
        let second = patch("{}").apply(&first, &Mirror).expect("legal");
        assert_ne!(first.version_id(), second.version_id());
        assert_eq!(Variable { version: first.version, ..second }, first);
    }

    #[test]
    fn an_expression_is_checked_when_it_becomes_one() {
        let secret = given(r#"{"key":"k","value":"[1,","category":"terraform","sensitive":true}"#);
        assert_eq!(patch(r#"{"hcl":true}"#).apply(&secret, &Mirror).expect_err("no").attribute, "value");
        let in_environment = given(r#"{"key":"k","value":"[1,","category":"env","hcl":true}"#);
        let moved = patch(r#"{"category":"terraform"}"#).apply(&in_environment, &Mirror);
        assert_eq!(moved.expect_err("no").attribute, "value");
        for value in ["[1, 2]", "{ a = \\\"b\\\" }", "newvalue", "\\n[\\n  1,\\n]\\n", "<<EOT\\na\\nEOT\\n"] {
            given(&format!(r#"{{"key":"k","value":"{value}","category":"terraform","hcl":true}}"#));
        }
    }

    #[test]
    fn illegal_attributes_are_refused_by_name() {
        let long = |length: usize| "x".repeat(length);
        for (json, attribute) in [
            (r#"{"category":"terraform"}"#.to_owned(), "key"),
            (r#"{"key":"","category":"env"}"#.to_owned(), "key"),
            (r#"{"key":"a b","category":"terraform"}"#.to_owned(), "key"),
            (r#"{"key":"a.b","category":"terraform"}"#.to_owned(), "key"),
            (r#"{"key":"a=b","category":"env"}"#.to_owned(), "key"),
            (format!(r#"{{"key":"{}","category":"env"}}"#, long(129)), "key"),
            (r#"{"key":"k"}"#.to_owned(), "category"),
            (r#"{"key":"k","category":"policy-set"}"#.to_owned(), "category"),
            (format!(r#"{{"key":"k","category":"env","value":"{}"}}"#, long(256 * 1024 + 1)), "value"),
            (r#"{"key":"k","category":"env","value":"a\u0000b"}"#.to_owned(), "value"),
            (r#"{"key":"k","category":"terraform","value":"{","hcl":true}"#.to_owned(), "value"),
            (r#"{"key":"k","category":"terraform","value":"","hcl":true}"#.to_owned(), "value"),
            (format!(r#"{{"key":"k","category":"env","description":"{}"}}"#, long(513)), "description"),
        ] {
            assert_eq!(create(&json).expect_err(&json[..json.len().min(90)]).attribute, attribute);
        }
        given(&format!(r#"{{"key":"{}","category":"env","value":"{}"}}"#, long(128), long(256 * 1024)));
        given(r#"{"key":"741c4949-60b9","category":"terraform","description":null,"value":null}"#);
    }

    #[test]
    fn a_refusal_never_shows_the_value() {
        let json = r#"{"key":"k","category":"terraform","value":"s3cr3t {","hcl":true}"#;
        assert!(!create(json).expect_err("no").detail.contains("s3cr3t"));
        assert!(!format!("{:?}", patch(json)).contains("s3cr3t"));
    }
}
