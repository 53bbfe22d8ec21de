//! Types and rules: ids, names, records, and what may happen to them, as plain functions. No I/O, no async, no clock:
//! times, randomness and keys are arguments, so a hundred cases cost milliseconds.
//!
//! Two ledgers know different things, and no change spans both: [`site::Site`] knows users and which organizations
//! exist, [`organization_state::OrganizationState`] knows everything within one of them.

mod accounts;
mod agents;
pub mod attribute;
pub mod author;
pub mod history;
pub mod idempotency_record;
pub mod name;
pub mod organization_state;
mod organizations;
pub mod permission;
pub mod project;
mod runs;
pub mod search;
pub mod secret;
pub mod site;
pub mod site_secret;
pub mod ssh_key;
mod states;
mod teams;
mod variables;
mod workspaces;

// Modules are called by their own names wherever their files are.
pub use accounts::{grant, password_link, session, token, user};
pub use agents::{agent, agent_pool, heartbeats};
pub use organizations::{invitation, membership, organization, token_lifetime};
pub use runs::{
    comment, configuration_version, cost_estimate, engine_version, global_queue, new_run, phase, phase_loss,
    phase_outcome, plan_end, run, run_activity, run_cancel, run_outcome, run_queue, run_request, run_statistics,
    run_status, run_trigger, wait_note, wait_reason,
};
pub use states::{
    json_cut, json_tree, output, resource_address, resource_detail, state_diff, state_file, state_mask, state_rules,
    state_version,
};
pub use taco_words::{engine, id, phase_attempt, terraform_files, variable_file};
pub use teams::{team, team_access, team_access_patch};
pub use variables::{variable, variable_import, variable_precedence, variable_set};
pub use workspaces::{execution, lock, tag, workspace, workspace_settings};

pub use attribute::InvalidAttribute;
pub use author::Author;
pub use organization_state::OrganizationState;
pub use site::Site;
