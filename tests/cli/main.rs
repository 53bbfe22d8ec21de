//! The commands for people, with the real binary against a real server.

mod bindings;
mod contracts;
mod directories;
mod local;
mod login;
mod new_user;
mod notifications;
mod organizations;
mod output_modes;
mod person;
mod policies;
mod pools;
mod refusals;
mod registry;
mod run_tasks;
mod runs;
mod states;
mod teams;
mod tls;
mod users;
mod variables;
