//! Sort keys: values as bytes that sort as the values do. All trees of rows have such keys, so that one kind of tree serves
//! every record and every index.

use std::cmp::Reverse;

use jiff::Timestamp;
use smallvec::SmallVec;

/// The bytes of a sort key. Two ids and a number need no allocation.
#[derive(PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct KeyBytes(SmallVec<[u8; 40]>);

impl KeyBytes {
    pub fn of(key: &impl SortKey) -> Self {
        let mut bytes = Self::default();
        key.encode(&mut bytes);
        bytes
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The first bytes after all that begin with these; `None` where there are none.
    pub(crate) fn successor(mut self) -> Option<Self> {
        while let Some(last) = self.0.pop() {
            if last < u8::MAX {
                self.0.push(last + 1);
                return Some(self);
            }
        }
        None
    }
}

// Of the derived one the compiler makes a loop.
impl Clone for KeyBytes {
    fn clone(&self) -> Self {
        Self(SmallVec::from_slice(&self.0))
    }
}

/// A value that can be a key. Its bytes sort as the value does, and no value's bytes begin with another's: so keys can be
/// put one after the other.
pub trait SortKey {
    fn encode(&self, key: &mut KeyBytes);
}

/// The beginning of a key: what is sorted by `(A, B)` can be found by `A`.
pub trait KeyPrefix<K>: SortKey {}

impl<A: SortKey, B> KeyPrefix<(A, B)> for A {}
impl<A: SortKey, B, C> KeyPrefix<(A, B, C)> for A {}

macro_rules! unsigned {
    ($($number:ty)*) => {$(
        impl SortKey for $number {
            fn encode(&self, key: &mut KeyBytes) {
                key.push(&self.to_be_bytes());
            }
        }
    )*};
}

macro_rules! signed {
    ($($number:ty)*) => {$(
        impl SortKey for $number {
            fn encode(&self, key: &mut KeyBytes) {
                // With the sign's bit turned around, negative numbers come first.
                key.push(&(self ^ <$number>::MIN).to_be_bytes());
            }
        }
    )*};
}

unsigned! { u8 u16 u32 u64 u128 usize }
signed! { i8 i16 i32 i64 i128 }

impl SortKey for str {
    fn encode(&self, key: &mut KeyBytes) {
        // A zero ends the text; one within it is marked.
        let mut parts = self.as_bytes().split(|byte| *byte == 0);
        key.push(parts.next().unwrap_or_default());
        for part in parts {
            key.push(&[0, 1]);
            key.push(part);
        }
        key.push(&[0, 0]);
    }
}

impl SortKey for String {
    fn encode(&self, key: &mut KeyBytes) {
        self.as_str().encode(key);
    }
}

impl SortKey for Timestamp {
    fn encode(&self, key: &mut KeyBytes) {
        self.as_nanosecond().encode(key);
    }
}

impl<const N: usize> SortKey for [u8; N] {
    fn encode(&self, key: &mut KeyBytes) {
        key.push(self);
    }
}

impl<T: SortKey> SortKey for Reverse<T> {
    fn encode(&self, key: &mut KeyBytes) {
        let begin = key.0.len();
        self.0.encode(key);
        key.0[begin..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

impl<T: SortKey> SortKey for Option<T> {
    fn encode(&self, key: &mut KeyBytes) {
        match self {
            None => key.push(&[0]),
            Some(value) => {
                key.push(&[1]);
                value.encode(key);
            }
        }
    }
}

impl<A: SortKey, B: SortKey> SortKey for (A, B) {
    fn encode(&self, key: &mut KeyBytes) {
        self.0.encode(key);
        self.1.encode(key);
    }
}

impl<A: SortKey, B: SortKey, C: SortKey> SortKey for (A, B, C) {
    fn encode(&self, key: &mut KeyBytes) {
        self.0.encode(key);
        self.1.encode(key);
        self.2.encode(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All pairs sort as their bytes do, and none begins with another.
    fn sorts<T: SortKey + Ord + std::fmt::Debug>(values: &[T]) {
        for one in values {
            for other in values {
                let [left, right] = [one, other].map(KeyBytes::of);
                assert_eq!(one.cmp(other), left.cmp(&right), "{one:?} and {other:?}");
                assert!(one == other || !right.0.starts_with(&left.0), "{other:?} begins with {one:?}");
            }
        }
    }

    #[test]
    fn bytes_sort_as_values_do() {
        sorts(&[0, 1, 255, 256, u64::MAX]);
        sorts(&[i64::MIN, -256, -1, 0, 1, i64::MAX]);
        let texts = ["", "\0", "\0\0", "\0a", "a", "a\0", "a\0b", "aa", "ab", "b", "ä", "\u{10ffff}"];
        let moments =
            [Timestamp::MIN, Timestamp::from_nanosecond(-1).expect("near"), Timestamp::UNIX_EPOCH, Timestamp::MAX];
        sorts(&moments);
        sorts(&texts.map(str::to_owned));
        sorts(&texts.map(|text| Reverse(text.to_owned())));
        sorts(&texts.map(|text| Some(text.to_owned())));
        sorts(&[None, Some(0_u8), Some(255)]);
        let pairs: Vec<_> = texts.iter().flat_map(|text| [0_u32, 7].map(|number| (text.to_string(), number))).collect();
        sorts(&pairs);
        let reversed: Vec<_> = pairs.into_iter().map(|(text, number)| (number, Reverse(text), 3_u8)).collect();
        sorts(&reversed);
    }

    #[test]
    fn whatever_begins_with_a_key_is_before_its_successor() {
        let successor = |bytes: &[u8]| KeyBytes(SmallVec::from_slice(bytes)).successor().map(|key| key.0.to_vec());
        assert_eq!(successor(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(successor(&[1, 255, 255]), Some(vec![2]));
        assert_eq!(successor(&[255, 255]), None);
    }
}
