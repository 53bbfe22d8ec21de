//! Differences between the values before and after, as a tree that [`super::render`] writes down.

use serde_json::Value;

use super::change::Change;
use super::schema::{BlockSchema, Nesting, Type};

/// Beyond this many comparisons, lists are no longer matched element by element.
const MAX_COMPARISONS: usize = 1_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Keep,
    Create,
    Update,
    Delete,
}

#[derive(Debug)]
pub(super) struct Diff {
    pub(super) action: Action,
    pub(super) shape: Shape,
    pub(super) forces_replacement: bool,
}

/// A block of one name, and its label if it has one.
pub(super) type NestedBlock = (Option<String>, Diff);

#[derive(Debug)]
pub(super) enum Shape {
    Scalar {
        before: Option<Value>,
        after: Option<Value>,
    },
    /// Known after the apply.
    Unknown {
        before: Option<Box<Diff>>,
    },
    Sensitive {
        before: bool,
        after: bool,
    },
    Object(Vec<(String, Diff)>),
    Map(Vec<(String, Diff)>),
    List(Vec<Diff>),
    Set(Vec<Diff>),
    /// A text that is JSON.
    Json {
        document: Box<Diff>,
        only_whitespace: bool,
    },
    TypeChange(Box<Diff>, Box<Diff>),
    Block {
        attributes: Vec<(String, Diff)>,
        blocks: Vec<(String, Vec<NestedBlock>)>,
    },
}

fn action_of(change: &Change<'_>, parts_change: bool) -> Action {
    match (change.before, change.after) {
        (None, None) => Action::Keep,
        (None, Some(_)) => Action::Create,
        (Some(_), None) => Action::Delete,
        (Some(_), Some(_)) if parts_change => Action::Update,
        (Some(_), Some(_)) => Action::Keep,
    }
}

fn changes<'d>(parts: impl IntoIterator<Item = &'d Diff>) -> bool {
    parts.into_iter().any(|part| part.action != Action::Keep)
}

impl Diff {
    fn new(change: &Change<'_>, action: Action, shape: Shape) -> Self {
        Self { action, shape, forces_replacement: change.forces_replacement() }
    }

    /// True if there is no such value, neither before nor after.
    fn is_nothing(&self) -> bool {
        matches!(self.shape, Shape::Scalar { before: None, after: None })
    }

    /// An attribute of a type that is known from its schema. Null is no value there.
    pub(super) fn typed(change: Change<'_>, kind: &Type<'_>) -> Self {
        let change = change.without_nulls();
        if let Some(hidden) = Self::hidden(&change, |removed| Self::typed(removed, kind)) {
            return hidden;
        }
        let is = |test: fn(&Value) -> bool| [change.before, change.after].into_iter().flatten().all(test);
        match kind {
            _ if change.before.is_none() && change.after.is_none() => Self::scalar(&change),
            Type::List(element) if is(Value::is_array) => {
                Self::list(&change, |_, element_change| Self::typed(element_change, element))
            }
            Type::Tuple(kinds) if is(Value::is_array) => Self::list(&change, |index, element_change| {
                Self::typed(element_change, kinds.get(index).unwrap_or(&Type::Dynamic))
            }),
            Type::Set(element) if is(Value::is_array) => {
                Self::set(&change, |element_change| Self::typed(element_change, element))
            }
            Type::Map(element) if is(Value::is_object) => {
                let parts = parts(&change, |child, _| Self::typed(child, element));
                Self::new(&change, action_of(&change, changes(parts.iter().map(|(_, part)| part))), Shape::Map(parts))
            }
            Type::Object(kinds) if is(Value::is_object) => {
                let part =
                    |child: Change<'_>, name: &str| Self::typed(child, kinds.get(name).unwrap_or(&Type::Dynamic));
                Self::object(&change, part)
            }
            // Providers on the older SDK cannot tell an empty text from none.
            Type::Scalar if change.before.is_none() && change.after.is_some_and(|value| value == "") => {
                Self::new(&change, Action::Keep, Shape::Scalar { before: None, after: change.after.cloned() })
            }
            Type::Scalar if change.after.is_none() && change.before.is_some_and(|value| value == "") => {
                Self::new(&change, Action::Keep, Shape::Scalar { before: change.before.cloned(), after: None })
            }
            _ => Self::dynamic(change),
        }
    }

    /// A value of which nothing but itself is known. Null is a value there.
    pub(super) fn dynamic(change: Change<'_>) -> Self {
        if let Some(hidden) = Self::hidden(&change, Self::dynamic) {
            return hidden;
        }
        let both = |test: fn(&Value) -> bool| [change.before, change.after].into_iter().flatten().all(test);
        if both(Value::is_object) {
            Self::object(&change, |child, _| Self::dynamic(child))
        } else if both(Value::is_array) {
            Self::list(&change, |_, element| Self::dynamic(element))
        } else if both(|value| !value.is_object() && !value.is_array()) {
            Self::scalar(&change)
        } else {
            let created = Change::plain(None, change.after);
            let (before, after) = (Self::dynamic(change.removed()), Self::dynamic(created));
            Self::new(&change, Action::Update, Shape::TypeChange(Box::new(before), Box::new(after)))
        }
    }

