//! Requests of htmx: each asks for a part of a page that is already loaded.

use axum::http::HeaderMap;

/// True if a block is requested instead of the whole page. Going back in the history requests the whole.
pub(crate) fn wants_part(headers: &HeaderMap) -> bool {
    headers.contains_key("hx-request") && !headers.contains_key("hx-history-restore-request")
}
