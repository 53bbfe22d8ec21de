//! Input of agents from mirrors and from engines.

use serde_json::Value;
use taco_agent::fuzzing;

const KEY: &str = include_str!("../../openpgp/src/tests/key.asc");
const MESSAGE: &[u8] = include_bytes!("../../openpgp/src/tests/SHA256SUMS");
const SECRET: &str = "hunter22\"<&";

/// Nothing that another has not signed is believed, and any key block is either read or refused.
pub fn openpgp(data: &[u8]) {
    if fuzzing::verify(KEY, MESSAGE, data).is_ok() {
        let other = [MESSAGE, b"!"].concat();
        assert!(fuzzing::verify(KEY, &other, data).is_err(), "a signature is of one message");
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(keys) = fuzzing::public_keys(text)
    {
        assert!(keys >= 1 && keys <= text.len());
        assert!(fuzzing::verify(text, MESSAGE, b"").is_err());
    }
}

/// A version is a version however it is surrounded.
pub fn engine_versions(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    assert_eq!(fuzzing::is_engine_version(text), fuzzing::is_engine_version(&format!(" {text}\n")), "{text:?}");
}

/// A secret is in no log, wherever in it.
pub fn masks(data: &[u8]) {
    let at = data.len() / 2;
    let log = [&data[..at], SECRET.as_bytes(), &data[at..]].concat();
    let masked = fuzzing::masked(SECRET, &log);
    let text = String::from_utf8_lossy(&masked);
    assert!(!text.contains(SECRET), "{text}");
}

/// A redacted plan is still JSON, and has nothing of a value that is marked.
pub fn plans(data: &[u8]) {
    let Some(redacted) = fuzzing::redacted_plan(data, [7; 16]) else { return };
    let redacted: Value = serde_json::from_str(&redacted).expect("JSON");
    // Fields that nobody reads may be no text.
    let Ok(shown) = serde_json::from_slice::<Value>(data) else { return };
    for (name, change) in shown["output_changes"].as_object().into_iter().flatten() {
        if let (true, Some(secret)) = (change["after_sensitive"] == true, change["after"].as_str()) {
            assert_ne!(redacted["output_changes"][name]["after"], secret);
        }
    }
}