    /// A value that is not shown, because it is sensitive or not known yet.
    fn hidden(change: &Change<'_>, of_removed: impl FnOnce(Change<'_>) -> Self) -> Option<Self> {
        let (before, after) = (change.was_sensitive(), change.is_sensitive());
        if before || after {
            let action = match (change.before, change.after) {
                (None, None) if !change.is_unknown() => return None,
                (None, _) => Action::Create,
                (Some(_), None) if !change.is_unknown() => Action::Delete,
                (Some(old), Some(new)) if old == new && before == after => Action::Keep,
                _ => Action::Update,
            };
            return Some(Self::new(change, action, Shape::Sensitive { before, after }));
        }
        change.is_unknown().then(|| {
            let before = change.before.map(|_| Box::new(of_removed(change.removed())));
            let action = if before.is_some() { Action::Update } else { Action::Create };
            Self::new(change, action, Shape::Unknown { before })
        })
    }

    fn scalar(change: &Change<'_>) -> Self {
        let action = action_of(change, change.before != change.after);
        if let Some(json) = Self::json(change, action) {
            return json;
        }
        Self::new(change, action, Shape::Scalar { before: change.before.cloned(), after: change.after.cloned() })
    }

    /// Texts that are JSON objects or lists are compared by what they say.
    fn json(change: &Change<'_>, action: Action) -> Option<Self> {
        let parse = |value: Option<&Value>| match value {
            None => Some(None),
            Some(value) => {
                let text = value.as_str().filter(|text| text.starts_with(['{', '[']))?;
                serde_json::from_str::<Value>(text).ok().map(Some)
            }
        };
        let (before, after) = (parse(change.before)?, parse(change.after)?);
        if before.is_none() && after.is_none() {
            return None;
        }
        let document = Box::new(Self::dynamic(Change::plain(before.as_ref(), after.as_ref())));
        let only_whitespace = action == Action::Update && document.action == Action::Keep;
        Some(Self::new(change, action, Shape::Json { document, only_whitespace }))
    }

    fn object(change: &Change<'_>, part: impl Fn(Change<'_>, &str) -> Self) -> Self {
        let parts = parts(change, part);
        Self::new(change, action_of(change, changes(parts.iter().map(|(_, part)| part))), Shape::Object(parts))
    }

    fn list(change: &Change<'_>, part: impl Fn(usize, Change<'_>) -> Self) -> Self {
        let parts: Vec<Self> = pairs(change)
            .into_iter()
            .map(|(before, after)| part(after.or(before).unwrap_or_default(), change.element(before, after)))
            .collect();
        Self::new(change, action_of(change, changes(&parts)), Shape::List(parts))
    }

    fn set(change: &Change<'_>, part: impl Fn(Change<'_>) -> Self) -> Self {
        let parts: Vec<Self> =
            set_pairs(change).into_iter().map(|(before, after)| part(change.element(before, after))).collect();
        Self::new(change, action_of(change, changes(&parts)), Shape::Set(parts))
    }

    /// A resource, or a block within one.
    pub(super) fn block(change: &Change<'_>, schema: BlockSchema<'_>) -> Self {
        let (mut attributes, mut blocks) = (Vec::new(), Vec::new());
        for name in change.keys() {
            let child = change.child(name);
            match schema.block(name) {
                Some((nesting, schema)) => {
                    let nested = nested_blocks(&child.without_nulls(), nesting, schema);
                    if !nested.is_empty() {
                        blocks.push((name.to_owned(), nested));
                    }
                }
                None => {
                    let diff = Self::typed(child, &schema.attribute(name));
                    if !diff.is_nothing() {
                        attributes.push((name.to_owned(), diff));
                    }
                }
            }
        }
        let of_blocks = blocks.iter().flat_map(|(_, nested)| nested.iter().map(|(_, diff)| diff));
        let changed = changes(attributes.iter().map(|(_, diff)| diff)) || changes(of_blocks);
        Self::new(change, action_of(change, changed), Shape::Block { attributes, blocks })
    }
}

fn nested_blocks(change: &Change<'_>, nesting: Nesting, schema: BlockSchema<'_>) -> Vec<NestedBlock> {
    if change.is_unknown() {
        let before = nested_blocks(&change.removed(), nesting, schema);
        let unknown = Diff::new(change, Action::Create, Shape::Unknown { before: None });
        return before.into_iter().chain([(None, unknown)]).collect();
    }
    let block = |(before, after)| (None, Diff::block(&change.element(before, after), schema));
    match nesting {
        Nesting::Single => match (change.before, change.after) {
            (None, None) => Vec::new(),
            _ => vec![(None, Diff::block(change, schema))],
        },
        Nesting::List => pairs(change).into_iter().map(block).collect(),
        Nesting::Set => set_pairs(change).into_iter().map(block).collect(),
        Nesting::Map => {
            let keys = change.keys().into_iter();
            keys.map(|key| (Some(key.to_owned()), Diff::block(&change.child(key), schema))).collect()
        }
    }
}

