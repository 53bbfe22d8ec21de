//! Variables, sets of them, and which of several counts.

pub mod variable;
pub mod variable_import;
pub mod variable_precedence;
pub mod variable_set;
