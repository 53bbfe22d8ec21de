//! The commands for people, with the real binary against a real server.

mod directories;
mod login;
mod manners;
mod organizations;
mod person;
mod pools;
mod refusals;
mod runs;
mod states;
mod tls;
mod variables;
