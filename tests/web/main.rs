//! Pages, as a browser without JavaScript meets them, and the login of a CLI.

mod admin;
mod consent;
mod form_scene;
mod login;
mod no_auth;
mod organizations;
mod pages;
mod projects;
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
