//! Catalogs: one row for each record of a kind, newest first, column by column.

use std::collections::BTreeMap;

use crate::Malformed;
use crate::column::Column;
use crate::page::Place;

/// Number of rows that a scan for an owner compares at a time.
const SCAN_CHUNK_ROWS: usize = 64;

/// The 16 characters that tell a record of its kind from all others.
pub type RowId = [u8; 16];

/// Row of a catalog for one record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row<'a> {
    pub id: RowId,
    /// Owner of the record: its workspace.
    pub owner: RowId,
    /// Creation time in microseconds.
    pub at: i64,
    /// Its number within the owner: a run's number, a state's serial.
    pub number: u64,
    pub status: &'a str,
    pub source: &'a str,
    pub author: &'a str,
    /// Additional flags for filters; the bits are the caller's.
    pub flags: u8,
    pub place: Place,
}

/// All rows of one kind, newest first, those of one moment by id.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Catalog {
    /// The pages that places speak of.
    pub(crate) pages: Vec<String>,
    /// Sorted.
    pub(crate) owners: Vec<RowId>,
    /// Statuses and sources.
    pub(crate) words: Vec<String>,
    pub(crate) authors: Vec<String>,
    pub(crate) columns: Columns,
}

/// One value for each row in every one.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Columns {
    pub(crate) id: Vec<RowId>,
    pub(crate) owner: Vec<u16>,
    pub(crate) at: Vec<i64>,
    pub(crate) number: Column<u32, u64>,
    pub(crate) status: Vec<u8>,
    pub(crate) source: Vec<u8>,
    pub(crate) author: Column<u8, u16>,
    pub(crate) flags: Vec<u8>,
    pub(crate) place: Places,
}

/// Places of bundles.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Places {
    pub(crate) page: Column<u8, u16>,
    pub(crate) offset: Vec<u32>,
    pub(crate) length: Column<u16, u32>,
    pub(crate) digest: Vec<[u8; 8]>,
}

impl Places {
    fn get(&self, index: usize) -> Place {
        let (offset, digest) = (self.offset[index], self.digest[index]);
        Place { page: self.page.get(index), offset, length: self.length.get(index), digest }
    }
}

impl Catalog {
    pub fn len(&self) -> usize {
        self.columns.id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Approximate size in memory, in bytes.
    pub fn weight(&self) -> usize {
        let Columns { number, author, place, .. } = &self.columns;
        let narrow = number.weight() + author.weight() + place.page.weight() + place.length.weight();
        // Id, owner, time, status, source, flags, and a place's offset and digest.
        let others = self.len() * (16 + 2 + 8 + 1 + 1 + 1 + 4 + 8);
        let texts = [&self.pages, &self.words, &self.authors].into_iter().flatten().map(|text| text.len() + 24);
        narrow + others + self.owners.len() * 16 + texts.sum::<usize>()
    }

    pub fn row(&self, index: usize) -> Row<'_> {
        let columns = &self.columns;
        Row {
            id: columns.id[index],
            owner: self.owners[usize::from(columns.owner[index])],
            at: columns.at[index],
            number: columns.number.get(index),
            status: &self.words[usize::from(columns.status[index])],
            source: &self.words[usize::from(columns.source[index])],
            author: &self.authors[usize::from(columns.author.get(index))],
            flags: columns.flags[index],
            place: columns.place.get(index),
        }
    }

    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        (0..self.len()).map(|index| self.row(index))
    }

    /// The row of the record with this id.
    pub fn find(&self, id: &RowId) -> Option<usize> {
        self.columns.id.iter().position(|other| other == id)
    }

    pub fn page(&self, place: Place) -> &str {
        &self.pages[usize::from(place.page)]
    }

    pub fn pages(&self) -> &[String] {
        &self.pages
    }

    /// Owners of rows, sorted.
    pub fn owners(&self) -> &[RowId] {
        &self.owners
    }

    /// Creation time of each row, newest first.
    pub fn times(&self) -> &[i64] {
        &self.columns.at
    }

    pub fn ids(&self) -> &[RowId] {
        &self.columns.id
    }

    /// Rows that match. Checks that only need a string, an owner or an author are made once for each of these, not once
    /// for each row.
    pub fn filter(&self, wanted: &RowFilter<'_>) -> Vec<u32> {
        let columns = &self.columns;
        let owners: Option<Vec<bool>> = wanted.owner.map(|owner| self.owners.iter().map(owner).collect());
        let statuses: Vec<bool> = self.words.iter().map(|word| (wanted.status)(word)).collect();
        let sources: Vec<bool> = self.words.iter().map(|word| (wanted.source)(word)).collect();
        let authors: Vec<bool> = self.authors.iter().map(|author| (wanted.author)(author)).collect();
        let flags: Vec<bool> = (0..=u8::MAX).map(wanted.flags).collect();
        let fits = |index: usize| {
            statuses[usize::from(columns.status[index])]
                && owners.as_ref().is_none_or(|owners| owners[usize::from(columns.owner[index])])
                && sources[usize::from(columns.source[index])]
                && flags[usize::from(columns.flags[index])]
                && authors[usize::from(columns.author.get(index))]
                && (wanted.at)(columns.at[index])
        };
        (0..self.len()).filter(|&index| fits(index)).map(|index| index as u32).collect()
    }

    /// The rows of one owner.
    pub fn of_owner(&self, owner: &RowId) -> Vec<u32> {
        let Ok(Ok(number)) = self.owners.binary_search(owner).map(u16::try_from) else { return Vec::new() };
        let mut rows = Vec::new();
        // Most chunks have no row of the owner, and comparing a whole chunk is one vector operation.
        for (chunk, owners) in self.columns.owner.chunks(SCAN_CHUNK_ROWS).enumerate() {
            if owners.iter().fold(false, |found, owner| found | (*owner == number)) {
                let found = owners.iter().enumerate().filter(|(_, owner)| **owner == number);
                rows.extend(found.map(|(index, _)| (chunk * SCAN_CHUNK_ROWS + index) as u32));
            }
        }
        rows
    }
}

