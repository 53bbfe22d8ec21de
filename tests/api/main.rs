//! The API of Terraform Cloud, as clients meet it.

mod absent;
mod agent_door;
mod agents;
mod audit_trail;
mod bad_input;
mod configuration_versions;
mod explorer;
mod http_backend;
mod invitations;
mod limits;
mod log_addresses;
mod permissions;
mod repeats;
mod run_phases;
mod run_queue;
mod run_tokens;
mod run_triggers;
mod runs;
mod secret_reads;
mod states;
mod teams;
mod token_lifetimes;
mod two_servers;
mod variable_sets;
mod variables;
mod workspaces;
