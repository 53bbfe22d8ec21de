//! Run tasks: programs of others that are asked about a run before it goes on.

pub mod run_task;
pub mod run_task_patch;
pub mod stages_of_run;
pub mod task_request;
pub mod task_result;
pub mod task_stage;
pub mod workspace_run_task;
