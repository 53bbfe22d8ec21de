//! What the verbs promise, tried on a bucket in memory.

mod accounts;
mod harness;
mod login;
mod organizations;
mod ssh_keys;
mod tokens;
