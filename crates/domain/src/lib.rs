//! Types and rules: ids, names, records, and what may happen to them, as plain functions. No I/O, no async, no clock:
//! times, randomness and keys are arguments, so a hundred cases cost milliseconds.
//!
//! Two ledgers know different things, and no change spans both: [`site::Site`] knows users and which organizations
//! exist, [`organization_state::OrganizationState`] knows everything within one of them.

mod accounts;
mod agents;
pub mod attribute;
pub mod author;
pub mod graph;
pub mod history;
pub mod idempotency_record;
pub mod name;
mod notifications;
pub mod organization_state;
mod organizations;
pub mod permission;
mod policies;
pub mod project;
mod registry;
pub mod retention;
mod run_tasks;
mod runs;
pub mod search;
pub mod secret;
pub mod site;
pub mod site_secret;
pub mod small_map;
pub mod ssh_key;
mod states;
mod teams;
mod variables;
mod vcs;
pub mod walks;
mod workspaces;

// Modules are called by their own names wherever their files are.
pub use accounts::{grant, password_link, session, token, user};
pub use agents::{agent, agent_pool, heartbeats};
pub use notifications::{
    delivery, email, message, microsoft_teams, notification_configuration, notification_patch, payload, slack, trigger,
};
pub use organizations::{invitation, membership, organization, token_lifetime};
pub use policies::{policy, policy_parameter, policy_set, policy_set_version, policy_words, run_policies};
pub use registry::{
    checksums, gpg_key, module_version, provider_platform, provider_version, registry_address, registry_file,
    registry_module, registry_provider, registry_version,
};
pub use run_tasks::{
    run_task, run_task_patch, stages_of_run, task_request, task_result, task_stage, workspace_run_task,
};
pub use runs::{
    comment, configuration_version, cost_estimate, engine_version, global_queue, new_run, phase, phase_loss,
    phase_outcome, plan_end, run, run_activity, run_cancel, run_outcome, run_queue, run_request, run_statistics,
    run_status, run_trigger, run_word, wait_note, wait_reason,
};
pub use states::{
    json_cut, json_tree, output, resource_address, resource_detail, state_diff, state_file, state_mask, state_rules,
    state_version,
};
pub use taco_words::{engine, id, lock_text, phase_attempt, terraform_files, variable_file};
pub use teams::{team, team_access, team_access_patch};
pub use variables::{binding, bound_value, variable, variable_import, variable_precedence, variable_set};
pub use vcs::{oauth_client, oauth_token, service_provider};
pub use workspaces::{execution, lock, reserved_tag_key, tag, workspace, workspace_settings};

pub use attribute::InvalidAttribute;
pub use author::Author;
pub use organization_state::OrganizationState;
pub use site::Site;
