use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The program that plans and applies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    #[default]
    Terraform,
    Tofu,
}

impl Engine {
    pub const ALL: [Self; 2] = [Self::Terraform, Self::Tofu];
}

impl fmt::Display for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Terraform => "terraform",
            Self::Tofu => "tofu",
        })
    }
}

/// There are two engines, and this is none of them.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
#[error("engines are terraform and tofu")]
pub struct UnknownEngine;

impl FromStr for Engine {
    type Err = UnknownEngine;

    fn from_str(word: &str) -> Result<Self, UnknownEngine> {
        Self::ALL.into_iter().find(|engine| engine.to_string() == word).ok_or(UnknownEngine)
    }
}
