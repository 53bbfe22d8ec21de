//! Texts of a catalog's rows, for people who search.

use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::Malformed;
use crate::page::malformed;

const LEVEL: i32 = 9;

/// Texts in the order of a catalog's rows. In memory they are one text: there are as many as rows, and most are short.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Texts {
    all: String,
    /// End offset of each; it begins where the one before it ends.
    ends: Vec<u32>,
}

impl Texts {
    /// The text of a row; empty where there is none.
    pub fn get(&self, row: usize) -> &str {
        let end = self.ends.get(row).map_or(0, |end| *end as usize);
        let begin = row.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize);
        self.all.get(begin..end).unwrap_or_default()
    }

    /// Approximate size in memory, in bytes.
    pub fn weight(&self) -> usize {
        self.all.len() + self.ends.len() * size_of::<u32>()
    }

    pub fn encode(texts: &[String]) -> Result<Vec<u8>, Malformed> {
        let plain = serde_json::to_vec(texts).map_err(malformed)?;
        zstd::bulk::compress(&plain, LEVEL).map_err(malformed)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let plain = zstd::decode_all(bytes).map_err(malformed)?;
        let mut texts: Self = serde_json::from_slice(&plain).map_err(malformed)?;
        texts.all.shrink_to_fit();
        texts.ends.shrink_to_fit();
        Ok(texts)
    }

    fn push(&mut self, text: &str) -> Option<()> {
        self.all.push_str(text);
        self.ends.push(u32::try_from(self.all.len()).ok()?);
        Some(())
    }
}

/// From a list, without a text of its own for each.
impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Texts;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of texts")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
                let mut texts = Texts::default();
                while let Some(text) = list.next_element::<std::borrow::Cow<'de, str>>()? {
                    texts.push(&text).ok_or_else(|| serde::de::Error::custom("the texts are too long"))?;
                }
                Ok(texts)
            }
        }

        deserializer.deserialize_seq(List)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_back_as_they_were() {
        let list = ["Boom", "", "Ein \"Überraschung\"\n", ""].map(str::to_owned);
        let bytes = Texts::encode(&list).expect("encoded");
        let texts = Texts::decode(&bytes).expect("sound");
        for (row, text) in list.iter().enumerate() {
            assert_eq!(texts.get(row), text);
        }
        assert_eq!(texts.get(list.len()), "", "there is no such row");
        for length in 0..bytes.len() {
            assert!(Texts::decode(&bytes[..length]).is_err(), "{length} bytes");
        }
    }
}
