use std::any::Any;

use crate::table::{Record, Table};

/// A field with which a record names others of the same state.
pub struct Reference<R: Record> {
    /// The field, as it is called in JSON.
    pub field: &'static str,
    /// Name of the type of the ids in it, which tells the kind of the records that it names.
    pub to: &'static str,
    pub on_delete: OnDelete<R>,
}

/// Fate of a record when one that it names is deleted. The id of that one is an argument of the functions.
pub enum OnDelete<R: Record> {
    /// It is deleted, too. Finds the ids of those that name the deleted one.
    Cascade(fn(&Table<R>, &dyn Any) -> Vec<R::Id>),
    /// It stays, and no longer names it. Makes those that do as they are afterwards.
    Unlink(fn(&Table<R>, &dyn Any) -> Vec<R>),
    /// What it names cannot be deleted. True if something names it.
    Restrict(fn(&Table<R>, &dyn Any) -> bool),
    /// It stays as it is, for the reason that is given.
    Keep(&'static str),
}

/// Declares the references of a record, within its `impl Record`. The closures find the records that name an id, best with
/// an index; the second one of `unlink` changes one of them.
///
/// ```
/// # use taco_tables::{Record, indexes, references};
/// # type TeamId = String;
/// # #[derive(Clone, PartialEq, serde::Serialize, serde::Deserialize)]
/// # struct Member { id: String, teams: Vec<String>, leads: Option<String>, made_by: String }
/// # indexes! {
/// #     struct MemberIndexes for Member {
/// #         pub teams: String => |member| member.teams.clone();
/// #         pub leads: String => |member| member.leads.clone();
/// #     }
/// # }
/// impl Record for Member {
///     const KIND: &'static str = "member";
///     type Id = String;
///     type Indexes = MemberIndexes;
///
///     fn id(&self) -> &String {
///         &self.id
///     }
///
///     references! {
///         "teams": TeamId, unlink(|members, id| members.by().teams.get(id), |member| member.teams.retain(|team| team != id));
///         "leads": TeamId, restrict(|members, id| members.by().leads.get(id));
///         "made_by": TeamId, keep("it tells by whom");
///     }
/// }
/// ```
#[macro_export]
macro_rules! references {
    (@ cascade $target:ty, |$table:ident, $id:ident| $found:expr) => {
        $crate::OnDelete::Cascade(|$table, id| {
            let ::core::option::Option::Some($id) = id.downcast_ref::<$target>() else {
                return ::std::vec::Vec::new();
            };
            $found.map(|record| $crate::Record::id(record).clone()).collect()
        })
    };
    (@ unlink $target:ty, |$table:ident, $id:ident| $found:expr, |$record:ident| $change:expr) => {
        $crate::OnDelete::Unlink(|$table, id| {
            let ::core::option::Option::Some($id) = id.downcast_ref::<$target>() else {
                return ::std::vec::Vec::new();
            };
            let changed = $found.map(|record| {
                let mut $record = ::core::clone::Clone::clone(record);
                $change;
                $record
            });
            changed.collect()
        })
    };
    (@ restrict $target:ty, |$table:ident, $id:ident| $found:expr) => {
        $crate::OnDelete::Restrict(|$table, id| {
            let id = id.downcast_ref::<$target>();
            id.is_some_and(|$id| $found.next().is_some())
        })
    };
    (@ keep $target:ty, $why:literal) => {
        $crate::OnDelete::Keep($why)
    };
    ($($field:literal: $target:ty, $rule:ident($($how:tt)*);)*) => {
        fn references() -> ::std::vec::Vec<$crate::Reference<Self>> {
            ::std::vec![$($crate::Reference {
                field: $field,
                to: ::core::any::type_name::<$target>(),
                on_delete: $crate::references!(@ $rule $target, $($how)*),
            },)*]
        }
    };
}
