//! Did these outputs change? A keyed digest answers that without the values, which stay in the state.
//!
//! The digest covers an output's type and its value in a canonical text: keys sorted, no blanks, numbers of any
//! precision with `1`, `1.0` and `1e0` folded into one, sets sorted. Whether an output is sensitive belongs to the
//! commit, not to the digest: hiding a value does not change it.

use std::collections::BTreeMap;
use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::Sha256;
use taco_words::graph::OutputChange;

use crate::state_file::Output;

/// Values nested deeper than this are refused: reading them would take as much stack.
const DEEPEST: usize = 256;

/// A digest under a key of the organization: it tells that two values are equal, and nothing else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputDigest([u8; 16]);

impl OutputDigest {
    /// The first half of an HMAC-SHA256.
    fn of(mac: Hmac<Sha256>) -> Self {
        let whole: [u8; 32] = mac.finalize().into_bytes().into();
        let mut digest = [0; 16];
        digest.copy_from_slice(&whole[..16]);
        Self(digest)
    }

    /// Digest of bytes that are no JSON, or are taken as they are.
    pub fn of_bytes(key: &[u8; 32], purpose: &str, bytes: &[u8]) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(bytes);
        Self::of(mac)
    }
}

impl fmt::Display for OutputDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for OutputDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for OutputDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for OutputDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let mut digest = [0; 16];
        hex::decode_to_slice(text.as_bytes(), &mut digest).map_err(D::Error::custom)?;
        Ok(Self(digest))
    }
}

/// Record of one output in an output commit.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct CommittedOutput {
    pub digest: OutputDigest,
    /// Type in cty's notation, without blanks.
    #[serde(rename = "type")]
    pub detailed_type: String,
    pub sensitive: bool,
}

/// All outputs of a state, by name.
pub type CommittedOutputs = BTreeMap<String, CommittedOutput>;

/// A value that is not JSON after all, or nested beyond reason.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("the value of output {name} cannot be read: {why}")]
pub struct UnreadableOutput {
    pub name: String,
    pub why: String,
}

/// Digest of one value of this type, in cty's notation.
pub fn digest_value(
    key: &[u8; 32],
    detailed_type: &RawValue,
    value: &RawValue,
) -> Result<(OutputDigest, String), String> {
    let notation: Value = serde_json::from_str(detailed_type.get()).map_err(|error| error.to_string())?;
    let kind = Kind::of(&notation);
    let detailed_type = canonical(detailed_type, &Kind::Plain)?;
    let value = canonical(value, &kind)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(detailed_type.as_bytes());
    mac.update(&[0]);
    mac.update(value.as_bytes());
    Ok((OutputDigest::of(mac), detailed_type))
}

/// Record of a state's outputs for a commit.
pub fn commit_outputs(
    key: &[u8; 32],
    outputs: &BTreeMap<String, Output>,
) -> Result<CommittedOutputs, UnreadableOutput> {
    let commit = |(name, output): (&String, &Output)| {
        let (digest, detailed_type) = digest_value(key, &output.detailed_type, &output.value)
            .map_err(|why| UnreadableOutput { name: name.clone(), why })?;
        Ok((name.clone(), CommittedOutput { digest, detailed_type, sensitive: output.sensitive }))
    };
    outputs.iter().map(commit).collect()
}

/// Changes between two commits, by name. If empty, there is no new commit to make.
pub fn changed_outputs(before: &CommittedOutputs, after: &CommittedOutputs) -> BTreeMap<String, OutputChange> {
    let mut changes = BTreeMap::new();
    for name in before.keys().chain(after.keys()) {
        let change = match (before.get(name), after.get(name)) {
            (None, _) => Some(OutputChange::Added),
            (_, None) => Some(OutputChange::Removed),
            (Some(before), Some(after)) if before.detailed_type != after.detailed_type => Some(OutputChange::Type),
            (Some(before), Some(after)) if before.digest != after.digest => Some(OutputChange::Value),
            (Some(before), Some(after)) if before.sensitive != after.sensitive => Some(OutputChange::Sensitivity),
            _ => None,
        };
        if let Some(change) = change {
            changes.insert(name.clone(), change);
        }
    }
    changes
}

/// Parts of a cty type that matter here: where the sets are.
enum Kind {
    /// Neither is nor holds a set, as far as one can tell.
    Plain,
    Set(Box<Self>),
    /// Type of a list's or a map's elements.
    Each(Box<Self>),
    Tuple(Vec<Self>),
    Object(BTreeMap<String, Self>),
}

