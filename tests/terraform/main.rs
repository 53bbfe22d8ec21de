//! The real terraform and the real tofu against real servers, through every command that keeps a state in taco.
//!
//! Each story is told by both programs, over http and over https, to two servers that get every second request each.

mod applies;
mod bad_days;
mod encryption;
mod http_backend;
mod laptop;
mod locks;
mod login;
mod migrations;
mod remote_state;
mod scene;
mod state_commands;
mod workspaces;
