//! The shape of what is stored: which fields and variants there are, under which names, of which types.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Fields as SynFields, GenericArgument, Lit, Meta, PathArguments, Token, Type};

use super::source::{Declaration, Declared, Source};

/// Types whose JSON nothing here has to look into.
const LEAVES: [&str; 14] = [
    "String",
    "str",
    "PathBuf",
    "bool",
    "u16",
    "u32",
    "u64",
    "i64",
    "Timestamp",
    "Url",
    "Value",
    "RawValue",
    "SecretHash",
    "OutputDigest",
];

/// Shape of a value.
#[derive(Clone, Debug)]
pub enum Shape {
    Leaf(String),
    Option(Box<Self>),
    List(Box<Self>),
    /// Of keys and values.
    Map(Box<Self>, Box<Self>),
    /// A struct or an enum: a key of [`Shapes::types`].
    Named(String),
}

#[derive(Clone, Debug)]
pub enum Named {
    Struct(Vec<Field>),
    /// Stands for what it holds.
    Transparent(Shape),
    Enum {
        /// The field that tells the variant; without, the variant's name is the key of its content.
        tag: Option<String>,
        variants: Vec<Variant>,
    },
}

#[derive(Clone, Debug)]
pub struct Field {
    pub name: String,
    pub shape: Shape,
    /// It may be absent from what is read.
    pub has_default: bool,
    /// Condition under which it is absent from what is written.
    pub skipped_if: Option<String>,
    /// Its own fields stand in its place.
    pub is_flat: bool,
    pub aliases: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Variant {
    pub name: String,
    pub content: Content,
}

#[derive(Clone, Debug)]
pub enum Content {
    Nothing,
    One(Shape),
    Fields(Vec<Field>),
}

/// All types that stored things are made of, by crate and name.
pub struct Shapes {
    source: Source,
    pub types: BTreeMap<String, Named>,
}

impl Shapes {
    pub fn new(source: Source) -> Self {
        Self { source, types: BTreeMap::new() }
    }

    /// The type of the records of a kind.
    pub fn add_record(&mut self, kind: &str) -> Shape {
        let name = self.source.records.get(kind).cloned();
        let name = name.unwrap_or_else(|| panic!("no `impl Record` in crates/domain has the KIND {kind:?}"));
        self.add_root("domain", &name)
    }

    pub fn add_root(&mut self, crate_name: &str, name: &str) -> Shape {
        // Declarations are borrowed from what is filled.
        let source = std::mem::take(&mut self.source);
        let shape = self.named(&source, name, source.root(crate_name, name));
        self.source = source;
        shape
    }

    /// The text after which the 16 characters of an id come, if this is a kind of ids.
    pub fn id_prefix(&self, leaf: &str) -> Option<&str> {
        self.source.ids.get(leaf).map(String::as_str)
    }