impl Kind {
    /// Parses cty's notation: `"string"`, `["set", T]`, `["tuple", [T, …]]`, `["object", {name: T, …}]`.
    fn of(notation: &Value) -> Self {
        let Value::Array(parts) = notation else { return Self::Plain };
        match (parts.first().and_then(Value::as_str), parts.get(1)) {
            (Some("set"), Some(element)) => Self::Set(Box::new(Self::of(element))),
            (Some("list" | "map"), Some(element)) => Self::Each(Box::new(Self::of(element))),
            (Some("tuple"), Some(Value::Array(elements))) => Self::Tuple(elements.iter().map(Self::of).collect()),
            (Some("object"), Some(Value::Object(attributes))) => {
                Self::Object(attributes.iter().map(|(name, kind)| (name.clone(), Self::of(kind))).collect())
            }
            _ => Self::Plain,
        }
    }

    fn element(&self, index: usize) -> &Self {
        match self {
            Self::Set(element) | Self::Each(element) => element,
            Self::Tuple(elements) => elements.get(index).unwrap_or(&Self::Plain),
            Self::Plain | Self::Object(_) => &Self::Plain,
        }
    }

    fn attribute(&self, name: &str) -> &Self {
        match self {
            Self::Set(element) | Self::Each(element) => element,
            Self::Object(attributes) => attributes.get(name).unwrap_or(&Self::Plain),
            Self::Plain | Self::Tuple(_) => &Self::Plain,
        }
    }
}

/// The canonical text of a JSON value of this type.
fn canonical(value: &RawValue, kind: &Kind) -> Result<String, String> {
    let mut text = String::new();
    write_canonical(value, kind, DEEPEST, &mut text)?;
    Ok(text)
}

fn write_canonical(value: &RawValue, kind: &Kind, depth: usize, text: &mut String) -> Result<(), String> {
    let Some(depth) = depth.checked_sub(1) else { return Err(format!("it is nested more than {DEEPEST} deep")) };
    let unreadable = |error: serde_json::Error| error.to_string();
    let quoted = |string: &str| serde_json::to_string(string).map_err(unreadable);
    let raw = value.get().trim();
    match raw.as_bytes().first() {
        Some(b'{') => {
            let fields: BTreeMap<String, &RawValue> = serde_json::from_str(raw).map_err(unreadable)?;
            text.push('{');
            for (position, (name, field)) in fields.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                text.push_str(&quoted(name)?);
                text.push(':');
                write_canonical(field, kind.attribute(name), depth, text)?;
            }
            text.push('}');
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(raw).map_err(unreadable)?;
            let mut texts = vec![String::new(); elements.len()];
            for (index, element) in elements.iter().enumerate() {
                write_canonical(element, kind.element(index), depth, &mut texts[index])?;
            }
            if matches!(kind, Kind::Set(_)) {
                texts.sort_unstable();
            }
            text.push('[');
            text.push_str(&texts.join(","));
            text.push(']');
        }
        // The same character may be written as itself or escaped.
        Some(b'"') => text.push_str(&quoted(&serde_json::from_str::<String>(raw).map_err(unreadable)?)?),
        Some(b'-' | b'0'..=b'9') => text.push_str(&canonical_number(raw)),
        _ => text.push_str(raw),
    }
    Ok(())
}

