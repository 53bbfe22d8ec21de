//! Tests of what the verbs promise, with a bucket in memory.

mod accounts;
mod harness;
mod login;
mod organizations;
mod ssh_keys;
mod tokens;
