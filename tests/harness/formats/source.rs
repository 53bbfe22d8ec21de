//! The declarations of stored types, as they are in the source. Serde's attributes say there how a type is written, for
//! flattened structs and tagged enums, too, which cannot be inspected at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Attribute, ItemEnum, ItemImpl, ItemMacro, ItemMod, ItemStruct, ItemType};

/// The crates that declare what is stored or sent, and where their types use those of others. A name is looked for in its own
/// file first, then in its crate, then there.
const CRATES: [(&str, &[&str]); 7] = [
    ("domain", &["tables"]),
    ("tables", &[]),
    ("ledger", &["tables"]),
    ("history", &["tables"]),
    ("agent-protocol", &["domain"]),
    ("agent", &["agent-protocol", "domain"]),
    ("server", &["domain"]),
];

/// Types of the first crate are named as if the second declared them, which re-exports them.
const RE_EXPORTED: (&str, &str) = ("words", "domain");

pub enum Declared {
    Struct(ItemStruct),
    Enum(ItemEnum),
    Alias(ItemType),
}

pub struct Declaration {
    pub crate_name: &'static str,
    pub file: PathBuf,
    pub declared: Declared,
}

/// All that was found.
#[derive(Default)]
pub struct Source {
    declarations: BTreeMap<String, Vec<Declaration>>,
    /// Kinds of ids, and how their texts begin.
    pub ids: BTreeMap<String, String>,
    /// Kinds of names: texts with rules.
    pub names: BTreeSet<String>,
    /// The types of records, by their names in the bucket.
    pub records: BTreeMap<String, String>,
}

impl Source {
    pub fn read() -> Self {
        let mut source = Self::default();
        let named = CRATES.map(|(crate_name, _)| (crate_name, crate_name));
        for (folder, crate_name) in named.into_iter().chain([RE_EXPORTED]) {
            source.read_directory(crate_name, &repository().join("crates").join(folder).join("src"));
        }
        source
    }

    fn read_directory(&mut self, crate_name: &'static str, directory: &Path) {
        let mut entries: Vec<_> =
            fs::read_dir(directory).expect("a crate").map(|entry| entry.expect("a file")).collect();
        entries.sort_by_key(fs::DirEntry::path);
        for path in entries.iter().map(fs::DirEntry::path) {
            if path.is_dir() {
                self.read_directory(crate_name, &path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a file of source");
                let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                Reader { source: self, crate_name, file: path }.visit_file(&file);
            }
        }
    }

    /// The type that this name means in a file of a crate.
    pub fn find(&self, name: &str, crate_name: &str, file: &Path) -> Option<&Declaration> {
        let found = self.declarations.get(name)?;
        let near = |is_near: &dyn Fn(&&Declaration) -> bool| {
            let near: Vec<_> = found.iter().filter(is_near).collect();
            assert!(near.len() <= 1, "several types are called {name}: tests/formats cannot tell which {file:?} means");
            near.first().copied()
        };
        near(&|found| found.file == file).or_else(|| near(&|found| found.crate_name == crate_name)).or_else(|| {
            let (_, used) = CRATES.iter().find(|(name, _)| *name == crate_name)?;
            used.iter().find_map(|other| near(&|found| found.crate_name == *other))
        })
    }

    /// The only type of this name in a crate.
    pub fn root(&self, crate_name: &str, name: &str) -> &Declaration {
        let found = self.find(name, crate_name, Path::new(""));
        found.unwrap_or_else(|| panic!("crates/{crate_name} declares no {name} any more: tests/formats looks for it"))
    }
}

/// Walks through one file.
struct Reader<'a> {
    source: &'a mut Source,
    crate_name: &'static str,
    file: PathBuf,
}

impl Reader<'_> {
    fn add(&mut self, name: String, declared: Declared) {
        let declaration = Declaration { crate_name: self.crate_name, file: self.file.clone(), declared };
        self.source.declarations.entry(name).or_default().push(declaration);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !item.attrs.iter().any(is_for_tests) {
            visit::visit_item_mod(self, item);
        }
    }

    /// Declarations within a function are its own affair.
    fn visit_block(&mut self, _: &'ast syn::Block) {}

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        if derives_serde(&item.attrs) {
            self.add(item.ident.to_string(), Declared::Struct(item.clone()));
        }
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        if derives_serde(&item.attrs) {
            self.add(item.ident.to_string(), Declared::Enum(item.clone()));
        }
    }

    fn visit_item_type(&mut self, item: &'ast ItemType) {
        self.add(item.ident.to_string(), Declared::Alias(item.clone()));
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let is_record = item.trait_.as_ref().is_some_and(|(_, path, _)| path.is_ident("Record"));
        let mut constants = item.items.iter().filter_map(|item| match item {
            syn::ImplItem::Const(constant) if constant.ident == "KIND" => Some(&constant.expr),
            _ => None,
        });
        if let Some(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(kind), .. })) = constants.next()
            && is_record
        {
            self.source.records.insert(kind.value(), item.self_ty.to_token_stream().to_string());
        }
    }

    /// `word_enums! { Grade { Plan = "plan", … } }`, and `id_kinds! { RunId = "run"; }` and `name_kinds! { TeamName: |name| …; }`
    fn visit_item_macro(&mut self, item: &'ast ItemMacro) {
        if item.mac.path.is_ident("word_enums") {
            for item in word_enums(item.mac.tokens.clone()) {
                self.add(item.ident.to_string(), Declared::Enum(item));
            }
            return;
        }
        let tokens: Vec<_> = item.mac.tokens.clone().into_iter().map(|token| token.to_string()).collect();
        for [name, equals, then] in tokens.array_windows() {
            if item.mac.path.is_ident("id_kinds") && equals == "=" && then.starts_with('"') {
                self.source.ids.insert(name.clone(), then.trim_matches('"').to_owned());
            } else if item.mac.path.is_ident("name_kinds") && equals == ":" && then == "|" {
                self.source.names.insert(name.clone());
            }
        }
    }
}

/// The enums that the macro makes, as if they were written out.
fn word_enums(tokens: proc_macro2::TokenStream) -> Vec<ItemEnum> {
    use proc_macro2::TokenTree;
    let mut enums = Vec::new();
    let mut name = None;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => name = Some(ident),
            TokenTree::Group(group) => {
                if let Some(name) = name.take() {
                    let words: Vec<_> = group.stream().into_iter().collect();
                    let variants = words.windows(3).filter_map(|window| match window {
                        [TokenTree::Ident(variant), TokenTree::Punct(equals), TokenTree::Literal(word)]
                            if equals.as_char() == '=' =>
                        {
                            Some(format!("#[serde(rename = {word})] {variant},"))
                        }
                        _ => None,
                    });
                    let written = format!("enum {name} {{ {} }}", variants.collect::<String>());
                    enums.push(syn::parse_str(&written).expect("an enum"));
                }
            }
            _ => {}
        }
    }
    enums
}

fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.meta.to_token_stream().to_string().contains("test")
}

fn derives_serde(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("derive")).any(|attribute| {
        let derived = attribute.meta.to_token_stream().to_string();
        derived.contains("Serialize") || derived.contains("Deserialize")
    })
}

/// The root of this repository.
pub fn repository() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests")).join("..")
}
