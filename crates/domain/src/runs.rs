//! Runs: what they are, how they queue, and how they end.

pub mod comment;
pub mod configuration_version;
pub mod cost_estimate;
pub mod engine_version;
pub mod global_queue;
pub mod new_run;
pub mod phase;
pub mod phase_loss;
pub mod phase_outcome;
pub mod plan_end;
pub mod run;
pub mod run_activity;
pub mod run_cancel;
pub mod run_outcome;
pub mod run_queue;
pub mod run_request;
pub mod run_statistics;
pub mod run_status;
pub mod run_trigger;
pub mod run_word;
pub mod wait_note;
pub mod wait_reason;
