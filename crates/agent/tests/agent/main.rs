//! The real agent with real engines, and a server that does only what the protocol says.

mod agent_process;
mod applies;
mod cancellations;
mod engines;
mod examples;
mod isolation;
mod lives;
mod logs;
mod plans;
mod scripted_engine;
mod secrets;
mod signer;
mod stand_in;
mod story;
mod variables;
mod ways;