/// A decimal number as its digits and a power of ten, so that no notation of the same number differs: `-12e3`.
fn canonical_number(raw: &str) -> String {
    let (negative, raw) = raw.strip_prefix('-').map_or((false, raw), |rest| (true, rest));
    let (mantissa, exponent) = raw.split_once(['e', 'E']).unwrap_or((raw, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    let Ok(exponent) = exponent.parse::<i64>() else {
        // No number that anyone means has such an exponent; its own text is as good a name for it as any.
        return format!("{}{raw}", if negative { "-" } else { "" });
    };
    let trailing_zeros = digits.len() - digits.trim_end_matches('0').len();
    let power = exponent.saturating_sub(fraction.len() as i64).saturating_add(trailing_zeros as i64);
    format!("{}{significant}e{power}", if negative { "-" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn output(kind: &str, value: &str, sensitive: bool) -> Output {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("JSON");
        Output { value: raw(value), detailed_type: raw(kind), sensitive }
    }

    fn commit(kind: &str, value: &str) -> CommittedOutput {
        let outputs = [("x".to_owned(), output(kind, value, false))].into();
        commit_outputs(&KEY, &outputs).expect("outputs").remove("x").expect("the output")
    }

    #[test]
    fn the_same_value_has_the_same_digest_however_it_is_written() {
        for (kind, one, other) in [
            (r#""number""#, "1", "1.0"),
            (r#""number""#, "1", "1e0"),
            (r#""number""#, "100", "1E+2"),
            (r#""number""#, "-0.50", "-5e-1"),
            (r#""number""#, "0", "-0.000"),
            (r#""number""#, "123456789012345678901234567890", "1.23456789012345678901234567890e29"),
            (r#""string""#, r#""é""#, r#""\u00e9""#),
            (r#"["object",{"a":"number","b":"string"}]"#, r#"{"a":1,"b":"x"}"#, r#"{ "b": "x", "a": 1.0 }"#),
            (r#"["set","string"]"#, r#"["a","b"]"#, r#"["b", "a"]"#),
            (r#"["map",["set","number"]]"#, r#"{"a":[1,2]}"#, r#"{"a":[2,1.0]}"#),
            (r#"["object",{"s":["set","string"]}]"#, r#"{"s":["a","b"]}"#, r#"{"s":["b","a"]}"#),
            (r#"["tuple",[["set","string"]]]"#, r#"[["a","b"]]"#, r#"[["b","a"]]"#),
        ] {
            assert_eq!(commit(kind, one), commit(kind, other), "{kind}: {one} and {other}");
        }
        assert_eq!(commit(r#"["list","string"]"#, "[]"), commit(r#"[ "list", "string" ]"#, "[]"));
    }

    #[test]
    fn another_value_or_type_has_another_digest() {
        for (kind, one, other) in [
            (r#""number""#, "1", "10"),
            (r#""number""#, "1", "-1"),
            (r#""number""#, "12345678901234567890123456789", "12345678901234567890123456788"),
            (r#""string""#, r#""a""#, r#""b""#),
            (r#""string""#, r#""null""#, "null"),
            (r#"["list","string"]"#, r#"["a","b"]"#, r#"["b","a"]"#),
            (r#"["map","string"]"#, r#"{"a":null}"#, "{}"),
            (r#""dynamic""#, r#""1""#, "1"),
        ] {
            assert_ne!(commit(kind, one).digest, commit(kind, other).digest, "{kind}: {one} and {other}");
        }
        assert_ne!(commit(r#"["list","string"]"#, "[]").digest, commit(r#"["set","string"]"#, "[]").digest);
    }

    #[test]
    fn a_digest_needs_the_key() {
        let outputs = [("x".to_owned(), output(r#""string""#, r#""a""#, false))].into();
        assert_ne!(commit_outputs(&KEY, &outputs), commit_outputs(&[8; 32], &outputs));
    }

    #[test]
    fn a_change_is_named_by_its_kind() {
        let committed = |outputs: &[(&str, &str, &str, bool)]| {
            let outputs = outputs.iter().map(|(name, kind, value, sensitive)| {
                ((*name).to_owned(), output(&format!("{kind:?}"), value, *sensitive))
            });
            commit_outputs(&KEY, &outputs.collect()).expect("outputs")
        };
        let before = committed(&[
            ("gone", "string", r#""a""#, false),
            ("hidden", "string", r#""a""#, false),
            ("other", "string", r#""a""#, false),
            ("retyped", "string", r#""1""#, false),
            ("same", "number", "1", true),
        ]);
        let after = committed(&[
            ("hidden", "string", r#""a""#, true),
            ("new", "string", r#""a""#, false),
            ("other", "string", r#""b""#, false),
            ("retyped", "number", "1", false),
            ("same", "number", "1.0", true),
        ]);
        let changes = changed_outputs(&before, &after);
        let listed: Vec<_> = changes.iter().map(|(name, change)| (name.as_str(), *change)).collect();
        assert_eq!(
            listed,
            [
                ("gone", OutputChange::Removed),
                ("hidden", OutputChange::Sensitivity),
                ("new", OutputChange::Added),
                ("other", OutputChange::Value),
                ("retyped", OutputChange::Type),
            ]
        );
        assert!(changed_outputs(&after, &after).is_empty());
    }

    #[test]
    fn a_value_nested_beyond_reason_is_refused() {
        let nested = |depth: usize| {
            let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            commit_outputs(&KEY, &[("x".to_owned(), output(r#""dynamic""#, &value, false))].into())
        };
        assert!(nested(DEEPEST).is_ok());
        let refusal = nested(100_000).expect_err("too deep").to_string();
        assert_eq!(refusal, "the value of output x cannot be read: it is nested more than 256 deep");
    }
}
