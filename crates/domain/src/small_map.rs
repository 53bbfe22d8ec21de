//! A map of a few entries that takes no more memory than they do.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Entries sorted by key, for records of which there are many. A `BTreeMap` has room for eleven entries however few it
/// has.
#[derive(Clone, PartialEq, Eq)]
pub struct SmallMap<K, V>(Box<[(K, V)]>);

impl<K, V> Default for SmallMap<K, V> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<K: Ord, V> SmallMap<K, V> {
    pub fn new() -> Self {
        Self::default()
    }

    fn position<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.0.binary_search_by(|(other, _)| other.borrow().cmp(key))
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.position(key).ok().map(|at| &self.0[at].1)
    }

    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.position(key).is_ok()
    }

    /// Puts a value under a key, in the place of the one that was there.
    pub fn insert(&mut self, key: K, value: V) {
        match self.position(&key) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => {
                let mut entries = std::mem::take(&mut self.0).into_vec();
                entries.insert(at, (key, value));
                self.0 = entries.into_boxed_slice();
            }
        }
    }

    /// Entries in the order of their keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Of several entries under one key the last one counts.
impl<K: Ord, V> FromIterator<(K, V)> for SmallMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut entries: Vec<(K, V)> = entries.into_iter().collect();
        if !entries.is_sorted_by(|(one, _), (next, _)| one < next) {
            entries.reverse();
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            entries.dedup_by(|(one, _), (before, _)| one == before);
        }
        Self(entries.into_boxed_slice())
    }
}

impl<K, V> IntoIterator for SmallMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_vec().into_iter()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SmallMap<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.0.iter().map(|(key, value)| (key, value))).finish()
    }
}

impl<K: Serialize + Ord, V: Serialize> Serialize for SmallMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for SmallMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<K, V>(PhantomData<(K, V)>);

        impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for Entries<K, V> {
            type Value = SmallMap<K, V>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let entries = std::iter::from_fn(|| map.next_entry().transpose());
                entries.collect()
            }
        }

        deserializer.deserialize_map(Entries(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, u32)]) -> SmallMap<String, u32> {
        entries.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect()
    }

    #[test]
    fn entries_are_found_and_sorted_like_those_of_any_map() {
        let mut map = map(&[("b", 1), ("a", 2), ("c", 3), ("b", 4)]);
        assert_eq!(format!("{map:?}"), r#"{"a": 2, "b": 4, "c": 3}"#, "the last of a key counts");
        assert_eq!((map.get("b"), map.get("d"), map.contains_key("c")), (Some(&4), None, true));
        map.insert("aa".to_owned(), 5);
        map.insert("c".to_owned(), 6);
        let entries: Vec<_> = map.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        assert_eq!(entries, [("a", 2), ("aa", 5), ("b", 4), ("c", 6)]);
        assert_eq!((map.len(), map.is_empty()), (4, false));
    }

    #[test]
    fn json_is_that_of_any_map() {
        let map = map(&[("a", 2), ("b", 4)]);
        let json = serde_json::to_string(&map).expect("JSON");
        assert_eq!(json, r#"{"a":2,"b":4}"#);
        assert_eq!(serde_json::from_str::<SmallMap<String, u32>>(&json).expect("a map"), map);
        let shuffled: SmallMap<String, u32> = serde_json::from_str(r#"{"b":1,"a":2,"b":4}"#).expect("a map");
        assert_eq!(shuffled, map);
        assert!(serde_json::from_str::<SmallMap<String, u32>>(r#"{"a":"x"}"#).is_err());
    }
}
