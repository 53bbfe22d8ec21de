//! The graph of states: what each unit's outputs were, which unit uses which outputs of which other, what has changed
//! since, and why. A unit is a workspace. Records are what was seen and said; everything else follows from them.

mod address_steps;
mod bound_edges;
pub mod broken_outputs;
pub mod consumption;
pub mod dependency;
pub mod echo;
pub mod findings;
pub mod followers;
pub mod local_references;
pub mod output_commit;
pub mod output_contract;
pub mod output_type;
pub mod own_inputs;
pub mod plan_evidence;
pub mod producer_address;
pub mod state_evidence;
pub mod status;
pub mod token;

pub use taco_words::graph as words;

/// Name of a unit that the reader may not know of.
pub const HIDDEN_UNIT: &str = "a unit you may not see";
