//! The tree that holds all rows. It knows neither records nor keys by their types, so that it is compiled once and not for
//! every table and index.

use std::any::Any;
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

#[derive(Clone, Default)]
pub(crate) struct Tree(OrdMap<KeyBytes, AnyRow>);

impl Tree {
    pub(crate) fn get(&self, key: &KeyBytes) -> Option<&AnyRow> {
        self.0.get(key)
    }

    pub(crate) fn insert(&mut self, key: KeyBytes, row: AnyRow) -> Option<AnyRow> {
        self.0.insert(key, row)
    }

    pub(crate) fn remove(&mut self, key: &KeyBytes) -> Option<AnyRow> {
        self.0.remove(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
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
    /// is not looked at.
    pub(crate) fn changes_since<'a>(
        &'a self,
        before: &'a Self,
    ) -> impl Iterator<Item = (Option<&'a AnyRow>, Option<&'a AnyRow>)> {
        before.0.diff(&self.0).map(|item| match item {
            DiffItem::Add(_, new) => (None, Some(new)),
            DiffItem::Update { old: (_, old), new: (_, new) } => (Some(old), Some(new)),
            DiffItem::Remove(_, old) => (Some(old), None),
        })
    }

    fn between(&self, first: Bound<&KeyBytes>, end: Bound<&KeyBytes>) -> Rows<'_> {
        Rows(self.0.range::<_, KeyBytes>((first, end)))
    }
}

#[derive(Clone)]
pub(crate) struct Rows<'a>(RangedIter<'a, KeyBytes, AnyRow, DefaultSharedPtr>);

impl<'a> Iterator for Rows<'a> {
    type Item = &'a AnyRow;

    fn next(&mut self) -> Option<&'a AnyRow> {
        self.0.next().map(|(_, row)| row)
    }
}

impl DoubleEndedIterator for Rows<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(_, row)| row)
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
