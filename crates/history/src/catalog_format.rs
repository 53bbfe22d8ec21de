//! Format of a catalog: a line of JSON that describes it, then its columns, numbers with the lowest byte first; all
//! of it under zstd.

use std::io::Read;

use serde::{Deserialize, Serialize};

use crate::Malformed;
use crate::catalog::{Catalog, Columns, Places, RowId};
use crate::column::Column;
use crate::page::malformed;

const FORMAT: u32 = 1;
const LEVEL: i32 = 9;
/// No catalog is larger: rows are few enough, and texts are names.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
struct CatalogHeader {
    format: u32,
    rows: u64,
    pages: Vec<String>,
    owners: u64,
    words: Vec<String>,
    authors: Vec<String>,
}

impl Catalog {
    pub fn encode(&self) -> Result<Vec<u8>, Malformed> {
        let header = CatalogHeader {
            format: FORMAT,
            rows: self.len() as u64,
            pages: self.pages.clone(),
            owners: self.owners.len() as u64,
            words: self.words.clone(),
            authors: self.authors.clone(),
        };
        let mut bytes = serde_json::to_vec(&header).map_err(malformed)?;
        bytes.push(b'\n');
        let columns = &self.columns;
        self.owners.iter().for_each(|owner| bytes.extend_from_slice(owner));
        columns.id.iter().for_each(|id| bytes.extend_from_slice(id));
        columns.owner.iter().for_each(|owner| bytes.extend_from_slice(&owner.to_le_bytes()));
        columns.at.iter().for_each(|at| bytes.extend_from_slice(&at.to_le_bytes()));
        columns.number.iter().for_each(|number: u64| bytes.extend_from_slice(&number.to_le_bytes()));
        bytes.extend_from_slice(&columns.status);
        bytes.extend_from_slice(&columns.source);
        columns.author.iter().for_each(|author: u16| bytes.extend_from_slice(&author.to_le_bytes()));
        bytes.extend_from_slice(&columns.flags);
        let Places { page, offset, length, digest } = &columns.place;
        page.iter().for_each(|page: u16| bytes.extend_from_slice(&page.to_le_bytes()));
        offset.iter().for_each(|offset| bytes.extend_from_slice(&offset.to_le_bytes()));
        length.iter().for_each(|length: u32| bytes.extend_from_slice(&length.to_le_bytes()));
        digest.iter().for_each(|digest| bytes.extend_from_slice(digest));
        zstd::bulk::compress(&bytes, LEVEL).map_err(malformed)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut plain = Vec::new();
        zstd::Decoder::new(bytes).map_err(malformed)?.take(MAX_BYTES).read_to_end(&mut plain).map_err(malformed)?;
        let end = plain.iter().position(|byte| *byte == b'\n').ok_or_else(|| Malformed("it is cut off".to_owned()))?;
        let header: CatalogHeader = serde_json::from_slice(&plain[..end]).map_err(malformed)?;
        if header.format > FORMAT {
            return Err(Malformed(format!("it has format {}, written by a newer server", header.format)));
        }
        let mut rest = Rest(&plain[end + 1..]);
        let count = |number: u64| usize::try_from(number).map_err(malformed);
        let owners = rest.many(count(header.owners)?, |id: RowId| id)?;
        let rows = count(header.rows)?;
        let columns = Columns {
            id: rest.many(rows, |id: RowId| id)?,
            owner: rest.many(rows, u16::from_le_bytes)?,
            at: rest.many(rows, i64::from_le_bytes)?,
            number: rest.column(rows, u64::from_le_bytes)?,
            status: rest.many(rows, u8::from_le_bytes)?,
            source: rest.many(rows, u8::from_le_bytes)?,
            author: rest.column(rows, u16::from_le_bytes)?,
            flags: rest.many(rows, u8::from_le_bytes)?,
            place: Places {
                page: rest.column(rows, u16::from_le_bytes)?,
                offset: rest.many(rows, u32::from_le_bytes)?,
                length: rest.column(rows, u32::from_le_bytes)?,
                digest: rest.many(rows, |digest: [u8; 8]| digest)?,
            },
        };
        let CatalogHeader { pages, words, authors, .. } = header;
        let catalog = Self { pages, owners, words, authors, columns };
        catalog.check()?;
        Ok(catalog)
    }

    /// Every number leads somewhere, so that later code need not check.
    fn check(&self) -> Result<(), Malformed> {
        let columns = &self.columns;
        let within = |count: usize, number: usize| number < count;
        let sound = columns.owner.iter().all(|owner| within(self.owners.len(), usize::from(*owner)))
            && columns.status.iter().all(|word| within(self.words.len(), usize::from(*word)))
            && columns.source.iter().all(|word| within(self.words.len(), usize::from(*word)))
            && columns.author.iter().all(|author| within(self.authors.len(), usize::from(author)))
            && columns.place.page.iter().all(|page| within(self.pages.len(), usize::from(page)));
        if sound { Ok(()) } else { Err(Malformed("a row names something that is not there".to_owned())) }
    }
}

/// The bytes that are yet to be read.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn values<const N: usize>(&mut self, count: usize) -> Result<&[[u8; N]], Malformed> {
        let Some((column, rest)) = self.0.split_at_checked(count.saturating_mul(N)) else {
            return Err(Malformed("it is cut off".to_owned()));
        };
        self.0 = rest;
        Ok(column.as_chunks::<N>().0)
    }

    fn many<const N: usize, T>(&mut self, count: usize, read: impl Fn([u8; N]) -> T) -> Result<Vec<T>, Malformed> {
        Ok(self.values(count)?.iter().map(|value| read(*value)).collect())
    }

    fn column<const N: usize, Narrow: Copy + TryFrom<Wide>, Wide: Copy + From<Narrow>>(
        &mut self,
        count: usize,
        read: impl Fn([u8; N]) -> Wide,
    ) -> Result<Column<Narrow, Wide>, Malformed> {
        Ok(self.values(count)?.iter().map(|value| read(*value)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::tests::catalog;

    #[test]
    fn a_catalog_is_read_back_as_it_was() {
        let bytes = catalog().encode().expect("encoded");
        assert_eq!(Catalog::decode(&bytes).expect("sound"), catalog());
        let empty = Catalog::default();
        assert_eq!(Catalog::decode(&empty.encode().expect("encoded")).expect("sound"), empty);
    }

    #[test]
    fn whatever_is_wrong_with_a_catalog_it_is_refused_and_nothing_breaks() {
        let bytes = catalog().encode().expect("encoded");
        for length in 0..bytes.len() {
            assert!(Catalog::decode(&bytes[..length]).is_err(), "{length} bytes");
        }
        let plain = zstd::decode_all(&bytes[..]).expect("zstd");
        for at in 0..plain.len() {
            for value in [0, 0xff] {
                let mut changed = plain.clone();
                changed[at] = value;
                // It may still be one; what matters is that every row of it can be shown.
                if let Ok(catalog) = Catalog::decode(&zstd::bulk::compress(&changed, 1).expect("zstd")) {
                    catalog.rows().for_each(|row| assert!(!catalog.page(row.place).is_empty() || row.id[0] > 0));
                }
            }
        }
    }

    /// `cargo xtask samples` adds new ones.
    #[test]
    fn headers_of_earlier_versions_are_read() {
        for sample in crate::samples("history-catalog") {
            let header: CatalogHeader = serde_json::from_str(&sample).expect("a header");
            assert_eq!(serde_json::to_string(&header).expect("JSON"), sample);
        }
    }
}
