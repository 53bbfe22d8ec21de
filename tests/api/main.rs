//! The API of Terraform Cloud, as clients meet it.

mod bad_input;
mod http_backend;
mod permissions;
mod repeats;
mod states;
mod two_servers;
mod variable_sets;
mod variables;
mod workspaces;
