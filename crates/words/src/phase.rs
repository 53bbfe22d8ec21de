//! The two parts of a run that an agent executes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseKind {
    Plan,
    Apply,
}

impl fmt::Display for PhaseKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Plan => "plan",
            Self::Apply => "apply",
        })
    }
}

/// There are two phases, and this is none of them.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
#[error("phases are plan and apply")]
pub struct UnknownPhase;

impl FromStr for PhaseKind {
    type Err = UnknownPhase;

    fn from_str(word: &str) -> Result<Self, UnknownPhase> {
        match word {
            "plan" => Ok(Self::Plan),
            "apply" => Ok(Self::Apply),
            _ => Err(UnknownPhase),
        }
    }
}

/// Resources that a phase adds, changes, destroys and imports.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(default)]
pub struct ResourceCounts {
    pub additions: u64,
    pub changes: u64,
    pub destructions: u64,
    pub imports: u64,
}