fn parts(change: &Change<'_>, part: impl Fn(Change<'_>, &str) -> Diff) -> Vec<(String, Diff)> {
    change.keys().into_iter().map(|name| (name.to_owned(), part(change.child(name), name))).collect()
}

/// Which element was there before, and which is after.
type Pair = (Option<usize>, Option<usize>);

/// Elements of two lists that belong together. Lists of the same length are compared place by place.
fn pairs(change: &Change<'_>) -> Vec<Pair> {
    let (before, after) = change.lengths();
    if before == after {
        return (0..before).map(|index| (Some(index), Some(index))).collect();
    }
    let at = |index: usize, is_before: bool| {
        let element = if is_before { change.element(Some(index), None) } else { change.element(None, Some(index)) };
        (element.before.or(element.after), element.is_unknown())
    };
    let same = |old: usize, new: usize| {
        let (new, unknown) = at(new, false);
        !unknown && at(old, true).0 == new
    };
    let is_object = |index: usize, is_before: bool| at(index, is_before).0.is_some_and(Value::is_object);
    let mut pairs = Vec::new();
    let (mut old, mut new) = (0, 0);
    let common = common(before, after, same);
    for (next_old, next_new) in common.into_iter().chain([(before, after)]) {
        while old < next_old && new < next_new && is_object(old, true) && is_object(new, false) {
            pairs.push((Some(old), Some(new)));
            (old, new) = (old + 1, new + 1);
        }
        pairs.extend((old..next_old).map(|index| (Some(index), None)));
        pairs.extend((new..next_new).map(|index| (None, Some(index))));
        if next_old < before && next_new < after {
            pairs.push((Some(next_old), Some(next_new)));
        }
        (old, new) = (next_old + 1, next_new + 1);
    }
    pairs
}

/// Elements of two sets that are equal belong together.
fn set_pairs(change: &Change<'_>) -> Vec<Pair> {
    let (before, after) = change.lengths();
    let mut free: Vec<usize> = (0..after).collect();
    let mut pairs = Vec::new();
    for old in 0..before {
        let value = change.element(Some(old), None).before;
        let same = |new: &usize| {
            let element = change.element(None, Some(*new));
            !element.is_unknown() && element.after == value
        };
        // Too many to be compared: all of them are shown.
        let found = if before.saturating_mul(after) > MAX_COMPARISONS { None } else { free.iter().position(same) };
        pairs.push((Some(old), found.map(|index| free.remove(index))));
    }
    pairs.extend(free.into_iter().map(|new| (None, Some(new))));
    pairs
}

/// Indexes of a longest common subsequence.
pub(super) fn common(before: usize, after: usize, same: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
    let start = (0..before.min(after)).take_while(|index| same(*index, *index)).count();
    let rest = before.min(after) - start;
    let end = (1..=rest).take_while(|back| same(before - back, after - back)).count();
    let (rows, columns) = (before - start - end, after - start - end);
    let mut found: Vec<(usize, usize)> = (0..start).map(|index| (index, index)).collect();
    if rows.saturating_mul(columns) <= MAX_COMPARISONS {
        // Length of the longest common subsequence of what is left from each place on.
        let mut lengths = vec![vec![0_u32; columns + 1]; rows + 1];
        for row in (0..rows).rev() {
            for column in (0..columns).rev() {
                lengths[row][column] = if same(start + row, start + column) {
                    lengths[row + 1][column + 1] + 1
                } else {
                    lengths[row + 1][column].max(lengths[row][column + 1])
                };
            }
        }
        let (mut row, mut column) = (0, 0);
        while row < rows && column < columns {
            if same(start + row, start + column) {
                found.push((start + row, start + column));
                (row, column) = (row + 1, column + 1);
            } else if lengths[row + 1][column] >= lengths[row][column + 1] {
                row += 1;
            } else {
                column += 1;
            }
        }
    }
    found.extend((1..=end).rev().map(|back| (before - back, after - back)));
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn elements_that_stay_are_found() {
        let (old, new) = (["a", "b", "c", "d"], ["x", "b", "d", "e"]);
        assert_eq!(common(4, 4, |a, b| old[a] == new[b]), [(1, 1), (3, 2)]);
        assert_eq!(common(0, 3, |_, _| false), []);
        assert_eq!(common(2, 3, |a, b| a == b), [(0, 0), (1, 1)]);
    }

    #[test]
    fn lists_are_matched_by_place_or_by_content() {
        let pairs = |before: Value, after: Value| pairs(&Change::plain(Some(&before), Some(&after)));
        assert_eq!(pairs(json!(["a", "b"]), json!(["a", "c"])), [(Some(0), Some(0)), (Some(1), Some(1))]);
        let longer = pairs(json!(["a", "b"]), json!(["a", "x", "b"]));
        assert_eq!(longer, [(Some(0), Some(0)), (None, Some(1)), (Some(1), Some(2))]);
        let objects = pairs(json!([{ "k": 1 }]), json!([{ "k": 2 }, { "k": 3 }]));
        assert_eq!(objects, [(Some(0), Some(0)), (None, Some(1))]);
    }
}
