//! Words and rules: ids, names, records, and what may happen to them, as plain functions. No I/O, no async, no clock:
//! times, randomness and keys are arguments, so a hundred cases cost milliseconds.
//!
//! Two ledgers know different things, and no change spans both: [`site::Site`] knows users and which organizations
//! exist, [`organization_state::OrganizationState`] knows everything within one of them.

pub mod agent;
pub mod agent_pool;
pub mod attribute;
pub mod author;
pub mod comment;
pub mod configuration_version;
pub mod cost_estimate;
pub mod done_request;
pub mod engine;
pub mod engine_version;
pub mod execution;
pub mod global_queue;
pub mod grant;
pub mod history;
pub mod id;
pub mod invitation;
pub mod json_cut;
pub mod json_tree;
pub mod lock;
pub mod membership;
pub mod name;
pub mod organization;
pub mod organization_state;
pub mod output;
pub mod password_link;
pub mod permission;
pub mod phase;
pub mod phase_loss;
pub mod plan_end;
pub mod project;
pub mod resource_address;
pub mod run;
pub mod run_cancel;
pub mod run_queue;
pub mod run_request;
pub mod run_statistics;
pub mod run_status;
pub mod run_trigger;
pub mod secret;
pub mod session;
pub mod site;
pub mod site_secret;
pub mod ssh_key;
pub mod state_diff;
pub mod state_file;
pub mod state_mask;
pub mod state_rules;
pub mod state_version;
pub mod tag;
pub mod team;
pub mod team_access;
pub mod team_access_patch;
pub mod token;
pub mod token_lifetime;
pub mod user;
pub mod variable;
pub mod variable_file;
pub mod variable_import;
pub mod variable_precedence;
pub mod variable_set;
pub mod wait_note;
pub mod wait_reason;
pub mod workspace;
pub mod workspace_settings;

pub use attribute::InvalidAttribute;
pub use author::Author;
pub use organization_state::OrganizationState;
pub use site::Site;
