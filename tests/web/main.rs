//! Pages, as a browser without JavaScript meets them, and the login of a CLI.

mod browser;
mod consent;
mod login;
mod no_auth;
mod pages;
mod taco_login;
mod terraform_login;
mod tls;
mod tokens;
