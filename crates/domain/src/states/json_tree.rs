//! JSON as a tree in which every number and every string keeps its exact text, and in which a part can be hidden:
//! it is compared like any other, and never shown.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::value::RawValue;

/// Maximum nesting depth: walking a deeper tree would take as much stack.
const DEEPEST: usize = 128;

/// Placeholder for hidden values.
pub const HIDDEN: &str = "(sensitive)";

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JsonTree {
    /// A string with its quotes, a number, `true`, `false` or `null`.
    Scalar(String),
    List(Vec<Self>),
    Object(BTreeMap<String, Self>),
    Hidden(Box<Self>),
}

/// Reason why a text does not parse into a tree.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
pub enum UnreadableJson {
    #[error("it is not JSON: {0}")]
    NotJson(String),
    #[error("it is nested more than {DEEPEST} deep")]
    TooDeep,
}

impl JsonTree {
    pub fn parse(text: &[u8]) -> Result<Self, UnreadableJson> {
        let raw: &RawValue = serde_json::from_slice(text).map_err(not_json)?;
        Self::of(raw, DEEPEST)
    }

    fn of(raw: &RawValue, depth: usize) -> Result<Self, UnreadableJson> {
        let depth = depth.checked_sub(1).ok_or(UnreadableJson::TooDeep)?;
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'{') => {
                let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(not_json)?;
                let fields = fields.into_iter().map(|(name, field)| Ok((name, Self::of(field, depth)?)));
                Ok(Self::Object(fields.collect::<Result<_, _>>()?))
            }
            Some(b'[') => {
                let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(not_json)?;
                Ok(Self::List(elements.into_iter().map(|element| Self::of(element, depth)).collect::<Result<_, _>>()?))
            }
            _ => Ok(Self::Scalar(text.to_owned())),
        }
    }

    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(fields) => fields.get(name),
            _ => None,
        }
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Self> {
        match self {
            Self::Object(fields) => fields.get_mut(name),
            _ => None,
        }
    }

    pub fn elements(&self) -> &[Self] {
        match self {
            Self::List(elements) => elements,
            _ => &[],
        }
    }

    pub fn elements_mut(&mut self) -> &mut [Self] {
        match self {
            Self::List(elements) => elements,
            _ => &mut [],
        }
    }

    /// The characters of a string.
    pub fn as_text(&self) -> Option<String> {
        match self {
            Self::Scalar(raw) => serde_json::from_str(raw).ok(),
            _ => None,
        }
    }

    pub fn is_true(&self) -> bool {
        matches!(self, Self::Scalar(raw) if raw == "true")
    }

    /// `null`, an empty string, list or object.
    pub fn is_nothing(&self) -> bool {
        match self {
            Self::Scalar(raw) => matches!(raw.as_str(), "null" | "\"\""),
            Self::List(elements) => elements.is_empty(),
            Self::Object(fields) => fields.is_empty(),
            Self::Hidden(inner) => inner.is_nothing(),
        }
    }

    /// Hides the value from now on. The absence of one stays visible: it is no secret.
    pub fn hide(&mut self) {
        if !self.is_nothing() && !matches!(self, Self::Hidden(_)) {
            let inner = std::mem::replace(self, Self::Scalar(String::new()));
            *self = Self::Hidden(Box::new(inner));
        }
    }

    /// On one line.
    pub fn compact(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, None);
        text
    }

    /// Text with a line for each field and element.
    pub fn pretty(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, Some(0));
        text
    }

    /// `indent` is how deep it stands, where it is to be pretty.
    fn write(&self, text: &mut String, indent: Option<usize>) {
        let inner = indent.map(|depth| depth + 1);
        let new_line = |text: &mut String, depth: Option<usize>| {
            if let Some(depth) = depth {
                text.push('\n');
                text.extend(std::iter::repeat_n("  ", depth));
            }
        };
        match self {
            Self::Scalar(raw) => text.push_str(raw),
            Self::Hidden(_) => text.push_str(HIDDEN),
            Self::List(elements) if elements.is_empty() => text.push_str("[]"),
            Self::Object(fields) if fields.is_empty() => text.push_str("{}"),
            Self::List(elements) => {
                text.push('[');
                for (position, element) in elements.iter().enumerate() {
                    text.push_str(if position > 0 { "," } else { "" });
                    new_line(text, inner);
                    element.write(text, inner);
                }
                new_line(text, indent);
                text.push(']');
            }
            Self::Object(fields) => {
                text.push('{');
                for (position, (name, field)) in fields.iter().enumerate() {
                    text.push_str(if position > 0 { "," } else { "" });
                    new_line(text, inner);
                    let _ = write!(text, "{}:", serde_json::Value::from(name.as_str()));
                    text.push_str(if indent.is_some() { " " } else { "" });
                    field.write(text, inner);
                }
                new_line(text, indent);
                text.push('}');
            }
        }
    }
}

fn not_json(error: serde_json::Error) -> UnreadableJson {
    UnreadableJson::NotJson(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> JsonTree {
        JsonTree::parse(text.as_bytes()).expect("JSON")
    }

    #[test]
    fn numbers_and_strings_keep_their_text() {
        let text = r#"{"a":[1.10,123456789012345678901234567890,"\u00e9"],"b":{},"c":[],"d":null}"#;
        assert_eq!(tree(text).compact(), text);
        assert_eq!(tree(r#"{ "b" : 1, "a": "x" }"#).pretty(), "{\n  \"a\": \"x\",\n  \"b\": 1\n}");
        assert_eq!(tree(r#""\u00e9""#).as_text().as_deref(), Some("é"));
    }

    #[test]
    fn what_is_hidden_is_compared_and_not_shown() {
        let (mut one, mut other) = (tree(r#"{"a":"secret","b":""}"#), tree(r#"{"a":"other","b":""}"#));
        for tree in [&mut one, &mut other] {
            tree.get_mut("a").expect("a").hide();
            tree.get_mut("a").expect("a").hide();
            tree.get_mut("b").expect("b").hide();
        }
        assert_ne!(one, other);
        assert_eq!(one.compact(), r#"{"a":(sensitive),"b":""}"#);
        assert_eq!(one.compact(), other.compact());
    }

    #[test]
    fn what_is_nested_beyond_reason_is_refused() {
        let nested = |depth: usize| JsonTree::parse(format!("{}{}", "[".repeat(depth), "]".repeat(depth)).as_bytes());
        assert!(nested(DEEPEST).is_ok());
        assert_eq!(nested(DEEPEST + 1), Err(UnreadableJson::TooDeep));
        assert_eq!(nested(100_000), Err(UnreadableJson::TooDeep));
        assert!(matches!(JsonTree::parse(b"{"), Err(UnreadableJson::NotJson(_))));
    }
}
