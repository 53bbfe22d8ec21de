//! Evidence in a plan, as `show -json` prints it: which outputs of other states the configuration names, what was read of
//! them, who uses them, and what the plan does to its own outputs.
//!
//! A configuration names outputs in its expressions. What it says by way of a local value is not in a plan; for that the
//! configuration's own files are asked ([`LocalReferences`]), or the plan's other hints, and where neither tells, all
//! outputs count as used. References in conditions of `precondition`, `postcondition` and `check` are in no plan.

mod configuration;
mod document;
mod uses;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Read};

use serde_json::value::RawValue;

use crate::graph::local_references::LocalReferences;
use crate::graph::output_commit::UsedOutputs;
use crate::graph::producer_address::ProducerAddress;
use crate::graph::state_evidence::{ReadValue, ReadVia};

/// Chunk size for reading a plan from a stream.
const READ_AT_ONCE: usize = 64 * 1024;

/// Evidence in one plan.
#[derive(Clone, Debug)]
pub struct PlanEvidence {
    pub reads: Vec<PlanRead>,
    /// True if all outputs of a read count as used for want of the configuration's own files.
    pub asks_for_files: bool,
    /// Outputs that the plan speaks of, by name. A targeted plan leaves some out.
    pub outputs: BTreeMap<String, PlannedOutput>,
    /// Values of the root module's variables, also those that are secret.
    pub variables: BTreeMap<String, Box<RawValue>>,
    /// False for a plan with targets, and where something was put off. Tofu does not tell.
    pub complete: Option<bool>,
    /// False if there is nothing to apply. Tofu does not tell.
    pub applyable: Option<bool>,
    pub errored: bool,
    /// Number of managed instances that it creates, changes, replaces or deletes.
    pub changed_instances: u64,
    /// True if all that it does to managed instances is to delete them.
    pub only_deletes: bool,
}

/// One instance of a data block, and which of its outputs the configuration uses.
#[derive(Clone, Debug)]
pub struct PlanRead {
    pub data: String,
    pub via: ReadVia,
    /// `None` if the plan does not tell what it reads.
    pub producer: Option<ProducerAddress>,
    pub used: UsedOutputs,
    /// By output; without types. Empty if it was not read while planning.
    pub values: BTreeMap<String, ReadValue>,
    /// Outputs for which the block has a default: without them nothing is missing.
    pub defaults: BTreeSet<String>,
    /// Addresses of resources that use it, at most [`crate::graph::dependency::MAX_LISTED_USERS`].
    pub users: Vec<String>,
    pub user_count: u64,
}

/// What a plan does to one output.
#[derive(Clone, Debug)]
pub struct PlannedOutput {
    pub action: OutputAction,
    /// Its planned value. Parts that are unknown are missing in it; `None` if all of it is unknown, or it is removed.
    pub value: Option<Box<RawValue>>,
    pub unknown: Unknown,
    /// Type in cty's notation, where the value is known.
    pub detailed_type: Option<Box<RawValue>>,
    pub sensitive: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputAction {
    Unchanged,
    Created,
    Changed,
    Removed,
}

/// How much of a planned value is known only after the apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unknown {
    Nothing,
    Part,
    Whole,
}

/// Reason why bytes are no plan.
#[derive(thiserror::Error, Debug)]
pub enum UnreadablePlan {
    #[error("this is no plan: {0}")]
    NotPlan(String),
    /// The reader failed; the bytes are not to blame.
    #[error("reading the plan failed: {0}")]
    Read(std::io::Error),
}

impl PlanEvidence {
    /// Reads a plan to its end. `locals` are those of the configuration's files, if they are at hand.
    pub fn read(reader: impl Read, locals: &LocalReferences) -> Result<Self, UnreadablePlan> {
        let reader = BufReader::with_capacity(READ_AT_ONCE, reader);
        let document: document::Document = serde_json::from_reader(reader).map_err(|error| match error.classify() {
            serde_json::error::Category::Io => UnreadablePlan::Read(error.into()),
            _ => UnreadablePlan::NotPlan(error.to_string()),
        })?;
        let root = configuration::Module::of(&document.configuration);
        let (reads, asks_for_files) = uses::reads(&document, &root, locals);
        let changes =
            || document.resource_changes.iter().filter(|change| change.is_managed() && change.does_something());
        let planned = document.planned_values.outputs;
        let outputs = document.output_changes.into_iter().map(|(name, change)| {
            let detailed_type = planned.get(&name).and_then(|output| output.detailed_type.clone());
            (name, change.planned(detailed_type))
        });
        Ok(Self {
            reads,
            asks_for_files,
            changed_instances: changes().count() as u64,
            only_deletes: changes().next().is_some() && changes().all(document::ResourceChange::only_deletes),
            outputs: outputs.collect(),
            variables: document
                .variables
                .into_iter()
                .filter_map(|(name, variable)| Some((name, variable.value?)))
                .collect(),
            complete: document.complete,
            applyable: document.applyable,
            errored: document.errored.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests;
