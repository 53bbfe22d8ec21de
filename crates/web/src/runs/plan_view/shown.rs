//! One value, as it is shown.

use serde_json::Value;

use crate::text::plain;

/// In characters; the rest of a longer value is left out.
const MAX_SHOWN_VALUE_CHARS: usize = 4000;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    Text(String),
    /// Text of several lines, shown as such.
    Block(String),
    Sensitive,
    /// Known after the apply.
    Unknown,
    Nothing,
}

impl Shown {
    /// A value whose parts are not looked at.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Nothing,
            Value::String(text) if text.trim_end().contains('\n') => Self::Block(shortened(&plain(text))),
            Value::String(text) => Self::Text(shortened(&format!("{:?}", plain(text)))),
            other => Self::Text(shortened(&plain(&other.to_string()))),
        }
    }

    pub(crate) fn in_words(&self) -> &str {
        match self {
            Self::Text(text) | Self::Block(text) => text,
            Self::Sensitive => "(sensitive)",
            Self::Unknown => "(known after apply)",
            Self::Nothing => "null",
        }
    }

    pub(crate) fn is_block(&self) -> bool {
        matches!(self, Self::Block(_))
    }

    /// True if it is no value, but a remark about one.
    pub(crate) fn is_remark(&self) -> bool {
        matches!(self, Self::Sensitive | Self::Unknown | Self::Nothing)
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_VALUE_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… ({} characters more)", &text[..end], text[end..].chars().count()),
    }
}
