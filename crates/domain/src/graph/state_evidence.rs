//! Evidence in a state: which other states it read, which of its resources use what was read, and what its values leave
//! behind as tokens. It flows past: neither attributes nor values of resources are kept.

mod document;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Read};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::graph::dependency::MAX_LISTED_USERS;
use crate::graph::output_commit::UsedOutputs;
use crate::graph::producer_address::ProducerAddress;
use crate::graph::token::{HeldTokens, Token, TokenKey, ValueTokens, packed};
use crate::state_file::StateFileError;

/// Chunk size for reading a state from a stream.
const READ_AT_ONCE: usize = 64 * 1024;
/// Maximum number of tokens that are kept of a state; of more, only reads and addresses count.
const MAX_TOKENS: usize = 4_000_000;

/// Evidence in one state.
#[derive(Clone, Debug, Default)]
pub struct StateEvidence {
    /// Tofu encrypted it on the client: nothing else can be told.
    pub encrypted: bool,
    pub reads: Vec<OutputRead>,
    /// Tokens of the whole state.
    pub tokens: EchoTokens,
    /// Managed instances that use what was read, with what they hold.
    pub users: Vec<ReadUser>,
    /// False if the state holds more tokens than are kept.
    pub complete: bool,
}

/// Kind of data block that reads another state's outputs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ReadVia {
    RemoteState,
    TfeOutputs,
}

/// One instance of a data block, and what it read.
#[derive(Clone, Debug)]
pub struct OutputRead {
    /// Address, such as `module.app["a"].data.terraform_remote_state.network[0]`.
    pub data: String,
    pub via: ReadVia,
    /// `None` if the block does not say what it reads.
    pub producer: Option<ProducerAddress>,
    /// By output.
    pub values: BTreeMap<String, ReadValue>,
    /// Outputs for which the block has a default: without them nothing is missing.
    pub defaults: BTreeSet<String>,
    /// Addresses of managed instances that depend on it, also by way of modules and other resources. At most
    /// [`MAX_LISTED_USERS`] of them.
    pub users: Vec<String>,
    pub user_count: u64,
}

/// One output as a data block read it.
#[derive(Clone, Debug)]
pub struct ReadValue {
    /// Type in cty's notation. The `tfe` provider guesses it from the value: of the producer's own types only that of
    /// the outermost value can be trusted. A plan tells none.
    pub detailed_type: Option<Box<RawValue>>,
    pub value: Box<RawValue>,
}

/// Managed instance that uses what was read.
#[derive(Clone, Debug)]
pub struct ReadUser {
    pub address: String,
    /// Indexes of the reads that it depends on.
    pub reads: Vec<usize>,
    pub held: HeldTokens,
}

/// Tokens of one state, by which it is compared with others. It may be stored: no value can be had from it.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub struct EchoTokens {
    /// Tokens of the state's outputs.
    pub outputs: BTreeMap<String, ValueTokens>,
    /// Tokens of texts in its outputs, each followed by that of a part of it. Sorted.
    #[serde(with = "packed", default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Token>,
    /// Of what the state's resources made. Sorted.
    #[serde(with = "packed", default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<Token>,
    /// Of what the state's resources hold. Sorted.
    #[serde(with = "packed", default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Token>,
}

impl EchoTokens {
    pub fn holds(&self, token: Token) -> bool {
        self.held.binary_search(&token).is_ok()
    }

    pub fn has_made(&self, token: Token) -> bool {
        self.made.binary_search(&token).is_ok()
    }

    /// Tokens of what stands inside of a text among its outputs.
    pub fn parts_of(&self, whole: Token) -> impl Iterator<Item = Token> {
        let (pairs, _) = self.parts.as_chunks::<2>();
        let first = pairs.partition_point(|[text, _]| *text < whole);
        pairs[first..].iter().take_while(move |[text, _]| *text == whole).map(|[_, part]| *part)
    }
}

impl StateEvidence {
    /// Reads a state to its end. It takes what [`crate::state_file::StateFile`] takes; what is unreadable within a
    /// resource is left out.
    pub fn read(reader: impl Read, key: &TokenKey) -> Result<Self, StateFileError> {
        let reader = BufReader::with_capacity(READ_AT_ONCE, reader);
        document::read(reader, *key)
    }

    /// Reads of a producer's outputs, as the caller resolves addresses.
    pub fn reads_of<'a>(
        &'a self,
        is_producer: impl Fn(&ProducerAddress) -> bool + 'a,
    ) -> impl Iterator<Item = (usize, &'a OutputRead)> {
        let reads = self.reads.iter().enumerate();
        reads.filter(move |(_, read)| read.producer.as_ref().is_some_and(&is_producer))
    }
}

