//! Workspaces, their settings, locks and tags.

pub mod execution;
pub mod lock;
pub mod reserved_tag_key;
pub mod tag;
pub mod workspace;
pub mod workspace_settings;