/// Filter for rows.
pub struct RowFilter<'a> {
    /// `None` takes every owner.
    pub owner: Option<&'a dyn Fn(&RowId) -> bool>,
    pub status: &'a dyn Fn(&str) -> bool,
    pub source: &'a dyn Fn(&str) -> bool,
    pub author: &'a dyn Fn(&str) -> bool,
    pub flags: &'a dyn Fn(u8) -> bool,
    pub at: &'a dyn Fn(i64) -> bool,
}

/// A catalog that is being made, from rows in any order.
#[derive(Default, Debug)]
pub struct CatalogBuilder {
    pages: Numbered,
    words: Numbered,
    authors: Numbered,
    rows: Vec<Parts>,
}

#[derive(Debug)]
struct Parts {
    text: String,
    id: RowId,
    owner: RowId,
    at: i64,
    number: u64,
    status: usize,
    source: usize,
    author: usize,
    flags: u8,
    place: Place,
}

/// Texts, each with a number.
#[derive(Default, Debug)]
struct Numbered {
    numbers: BTreeMap<String, usize>,
    texts: Vec<String>,
}

impl Numbered {
    fn number(&mut self, text: &str) -> usize {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len();
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }
}

/// Maximum number of owners, pages and authors in one catalog: their numbers have two bytes.
const MAX_NUMBERED: usize = 1 << 16;
/// Maximum number of strings for statuses and sources: their numbers have one byte.
const MAX_WORDS: usize = 1 << 8;

impl CatalogBuilder {
    /// Adds the row of a record that lies in `page`. `text` is what people search in.
    pub fn add(&mut self, page: &str, row: &Row<'_>, text: &str) {
        let page = self.pages.number(page) as u16;
        self.rows.push(Parts {
            text: text.to_owned(),
            id: row.id,
            owner: row.owner,
            at: row.at,
            number: row.number,
            status: self.words.number(row.status),
            source: self.words.number(row.source),
            author: self.authors.number(row.author),
            flags: row.flags,
            place: Place { page, ..row.place },
        });
    }

