//! Policies: what an organization wants of every plan, in sets that apply to workspaces, and what came of it in a run.

pub mod policy;
pub mod policy_parameter;
pub mod policy_set;
pub mod policy_set_version;
pub mod policy_words;
pub mod run_policies;
