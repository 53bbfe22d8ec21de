//! Pages, as a browser without JavaScript meets them, and the login of a CLI.

mod consent;
mod login;
mod no_auth;
mod pages;
mod site;
mod taco_login;
mod tls;
mod tokens;
