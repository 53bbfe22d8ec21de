//! Index of bundles by the id of a record in them: for records that are looked up in no other way.

use std::io::Read;

use serde::{Deserialize, Serialize};

use crate::Malformed;
use crate::catalog::RowId;
use crate::page::{Place, malformed};

const FORMAT: u32 = 1;
const LEVEL: i32 = 9;
/// An id, a page, an offset, a length, a digest.
const ENTRY: usize = 16 + 2 + 4 + 4 + 8;

/// Ids of records and where their bundles lie.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct IdIndex {
    pages: Vec<String>,
    /// Sorted by id.
    entries: Vec<(RowId, Place)>,
}

#[derive(Serialize, Deserialize)]
struct IndexHeader {
    format: u32,
    entries: u64,
    pages: Vec<String>,
}

impl IdIndex {
    /// Adds a record that lies in `page`. [`Self::encode`] sorts.
    pub fn add(&mut self, page: &str, id: RowId, place: Place) -> Result<(), Malformed> {
        let number = self.pages.iter().rposition(|other| other == page).unwrap_or_else(|| {
            self.pages.push(page.to_owned());
            self.pages.len() - 1
        });
        let page = u16::try_from(number).map_err(|_| Malformed("an index cannot have so many pages".to_owned()))?;
        self.entries.push((id, Place { page, ..place }));
        Ok(())
    }

    /// The page and the place of the bundle with this record.
    pub fn find(&self, id: &RowId) -> Option<(&str, Place)> {
        let at = self.entries.binary_search_by_key(id, |(id, _)| *id).ok()?;
        let place = self.entries[at].1;
        Some((&self.pages[usize::from(place.page)], place))
    }

    pub fn iter(&self) -> impl Iterator<Item = (RowId, &str, Place)> {
        self.entries.iter().map(|(id, place)| (*id, self.pages[usize::from(place.page)].as_str(), *place))
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Approximate size in memory, in bytes.
    pub fn weight(&self) -> usize {
        self.len() * size_of::<(RowId, Place)>() + self.pages.iter().map(|page| page.len() + 24).sum::<usize>()
    }

    pub fn encode(&mut self) -> Result<Vec<u8>, Malformed> {
        self.entries.sort_by_key(|(id, _)| *id);
        let header = IndexHeader { format: FORMAT, entries: self.len() as u64, pages: self.pages.clone() };
        let mut bytes = serde_json::to_vec(&header).map_err(malformed)?;
        bytes.push(b'\n');
        for (id, place) in &self.entries {
            bytes.extend_from_slice(id);
            bytes.extend_from_slice(&place.page.to_le_bytes());
            bytes.extend_from_slice(&place.offset.to_le_bytes());
            bytes.extend_from_slice(&place.length.to_le_bytes());
            bytes.extend_from_slice(&place.digest);
        }
        zstd::bulk::compress(&bytes, LEVEL).map_err(malformed)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut plain = Vec::new();
        zstd::Decoder::new(bytes).map_err(malformed)?.read_to_end(&mut plain).map_err(malformed)?;
        let cut_off = || Malformed("it is cut off".to_owned());
        let end = plain.iter().position(|byte| *byte == b'\n').ok_or_else(cut_off)?;
        let header: IndexHeader = serde_json::from_slice(&plain[..end]).map_err(malformed)?;
        if header.format > FORMAT {
            return Err(Malformed(format!("it has format {}, written by a newer server", header.format)));
        }
        let (entries, rest) = plain[end + 1..].as_chunks::<ENTRY>();
        if entries.len() as u64 != header.entries || !rest.is_empty() {
            return Err(cut_off());
        }
        let entries: Vec<(RowId, Place)> = entries.iter().map(entry).collect();
        if entries.iter().any(|(_, place)| usize::from(place.page) >= header.pages.len()) {
            return Err(Malformed("an entry names a page that is not there".to_owned()));
        }
        Ok(Self { pages: header.pages, entries })
    }
}

fn entry(bytes: &[u8; ENTRY]) -> (RowId, Place) {
    fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
        let mut part = [0; N];
        part.copy_from_slice(&bytes[at..at + N]);
        part
    }
    let place = Place {
        page: u16::from_le_bytes(part(bytes, 16)),
        offset: u32::from_le_bytes(part(bytes, 18)),
        length: u32::from_le_bytes(part(bytes, 22)),
        digest: part(bytes, 26),
    };
    (part(bytes, 0), place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::tests::place;

    #[test]
    fn a_record_is_found_by_its_id() {
        let mut index = IdIndex::default();
        for (id, page) in [(5, "one"), (3, "two"), (4, "one")] {
            index.add(page, [id; 16], place(id.into())).expect("room");
        }
        let bytes = index.encode().expect("encoded");
        let index = IdIndex::decode(&bytes).expect("sound");
        let (page, found) = index.find(&[3; 16]).expect("there");
        assert_eq!((page, found.offset, found.digest), ("two", 3, [7; 8]));
        assert_eq!(index.find(&[4; 16]).map(|(page, _)| page), Some("one"));
        assert_eq!(index.find(&[6; 16]), None);
        for length in 0..bytes.len() {
            assert!(IdIndex::decode(&bytes[..length]).is_err(), "{length} bytes");
        }
    }

    /// `cargo xtask samples` adds new ones.
    #[test]
    fn headers_of_earlier_versions_are_read() {
        for sample in crate::samples("history-index") {
            let header: IndexHeader = serde_json::from_str(&sample).expect("a header");
            assert_eq!(serde_json::to_string(&header).expect("JSON"), sample);
        }
    }
}
