//! Subcommands of `taco`.

pub(crate) mod admin;
pub(crate) mod audit;
pub(crate) mod config;
pub(crate) mod doctor;
mod open_site;
pub(crate) mod rewrap;
pub(crate) mod server;
