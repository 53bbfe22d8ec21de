//! Requests of the API's clients.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use taco_tfc_api::fuzzing;

use crate::in_pieces;

/// Base64 within a JSON string is decoded as another parser does it, wherever pieces end.
pub fn base64_texts(data: &[u8]) {
    let (pieces, text) = in_pieces(data);
    let decoded = fuzzing::base64_text(&pieces);
    if !is_one_string(text) {
        return; // Whoever cuts it out of a body hands over nothing else.
    }
    assert_eq!(decoded.as_ref().ok(), fuzzing::base64_text(&[text]).as_ref().ok(), "pieces make no difference");
    if let Ok(decoded) = &decoded {
        assert!(decoded.len() <= text.len());
    }
    let Ok(Value::String(plain)) = serde_json::from_slice(text) else { return };
    let symbols: Vec<u8> = plain.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if let (Ok(expected), Ok(decoded)) = (STANDARD.decode(&symbols), &decoded) {
        assert_eq!(&expected, decoded);
    }
}

/// True if quotes are at both ends, and within only behind a backslash.
fn is_one_string(text: &[u8]) -> bool {
    let Some(inside) = text.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) else { return false };
    let mut escaped = false;
    for byte in inside {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return false,
            _ => {}
        }
    }
    !escaped
}

/// A body is what another parser reads, or it is refused: for a key that is there twice, or for its depth.
pub fn bodies(data: &[u8]) {
    let value = serde_json::from_slice::<Value>(data);
    match (fuzzing::body(data), value) {
        (Ok(body), value) => assert_eq!(body, value.expect("JSON")),
        (Err(why), Ok(value)) => {
            let twice = why.contains("is there twice");
            assert!(twice || depth(&value) > 64, "{why}");
        }
        (Err(_), Err(_)) => {}
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(depth).max().unwrap_or_default(),
        Value::Object(values) => 1 + values.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// A page has bounds whatever was asked for, and no tag comes out that did not go in.
pub fn queries(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let query = fuzzing::query(text);
    if let Some((number, size)) = query.page {
        assert!(number >= 1 && (1..=100).contains(&size));
    }
    assert!(query.tagged.len() <= text.split('&').count());
    let included: BTreeSet<_> = query.included.iter().collect();
    assert!(included.iter().all(|part| !part.is_empty() && !part.contains(',')));
}
