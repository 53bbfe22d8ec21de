//! Real processes, really killed.

mod killed_writers;
