//! States, and how they come and go.

pub(crate) mod new_state;
pub(crate) mod rescued_states;
pub(crate) mod state_blobs;
pub(crate) mod state_cache;
pub(crate) mod state_commits;
pub(crate) mod state_comparisons;
pub(crate) mod state_contents;
pub(crate) mod state_resources;
pub(crate) mod state_restores;
pub(crate) mod state_uploads;
pub(crate) mod state_versions;
pub(crate) mod state_writes;
pub(crate) mod summary_cache;
pub(crate) mod uploads_under_way;
