//! Dependencies: the edges of the graph, from a consumer to a producer whose outputs it uses. Each has what is known of it
//! by evidence of each grade, what a person declared, and what the consumer last applied against.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use taco_tables::{Record, indexes, references};
use taco_words::graph::{ConsumedBy, EdgePolicy, Grade};
use taco_words::id_kinds;

use crate::author::Author;
use crate::graph::output_commit::{OutputCommitNumber, UsedOutputs};
use crate::graph::token::ValueTokens;
use crate::id::{RunId, StateVersionId, WorkspaceId};
use crate::output::OutputDigest;

/// Maximum number of users and data blocks that an observation lists; it counts the rest.
pub const MAX_LISTED_USERS: usize = 20;
/// Maximum length of a producer's address; longer ones are cut.
pub const MAX_ADDRESS_BYTES: usize = 1024;

id_kinds! {
    /// One unit's use of another's outputs.
    DependencyId = "dep";
}

/// The producer of a dependency.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Producer {
    Unit(WorkspaceId),
    /// Canonical address of a state that leads to no unit here, or not yet.
    Address(String),
}

/// One unit's use of another's outputs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Dependency {
    pub id: DependencyId,
    pub consumer: WorkspaceId,
    /// `None` if the producer's address leads to no unit here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer: Option<WorkspaceId>,
    /// Canonical address under which the consumer reads the producer, or its name before it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// By how it is known, what was seen last.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub observed: BTreeMap<Grade, Observation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<Declaration>,
    /// What the consumer last applied against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumed: Option<Consumed>,
    #[serde(default = "notify")]
    pub policy: EdgePolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub muted: Option<Mute>,
    pub created_at: Timestamp,
}

fn notify() -> EdgePolicy {
    EdgePolicy::Notify
}

/// Evidence of one grade for a dependency.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Observation {
    pub first: Timestamp,
    pub last: Timestamp,
    pub used: UsedOutputs,
    /// Outputs that changed and of which nothing tells whether they are used: their values are too plain.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub maybe: BTreeSet<String>,
    /// Data blocks of the consumer that read the producer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<String>,
    /// Resources of the consumer that use what was read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    #[serde(default)]
    pub user_count: u64,
    /// Digests of what was read or held, by output.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, OutputDigest>,
    /// Of echoes, the tokens by which the consumer's resources are recognised as holding them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tokens: BTreeMap<String, ValueTokens>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_version: Option<StateVersionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

/// A person's word that one unit uses another.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Declaration {
    pub used: UsedOutputs,
    pub by: Author,
    pub at: Timestamp,
    /// File and line, where a scan of a checkout says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// What a consumer last applied against.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Consumed {
    pub how: ConsumedBy,
    pub grade: Grade,
    /// No resource shows whether it took the new values; it is taken to have done so.
    #[serde(default)]
    pub assumed: bool,
    /// The newest output commit of the producer that has all these values, if one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<OutputCommitNumber>,
    /// By output: those that the consumer saw.
    pub outputs: BTreeMap<String, ConsumedOutput>,
    pub at: Timestamp,
    pub by: Author,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_version: Option<StateVersionId>,
    /// Why a person said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One output as a consumer saw it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct ConsumedOutput {
    pub digest: OutputDigest,
    #[serde(rename = "type")]
    pub detailed_type: String,
    /// Hashes of the distinctive parts of the value, by which resources are recognised that still hold it.
    #[serde(default)]
    pub tokens: ValueTokens,
}

/// A person's word that a dependency does not count.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Mute {
    pub by: Author,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Record for Dependency {
    const KIND: &'static str = "dependency";
    const PART_OF: &'static [&'static str] = &["consumer"];
    type Id = DependencyId;
    type Indexes = DependencyIndexes;

    fn id(&self) -> &DependencyId {
        &self.id
    }

    references! {
        "consumer": WorkspaceId, cascade(|dependencies, id| dependencies.by().consumer.get(id));
        "producer": WorkspaceId, unlink(|dependencies, id| dependencies.by().producer.get(id), |dependency| {
            dependency.producer = None;
        });
        "observed": StateVersionId, keep("it tells where it was seen");
        "observed": RunId, keep("it tells where it was seen");
        "consumed": StateVersionId, keep("it tells what was applied");
        "consumed": RunId, keep("it tells what was applied");
    }
}

