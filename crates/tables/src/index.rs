use std::marker::PhantomData;

use smallvec::SmallVec;

use crate::key::{KeyBytes, KeyPrefix, SortKey};
use crate::table::Record;
use crate::tree::{AnyRow, Records, Tree};

/// The indexes of one table, kept in step with its rows.
pub trait Indexes<R>: Clone + Default + Send + Sync + 'static {
    /// Swaps a record's keys for those of the record that takes its place.
    fn replace(&mut self, old: Option<&R>, new: Option<NewRow<'_, R>>);

    /// The attribute of a unique index under which there is another record than this one.
    fn unique_conflict(&self, record: &R) -> Option<&'static str>;
}

/// No indexes, for tables that are only ever looked up by id.
impl<R> Indexes<R> for () {
    fn replace(&mut self, _: Option<&R>, _: Option<NewRow<'_, R>>) {}

    fn unique_conflict(&self, _: &R) -> Option<&'static str> {
        None
    }
}

/// A record with the row that holds it.
pub struct NewRow<'a, R> {
    pub record: &'a R,
    pub(crate) row: &'a AnyRow,
    /// It is laid over the others, none of which has its id.
    pub(crate) is_laid_over: bool,
}

impl<R> Clone for NewRow<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for NewRow<'_, R> {}

/// Finds records by something other than their id, in the order of that something, then of ids.
pub struct Index<K, R> {
    tree: Tree,
    types: PhantomData<fn(K) -> R>,
}

impl<K, R> Clone for Index<K, R> {
    fn clone(&self) -> Self {
        Self { tree: self.tree.clone(), types: PhantomData }
    }
}

impl<K, R> Default for Index<K, R> {
    fn default() -> Self {
        Self { tree: Tree::default(), types: PhantomData }
    }
}

impl<K: SortKey, R: Record> Index<K, R> {
    /// The records under `key`, in the order of their ids; from the end with `.rev()`.
    pub fn get(&self, key: &K) -> Records<'_, R> {
        Records::of(self.tree.starting_with(KeyBytes::of(key)))
    }

    /// The first record under `key`; the only one, where keys are unique.
    pub fn first(&self, key: &K) -> Option<&R> {
        self.get(key).next()
    }

    /// The records whose key begins so, in order.
    pub fn under(&self, prefix: &impl KeyPrefix<K>) -> Records<'_, R> {
        Records::of(self.tree.starting_with(KeyBytes::of(prefix)))
    }

    /// All records that have a key, in the order of keys.
    pub fn iter(&self) -> Records<'_, R> {
        Records::of(self.tree.rows())
    }

    pub fn len(&self) -> usize {
        self.tree.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// For [`indexes!`](crate::indexes): true if another record than that of this id is under one of the keys.
    #[doc(hidden)]
    pub fn has_another(&self, keys: impl IntoIterator<Item = K>, id: &R::Id) -> bool {
        keys.into_iter().any(|key| self.get(&key).any(|other| other.id() != id))
    }

    /// For [`indexes!`](crate::indexes).
    #[doc(hidden)]
    pub fn replace(&mut self, old: Keys<K>, new: Keys<K>, row: Option<NewRow<'_, R>>) {
        replace(&mut self.tree, &old.keys, new.keys, row.map(|new| (new.row, new.is_laid_over)));
    }
}

fn replace(tree: &mut Tree, old: &[KeyBytes], new: KeyList, row: Option<(&AnyRow, bool)>) {
    for key in old.iter().filter(|key| !new.contains(key)) {
        tree.remove(key);
    }
    match row {
        Some((row, true)) => new.into_iter().for_each(|key| tree.lay_over(key, row.clone())),
        Some((row, false)) => new.into_iter().for_each(|key| drop(tree.insert(key, row.clone()))),
        None => {}
    }
}

type KeyList = SmallVec<[KeyBytes; 1]>;

/// A record's keys in one index, each with the record's id.
#[doc(hidden)]
pub struct Keys<K> {
    keys: KeyList,
    types: PhantomData<fn(K)>,
}

impl<K: SortKey> Keys<K> {
    pub fn none() -> Self {
        Self { keys: KeyList::new(), types: PhantomData }
    }

    pub fn of(keys: impl IntoIterator<Item = K>, id: &impl SortKey) -> Self {
        let keys = keys.into_iter().map(|key| {
            let mut bytes = KeyBytes::of(&key);
            id.encode(&mut bytes);
            bytes
        });
        Self { keys: keys.collect(), types: PhantomData }
    }
}

/// Declares the indexes of a record. Each gives the keys under which a record is found: none, one or several. In one that
/// is `unique`, no two records have the same key; the text names the attribute for whoever is refused.
///
/// ```
/// # use taco_tables::{Record, indexes};
/// # #[derive(Clone, PartialEq, serde::Serialize, serde::Deserialize)]
/// # struct Run { id: String, name: String, workspace: String, tags: Vec<String> }
/// # impl Record for Run { const KIND: &'static str = "run"; type Id = String; type Indexes = RunIndexes; fn id(&self) -> &String { &self.id } }
/// indexes! {
///     pub struct RunIndexes for Run {
///         pub name: String, unique "name" => |run| [run.name.clone()];
///         pub workspace: String => |run| [run.workspace.clone()];
///         pub tag: String => |run| run.tags.clone();
///     }
/// }
/// ```
#[macro_export]
macro_rules! indexes {
    ($(#[$attribute:meta])* $visibility:vis struct $name:ident for $record:ty {
        $($(#[$field_attribute:meta])* $field_visibility:vis $field:ident: $key:ty $(, unique $attribute_name:literal)?
            => |$argument:ident| $keys:expr;)*
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Default)]
        $visibility struct $name {
            $($(#[$field_attribute])* $field_visibility $field: $crate::Index<$key, $record>,)*
        }

        impl $crate::Indexes<$record> for $name {
            fn replace(
                &mut self,
                old: ::core::option::Option<&$record>,
                new: ::core::option::Option<$crate::NewRow<'_, $record>>,
            ) {
                $({
                    let keys = |record: ::core::option::Option<&$record>| match record {
                        ::core::option::Option::None => $crate::Keys::<$key>::none(),
                        ::core::option::Option::Some(record) => {
                            let $argument = record;
                            $crate::Keys::<$key>::of($keys, $crate::Record::id(record))
                        }
                    };
                    self.$field.replace(keys(old), keys(new.map(|new| new.record)), new);
                })*
            }

            fn unique_conflict(&self, record: &$record) -> ::core::option::Option<&'static str> {
                let _ = record;
                $($({
                    let $argument = record;
                    if self.$field.has_another($keys, $crate::Record::id(record)) {
                        return ::core::option::Option::Some($attribute_name);
                    }
                })?)*
                ::core::option::Option::None
            }
        }
    };
}
