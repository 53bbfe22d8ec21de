//! Variables, sets of them, and which of several counts.

pub mod binding;
pub mod bound_value;
pub mod variable;
pub mod variable_import;
pub mod variable_precedence;
pub mod variable_set;
