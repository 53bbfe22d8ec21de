//! Attributes in requests, and the errors about them.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// An attribute that cannot be as it was sent. The text is complete: what is wrong, what is allowed, what was sent.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("{detail}")]
pub struct InvalidAttribute {
    /// Name in the API, such as `auto-destroy-at`.
    pub attribute: &'static str,
    pub detail: String,
}

impl InvalidAttribute {
    pub fn new(attribute: &'static str, detail: impl Into<String>) -> Self {
        Self { attribute, detail: detail.into() }
    }

    /// JSON pointer to the attribute in a JSON:API document.
    pub fn pointer(&self) -> String {
        format!("/data/attributes/{}", self.attribute)
    }
}

/// Deserializes a field of a sparse update: `null` clears an attribute and absence leaves it: `Some(None)` and `None`.
/// Use it as `#[serde(default, deserialize_with = "nullable")]`.
pub fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

/// Like [`nullable`], for an id: the provider `tfe` says "none" with an empty text.
pub fn nullable_id<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    let sent = Option::<String>::deserialize(deserializer)?.filter(|id| !id.is_empty());
    sent.map(|id| id.parse().map_err(D::Error::custom)).transpose().map(Some)
}

/// A value as an error may show it: quoted, at most 100 characters, nothing invisible.
pub fn shown(value: &str) -> String {
    const LIMIT: usize = 100;
    match value.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{:?} and so on", &value[..end]),
        None => format!("{value:?}"),
    }
}

/// Refuses text that would be unreadable or misleading on a page: control characters and bidirectional overrides.
pub fn is_plain_text(text: &str) -> bool {
    text.chars().all(is_plain)
}

fn is_plain(character: char) -> bool {
    let misleads = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !misleads && (!character.is_control() || matches!(character, '\n' | '\r' | '\t'))
}

/// The beginning of a text, without what [`is_plain_text`] refuses: for what a client sends along and cannot help.
pub fn as_plain_text(text: &str, longest: usize) -> String {
    text.chars().filter(|character| is_plain(*character)).take(longest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::AgentPoolId;

    #[derive(Deserialize)]
    struct Patch {
        #[serde(default, deserialize_with = "nullable")]
        description: Option<Option<String>>,
    }

    #[test]
    fn null_differs_from_absent() {
        let description = |json| serde_json::from_str::<Patch>(json).expect("JSON").description;
        assert_eq!(description("{}"), None);
        assert_eq!(description(r#"{"description":null}"#), Some(None));
        assert_eq!(description(r#"{"description":"a"}"#), Some(Some("a".to_owned())));
    }

    #[derive(Deserialize)]
    struct IdPatch {
        #[serde(default, deserialize_with = "nullable_id")]
        pool: Option<Option<AgentPoolId>>,
    }

    #[test]
    fn an_empty_id_is_none() {
        let pool = |json: &str| serde_json::from_str::<IdPatch>(json).map(|patch| patch.pool);
        let id = AgentPoolId::from_random([1; 16]);
        assert_eq!(pool("{}").expect("JSON"), None);
        assert_eq!(pool(r#"{"pool":null}"#).expect("JSON"), Some(None));
        assert_eq!(pool(r#"{"pool":""}"#).expect("JSON"), Some(None));
        assert_eq!(pool(&format!(r#"{{"pool":"{id}"}}"#)).expect("JSON"), Some(Some(id)));
        assert!(pool(r#"{"pool":"nope"}"#).is_err_and(|error| error.to_string().contains("apool-")));
        assert!(pool(r#"{"pool":1}"#).is_err());
    }

    #[test]
    fn a_text_that_nobody_can_help_is_cut_to_what_is_plain() {
        assert_eq!(as_plain_text("a\u{202e}b\0\u{1b}[1m\nc", 99), "ab[1m\nc");
        assert_eq!(as_plain_text("äöü", 2), "äö");
        assert!(is_plain_text(&as_plain_text("\u{2066}\u{85}", 2)));
    }

    #[test]
    fn a_shown_value_is_short_and_visible() {
        assert_eq!(shown("a\u{202e}b\0"), r#""a\u{202e}b\0""#);
        assert_eq!(shown(&"x".repeat(5000)).len(), 102 + " and so on".len());
    }
}
