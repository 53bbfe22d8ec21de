//! The one style sheet, compiled into the binary.

use std::sync::LazyLock;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use sha2::{Digest, Sha256};

const CONTENT: &str = include_str!("../../../static/app.css");

/// The content is part of the address, so that browsers may keep it for ever.
pub(crate) fn path() -> String {
    static PATH: LazyLock<String> =
        LazyLock::new(|| format!("/static/app-{}.css", hex::encode(&Sha256::digest(CONTENT)[..6])));
    PATH.clone()
}

pub(crate) async fn serve() -> impl IntoResponse {
    let headers = [(CONTENT_TYPE, "text/css; charset=utf-8"), (CACHE_CONTROL, "public, max-age=31536000, immutable")];
    (headers, CONTENT)
}
