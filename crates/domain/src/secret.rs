//! Texts that open doors: 256 random bits, shown once. What is stored is a keyed hash, by which they are found again,
//! so that no secret is ever compared and a copy of the bucket opens nothing.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit, Mac};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Sha256;
use taco_tables::{KeyBytes, SortKey};

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// 62 to the 43rd is the first power beyond 2 to the 256th.
const LENGTH: usize = 43;

/// 256 random bits as 43 letters and digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; LENGTH]);

/// A text that cannot be a secret of ours.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
#[error("this is no secret that taco made: those have 43 letters and digits")]
pub struct InvalidSecret;

impl Secret {
    pub fn from_random(random: [u8; 32]) -> Self {
        let mut number = random;
        let mut characters = [0; LENGTH];
        for character in &mut characters {
            *character = ALPHABET[divide(&mut number, 62)];
        }
        Self(characters)
    }

    /// The text itself, for the one who may see it.
    pub fn reveal(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Divides a big-endian number in place and returns the remainder.
fn divide(number: &mut [u8; 32], divisor: usize) -> usize {
    let mut remainder = 0;
    for byte in number {
        let value = remainder * 256 + usize::from(*byte);
        *byte = u8::try_from(value / divisor).unwrap_or_default();
        remainder = value % divisor;
    }
    remainder
}

impl FromStr for Secret {
    type Err = InvalidSecret;

    fn from_str(text: &str) -> Result<Self, InvalidSecret> {
        let characters = <[u8; LENGTH]>::try_from(text.as_bytes()).map_err(|_| InvalidSecret)?;
        if characters.iter().all(u8::is_ascii_alphanumeric) { Ok(Self(characters)) } else { Err(InvalidSecret) }
    }
}

/// Logs must not have it.
impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// The key under which this site hashes secrets. All servers of a site share it; the bucket does not have it.
#[derive(Clone)]
pub struct HashKey([u8; 32]);

impl HashKey {
    pub fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// The hash of `secret`, different for each `purpose`, so that one kind of secret never passes for another.
    pub fn hash(&self, purpose: &str, secret: &str) -> SecretHash {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(secret.as_bytes());
        SecretHash(mac.finalize().into_bytes().into())
    }
}

impl HashKey {
    /// A key for one purpose of one owner. It tells nothing about this one.
    pub fn derive(&self, purpose: &str, owner: &str) -> [u8; 32] {
        self.hash(purpose, owner).0
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HashKey(…)")
    }
}

/// Hash of a secret, for storage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretHash([u8; 32]);

impl SortKey for SecretHash {
    fn encode(&self, key: &mut KeyBytes) {
        self.0.encode(key);
    }
}

impl fmt::Display for SecretHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for SecretHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SecretHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let mut hash = [0; 32];
        hex::decode_to_slice(text.as_bytes(), &mut hash).map_err(D::Error::custom)?;
        Ok(Self(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_43_letters_and_digits() {
        for byte in [0, 1, 128, 255] {
            let secret = Secret::from_random([byte; 32]);
            assert_eq!(secret.reveal().len(), 43);
            assert_eq!(secret.reveal().parse(), Ok(secret));
        }
        assert_ne!(Secret::from_random([1; 32]), Secret::from_random([2; 32]));
        for text in ["", "short", &"-".repeat(43), &"a".repeat(44)] {
            assert_eq!(text.parse::<Secret>(), Err(InvalidSecret), "{text:?}");
        }
    }

    #[test]
    fn logs_show_neither_secret_nor_key() {
        let secret = Secret::from_random([5; 32]);
        assert!(!format!("{secret:?}").contains(secret.reveal()));
        assert_eq!(format!("{:?}", HashKey::new([9; 32])), "HashKey(…)");
    }

    #[test]
    fn a_hash_depends_on_key_purpose_and_secret() {
        let key = HashKey::new([1; 32]);
        let hash = key.hash("token", "a");
        assert_eq!(hash, key.hash("token", "a"));
        assert_ne!(hash, key.hash("token", "b"));
        assert_ne!(hash, key.hash("session", "a"));
        assert_ne!(hash, HashKey::new([2; 32]).hash("token", "a"));
        let json = serde_json::to_string(&hash).expect("JSON");
        assert_eq!(serde_json::from_str::<SecretHash>(&json).expect("a hash"), hash);
    }
}
