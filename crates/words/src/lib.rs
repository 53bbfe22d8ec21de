//! Types that servers, agents and command lines share: ids, engines, phases, variables in files, and blocks for terraform's files. They know no record,
//! so that agents and command lines are built without `taco-domain`, which re-exports all of them.

pub mod engine;
pub mod graph;
pub mod id;
pub mod local_values;
pub mod lock_text;
pub mod phase;
pub mod phase_attempt;
pub mod terraform_files;
pub mod variable;
pub mod variable_file;
