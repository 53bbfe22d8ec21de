//! New samples, made from a shape alone: the same shape always leads to the same samples.

use std::collections::BTreeMap;

use super::coverage::Facts;
use super::shape::{Content, Field, Named, Shape, Shapes, Variant};

/// Fields that may be absent are no deeper.
const MAX_DEPTH: usize = 4;

/// Enough for the longest list of variants.
const MAX_ROUNDS: usize = 200;

/// Makes samples of one shape.
pub struct Generator<'a> {
    shapes: &'a Shapes,
    /// Counts of choices from each enum: each time it is the next variant.
    turns: BTreeMap<String, usize>,
    /// Number of structs and variants with fields around the current value.
    depth: usize,
    /// From this depth on everything that may be absent is absent.
    least_from: usize,
}

impl<'a> Generator<'a> {
    /// Samples that show what `shown` does not.
    pub fn samples(shapes: &'a Shapes, shape: &Shape, mut shown: Facts) -> Vec<String> {
        let wanted = shapes.all_facts(shape);
        let mut generator = Self { shapes, turns: BTreeMap::new(), depth: 0, least_from: usize::MAX };
        let mut samples = Vec::new();
        for round in 0..MAX_ROUNDS {
            if wanted.is_subset(&shown) {
                return samples;
            }
            // Each variant meets each depth sooner or later.
            let depth = (round + round / (MAX_DEPTH + 1)) % (MAX_DEPTH + 1);
            generator.least_from = if depth > 0 { depth } else { usize::MAX };
            let sample = generator.value(shape, "value");
            let parsed = serde_json::from_str(&sample).expect("what is generated is JSON");
            let facts = shapes.show(shape, &parsed).expect("what is generated fits its shape").facts;
            if !facts.is_subset(&shown) {
                shown.extend(facts);
                samples.push(sample);
            }
        }
        let left: Vec<_> = wanted.difference(&shown).collect();
        panic!("no sample can be generated that shows {left:?}: write one by hand");
    }

    fn value(&mut self, shape: &Shape, name: &str) -> String {
        match shape {
            Shape::Leaf(leaf) => self.leaf(leaf, name),
            Shape::Option(_) if self.is_least() => "null".to_owned(),
            Shape::Option(inner) => self.value(inner, name),
            Shape::List(_) if self.is_least() => "[]".to_owned(),
            Shape::List(inner) => format!("[{}]", self.value(inner, name)),
            Shape::Map(..) if self.is_least() => "{}".to_owned(),
            Shape::Map(key, inner) => format!("{{{}:{}}}", self.key(key), self.value(inner, name)),
            Shape::Named(key) => match self.shapes.types[key].clone() {
                Named::Transparent(inner) => self.value(&inner, name),
                Named::Struct(fields) => object(self.fields(&fields)),
                Named::Enum { tag, variants } => self.variant(key, tag, &variants),
            },
        }
    }

    fn variant(&mut self, key: &str, tag: Option<String>, variants: &[Variant]) -> String {
        let turn = self.turns.entry(key.to_owned()).or_default();
        let variant = &variants[*turn % variants.len()];
        *turn += 1;
        match (tag, &variant.content) {
            (None, Content::Nothing) => text(&variant.name),
            (None, Content::One(inner)) => object(vec![(variant.name.clone(), self.value(inner, &variant.name))]),
            (None, Content::Fields(fields)) => {
                let content = object(self.fields(fields));
                object(vec![(variant.name.clone(), content)])
            }
            (Some(tag), content) => {
                let mut written = vec![(tag, text(&variant.name))];
                match content {
                    Content::Nothing => {}
                    Content::Fields(fields) => written.extend(self.fields(fields)),
                    Content::One(Shape::Named(inner)) => match self.shapes.types[inner].clone() {
                        Named::Struct(fields) => written.extend(self.fields(&fields)),
                        _ => panic!("teach tests/formats about {inner} within {key}"),
                    },
                    Content::One(_) => panic!("teach tests/formats about {key}"),
                }
                object(written)
            }
        }
    }

    /// A legal key of a map.
    fn key(&self, key: &Shape) -> String {
        match key {
            Shape::Leaf(leaf) if self.shapes.id_prefix(leaf).is_some() => self.leaf(leaf, "key"),
            Shape::Named(name) => match &self.shapes.types[name] {
                Named::Enum { variants, .. } => text(&variants[0].name),
                _ => panic!("teach tests/formats how {name} is written as a key"),
            },
            _ => text("a-key"),
        }
    }

    fn is_least(&self) -> bool {
        self.depth >= self.least_from
    }

    fn fields(&mut self, fields: &[Field]) -> Vec<(String, String)> {
        self.depth += 1;
        let written = self.fields_at_this_depth(fields);
        self.depth -= 1;
        written
    }

    fn fields_at_this_depth(&mut self, fields: &[Field]) -> Vec<(String, String)> {
        let mut written = Vec::new();
        for field in fields {
            match &field.shape {
                Shape::Named(inner) if field.is_flat => match self.shapes.types[inner].clone() {
                    Named::Struct(fields) => written.extend(self.fields_at_this_depth(&fields)),
                    _ => panic!("teach tests/formats about {inner}"),
                },
                _ if field.skipped_if.is_some() && self.is_least() => {}
                shape => written.push((field.name.clone(), self.value(shape, &field.name))),
            }
        }
        written
    }

    fn leaf(&self, leaf: &str, name: &str) -> String {
        if let Some(prefix) = self.shapes.id_prefix(leaf) {
            return text(&format!("{prefix}-4Tk9mXbq7cWvZpHn"));
        }
        match leaf {
            "bool" => (!self.is_least()).to_string(),
            // A number that this version does not know would be refused.
            "u32" | "u64" if name == "format" => "1".to_owned(),
            "u16" | "u32" | "u64" | "i64" => if self.is_least() { "0" } else { "7" }.to_owned(),
            "Timestamp" => text("2026-11-18T02:00:00.123456Z"),
            "Url" => text("https://taco.example.test/"),
            "Hash" | "SecretHash" => text(&"5a".repeat(32)),
            "OutputDigest" => text(&"5a".repeat(16)),
            "tokens" => text("AQIDBAUGBwg"),
            "Value" | "RawValue" => r#"{"any":"JSON"}"#.to_owned(),
            "[u8;32]" => format!("[{}]", ["90"; 32].join(",")),
            "PathBuf" => text(&format!("/work/{name}")),
            "Email" => text("someone@acme.test"),
            _ if self.is_least() && matches!(leaf, "String" | "str") => text(""),
            _ => match name {
                "sha256" | "digest" => text(&"5a".repeat(32)),
                "md5" => text(&"5a".repeat(16)),
                _ => text(&format!("the {}", name.replace(['_', '-'], " ").to_lowercase())),
            },
        }
    }
}

fn text(text: &str) -> String {
    serde_json::to_string(text).expect("a text is JSON")
}

fn object(fields: Vec<(String, String)>) -> String {
    let fields: Vec<_> = fields.into_iter().map(|(name, value)| format!("{}:{value}", text(&name))).collect();
    format!("{{{}}}", fields.join(","))
}
