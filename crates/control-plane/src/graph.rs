//! The graph of states: what is known of it, and verbs to ask and to tell.

pub(crate) mod dependencies;
pub(crate) mod echoes;
pub(crate) mod examiner;
pub(crate) mod graph_view;
pub(crate) mod local_files;
pub(crate) mod output_commits;
pub(crate) mod output_history;
pub(crate) mod output_pages;
pub(crate) mod why;
