//! The tree that holds all rows. It knows neither records nor keys by their types, so that it is compiled once and not for
//! every table and index.

use std::any::Any;
use std::collections::{BTreeMap, btree_map};
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::{DiffItem, RangedIter};
use imbl::shared_ptr::DefaultSharedPtr;

use crate::key::KeyBytes;
use crate::row::Row;

/// A row of any record. Two are equal if they are the very same: then nothing was put in between.
#[derive(Clone)]
pub(crate) struct AnyRow(Arc<dyn Any + Send + Sync>);

impl AnyRow {
    pub(crate) fn of<R: Send + Sync + 'static>(row: Arc<Row<R>>) -> Self {
        Self(row)
    }
}

impl PartialEq for AnyRow {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The row as what it is. A tree holds the rows of one record only.
pub(crate) fn typed<R: 'static>(row: &AnyRow) -> &Row<R> {
    row.0.downcast_ref().expect("all rows of a tree are of one type")
}

/// Rows by key: those of a state, and those that one reader has laid over it.
#[derive(Clone, Default)]
pub(crate) struct Tree {
    rows: OrdMap<KeyBytes, AnyRow>,
    /// Rows that are kept elsewhere, under keys that no other row has. They are few, and beside the large tree none of its
    /// nodes has to be copied for them. A tree that the ledger changes has none.
    laid_over: BTreeMap<KeyBytes, AnyRow>,
}

impl Tree {
    pub(crate) fn get(&self, key: &KeyBytes) -> Option<&AnyRow> {
        self.rows.get(key).or_else(|| self.laid_over.get(key))
    }

    pub(crate) fn insert(&mut self, key: KeyBytes, row: AnyRow) -> Option<AnyRow> {
        let laid_over = self.laid_over.remove(&key);
        self.rows.insert(key, row).or(laid_over)
    }

    /// Lays a row over the others, none of which has its key.
    pub(crate) fn lay_over(&mut self, key: KeyBytes, row: AnyRow) {
        self.laid_over.insert(key, row);
    }

    pub(crate) fn remove(&mut self, key: &KeyBytes) -> Option<AnyRow> {
        let laid_over = self.laid_over.remove(key);
        self.rows.remove(key).or(laid_over)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len() + self.laid_over.len()
    }

    /// Rows in the order of their keys.
    pub(crate) fn rows(&self) -> Rows<'_> {
        self.between(Bound::Unbounded, Bound::Unbounded)
    }

    /// The rows whose key begins so.
    pub(crate) fn starting_with(&self, prefix: KeyBytes) -> Rows<'_> {
        let end = prefix.clone().successor();
        self.between(Bound::Included(&prefix), end.as_ref().map_or(Bound::Unbounded, Bound::Excluded))
    }

    /// The keys whose rows are not those of an earlier tree, in order, each with its row then and now. What both share
    /// is not looked at, and neither is what was laid over one of them.
    pub(crate) fn changes_since<'a>(
        &'a self,
        before: &'a Self,
    ) -> impl Iterator<Item = (Option<&'a AnyRow>, Option<&'a AnyRow>)> {
        before.rows.diff(&self.rows).map(|item| match item {
            DiffItem::Add(_, new) => (None, Some(new)),
            DiffItem::Update { old: (_, old), new: (_, new) } => (Some(old), Some(new)),
            DiffItem::Remove(_, old) => (Some(old), None),
        })
    }

    fn between(&self, first: Bound<&KeyBytes>, end: Bound<&KeyBytes>) -> Rows<'_> {
        let rows = self.rows.range::<_, KeyBytes>((first, end));
        if self.laid_over.is_empty() {
            return Rows::OfState(rows);
        }
        let laid_over = self.laid_over.range::<KeyBytes, _>((first, end));
        Rows::OfBoth(Box::new((Ends::of(rows), Ends::of(laid_over))))
    }
}

type RowsOfState<'a> = RangedIter<'a, KeyBytes, AnyRow, DefaultSharedPtr>;
type RowsLaidOver<'a> = btree_map::Range<'a, KeyBytes, AnyRow>;

/// Rows in the order of their keys.
#[derive(Clone)]
pub(crate) enum Rows<'a> {
    OfState(RowsOfState<'a>),
    OfBoth(Box<(Ends<'a, RowsOfState<'a>>, Ends<'a, RowsLaidOver<'a>>)>),
}

impl<'a> Iterator for Rows<'a> {
    type Item = &'a AnyRow;

    fn next(&mut self) -> Option<&'a AnyRow> {
        match self {
            Self::OfState(rows) => rows.next().map(|(_, row)| row),
            Self::OfBoth(both) => {
                let (rows, laid_over) = &mut **both;
                match (rows.first(), laid_over.first()) {
                    (Some(row), Some(other)) if row < other => rows.first.take(),
                    (Some(_), None) => rows.first.take(),
                    _ => laid_over.first.take(),
                }
                .map(|(_, row)| row)
            }
        }
    }
}

