//! Gathers the files of a module, and makes its documentation of them.

use std::collections::BTreeMap;

use crate::docs::{ModuleCall, ModuleDocs, ModulePart, UnreadableFile};
use crate::files::{Kind, kind, place};
use crate::{hcl, json};

/// Maximum size of a file that is read; a larger one is named among the unreadable ones.
pub const MAX_FILE_BYTES: usize = 512 * 1024;
/// Maximum size of all files together; what comes later is not read.
const MAX_TOTAL_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of submodules, and of examples.
const MAX_PARTS: usize = 100;
/// Maximum number of entries in each list of a module.
pub(crate) const MAX_ENTRIES: usize = 1_000;
const MAX_README_BYTES: usize = 256 * 1024;
const MAX_UNREADABLE: usize = 20;

/// Files of a module, as they come out of an archive.
#[derive(Default, Debug)]
pub struct SourceFiles {
    parts: BTreeMap<String, BTreeMap<String, File>>,
    total: usize,
}

#[derive(Debug)]
enum File {
    Text(Kind, String),
    Unreadable(&'static str),
}

impl SourceFiles {
    /// Takes a file. `content` may be its beginning, up to one byte more than [`MAX_FILE_BYTES`]; `None` for a link.
    pub fn add(&mut self, path: &str, content: Option<&[u8]>) {
        let Some((directory, name)) = place(path) else { return };
        let Some(kind) = kind(name) else { return };
        if !self.parts.contains_key(directory) && self.parts.len() > 2 * MAX_PARTS {
            return;
        }
        let file = match content {
            None => File::Unreadable("it is a link"),
            Some(content) if kind == Kind::Readme => {
                File::Text(kind, beginning(&String::from_utf8_lossy(content), MAX_README_BYTES))
            }
            Some(content) if content.len() > MAX_FILE_BYTES => File::Unreadable("it is too large"),
            Some(content) if self.total + content.len() > MAX_TOTAL_BYTES => {
                File::Unreadable("the module's files are too large together")
            }
            Some(content) => match str::from_utf8(content) {
                Ok(text) => File::Text(kind, text.trim_start_matches('\u{feff}').to_owned()),
                Err(_) => File::Unreadable("it is not UTF-8"),
            },
        };
        self.total += content.map_or(0, <[u8]>::len);
        self.parts.entry(directory.to_owned()).or_default().insert(name.to_owned(), file);
    }

    /// The documentation of the module.
    pub fn docs(&self) -> ModuleDocs {
        let mut docs = ModuleDocs::default();
        for (path, files) in &self.parts {
            let part = part(path, files);
            let (list, most) = match path.split_once('/') {
                None => {
                    docs.root = part;
                    continue;
                }
                Some(("modules", _)) => (&mut docs.submodules, MAX_PARTS),
                Some(_) => (&mut docs.examples, MAX_PARTS),
            };
            if list.len() < most {
                list.push(part);
            }
        }
        docs
    }
}

/// The modules that the files of one directory call. What cannot be read calls none.
pub fn module_calls<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<ModuleCall> {
    let mut part = ModulePart::default();
    for (name, text) in files {
        // Not a file that calls anything: parsing is dear.
        if text.contains("module") {
            let _ = match kind(name) {
                Some(Kind::Hcl) => hcl::read(text, &mut part),
                Some(Kind::Json) => json::read(text, &mut part),
                _ => Ok(()),
            };
        }
    }
    part.module_calls.sort();
    part.module_calls.dedup();
    part.module_calls
}

fn part(path: &str, files: &BTreeMap<String, File>) -> ModulePart {
    let mut part = ModulePart { path: path.to_owned(), ..ModulePart::default() };
    for (name, file) in files {
        let read = match file {
            File::Text(Kind::Readme, text) => {
                part.readme = Some(text.clone());
                Ok(())
            }
            File::Text(Kind::Hcl, text) => hcl::read(text, &mut part),
            File::Text(Kind::Json, text) => json::read(text, &mut part),
            File::Unreadable(why) => Err((*why).to_owned()),
        };
        if let Err(reason) = read
            && part.unreadable.len() < MAX_UNREADABLE
        {
            part.unreadable.push(UnreadableFile { file: name.clone(), reason });
        }
    }
    arrange(&mut part);
    part
}

/// Lists are in the order of names, and say everything once.
fn arrange(part: &mut ModulePart) {
    part.inputs.sort_by(|a, b| a.name.cmp(&b.name));
    part.inputs.dedup_by(|a, b| a.name == b.name);
    part.outputs.sort_by(|a, b| a.name.cmp(&b.name));
    part.outputs.dedup_by(|a, b| a.name == b.name);
    part.providers.sort_by(|a, b| a.name.cmp(&b.name));
    // A provider that a resource needs, and that nothing declares, has an entry of its own.
    for resource in &part.resources {
        let implied = resource.kind.split('_').next().unwrap_or_default();
        let is_known = part.providers.iter().any(|provider| provider.name == implied);
        if !is_known && !implied.is_empty() && resource.kind.contains('_') && !resource.kind.starts_with("terraform_") {
            part.providers.push(crate::docs::RequiredProvider { name: implied.to_owned(), ..Default::default() });
        }
    }
    part.providers.sort_by(|a, b| (&a.name, a.source.is_empty()).cmp(&(&b.name, b.source.is_empty())));
    part.providers.dedup_by(|a, b| a.name == b.name);
    part.resources.sort_by(|a, b| (a.data, &a.kind, &a.name).cmp(&(b.data, &b.kind, &b.name)));
    part.resources.dedup();
    part.module_calls.sort();
    part.module_calls.dedup();
    part.required_versions.dedup();
}

/// The beginning of a text, cut between characters.
pub(crate) fn beginning(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

/// Adds an entry to a list that is not full.
pub(crate) fn push<T>(list: &mut Vec<T>, entry: T) {
    if list.len() < MAX_ENTRIES {
        list.push(entry);
    }
}