    fn named(&mut self, source: &Source, name: &str, declaration: &Declaration) -> Shape {
        let key = format!("{}::{name}", declaration.crate_name);
        if self.types.contains_key(&key) {
            return Shape::Named(key);
        }
        let place = Place { source, crate_name: declaration.crate_name, file: &declaration.file };
        let named = match &declaration.declared {
            Declared::Alias(alias) => return self.shape(&place, &alias.ty),
            Declared::Struct(item) => {
                let container = Attributes::of(&item.attrs, &key);
                match &item.fields {
                    SynFields::Named(_) => Named::Struct(self.fields(&place, &item.fields, &container, &key)),
                    SynFields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                        Named::Transparent(self.shape(&place, &fields.unnamed[0].ty))
                    }
                    _ => panic!("teach tests/formats how {key} is written"),
                }
            }
            Declared::Enum(item) => {
                let container = Attributes::of(&item.attrs, &key);
                let variants = item.variants.iter().map(|variant| {
                    let own = Attributes::of(&variant.attrs, &key);
                    let case = container.rename_all.as_deref();
                    let name =
                        own.rename.unwrap_or_else(|| spelled(words_of_variant(&variant.ident.to_string()), case));
                    let inner = Attributes { rename_all: container.rename_all_fields.clone(), ..Attributes::default() };
                    let content = match &variant.fields {
                        SynFields::Unit => Content::Nothing,
                        SynFields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                            Content::One(self.shape(&place, &fields.unnamed[0].ty))
                        }
                        SynFields::Named(_) => Content::Fields(self.fields(&place, &variant.fields, &inner, &key)),
                        SynFields::Unnamed(_) => panic!("teach tests/formats how {key}::{name} is written"),
                    };
                    Variant { name, content }
                });
                Named::Enum { variants: variants.collect(), tag: container.tag }
            }
        };
        self.types.insert(key.clone(), named);
        Shape::Named(key)
    }

    fn fields(&mut self, place: &Place<'_>, fields: &SynFields, container: &Attributes, of: &str) -> Vec<Field> {
        let mut found = Vec::new();
        for field in fields {
            let own = Attributes::of(&field.attrs, of);
            let name = field.ident.as_ref().expect("a field with a name").to_string();
            let words = name.trim_start_matches("r#").split('_').map(str::to_owned).collect();
            found.push(Field {
                name: own
                    .rename
                    .unwrap_or_else(|| spelled(words, container.rename_all.as_deref().or(Some("snake_case")))),
                // Tokens are written as one text.
                shape: match own.written_by.as_deref() {
                    Some("packed") => Shape::Leaf("tokens".to_owned()),
                    _ => self.shape(place, &field.ty),
                },
                has_default: own.has_default || container.has_default,
                skipped_if: own.skipped_if,
                is_flat: own.is_flat,
                aliases: own.aliases,
            });
        }
        found
    }

    fn shape(&mut self, place: &Place<'_>, written: &Type) -> Shape {
        let text = written.to_token_stream().to_string();
        let Type::Path(path) = written else { return Shape::Leaf(text.replace(' ', "")) };
        let last = path.path.segments.last().expect("a path has a last part");
        let arguments: Vec<&Type> = match &last.arguments {
            PathArguments::AngleBracketed(arguments) => {
                let types = arguments.args.iter().filter_map(|argument| match argument {
                    GenericArgument::Type(argument) => Some(argument),
                    _ => None,
                });
                types.collect()
            }
            _ => Vec::new(),
        };
        let name = last.ident.to_string();
        match (name.as_str(), arguments.as_slice()) {
            ("Option", [inner]) => Shape::Option(Box::new(self.shape(place, inner))),
            ("Vec" | "BTreeSet", [inner]) => Shape::List(Box::new(self.shape(place, inner))),
            ("BTreeMap" | "SmallMap", [key, value]) => {
                Shape::Map(Box::new(self.shape(place, key)), Box::new(self.shape(place, value)))
            }
            ("Box" | "Arc", [inner]) => self.shape(place, inner),
            ("RunWord", []) => Shape::Leaf("String".to_owned()),
            // Both are written by hand, as hexadecimal text.
            ("Hash", []) => Shape::Leaf(name),
            (leaf, []) if LEAVES.contains(&leaf) => Shape::Leaf(name),
            (leaf, []) if place.source.ids.contains_key(leaf) || place.source.names.contains(leaf) => Shape::Leaf(name),
            _ => match place.source.find(&name, place.crate_name, place.file) {
                Some(declaration) => self.named(place.source, &name, declaration),
                None => panic!("teach tests/formats how {text} in {} is written", place.file.display()),
            },
        }
    }

    /// All of it as text, for people to compare.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, named) in &self.types {
            match named {
                Named::Struct(fields) => {
                    writeln!(text, "{name}").expect("a text takes everything");
                    fields.iter().for_each(|field| writeln!(text, "  {}", self.line(field)).expect("text"));
                }
                Named::Transparent(shape) => writeln!(text, "{name}\n  {}", self.word(shape)).expect("text"),
                Named::Enum { tag, variants } => {
                    let tag = tag.as_ref().map(|tag| format!(", told by the field {tag}")).unwrap_or_default();
                    writeln!(text, "{name}: one of{tag}").expect("text");
                    for Variant { name, content } in variants {
                        match content {
                            Content::Nothing => writeln!(text, "  {name}").expect("text"),
                            Content::One(shape) => writeln!(text, "  {name} ({})", self.word(shape)).expect("text"),
                            Content::Fields(fields) => {
                                writeln!(text, "  {name}").expect("text");
                                fields
                                    .iter()
                                    .for_each(|field| writeln!(text, "    {}", self.line(field)).expect("text"));
                            }
                        }
                    }
                }
            }
            text.push('\n');
        }
        text
    }

    fn line(&self, field: &Field) -> String {
        let mut line = match field.is_flat {
            true => format!("(in its place) {}", self.word(&field.shape)),
            false => format!("{}: {}", field.name, self.word(&field.shape)),
        };
        if !field.aliases.is_empty() {
            line.push_str(&format!(", also read as {}", field.aliases.join(", ")));
        }
        if field.has_default {
            line.push_str(", may be absent");
        }
        if let Some(condition) = &field.skipped_if {
            line.push_str(&format!(", not written if {condition}"));
        }
        line
    }

    fn word(&self, shape: &Shape) -> String {
        match shape {
            Shape::Leaf(name) => match self.id_prefix(name) {
                Some(prefix) => format!("{name} {prefix}-…"),
                None => name.clone(),
            },
            Shape::Option(inner) => format!("{} or null", self.word(inner)),
            Shape::List(inner) => format!("list of {}", self.word(inner)),
            Shape::Map(_, inner) => format!("map of {}", self.word(inner)),
            Shape::Named(name) => name.clone(),
        }
    }
}