impl OutputRead {
    /// Values of the outputs that count.
    pub fn used<'a>(&'a self, used: &'a UsedOutputs) -> impl Iterator<Item = (&'a String, &'a ReadValue)> {
        self.values.iter().filter(|(name, _)| used.includes(name))
    }
}

/// Attributes of a `terraform_remote_state` or `tfe_outputs` block, in a state.
#[derive(Deserialize)]
struct BlockAttributes {
    #[serde(default)]
    backend: Value,
    #[serde(default)]
    config: Option<Box<RawValue>>,
    #[serde(default)]
    workspace: Value,
    #[serde(default)]
    organization: Value,
    #[serde(default)]
    defaults: Option<Box<RawValue>>,
    #[serde(default)]
    outputs: Option<Box<RawValue>>,
    #[serde(default)]
    values: Option<Box<RawValue>>,
    #[serde(default)]
    nonsensitive_values: Option<Box<RawValue>>,
}

/// A value whose type the schema does not tell, as states have it.
#[derive(Deserialize)]
struct Dynamic {
    value: Box<RawValue>,
    #[serde(rename = "type")]
    detailed_type: Box<RawValue>,
}

/// Value and type of a dynamic attribute. A plan and old states have the value alone.
fn dynamic(raw: &RawValue) -> (Box<RawValue>, Option<Box<RawValue>>) {
    let wrapped: Option<Dynamic> = serde_json::from_str(raw.get()).ok();
    let is_type = |detailed_type: &RawValue| matches!(detailed_type.get().as_bytes().first(), Some(b'"' | b'['));
    match wrapped.filter(|wrapped| is_type(&wrapped.detailed_type)) {
        Some(Dynamic { value, detailed_type }) => (value, Some(detailed_type)),
        None => (raw.to_owned(), None),
    }
}

/// Names and values of an object with dynamic type.
fn named_values(raw: &RawValue) -> BTreeMap<String, ReadValue> {
    let (value, detailed_type) = dynamic(raw);
    let values: BTreeMap<String, Box<RawValue>> = serde_json::from_str(value.get()).unwrap_or_default();
    let mut types = types_of_attributes(detailed_type.as_deref(), values.keys());
    let typed = values.into_iter().map(|(name, value)| {
        let detailed_type = types.remove(&name);
        (name, ReadValue { detailed_type, value })
    });
    typed.collect()
}

/// Types of an object's attributes, or a map's elements.
fn types_of_attributes<'a>(
    detailed_type: Option<&RawValue>,
    names: impl Iterator<Item = &'a String>,
) -> BTreeMap<String, Box<RawValue>> {
    let parts: Option<Vec<Box<RawValue>>> = detailed_type.and_then(|raw| serde_json::from_str(raw.get()).ok());
    match parts.as_deref() {
        Some([kind, attributes, ..]) if kind.get() == "\"object\"" => {
            serde_json::from_str(attributes.get()).unwrap_or_default()
        }
        Some([kind, element, ..]) if kind.get() == "\"map\"" => {
            names.map(|name| (name.clone(), element.clone())).collect()
        }
        _ => BTreeMap::new(),
    }
}

/// What one instance of a data block read; `None` if its attributes cannot be read.
pub(super) fn output_read(data: String, via: ReadVia, attributes: &RawValue) -> Option<OutputRead> {
    let block: BlockAttributes = serde_json::from_str(attributes.get()).ok()?;
    let mut values = BTreeMap::new();
    let (producer, defaults) = match via {
        ReadVia::RemoteState => {
            values.extend(block.outputs.as_deref().map(named_values).unwrap_or_default());
            let defaults = block.defaults.as_deref().map(named_values).unwrap_or_default();
            let config = block.config.as_deref().map(|raw| dynamic(raw).0);
            let config = config.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or(Value::Null);
            let address = |backend| ProducerAddress::of_remote_state(backend, &config, block.workspace.as_str());
            (block.backend.as_str().map(address), defaults.into_keys().collect())
        }
        ReadVia::TfeOutputs => {
            for all in [&block.nonsensitive_values, &block.values].into_iter().flatten() {
                values.extend(named_values(all));
            }
            let place = block.organization.as_str().zip(block.workspace.as_str());
            let address = |(organization, workspace)| ProducerAddress::of_tfe_outputs(None, organization, workspace);
            (place.map(address), BTreeSet::new())
        }
    };
    Some(OutputRead { data, via, producer, values, defaults, users: Vec::new(), user_count: 0 })
}

/// Kind of read that a data source of this type is.
pub(super) fn read_via(kind: &str) -> Option<ReadVia> {
    match kind {
        "terraform_remote_state" => Some(ReadVia::RemoteState),
        "tfe_outputs" => Some(ReadVia::TfeOutputs),
        _ => None,
    }
}

impl OutputRead {
    fn add_user(&mut self, address: &str) {
        self.user_count += 1;
        if self.users.len() < MAX_LISTED_USERS {
            self.users.push(address.to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
