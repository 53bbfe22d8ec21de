//! The API of Terraform Cloud, as clients meet it.

mod agent_door;
mod agents;
mod audit_trail;
mod bad_input;
mod configuration_versions;
mod explorer;
mod hidden_workspaces;
mod history;
mod http_backend;
mod idle_organizations;
mod invitations;
mod limits;
mod log_addresses;
mod newer_servers;
mod not_implemented;
mod permissions;
mod quotas;

mod idempotency;
mod reference;
mod run_phases;
mod run_queue;
mod run_tokens;
mod run_triggers;
mod runs;
mod secret_reads;
mod states;
mod team_tokens;
mod teams;
mod token_lifetimes;
mod two_servers;
mod variable_sets;
mod variables;
mod wire_documents;
mod workspaces;
