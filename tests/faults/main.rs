//! Real processes, really killed.

mod killed_servers;
mod killed_writers;
