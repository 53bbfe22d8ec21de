//! Real processes, really killed.

mod balanced_site;
mod damaged_organizations;
mod fairness;
mod kill_points;
mod killed_agents;
mod killed_in_runs;
mod killed_servers;
mod killed_walks;
mod killed_writers;
mod notifications;
mod partitions;
mod previous_release;
mod run_tasks;
