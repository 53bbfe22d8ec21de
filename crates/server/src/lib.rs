//! Builds the parts of taco into one process, the binary `taco`. It knows no rules: it only connects.

mod access_log;
mod body_pace;
mod bucket;
pub mod cli;
mod commands;
pub mod config;
mod connections;
pub mod courier;
mod embedded_agent;
mod environment;
pub mod error_document;
#[doc(hidden)]
pub mod fuzzing;
mod graphs;
mod health;
mod history;
pub mod http;
mod limits;
mod local;
mod log_writer;
mod logging;
mod master_keys;
mod metrics;
mod no_auth;
mod observe;
mod open_files;
mod packs;
mod peers;
mod retention;
mod server;
mod shutdown;
mod tls;
mod trusted_proxies;

pub use master_keys::KeyError;
pub use server::{Running, Server, StartError};
