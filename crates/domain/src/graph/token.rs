//! Tokens: what a value leaves behind in a state that uses it, as keyed hashes. Two states that hold the same token were
//! given the same value; the hash tells nothing else.

use std::collections::BTreeSet;

use hmac::{Hmac, KeyInit, Mac};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use sha2::Sha256;

/// Shortest text that says enough to be recognized anywhere, and number of different characters that it must have.
const DISTINCTIVE_LENGTH: usize = 8;
const DISTINCTIVE_CHARACTERS: usize = 5;
/// Shortest text that says enough to be recognized in a resource that is known to use what it comes from.
const TELLING_LENGTH: usize = 3;
/// Maximum number of tokens of each sort that are kept of an output's value. They are the same ones in any two values
/// that have them.
const MAX_TOKENS_OF_VALUE: usize = 1024;
/// Maximum number of parts that are kept of an output's value.
const MAX_PARTS_OF_VALUE: usize = 4096;
/// Values nested deeper than this are not looked at.
const DEEPEST: usize = 64;

/// One token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(u64);

/// Key of an organization's tokens.
#[derive(Clone, Copy)]
pub struct TokenKey {
    first: u64,
    second: u64,
}

impl TokenKey {
    /// Derived from the key of the organization's output digests.
    pub fn of(key: &[u8; 32]) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
        mac.update(b"tokens of values");
        let whole: [u8; 32] = mac.finalize().into_bytes().into();
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| whole[at + index]));
        Self { first: word(0), second: word(8) }
    }

    fn token(&self, text: &str) -> Token {
        Token(sip_hash(self.first, self.second, text.as_bytes()))
    }

    /// Tokens of an output's value.
    pub fn of_value(&self, value: &RawValue) -> ValueTokens {
        let mut leaves = Leaves { key: *self, tokens: ValueTokens::default() };
        walk(&mut leaves, value);
        let ValueTokens { mut distinctive, mut telling } = leaves.tokens;
        for tokens in [&mut distinctive, &mut telling] {
            tokens.sort_unstable();
            tokens.dedup();
            tokens.truncate(MAX_TOKENS_OF_VALUE);
        }
        ValueTokens { distinctive, telling }
    }

    /// Tokens of texts in a value, each with that of a part of it.
    pub(super) fn parts_of_value(&self, value: &RawValue) -> Vec<[Token; 2]> {
        let mut parts = Parts { key: *self, parts: Vec::new() };
        walk(&mut parts, value);
        parts.parts
    }
}

/// SipHash-2-4.
fn sip_hash(first: u64, second: u64, bytes: &[u8]) -> u64 {
    let mut state = [
        first ^ 0x736f_6d65_7073_6575,
        second ^ 0x646f_7261_6e64_6f6d,
        first ^ 0x6c79_6765_6e65_7261,
        second ^ 0x7465_6462_7974_6573,
    ];
    let round = |[mut a, mut b, mut c, mut d]: [u64; 4]| {
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        [a, b, c, d]
    };
    let take = |word: u64, state: &mut [u64; 4]| {
        state[3] ^= word;
        *state = round(round(*state));
        state[0] ^= word;
    };
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        take(u64::from_le_bytes(*word), &mut state);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    last[7] = bytes.len() as u8;
    take(u64::from_le_bytes(last), &mut state);
    state[2] ^= 0xff;
    for _ in 0..4 {
        state = round(state);
    }
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

/// Tokens of one output's value.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub struct ValueTokens {
    /// Those that are recognized anywhere.
    #[serde(with = "packed", default, skip_serializing_if = "Vec::is_empty")]
    pub distinctive: Vec<Token>,
    /// Those that say something only in a resource that is known to use the output.
    #[serde(with = "packed", default, skip_serializing_if = "Vec::is_empty")]
    pub telling: Vec<Token>,
}

impl ValueTokens {
    pub fn all(&self) -> impl Iterator<Item = Token> {
        self.distinctive.iter().chain(&self.telling).copied()
    }

    pub fn to_set(&self) -> BTreeSet<Token> {
        self.all().collect()
    }

    /// True if the value is so plain that nothing can be told from it.
    pub fn is_plain(&self) -> bool {
        self.distinctive.is_empty() && self.telling.is_empty()
    }
}

/// Tokens of one resource instance.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HeldTokens {
    /// Of its texts, and of what stands inside of longer ones. Sorted.
    pub distinctive: Vec<Token>,
    /// Of its short texts and numbers. Sorted.
    pub telling: Vec<Token>,
    /// Of what names the instance itself: whoever holds these got them from here.
    pub made: Vec<Token>,
}

impl HeldTokens {
    pub fn holds(&self, token: Token) -> bool {
        self.distinctive.binary_search(&token).is_ok() || self.telling.binary_search(&token).is_ok()
    }

    pub(super) fn sort(&mut self) {
        for tokens in [&mut self.distinctive, &mut self.telling, &mut self.made] {
            tokens.sort_unstable();
            tokens.dedup();
        }
    }
}

