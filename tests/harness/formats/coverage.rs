//! Coverage: the fields and variants in a sample.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::shape::{Content, Field, Named, Shape, Shapes};

/// Facts such as `domain::Run.plan`, `domain::Run.plan is absent` and `domain::RunStatus::planned`.
pub type Facts = BTreeSet<String>;

/// Content of a sample.
#[derive(Default, Debug)]
pub struct Shown {
    pub facts: Facts,
    /// Fields that this version would write and the sample has not: an older version wrote it.
    pub missing: Vec<String>,
}

impl Shapes {
    /// Compares a sample with its shape; `Err` says where it does not fit.
    pub fn show(&self, shape: &Shape, sample: &Value) -> Result<Shown, String> {
        let mut shown = Shown::default();
        self.look(shape, sample, "it", &mut shown)?;
        Ok(shown)
    }

    fn look(&self, shape: &Shape, value: &Value, place: &str, shown: &mut Shown) -> Result<(), String> {
        let wrong = |expected: &str| Err(format!("{place} is {value}, and not {expected}"));
        match (shape, value) {
            (Shape::Leaf(_), _) => Ok(()),
            (Shape::Option(_), Value::Null) => Ok(()),
            (Shape::Option(inner), _) => self.look(inner, value, place, shown),
            (Shape::List(inner), Value::Array(elements)) => {
                elements.iter().try_for_each(|element| self.look(inner, element, place, shown))
            }
            (Shape::List(_), _) => wrong("a list"),
            (Shape::Map(_, inner), Value::Object(fields)) => {
                fields.iter().try_for_each(|(name, value)| self.look(inner, value, &format!("{place}.{name}"), shown))
            }
            (Shape::Map(..), _) => wrong("a map"),
            (Shape::Named(name), _) => match (&self.types[name], value) {
                (Named::Transparent(inner), _) => self.look(inner, value, place, shown),
                (Named::Struct(fields), Value::Object(object)) => {
                    let known = self.look_at_fields(name, fields, object, place, shown)?;
                    nothing_else(object, &known, place)
                }
                (Named::Struct(_), _) => wrong("an object"),
                (Named::Enum { tag: Some(tag), variants }, Value::Object(object)) => {
                    let word = object.get(tag).and_then(Value::as_str).unwrap_or_default();
                    let Some(variant) = variants.iter().find(|variant| variant.name == word) else {
                        return Err(format!("{place} has the {tag} {word:?}, which {name} does not know"));
                    };
                    shown.facts.insert(format!("{name}::{word}"));
                    let mut known = match &variant.content {
                        Content::Nothing => BTreeSet::new(),
                        Content::Fields(fields) => {
                            self.look_at_fields(&format!("{name}::{word}"), fields, object, place, shown)?
                        }
                        Content::One(Shape::Named(inner)) => match &self.types[inner] {
                            Named::Struct(fields) => self.look_at_fields(inner, fields, object, place, shown)?,
                            _ => return Err(format!("{place}: teach tests/formats about {inner} within {name}")),
                        },
                        Content::One(_) => return Err(format!("{place}: teach tests/formats about {name}")),
                    };
                    known.insert(tag.clone());
                    nothing_else(object, &known, place)
                }
                (Named::Enum { tag: None, variants }, _) => {
                    let (word, content) = match value {
                        Value::String(word) => (word.as_str(), None),
                        Value::Object(object) if object.len() == 1 => {
                            let (word, content) = object.iter().next().expect("there is one");
                            (word.as_str(), Some(content))
                        }
                        _ => return wrong("a variant"),
                    };
                    let Some(variant) = variants.iter().find(|variant| variant.name == word) else {
                        return Err(format!("{place} is {word:?}, which {name} does not know"));
                    };
                    shown.facts.insert(format!("{name}::{word}"));
                    match (&variant.content, content) {
                        (Content::Nothing, None) => Ok(()),
                        (Content::One(inner), Some(content)) => self.look(inner, content, place, shown),
                        (Content::Fields(fields), Some(Value::Object(object))) => {
                            let known =
                                self.look_at_fields(&format!("{name}::{word}"), fields, object, place, shown)?;
                            nothing_else(object, &known, place)
                        }
                        _ => wrong("what this variant holds"),
                    }
                }
                (Named::Enum { .. }, _) => wrong("an object"),
            },
        }
    }