    /// The catalog, and the texts of its rows in the same order.
    pub fn finish(mut self) -> Result<(Catalog, Vec<String>), Malformed> {
        self.rows.sort_by_key(|row| (std::cmp::Reverse(row.at), row.id));
        let mut owners: Vec<RowId> = self.rows.iter().map(|row| row.owner).collect();
        owners.sort_unstable();
        owners.dedup();
        let (pages, words, authors) = (self.pages.texts, self.words.texts, self.authors.texts);
        let most = owners.len().max(pages.len()).max(authors.len());
        if most > MAX_NUMBERED || words.len() > MAX_WORDS {
            return Err(Malformed("a catalog cannot have so many owners, pages, authors or words".to_owned()));
        }
        let rows = || self.rows.iter();
        let columns = Columns {
            id: rows().map(|row| row.id).collect(),
            owner: rows().map(|row| owners.binary_search(&row.owner).unwrap_or_default() as u16).collect(),
            at: rows().map(|row| row.at).collect(),
            number: rows().map(|row| row.number).collect(),
            status: rows().map(|row| row.status as u8).collect(),
            source: rows().map(|row| row.source as u8).collect(),
            author: rows().map(|row| row.author as u16).collect(),
            flags: rows().map(|row| row.flags).collect(),
            place: Places {
                page: rows().map(|row| row.place.page).collect(),
                offset: rows().map(|row| row.place.offset).collect(),
                length: rows().map(|row| row.place.length).collect(),
                digest: rows().map(|row| row.place.digest).collect(),
            },
        };
        let texts = self.rows.into_iter().map(|row| row.text).collect();
        Ok((Catalog { pages, owners, words, authors, columns }, texts))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn place(offset: u32) -> Place {
        Place { page: 0, offset, length: 1, digest: [7; 8] }
    }

    pub(crate) fn row(id: u8, owner: u8, at: i64, status: &str) -> Row<'_> {
        let (id, owner) = ([id; 16], [owner; 16]);
        Row { id, owner, at, number: at as u64, status, source: "tfe-api", author: "jane", flags: 1, place: place(0) }
    }

    pub(crate) fn catalog() -> Catalog {
        let mut builder = CatalogBuilder::default();
        builder.add("one", &row(1, 9, 10, "applied"), "");
        builder.add("two", &Row { place: place(5), ..row(2, 8, 30, "errored") }, "boom");
        builder.add("one", &Row { author: "john", ..row(3, 9, 20, "applied") }, "");
        builder.add("two", &Row { source: "tfe-ui", flags: 2, ..row(4, 7, 20, "applied") }, "");
        let (catalog, texts) = builder.finish().expect("few");
        assert_eq!(texts, ["boom", "", "", ""]);
        catalog
    }

    #[test]
    fn rows_are_newest_first_and_hold_what_was_put_in() {
        let catalog = catalog();
        let ids: Vec<u8> = catalog.rows().map(|row| row.id[0]).collect();
        assert_eq!(ids, [2, 3, 4, 1]);
        let row = catalog.row(catalog.find(&[2; 16]).expect("there"));
        assert_eq!((row.owner, row.status, row.number, row.place.offset), ([8; 16], "errored", 30, 5));
        assert_eq!(catalog.page(row.place), "two");
        assert_eq!(catalog.find(&[5; 16]), None);
        assert_eq!(catalog.of_owner(&[9; 16]), [1, 3]);
        assert_eq!(catalog.of_owner(&[6; 16]), Vec::<u32>::new());
    }

    #[test]
    fn rows_are_filtered_by_every_column() {
        let all = RowFilter {
            owner: None,
            status: &|_| true,
            source: &|_| true,
            author: &|_| true,
            flags: &|_| true,
            at: &|_| true,
        };
        let catalog = catalog();
        let ids = |filter: RowFilter<'_>| -> Vec<u8> {
            catalog.filter(&filter).into_iter().map(|index| catalog.row(index as usize).id[0]).collect()
        };
        assert_eq!(ids(RowFilter { ..all }), [2, 3, 4, 1]);
        assert_eq!(ids(RowFilter { owner: Some(&|owner| *owner == [9; 16]), ..all }), [3, 1]);
        assert_eq!(ids(RowFilter { status: &|status| status == "applied", ..all }), [3, 4, 1]);
        assert_eq!(ids(RowFilter { source: &|source| source == "tfe-ui", ..all }), [4]);
        assert_eq!(ids(RowFilter { author: &|author| author == "john", ..all }), [3]);
        assert_eq!(ids(RowFilter { flags: &|flags| flags == 2, ..all }), [4]);
        assert_eq!(ids(RowFilter { at: &|at| at > 20, ..all }), [2]);
    }
}
