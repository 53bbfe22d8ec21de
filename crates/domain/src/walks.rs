//! Walks: plans, applies or destroys of many units in the order of the graph.

pub mod facts;
pub mod plan;
pub mod preview;
#[cfg(test)]
mod simulation;
pub mod steps;
pub mod walk;

/// Words of walks, for crates that do not see the words themselves.
pub mod words {
    pub use taco_words::graph::{Freshness, OutputChange, WalkKind, WalkNodeState, WalkResult, WalkState};
}