/// Place in which a type is named.
struct Place<'a> {
    source: &'a Source,
    crate_name: &'static str,
    file: &'a Path,
}

/// Attributes of serde. An unknown one fails the test: it may change what is written.
#[derive(Default)]
struct Attributes {
    rename: Option<String>,
    rename_all: Option<String>,
    rename_all_fields: Option<String>,
    tag: Option<String>,
    has_default: bool,
    skipped_if: Option<String>,
    is_flat: bool,
    aliases: Vec<String>,
    /// Module that writes it.
    written_by: Option<String>,
}

impl Attributes {
    fn of(attributes: &[Attribute], whose: &str) -> Self {
        let mut found = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
            let metas = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            for meta in metas.unwrap_or_else(|error| panic!("{whose}: {error}")) {
                let word = meta.path().to_token_stream().to_string();
                let value = || match &meta {
                    Meta::NameValue(pair) => match &pair.value {
                        Expr::Lit(literal) => match &literal.lit {
                            Lit::Str(text) => text.value(),
                            _ => panic!("{whose}: #[serde({word})] has no text"),
                        },
                        _ => panic!("{whose}: #[serde({word})] has no text"),
                    },
                    _ => panic!("{whose}: #[serde({word})] has no value"),
                };
                match word.as_str() {
                    "rename" => found.rename = Some(value()),
                    "rename_all" => found.rename_all = Some(value()),
                    "rename_all_fields" => found.rename_all_fields = Some(value()),
                    "tag" => found.tag = Some(value()),
                    "default" => found.has_default = true,
                    "skip_serializing_if" => found.skipped_if = Some(value()),
                    "flatten" => found.is_flat = true,
                    "alias" => found.aliases.push(value()),
                    "with" => found.written_by = Some(value()),
                    "transparent" => {}
                    _ => panic!("teach tests/formats what #[serde({word})] of {whose} means"),
                }
            }
        }
        found
    }
}

fn words_of_variant(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for letter in name.chars() {
        if letter.is_uppercase() || words.is_empty() {
            words.push(String::new());
        }
        words.last_mut().expect("one was pushed").extend(letter.to_lowercase());
    }
    words
}

/// Puts words together as `#[serde(rename_all)]` does.
fn spelled(words: Vec<String>, case: Option<&str>) -> String {
    let capital = |word: &String| {
        let mut letters = word.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>()
    };
    match case {
        None | Some("PascalCase") => words.iter().map(capital).collect(),
        Some("kebab-case") => words.join("-"),
        Some("snake_case") => words.join("_"),
        Some(case) => panic!("teach tests/formats to spell in {case}"),
    }
}
