use serde_json::value::RawValue;

use crate::change::{Change, RecordKey};
use crate::loose::LooseRecords;
use crate::set_aside::SetAside;
use crate::table::{Record, Table};

/// Everything a ledger adds up to. Declared with [`tables!`](crate::tables).
pub trait State: Clone + Default + Send + Sync + 'static {
    /// Takes in one change from the log. It cannot fail: what cannot be read is set aside, and the rest goes on.
    fn apply(&mut self, change: &Change);

    /// Every record, in an order that depends on nothing but the records.
    fn for_each_json(&self, visit: &mut dyn FnMut(&str, &str, &RawValue)) -> serde_json::Result<()>;

    /// Number of records.
    fn record_count(&self) -> usize;

    /// Changes from an earlier state to this one: first all that is deleted (`None`), then all that is put. It costs
    /// what has changed, not what there is, and depends on nothing but the records of both.
    fn for_each_change(
        &self,
        before: &Self,
        visit: &mut dyn FnMut(&str, &str, Option<&RawValue>),
    ) -> serde_json::Result<()>;

    fn set_aside(&self) -> &SetAside;

    /// Reads a record of this state that is kept elsewhere. It cannot fail, like [`apply`](Self::apply).
    fn read_loose(loose: &mut LooseRecords, key: &RecordKey, value: &RawValue);

    /// Lays records over this state that are kept elsewhere. It costs what they are, not what the state is, and whatever
    /// has the id of one of them stays as it is.
    fn lay_over(&mut self, loose: &LooseRecords);
}

/// A state that has a table of `R`.
pub trait Holds<R: Record>: State {
    fn table(&self) -> &Table<R>;
    /// For transactions alone: a change that does not go through the ledger is lost.
    fn table_mut(&mut self) -> &mut Table<R>;
}

/// The types of the records that a state has tables of. Declared with [`tables!`](crate::tables), so that no check of them
/// can forget one.
pub trait RecordTypes {
    fn visit<V: VisitRecordType>(visitor: &mut V);
}

/// Something to do with each type of record.
pub trait VisitRecordType {
    fn visit<R: Record>(&mut self);
}

/// A state whose tables can be walked, so that no walk can forget one. Declared with [`tables!`](crate::tables).
pub trait Tables: State {
    fn visit_tables<V: VisitTable<Self>>(visitor: &mut V);
}

/// Something to do with each table of a state.
pub trait VisitTable<S: State> {
    fn visit<R: Record>(&mut self)
    where
        S: Holds<R>;
}

/// Declares a state: a struct of tables.
///
/// ```
/// # use taco_tables::{Record, tables};
/// # #[derive(Clone, PartialEq, serde::Serialize, serde::Deserialize)]
/// # pub struct Run { id: String }
/// # impl Record for Run { const KIND: &'static str = "run"; type Id = String; type Indexes = (); fn id(&self) -> &String { &self.id } }
/// tables! {
///     /// What an organization's ledger adds up to.
///     pub struct Organization {
///         pub runs: Run;
///     }
/// }
/// ```
#[macro_export]
macro_rules! tables {
    ($(#[$attribute:meta])* $visibility:vis struct $name:ident {
        $($(#[$field_attribute:meta])* $field_visibility:vis $field:ident: $record:ty;)*
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Default)]
        $visibility struct $name {
            $($(#[$field_attribute])* $field_visibility $field: $crate::Table<$record>,)*
            set_aside: $crate::SetAside,
        }

        impl $crate::State for $name {
            fn apply(&mut self, change: &$crate::Change) {
                match change {
                    $crate::Change::Put(key, value) => {
                        let (read, fields) = match key.kind.as_str() {
                            $(<$record as $crate::Record>::KIND => {
                                (self.$field.put_json(&key.id, value), $crate::fields_of::<$record>())
                            })*
                            _ => return self.set_aside.insert_unknown(key.clone(), value.clone()),
                        };
                        match read {
                            Ok(()) => self.set_aside.remove(key),
                            Err(why) => self.set_aside.insert_unreadable(key.clone(), value.clone(), why, fields),
                        }
                    }
                    $crate::Change::Delete(key) => {
                        self.set_aside.remove(key);
                        match key.kind.as_str() {
                            $(<$record as $crate::Record>::KIND => self.$field.remove_text(&key.id),)*
                            _ => {}
                        }
                    }
                }
            }

            fn for_each_json(
                &self,
                visit: &mut dyn FnMut(&str, &str, &$crate::macro_support::serde_json::value::RawValue),
            ) -> $crate::macro_support::serde_json::Result<()> {
                $(self.$field.for_each_json(visit)?;)*
                for (key, record) in self.set_aside.iter() {
                    visit(&key.kind, &key.id, &record.value);
                }
                Ok(())
            }

            fn record_count(&self) -> usize {
                self.set_aside.len() $(+ self.$field.len())*
            }

            fn for_each_change(
                &self,
                before: &Self,
                visit: &mut dyn FnMut(
                    &str,
                    &str,
                    ::core::option::Option<&$crate::macro_support::serde_json::value::RawValue>,
                ),
            ) -> $crate::macro_support::serde_json::Result<()> {
                let mut deleted = |kind: &str, id: &str| visit(kind, id, ::core::option::Option::None);
                $(self.$field.for_each_deleted(&before.$field, &mut deleted);)*
                self.set_aside.for_each_deleted(&before.set_aside, &mut deleted);
                let mut put = |kind: &str, id: &str, value: &$crate::macro_support::serde_json::value::RawValue| {
                    visit(kind, id, ::core::option::Option::Some(value));
                };
                $(self.$field.for_each_put(&before.$field, &mut put)?;)*
                self.set_aside.for_each_put(&before.set_aside, &mut put);
                ::core::result::Result::Ok(())
            }

            fn set_aside(&self) -> &$crate::SetAside {
                &self.set_aside
            }

            fn read_loose(
                loose: &mut $crate::LooseRecords,
                key: &$crate::RecordKey,
                value: &$crate::macro_support::serde_json::value::RawValue,
            ) {
                match key.kind.as_str() {
                    $(<$record as $crate::Record>::KIND => loose.read::<$record>(key, value),)*
                    _ => loose.read_unknown(key, value),
                }
            }

            fn lay_over(&mut self, loose: &$crate::LooseRecords) {
                for (kind, row) in loose.rows() {
                    match kind {
                        $(<$record as $crate::Record>::KIND => self.$field.lay_over(row),)*
                        _ => {}
                    }
                }
                self.set_aside.merge(loose.set_aside());
            }
        }

        impl $crate::RecordTypes for $name {
            fn visit<V: $crate::VisitRecordType>(visitor: &mut V) {
                $(visitor.visit::<$record>();)*
            }
        }

        impl $crate::Tables for $name {
            fn visit_tables<V: $crate::VisitTable<Self>>(visitor: &mut V) {
                $(visitor.visit::<$record>();)*
            }
        }

        $(impl $crate::Holds<$record> for $name {
            fn table(&self) -> &$crate::Table<$record> {
                &self.$field
            }

            fn table_mut(&mut self) -> &mut $crate::Table<$record> {
                &mut self.$field
            }
        })*
    };
}