fn is_distinctive(text: &str) -> bool {
    let mut seen: [Option<char>; DISTINCTIVE_CHARACTERS] = [None; DISTINCTIVE_CHARACTERS];
    let (mut different, mut length) = (0, 0);
    for character in text.chars() {
        length += 1;
        if different < DISTINCTIVE_CHARACTERS && !seen[..different].contains(&Some(character)) {
            seen[different] = Some(character);
            different += 1;
        }
        if length >= DISTINCTIVE_LENGTH && different == DISTINCTIVE_CHARACTERS {
            return true;
        }
    }
    false
}

/// Short texts that are everywhere and tell nothing.
fn is_telling(text: &str) -> bool {
    text.chars().nth(TELLING_LENGTH - 1).is_some() && !matches!(text, "true" | "false" | "null" | "none" | "default")
}

/// Takes the leaves of a value.
trait Taker {
    /// `name` is that of an attribute of the outermost object.
    fn take(&mut self, name: Option<&str>, text: &str, is_number: bool);
}

/// Leaves of an output.
struct Leaves {
    key: TokenKey,
    tokens: ValueTokens,
}

impl Taker for Leaves {
    fn take(&mut self, _name: Option<&str>, text: &str, _is_number: bool) {
        if is_distinctive(text) {
            self.tokens.distinctive.push(self.key.token(text));
        } else if is_telling(text) {
            self.tokens.telling.push(self.key.token(text));
        }
    }
}

/// Texts of an output with their parts.
struct Parts {
    key: TokenKey,
    parts: Vec<[Token; 2]>,
}

impl Taker for Parts {
    fn take(&mut self, _name: Option<&str>, text: &str, is_number: bool) {
        if is_number || !is_distinctive(text) || self.parts.len() >= MAX_PARTS_OF_VALUE {
            return;
        }
        let whole = self.key.token(text);
        let parts = parts_of_text(text).map(|part| [whole, self.key.token(part)]);
        self.parts.extend(parts.take(MAX_PARTS_OF_VALUE));
    }
}

/// Hands all leaves of a value to its taker. What cannot be read to its end has no leaves after that.
fn walk(taker: &mut impl Taker, value: &RawValue) {
    let mut deserializer = serde_json::Deserializer::from_str(value.get());
    let _ = Walk { taker, depth: 0 }.deserialize(&mut deserializer);
}

/// Collects what an instance's attributes hold.
pub(super) struct Holder<'a> {
    pub(super) key: TokenKey,
    pub(super) held: &'a mut HeldTokens,
}

/// Attributes by which others know what a resource made.
const NAMES: &[&str] = &["id", "arn", "self_link"];

impl Taker for Holder<'_> {
    fn take(&mut self, name: Option<&str>, text: &str, is_number: bool) {
        if is_distinctive(text) {
            let token = self.key.token(text);
            self.held.distinctive.push(token);
            if name.is_some_and(|name| NAMES.contains(&name)) {
                self.held.made.push(token);
            }
        } else if is_telling(text) {
            self.held.telling.push(self.key.token(text));
        }
        if is_number {
            return;
        }
        self.held.distinctive.extend(parts_of_text(text).map(|part| self.key.token(part)));
    }
}

/// Parts of a text that are distinctive by themselves.
fn parts_of_text(text: &str) -> impl Iterator<Item = &str> {
    let parts = wide_parts(text).chain(narrow_parts(text));
    parts.filter(move |part| part.len() < text.len() && is_distinctive(part))
}

/// Parts of a text that may be values with their own punctuation: an ARN, a path, an address.
fn wide_parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| character.is_whitespace() || "\"'`,;()[]{}<>\\|=&".contains(character))
}

/// Parts of a text that may be names and ids.
fn narrow_parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !(character.is_ascii_alphanumeric() || "_.-".contains(character)))
        .map(|part| part.trim_matches(|character: char| !character.is_ascii_alphanumeric()))
}

/// Visits the leaves of a JSON value, and keeps nothing else of it.
struct Walk<'a, T> {
    taker: &'a mut T,
    depth: usize,
}

/// Hands what an instance's attributes hold to a [`Holder`].
pub(super) struct Attributes<'a>(pub(super) Holder<'a>);

impl<'de> DeserializeSeed<'de> for Attributes<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        Walk { taker: &mut self.0, depth: 0 }.deserialize(deserializer)
    }
}

impl<'de, T: Taker> DeserializeSeed<'de> for Walk<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        Named { taker: self.taker, depth: self.depth, name: None }.deserialize(deserializer)
    }
}

struct Named<'a, T> {
    taker: &'a mut T,
    depth: usize,
    name: Option<&'a str>,
}

