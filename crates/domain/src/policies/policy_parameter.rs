//! Parameters of a policy set: policies see them as `input.parameters`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};
use taco_words::id_kinds;

use crate::attribute::{InvalidAttribute, nullable, shown};
use crate::policy_set::PolicySetId;
use crate::variable::{StoredValue, Vault};

/// Maximum number of parameters of one set.
pub const MAX_POLICY_PARAMETERS: usize = 100;
const LONGEST_KEY: usize = 128;
const LARGEST_VALUE: usize = 16 * 1024;

id_kinds! {
    /// A parameter of a policy set.
    PolicyParameterId = "polparam";
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct PolicyParameter {
    pub id: PolicyParameterId,
    pub set: PolicySetId,
    pub key: String,
    pub value: StoredValue,
    pub created_at: Timestamp,
}

impl PolicyParameter {
    /// The value, unless it is sensitive.
    pub fn shown_value(&self) -> Option<&str> {
        match &self.value {
            StoredValue::Plain(value) => Some(value),
            StoredValue::Sealed(_) => None,
        }
    }

    pub fn is_sensitive(&self) -> bool {
        self.shown_value().is_none()
    }
}

impl Record for PolicyParameter {
    const KIND: &'static str = "policy-parameter";
    const NOUN: &'static str = "policy set parameter";
    const PART_OF: &'static [&'static str] = &["set"];
    type Id = PolicyParameterId;
    type Indexes = PolicyParameterIndexes;

    fn id(&self) -> &PolicyParameterId {
        &self.id
    }

    references! {
        "set": PolicySetId, cascade(|parameters, id| parameters.by().set.under(id));
    }

    fn sealed_mut(&mut self) -> Vec<(String, &mut String)> {
        match &mut self.value {
            StoredValue::Plain(_) => Vec::new(),
            StoredValue::Sealed(sealed) => vec![(self.id.to_string(), sealed)],
        }
    }
}

indexes! {
    pub struct PolicyParameterIndexes for PolicyParameter {
        /// A set's parameters by key.
        pub set: (PolicySetId, String), unique "key" => |parameter| [(parameter.set, parameter.key.clone())];
    }
}

/// The attributes of a request that makes or changes a parameter, spelled as on the wire.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct PolicyParameterPatch {
    pub key: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub value: Option<Option<String>>,
    pub category: Option<String>,
    pub sensitive: Option<bool>,
}

impl PolicyParameterPatch {
    /// The parameter after the request. A sensitive one stays so.
    pub fn apply<V: Vault>(&self, before: &PolicyParameter, vault: &V) -> Result<PolicyParameter, V::Error> {
        let mut changed = before.clone();
        if let Some(category) = self.category.as_deref().filter(|category| *category != "policy-set") {
            let detail = format!("Category of a policy set's parameter is policy-set; it is {}", shown(category));
            return Err(InvalidAttribute::new("category", detail).into());
        }
        if let Some(key) = &self.key {
            changed.key = check_key(key)?;
        }
        let is_sensitive = self.sensitive.unwrap_or(before.is_sensitive());
        if before.is_sensitive() && !is_sensitive {
            let detail = "Sensitive cannot be taken back: delete the parameter and create it again";
            return Err(InvalidAttribute::new("sensitive", detail).into());
        }
        let value = self.value.as_ref().map(|value| value.clone().unwrap_or_default());
        if value.as_ref().is_some_and(|value| value.len() > LARGEST_VALUE) {
            let detail = format!("Value is too long (maximum is {LARGEST_VALUE} bytes)");
            return Err(InvalidAttribute::new("value", detail).into());
        }
        changed.value = match (value, &before.value, is_sensitive) {
            (Some(value), _, true) => StoredValue::Sealed(vault.seal(&value)?),
            (Some(value), _, false) => StoredValue::Plain(value),
            (None, StoredValue::Plain(value), true) => StoredValue::Sealed(vault.seal(value)?),
            (None, value, _) => value.clone(),
        };
        Ok(changed)
    }
}

fn check_key(key: &str) -> Result<String, InvalidAttribute> {
    let legal = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    if key.is_empty() || key.len() > LONGEST_KEY || !key.chars().all(legal) {
        let detail =
            format!("Key has letters, numbers, hyphens and underscores, at most {LONGEST_KEY}; it is {}", shown(key));
        return Err(InvalidAttribute::new("key", detail));
    }
    Ok(key.to_owned())
}
