//! Words of policies: their kinds and levels, as the API spells them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::attribute::{InvalidAttribute, shown};

/// Language of policies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyKind {
    /// Its interpreter is not free, so that nothing here evaluates it: what is mandatory stops runs.
    Sentinel,
    Opa,
}

impl PolicyKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sentinel => "sentinel",
            Self::Opa => "opa",
        }
    }

    /// Ending of files in this language.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Sentinel => "sentinel",
            Self::Opa => "rego",
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for PolicyKind {
    type Err = InvalidAttribute;

    fn from_str(text: &str) -> Result<Self, InvalidAttribute> {
        match text {
            "opa" => Ok(Self::Opa),
            "sentinel" => Ok(Self::Sentinel),
            other => {
                Err(InvalidAttribute::new("kind", format!("Kind must be one of opa, sentinel; it is {}", shown(other))))
            }
        }
    }
}

/// What a policy that finds something does to a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum EnforcementLevel {
    /// It is told, and nothing else.
    Advisory,
    Mandatory,
    /// Sentinel's word for what can be overridden.
    SoftMandatory,
    /// Sentinel's word for what cannot.
    HardMandatory,
}

impl EnforcementLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Advisory => "advisory",
            Self::Mandatory => "mandatory",
            Self::SoftMandatory => "soft-mandatory",
            Self::HardMandatory => "hard-mandatory",
        }
    }

    /// It stops runs.
    pub fn is_mandatory(self) -> bool {
        self != Self::Advisory
    }

    /// The level of a policy for which none was given.
    pub fn default_of(kind: PolicyKind) -> Self {
        match kind {
            PolicyKind::Opa => Self::Advisory,
            PolicyKind::Sentinel => Self::HardMandatory,
        }
    }

    /// The level that a request names for a policy of this kind.
    pub fn parse(text: &str, kind: PolicyKind) -> Result<Self, InvalidAttribute> {
        let levels: &[Self] = match kind {
            PolicyKind::Opa => &[Self::Advisory, Self::Mandatory],
            PolicyKind::Sentinel => &[Self::Advisory, Self::SoftMandatory, Self::HardMandatory],
        };
        levels.iter().copied().find(|level| level.as_str() == text).ok_or_else(|| {
            let known = levels.iter().map(|level| level.as_str()).collect::<Vec<_>>().join(", ");
            let detail =
                format!("Enforcement level of a policy of the kind {kind} is one of {known}; it is {}", shown(text));
            InvalidAttribute::new("enforcement-level", detail)
        })
    }
}

impl fmt::Display for EnforcementLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Syntax of Rego modules: before OPA 1.0, rules had neither `if` nor `contains`.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum PolicySyntax {
    V0,
    V1,
}

impl PolicySyntax {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V0 => "v0",
            Self::V1 => "v1",
        }
    }
}

/// A file of a policy or a policy set in the bucket.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct PolicyFile {
    pub blob: String,
    pub size: u64,
    /// In hexadecimal.
    pub sha256: String,
    /// Unknown where the server had no `opa` to ask; the agent finds out, then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syntax: Option<PolicySyntax>,
}

pub(crate) const LONGEST_DESCRIPTION: usize = 1_000;
const LONGEST_QUERY: usize = 1_000;

/// Checks a query: one line that is not empty.
pub(crate) fn check_query(query: &str) -> Result<String, InvalidAttribute> {
    let query = query.trim();
    if query.is_empty() {
        return Err(InvalidAttribute::new("query", "Query can't be blank: name a rule, such as data.terraform.deny"));
    }
    if query.len() > LONGEST_QUERY || query.chars().any(char::is_control) {
        let detail = format!("Query must be one line of at most {LONGEST_QUERY} bytes; it is {}", shown(query));
        return Err(InvalidAttribute::new("query", detail));
    }
    Ok(query.to_owned())
}

/// Checks a description.
pub(crate) fn check_text(text: &str) -> Result<String, InvalidAttribute> {
    if text.chars().count() > LONGEST_DESCRIPTION || !crate::attribute::is_plain_text(text) {
        let detail = format!("Description must be text of at most {LONGEST_DESCRIPTION} characters");
        return Err(InvalidAttribute::new("description", detail));
    }
    Ok(text.to_owned())
}