impl<'de, T: Taker> DeserializeSeed<'de> for Named<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth > DEEPEST {
            return serde::de::IgnoredAny::deserialize(deserializer).map(|_| ());
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Taker> Visitor<'de> for Named<'_, T> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.taker.take(self.name, &number.to_string(), true);
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.taker.take(self.name, &number.to_string(), true);
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.taker.take(self.name, &number.to_string(), true);
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.taker.take(self.name, text, false);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Walk { taker: &mut *self.taker, depth: self.depth + 1 })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let name = (self.depth == 0).then_some(key.as_str());
            map.next_value_seed(Named { taker: &mut *self.taker, depth: self.depth + 1, name })?;
        }
        Ok(())
    }
}

/// Tokens as one text, for JSON: thousands of numbers would be twice as long.
pub(super) mod packed {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD_NO_PAD;
    use serde::de::Error as _;

    use super::{Deserialize, Deserializer, Serializer, Token};

    pub(crate) fn serialize<S: Serializer>(tokens: &[Token], serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.0.to_le_bytes()).collect();
        serializer.serialize_str(&STANDARD_NO_PAD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Token>, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let bytes = STANDARD_NO_PAD.decode(text.as_bytes()).map_err(D::Error::custom)?;
        let (words, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(D::Error::custom("tokens have eight bytes each"));
        }
        Ok(words.iter().map(|word| Token(u64::from_le_bytes(*word))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    #[test]
    fn the_hash_is_the_published_one() {
        let bytes: Vec<u8> = (0..15).collect();
        assert_eq!(sip_hash(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908, &bytes), 0xa129_ca61_49be_45e5);
    }

    fn held(attributes: &str) -> HeldTokens {
        let mut held = HeldTokens::default();
        let holder = Holder { key: TokenKey::of(&KEY), held: &mut held };
        Attributes(holder).deserialize(&mut serde_json::Deserializer::from_str(attributes)).expect("JSON");
        held.sort();
        held
    }

    fn value(json: &str) -> ValueTokens {
        TokenKey::of(&KEY).of_value(&RawValue::from_string(json.to_owned()).expect("JSON"))
    }

    #[test]
    fn a_value_is_recognized_inside_of_longer_texts() {
        for (output, attributes) in [
            (r#""vpc-0123456789""#, r#"{"input": "vpc-0123456789"}"#),
            (
                r#""vpc-0123456789""#,
                r#"{"policy": "{\"Resource\":\"arn:aws:ec2:eu-central-1:1:vpc/vpc-0123456789\"}"}"#,
            ),
            (
                r#""arn:aws:iam::123456789012:role/deploy""#,
                r#"{"a": [{"policy": "{\"Role\": \"arn:aws:iam::123456789012:role/deploy\"}"}]}"#,
            ),
            (r#""10.20.0.0/16""#, r#"{"user_data": "route add 10.20.0.0/16\n"}"#),
            (r#"1234567890123"#, r#"{"account": "1234567890123"}"#),
            (r#"{"a": ["subnet-01234567"]}"#, r#"{"subnet": "subnet-01234567"}"#),
            (r#""8443""#, r#"{"port": 8443}"#),
        ] {
            let (tokens, held) = (value(output), held(attributes));
            assert!(!tokens.is_plain() && tokens.all().all(|token| held.holds(token)), "{output} in {attributes}");
        }
    }

    #[test]
    fn plain_values_have_no_tokens() {
        for plain in ["true", "\"default\"", "\"a\"", "7", "null", "[]", "{\"long enough as a key\": false}", "\"\""] {
            assert!(value(plain).is_plain(), "{plain}");
        }
        assert_eq!(value("\"aaaaaaaaaaaaaaaa\"").distinctive, []);
        assert_eq!(value("\"eu-west\"").distinctive, []);
    }

    #[test]
    fn a_resource_makes_its_own_id() {
        let made = held(r#"{"id": "i-0123456789", "tags": {"id": "i-of-another-one"}, "name": "not-made-here"}"#).made;
        assert_eq!(made, value("\"i-0123456789\"").distinctive);
    }

    #[test]
    fn tokens_need_the_key_and_are_stored_as_text() {
        let tokens = value(r#"["vpc-0123456789", 8443]"#);
        let other =
            TokenKey::of(&[8; 32]).of_value(&RawValue::from_string("\"vpc-0123456789\"".to_owned()).expect("JSON"));
        assert_ne!(tokens.distinctive, other.distinctive);
        let stored = serde_json::to_string(&tokens).expect("JSON");
        assert!(!stored.contains("vpc"), "{stored}");
        assert_eq!(serde_json::from_str::<ValueTokens>(&stored).expect("tokens"), tokens);
    }

    #[test]
    fn nesting_beyond_reason_is_left_out() {
        let deep = format!("{}\"vpc-0123456789\"{}", "[".repeat(100), "]".repeat(100));
        assert!(value(&deep).is_plain());
        assert_eq!(held(&format!("{{\"a\":{deep}}}")), HeldTokens::default());
    }
}
