//! The binary `taco` and the server in it, as one who installs it meets them.

mod agents;
mod configuration;
mod connections;
mod damage;
mod doctor;
mod email;
mod embedded_agent;
mod health;
mod help;
mod idle;
mod key_rotation;
mod memory;
mod newer_records;
mod operations_document;
mod password_load;
mod passwords;
mod requests;
mod secrets;
mod security_document;
mod setup_link;
mod shutdown;
mod shutdown_with_runs;
mod slow_uploads;
mod start;