indexes! {
    pub struct DependencyIndexes for Dependency {
        pub consumer: WorkspaceId => |dependency| [dependency.consumer];
        pub producer: WorkspaceId => |dependency| dependency.producer;
    }
}

impl DependencyId {
    pub fn of(consumer: WorkspaceId, producer: &Producer) -> Self {
        let mut purpose = format!("{consumer} ");
        match producer {
            Producer::Unit(id) => write!(purpose, "{id}"),
            Producer::Address(address) => write!(purpose, "{}", hex::encode(Sha256::digest(address))),
        }
        .expect("a text takes all");
        Self::derived(consumer.organization_prefix(), &purpose)
    }
}

impl Dependency {
    /// A dependency of which nothing is known yet.
    pub fn new(consumer: WorkspaceId, producer: &Producer, now: Timestamp) -> Self {
        let (unit, address) = match producer {
            Producer::Unit(id) => (Some(*id), None),
            Producer::Address(address) => (None, Some(address.clone())),
        };
        Self {
            id: DependencyId::of(consumer, producer),
            consumer,
            producer: unit,
            address,
            observed: BTreeMap::new(),
            declared: None,
            consumed: None,
            policy: EdgePolicy::Notify,
            muted: None,
            created_at: now,
        }
    }

    /// True if nothing says any more that there is such a dependency.
    pub fn is_forgotten(&self) -> bool {
        self.observed.is_empty() && self.declared.is_none() && self.muted.is_none()
    }

    /// How it is known, best first.
    pub fn grades(&self) -> Vec<Grade> {
        let mut grades: Vec<Grade> = self.observed.keys().copied().collect();
        grades.extend(self.declared.is_some().then_some(Grade::Declared));
        grades.sort_unstable();
        grades.dedup();
        grades
    }

    /// The outputs that the consumer uses. A plan names them; a state lists all that were read, so there they count only
    /// where nothing better is known. What is bound to variables comes on top of what the configuration reads.
    pub fn used(&self) -> UsedOutputs {
        let bound = self.observed.get(&Grade::Binding);
        let read = self.observed.iter().find(|(grade, _)| **grade != Grade::Binding).map(|(_, seen)| seen);
        let best = match (bound, read) {
            (Some(bound), Some(read)) => Some(bound.used.clone().and(&read.used)),
            (one, other) => one.or(other).map(|seen| seen.used.clone()),
        };
        match (best, &self.declared) {
            (Some(used), Some(said)) if matches!(said.used, UsedOutputs::Names(_)) => used.and(&said.used),
            (Some(used), _) => used,
            (None, Some(said)) => said.used.clone(),
            (None, None) => UsedOutputs::All,
        }
    }

    /// Variables are bound to the producer's outputs, and no run was seen to apply them.
    pub fn is_bound_anew(&self) -> bool {
        self.observed.contains_key(&Grade::Binding) && self.consumed.is_none()
    }

    /// Evidence that could prove its consumer clean.
    pub fn has_proof(&self) -> bool {
        self.observed.keys().any(|grade| grade.is_proof())
    }

    /// Something else than values that both hold speaks for it: it was declared, or seen being read.
    pub fn is_told(&self) -> bool {
        self.declared.is_some() || self.observed.keys().any(|grade| *grade != Grade::Echo)
    }

    /// The earliest time that it was seen or declared.
    pub fn since(&self) -> Timestamp {
        let seen = self.observed.values().map(|seen| seen.first);
        seen.chain(self.declared.as_ref().map(|said| said.at)).min().unwrap_or(self.created_at)
    }
}
