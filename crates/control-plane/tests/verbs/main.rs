//! What the verbs promise, tried on a bucket in memory.

mod accounts;
mod harness;
mod organizations;
mod tokens;
