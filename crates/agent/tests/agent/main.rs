//! The real agent with real engines, and a server that does only what the protocol says.

mod agent_failures;
mod agent_process;
mod applies;
mod cancellations;
mod engines;
mod examples;
mod fake_server;
mod isolation;
mod logs;
mod plans;
mod scenario;
mod scripted_engine;
mod secrets;
mod signer;
mod transports;
mod variables;
