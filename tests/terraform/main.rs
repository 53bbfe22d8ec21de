//! The real terraform and the real tofu against real servers, through every command that keeps a state in taco, and
//! through every command that an agent executes.
//!
//! Each story about states is told by both programs, over http and over https, to two servers that get every second
//! request each. Those in `remote_…` are about runs: every command in every combination of `remote_matrix`, and what
//! runs find around them on the agent within one server.

mod applies;
mod bindings;
mod client_failures;
mod contracts;
mod encryption;
mod estates;
mod evidence;
mod experiments;
mod graph;
mod http_backend;
mod laptop;
mod large_estates;
mod locks;
mod login;
mod migrations;
mod policies;
mod registry;
mod remote_applies;
mod remote_choices;
mod remote_environment;
mod remote_matrix;
mod remote_providers;
mod remote_run_tokens;
mod remote_scene;
mod remote_state;
mod remote_waits;
mod run_tasks;
mod scene;
mod state_commands;
mod walks;
mod workspaces;