impl DoubleEndedIterator for Rows<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Self::OfState(rows) => rows.next_back().map(|(_, row)| row),
            Self::OfBoth(both) => {
                let (rows, laid_over) = &mut **both;
                match (rows.last(), laid_over.last()) {
                    (Some(row), Some(other)) if row > other => rows.last.take(),
                    (Some(_), None) => rows.last.take(),
                    _ => laid_over.last.take(),
                }
                .map(|(_, row)| row)
            }
        }
    }
}

type Entry<'a> = (&'a KeyBytes, &'a AnyRow);

/// A sequence whose first and last entry can be looked at before they are taken.
#[derive(Clone)]
pub(crate) struct Ends<'a, I> {
    between: I,
    first: Option<Entry<'a>>,
    last: Option<Entry<'a>>,
}

impl<'a, I: DoubleEndedIterator<Item = Entry<'a>>> Ends<'a, I> {
    fn of(between: I) -> Self {
        Self { between, first: None, last: None }
    }

    /// Key of the first entry, which is in its place then.
    fn first(&mut self) -> Option<&'a KeyBytes> {
        self.first = self.first.or_else(|| self.between.next()).or_else(|| self.last.take());
        self.first.map(|(key, _)| key)
    }

    /// Key of the last entry, which is in its place then.
    fn last(&mut self) -> Option<&'a KeyBytes> {
        self.last = self.last.or_else(|| self.between.next_back()).or_else(|| self.first.take());
        self.last.map(|(key, _)| key)
    }
}

/// Records in the order of a tree.
#[derive(Clone)]
pub struct Records<'a, R> {
    rows: Rows<'a>,
    record: PhantomData<&'a R>,
}

impl<'a, R> Records<'a, R> {
    pub(crate) fn of(rows: Rows<'a>) -> Self {
        Self { rows, record: PhantomData }
    }
}

impl<'a, R: 'static> Iterator for Records<'a, R> {
    type Item = &'a R;

    fn next(&mut self) -> Option<&'a R> {
        self.rows.next().map(|row| &typed::<R>(row).record)
    }
}

impl<R: 'static> DoubleEndedIterator for Records<'_, R> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.rows.next_back().map(|row| &typed::<R>(row).record)
    }
}

impl<R: 'static> FusedIterator for Records<'_, R> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Row;

    fn tree(of_state: &[u8], laid_over: &[u8]) -> Tree {
        let mut tree = Tree::default();
        let row = |number: u8| AnyRow::of(Arc::new(Row { record: number, unknown: None }));
        of_state.iter().for_each(|number| drop(tree.insert(KeyBytes::of(number), row(*number))));
        laid_over.iter().for_each(|number| tree.lay_over(KeyBytes::of(number), row(*number)));
        tree
    }

    fn number(row: &AnyRow) -> u8 {
        typed::<u8>(row).record
    }

    /// Every way to share five numbers between both, and every way to take them from both ends.
    #[test]
    fn rows_that_are_laid_over_are_met_in_their_places_from_both_ends() {
        const ALL: [u8; 5] = [1, 2, 3, 4, 5];
        for shared in 0..1_u32 << ALL.len() {
            let (of_state, laid_over): (Vec<u8>, Vec<u8>) =
                ALL.iter().partition(|number| shared >> (**number - 1) & 1 == 0);
            let tree = tree(&of_state, &laid_over);
            assert_eq!(tree.len(), ALL.len());
            assert!(ALL.iter().all(|one| tree.get(&KeyBytes::of(one)).is_some_and(|row| number(row) == *one)));
            for ends in 0..1_u32 << ALL.len() {
                let (mut rows, mut expected) = (tree.rows(), ALL.iter());
                for step in 0..=ALL.len() {
                    let (found, wanted) = match ends >> step & 1 {
                        0 => (rows.next(), expected.next()),
                        _ => (rows.next_back(), expected.next_back()),
                    };
                    assert_eq!(found.map(number), wanted.copied(), "{shared:b} {ends:b} {step}");
                }
            }
        }
    }

    #[test]
    fn a_part_of_a_tree_has_what_is_laid_over_that_part() {
        let tree = tree(&[1, 4], &[2, 3, 9]);
        let found: Vec<u8> = tree.starting_with(KeyBytes::of(&3_u8)).map(number).collect();
        assert_eq!(found, [3]);
        let (first, end) = (KeyBytes::of(&2_u8), KeyBytes::of(&9_u8));
        let between = tree.between(Bound::Included(&first), Bound::Excluded(&end));
        assert_eq!(between.rev().map(number).collect::<Vec<_>>(), [4, 3, 2]);
    }

    #[test]
    fn a_change_reaches_rows_that_are_laid_over() {
        let mut tree = tree(&[1], &[2, 3]);
        assert_eq!(tree.remove(&KeyBytes::of(&2_u8)).as_ref().map(number), Some(2));
        let row = AnyRow::of(Arc::new(Row { record: 7_u8, unknown: None }));
        assert_eq!(tree.insert(KeyBytes::of(&3_u8), row).as_ref().map(number), Some(3));
        assert_eq!(tree.rows().map(number).collect::<Vec<_>>(), [1, 7]);
    }
}
