//! Parsers of this crate for `crates/fuzz-targets`; no part of the API.

use bytes::BytesMut;
use serde_json::Value;

use crate::base64_text::Base64Text;
use crate::query::Query;

/// Decodes a JSON string of base64 that comes in pieces.
pub fn base64_text(pieces: &[&[u8]]) -> Result<Vec<u8>, String> {
    let (mut decoder, mut decoded) = (Base64Text::default(), BytesMut::new());
    for piece in pieces {
        decoder.push(piece, &mut decoded)?;
    }
    decoder.finish().map(|()| decoded.to_vec())
}

/// Reads a body; the error is what its sender is told.
pub fn body(bytes: &[u8]) -> Result<Value, String> {
    crate::body::parse(bytes).map_err(|error| format!("{error:?}"))
}

/// Parameters that handlers read from a query.
#[derive(Debug)]
pub struct Asked {
    /// Number and size, unless they are refused.
    pub page: Option<(usize, usize)>,
    pub tagged: Vec<(String, Option<String>)>,
    pub included: Vec<String>,
}

/// Reads a query.
pub fn query(text: &str) -> Asked {
    let query = Query::parse(text);
    Asked {
        page: query.page().ok().map(|page| (page.number(), page.size())),
        tagged: query.tagged(),
        included: query.texts("include"),
    }
}
