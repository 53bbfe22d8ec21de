//! Pages, as a browser without JavaScript meets them, and the login of a CLI.

mod admin;
mod agents;
mod consent;
mod dashboard;
mod form_scene;
mod login;
mod no_auth;
mod organizations;
mod pages;
mod projects;
mod readme;
mod run_log;
mod run_plan;
mod run_scene;
mod runs;
mod sessions;
mod settings;
mod site;
mod states;
mod taco_login;
mod tls;
mod tokens;
mod variable_sets;
mod variables;
mod workspace;
mod workspaces;
