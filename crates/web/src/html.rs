//! Pieces of HTML that many pages share.

pub(crate) mod ansi;
pub(crate) mod badge;
pub(crate) mod choice;
pub(crate) mod flash;
pub(crate) mod list_page;
pub(crate) mod markdown;
pub(crate) mod pagination;
pub(crate) mod text;
pub(crate) mod text_diff;
pub(crate) mod words;
