//! Variables of workspaces and variable sets.

use serde::{Deserialize, Serialize};

/// Where a variable goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum VariableCategory {
    /// Into the configuration's `variable` blocks.
    Terraform,
    /// Into the environment of the engine.
    Env,
}
