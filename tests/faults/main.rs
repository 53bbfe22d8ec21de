//! Real processes, really killed.

mod kill_points;
mod killed_servers;
mod killed_writers;
