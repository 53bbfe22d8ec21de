//! Agents and their pools.

pub mod agent;
pub mod agent_pool;
pub mod heartbeats;