    /// The names of the fields that are known.
    fn look_at_fields(
        &self,
        of: &str,
        fields: &[Field],
        object: &Map<String, Value>,
        place: &str,
        shown: &mut Shown,
    ) -> Result<BTreeSet<String>, String> {
        let mut known = BTreeSet::new();
        for field in fields {
            if field.is_flat {
                let Shape::Named(inner) = &field.shape else { return Err(format!("{of} flattens no struct")) };
                let Named::Struct(inner_fields) = &self.types[inner] else {
                    return Err(format!("{of} flattens {inner}, which is no struct"));
                };
                known.extend(self.look_at_fields(inner, inner_fields, object, place, shown)?);
                continue;
            }
            known.insert(field.name.clone());
            let fact = format!("{of}.{}", field.name);
            match object.get(&field.name) {
                None if field.skipped_if.is_some() => drop(shown.facts.insert(format!("{fact} is absent"))),
                None if field.has_default => shown.missing.push(fact),
                None => return Err(format!("{place} has no {}", field.name)),
                Some(Value::Null) => drop(shown.facts.insert(format!("{fact} is absent"))),
                Some(value) => {
                    self.look(&field.shape, value, &format!("{place}.{}", field.name), shown)?;
                    let is_empty =
                        value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty);
                    if !is_empty {
                        shown.facts.insert(fact);
                    }
                }
            }
        }
        Ok(known)
    }

    /// All that samples of a shape together have to show.
    pub fn all_facts(&self, shape: &Shape) -> Facts {
        let mut facts = Facts::new();
        self.gather(shape, &mut facts, &mut BTreeSet::new());
        facts
    }

    fn gather(&self, shape: &Shape, facts: &mut Facts, seen: &mut BTreeSet<String>) {
        match shape {
            Shape::Leaf(_) => {}
            Shape::Option(inner) | Shape::List(inner) | Shape::Map(_, inner) => self.gather(inner, facts, seen),
            Shape::Named(name) if !seen.insert(name.clone()) => {}
            Shape::Named(name) => match &self.types[name] {
                Named::Transparent(inner) => self.gather(inner, facts, seen),
                Named::Struct(fields) => self.gather_fields(name, fields, facts, seen),
                Named::Enum { variants, .. } => {
                    for variant in variants {
                        let of = format!("{name}::{}", variant.name);
                        match &variant.content {
                            Content::Nothing => {}
                            Content::One(inner) => self.gather(inner, facts, seen),
                            Content::Fields(fields) => self.gather_fields(&of, fields, facts, seen),
                        }
                        facts.insert(of);
                    }
                }
            },
        }
    }

    fn gather_fields(&self, of: &str, fields: &[Field], facts: &mut Facts, seen: &mut BTreeSet<String>) {
        for field in fields {
            self.gather(&field.shape, facts, seen);
            if field.is_flat {
                continue;
            }
            let fact = format!("{of}.{}", field.name);
            if matches!(field.shape, Shape::Option(_)) || field.skipped_if.is_some() {
                facts.insert(format!("{fact} is absent"));
            }
            facts.insert(fact);
        }
    }
}

fn nothing_else(object: &Map<String, Value>, known: &BTreeSet<String>, place: &str) -> Result<(), String> {
    match object.keys().find(|name| !known.contains(*name)) {
        Some(name) => Err(format!("{place} has the field {name:?}, which this version does not know any more")),
        None => Ok(()),
    }
}
