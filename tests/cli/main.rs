//! The commands for people, with the real binary against a real server.

mod directories;
mod login;
mod new_user;
mod organizations;
mod output_modes;
mod person;
mod pools;
mod refusals;
mod runs;
mod states;
mod teams;
mod tls;
mod variables;
