//! Categories and values of variables.

use hcl_edit::expr::Expression;
use serde::{Deserialize, Serialize};
use taco_tables::{KeyBytes, SortKey};

/// Destination of a variable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum VariableCategory {
    /// Into the configuration's `variable` blocks.
    Terraform,
    /// Into the environment of the engine.
    Env,
}

impl SortKey for VariableCategory {
    fn encode(&self, key: &mut KeyBytes) {
        (*self as u8).encode(key);
    }
}

/// Error for a value that is not an HCL expression. It names the place and not the value, which may be secret.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
#[error("is not a valid HCL expression (line {line}, column {column})")]
pub struct InvalidExpression {
    pub line: usize,
    pub column: usize,
}

/// Checks that a value is an HCL expression.
pub fn check_expression(value: &str) -> Result<(), InvalidExpression> {
    value.trim().parse::<Expression>().map(drop).map_err(|error| {
        let place = error.location();
        InvalidExpression { line: place.line(), column: place.column() }
    })
}
