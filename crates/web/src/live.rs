//! What htmx asks for: a part of a page that is there already.

use axum::http::HeaderMap;

/// Whether a block is wanted instead of the whole page. Going back in the history wants the whole.
pub(crate) fn wants_part(headers: &HeaderMap) -> bool {
    headers.contains_key("hx-request") && !headers.contains_key("hx-history-restore-request")
}
