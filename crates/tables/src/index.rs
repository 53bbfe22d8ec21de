use imbl::OrdSet;

use crate::table::Record;

/// The indexes of one table, kept in step with its rows.
pub trait Indexes<R>: Clone + Default + Send + Sync + 'static {
    fn insert(&mut self, record: &R);
    fn remove(&mut self, record: &R);
}

/// For tables that are only ever looked up by id.
impl<R> Indexes<R> for () {
    fn insert(&mut self, _: &R) {}
    fn remove(&mut self, _: &R) {}
}

/// Finds records by something other than their id, in the order of that something, then of ids.
#[derive(Clone, Debug)]
pub struct Index<K: Ord + Clone, Id: Ord + Clone> {
    pairs: OrdSet<(K, Place<Id>)>,
}

/// An id, or the place before or after all ids: so that "everything under this key" is a range.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Place<Id> {
    Before,
    At(Id),
    After,
}

impl<Id> Place<Id> {
    fn id(&self) -> Option<&Id> {
        match self {
            Self::At(id) => Some(id),
            Self::Before | Self::After => None,
        }
    }
}

impl<K: Ord + Clone, Id: Ord + Clone> Default for Index<K, Id> {
    fn default() -> Self {
        Self { pairs: OrdSet::new() }
    }
}

impl<K: Ord + Clone, Id: Ord + Clone> Index<K, Id> {
    pub fn insert(&mut self, key: K, id: Id) {
        self.pairs.insert((key, Place::At(id)));
    }

    pub fn remove(&mut self, key: K, id: Id) {
        self.pairs.remove(&(key, Place::At(id)));
    }

    /// The ids under `key`, in their order; from the end with `.rev()`.
    pub fn get(&self, key: &K) -> impl DoubleEndedIterator<Item = &Id> {
        self.pairs.range((key.clone(), Place::Before)..(key.clone(), Place::After)).filter_map(|(_, place)| place.id())
    }

    /// The first id under `key`; the only one, where keys are unique.
    pub fn first(&self, key: &K) -> Option<&Id> {
        self.get(key).next()
    }

    /// Every key with its id, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &Id)> {
        self.pairs.iter().filter_map(|(key, place)| Some((key, place.id()?)))
    }

    /// Everything from `key` on, in order.
    pub fn from(&self, key: K) -> impl DoubleEndedIterator<Item = (&K, &Id)> {
        self.pairs.range((key, Place::Before)..).filter_map(|(key, place)| Some((key, place.id()?)))
    }

    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

/// Declares the indexes of a record. Each gives the keys under which a record is found: none, one or several.
///
/// ```
/// # use taco_tables::{Record, indexes};
/// # #[derive(Clone, PartialEq, serde::Serialize, serde::Deserialize)]
/// # struct Run { id: String, workspace: String, tags: Vec<String> }
/// # impl Record for Run { const KIND: &'static str = "run"; type Id = String; type Indexes = RunIndexes; fn id(&self) -> &String { &self.id } }
/// indexes! {
///     pub struct RunIndexes for Run {
///         pub workspace: String => |run| [run.workspace.clone()];
///         pub tag: String => |run| run.tags.clone();
///     }
/// }
/// ```
#[macro_export]
macro_rules! indexes {
    ($(#[$attribute:meta])* $visibility:vis struct $name:ident for $record:ty {
        $($(#[$field_attribute:meta])* $field_visibility:vis $field:ident: $key:ty => |$argument:ident| $keys:expr;)*
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Default)]
        $visibility struct $name {
            $($(#[$field_attribute])* $field_visibility $field: $crate::Index<$key, <$record as $crate::Record>::Id>,)*
        }

        impl $crate::Indexes<$record> for $name {
            fn insert(&mut self, record: &$record) {
                $({
                    let $argument = record;
                    for key in ::core::iter::IntoIterator::into_iter($keys) {
                        self.$field.insert(key, $crate::Record::id(record).clone());
                    }
                })*
            }

            fn remove(&mut self, record: &$record) {
                $({
                    let $argument = record;
                    for key in ::core::iter::IntoIterator::into_iter($keys) {
                        self.$field.remove(key, $crate::Record::id(record).clone());
                    }
                })*
            }
        }
    };
}

/// Keeps `R` in the bounds of the trait's users short.
pub(crate) type IndexesOf<R> = <R as Record>::Indexes;
