//! States: their files, what differs between them, and what may be shown of them.

pub mod json_cut;
pub mod json_tree;
pub mod output;
pub mod resource_address;
pub mod resource_detail;
pub mod state_diff;
pub mod state_file;
pub mod state_mask;
pub mod state_rules;
pub mod state_version;
