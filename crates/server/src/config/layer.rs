//! One source's share of the settings, as text that knows where it came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::error::Shown;
use super::{ConfigError, ProcessEnv, Setting, TABLE};

/// Origin of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    Flag(String),
    Variable(String),
    File { path: PathBuf, line: usize },
    Default,
}

impl Origin {
    /// A setting's name as one writes it there.
    fn spell(&self, name: &str) -> String {
        match self {
            Self::Variable(_) => format!("TACO_{}", name.to_ascii_uppercase()),
            Self::Flag(_) => format!("--{}", name.replace('_', "-")),
            Self::File { .. } | Self::Default => name.to_owned(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(formatter, "flag --{name}"),
            Self::Variable(name) => write!(formatter, "env {name}"),
            Self::File { path, line } => write!(formatter, "{}:{line}", path.display()),
            Self::Default => formatter.write_str("default"),
        }
    }
}

/// A value that was given, or the file that holds it.
#[derive(Debug)]
enum Content {
    Text(String),
    InFile(PathBuf),
}

#[derive(Debug)]
pub(super) struct Given {
    content: Content,
    pub(super) origin: Origin,
}

impl Given {
    /// The text. A file is read only now, when it is clear that no other source goes before it.
    pub(super) fn read(&self, setting: &'static Setting, process_env: &ProcessEnv) -> Result<String, ConfigError> {
        match &self.content {
            Content::Text(text) => Ok(text.clone()),
            Content::InFile(path) if path.as_os_str().is_empty() => Err(ConfigError::Bad {
                setting,
                origin: self.origin.clone(),
                value: Shown::new(""),
                why: "names no file".to_owned(),
            }),
            Content::InFile(path) => {
                let text = std::fs::read_to_string(process_env.working_directory.join(path))
                    .map_err(|why| ConfigError::Unreadable { origin: self.origin.clone(), path: path.clone(), why })?;
                let line = text.strip_suffix('\n').unwrap_or(&text);
                Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
            }
        }
    }
}

impl Given {
    /// The file that has it.
    pub(super) fn file(&self, process_env: &ProcessEnv) -> Option<PathBuf> {
        match (&self.content, &self.origin) {
            (Content::InFile(path), _) | (Content::Text(_), Origin::File { path, .. }) => {
                Some(process_env.working_directory.join(path))
            }
            (Content::Text(_), _) => None,
        }
    }
}

/// Values from one source.
#[derive(Default, Debug)]
pub(super) struct Layer(BTreeMap<&'static str, Given>);

impl Layer {
    /// Takes a value. `name` is a key of the table, or a secret's key with `_file` after it.
    pub(super) fn add(&mut self, name: &str, value: String, origin: Origin) -> Result<(), ConfigError> {
        let Some((setting, in_file)) = recognise(name) else {
            let nearest = nearest(name).map(|near| origin.spell(&near));
            return Err(ConfigError::Unknown { name: Shown::new(&origin.spell(name)), origin, nearest });
        };
        let content = if in_file { Content::InFile(value.into()) } else { Content::Text(value) };
        match self.0.insert(setting.key, Given { content, origin: origin.clone() }) {
            Some(first) => Err(ConfigError::Twice { setting, first: first.origin, second: origin }),
            None => Ok(()),
        }
    }

    pub(super) fn take(&mut self, setting: &Setting) -> Option<Given> {
        self.0.remove(setting.key)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }
}

/// The setting of that name, and whether the name asks for a file that holds the value.
pub(super) fn recognise(name: &str) -> Option<(&'static Setting, bool)> {
    let by_key = |key: &str| TABLE.iter().find(|setting| setting.key == key);
    let in_file = || by_key(name.strip_suffix("_file")?).filter(|setting| setting.secret);
    by_key(name).map(|setting| (setting, false)).or_else(|| Some((in_file()?, true)))
}

/// The name that a misspelt one was probably meant to be.
fn nearest(name: &str) -> Option<String> {
    let names = TABLE.iter().flat_map(|setting| {
        let file = setting.secret.then(|| format!("{}_file", setting.key));
        [Some(setting.key.to_owned()), file].into_iter().flatten()
    });
    // Only secrets come from files.
    let name = name.strip_suffix("_file").filter(|name| recognise(name).is_some()).unwrap_or(name);
    let (distance, nearest) =
        names.map(|known| (strsim::osa_distance(&name.to_ascii_lowercase(), &known), known)).min()?;
    (distance <= 1 + name.len() / 4).then_some(nearest)
}
