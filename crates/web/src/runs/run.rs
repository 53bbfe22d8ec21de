//! One run: its page, its log as it grows, and what people decide about it.

pub(crate) mod actions;
pub(crate) mod events;
mod history;
pub(crate) mod log;
pub(crate) mod log_lines;
mod log_text;
pub(crate) mod page;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod run_policies;
pub(crate) mod stages;
pub(crate) mod tasks;
pub(crate) mod waits;
