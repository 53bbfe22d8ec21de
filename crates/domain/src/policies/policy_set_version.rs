//! One version of a policy set: announced first, then its archive is sent.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};
use taco_words::id_kinds;

use crate::author::Author;
use crate::policy_set::PolicySetId;
use crate::policy_words::{EnforcementLevel, PolicyFile};

id_kinds! {
    /// One version of a policy set.
    PolicySetVersionId = "polsetver";
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum PolicySetVersionStatus {
    /// Announced; the archive is yet to arrive.
    Pending,
    Ready,
    /// What arrived is no policy set.
    Errored,
}

impl PolicySetVersionStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Ready => "ready",
            Self::Errored => "errored",
        }
    }
}

/// A policy of a version, as its archive names it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct VersionedPolicy {
    pub name: String,
    pub query: String,
    pub level: EnforcementLevel,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct PolicySetVersion {
    pub id: PolicySetVersionId,
    pub set: PolicySetId,
    pub status: PolicySetVersionStatus,
    /// Reason why what arrived is no policy set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Policies of a version in Rego.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<VersionedPolicy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<PolicyFile>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub created_by: Author,
}

impl Record for PolicySetVersion {
    const KIND: &'static str = "policy-set-version";
    const NOUN: &'static str = "policy set version";
    const PART_OF: &'static [&'static str] = &["set"];
    type Id = PolicySetVersionId;
    type Indexes = PolicySetVersionIndexes;

    fn id(&self) -> &PolicySetVersionId {
        &self.id
    }

    references! {
        "set": PolicySetId, cascade(|versions, id| versions.by().set.get(id));
    }
}

indexes! {
    pub struct PolicySetVersionIndexes for PolicySetVersion {
        pub set: PolicySetId => |version| [version.set];
    }
}
