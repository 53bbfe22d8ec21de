//! Errors in a configuration. Each message is one line that names the setting, its origin and a way out.

use std::fmt;
use std::path::PathBuf;

use super::{Origin, Setting};

#[derive(thiserror::Error, Debug)]
pub enum ConfigError {
    #[error("{} is not a setting of taco{}", place(origin, name), did_you_mean(nearest.as_deref()))]
    Unknown { name: Shown, origin: Origin, nearest: Option<String> },
    #[error("{first} and {second} both give {}; keep one of them", setting.key)]
    Twice { setting: &'static Setting, first: Origin, second: Origin },
    #[error("{origin}: {} has to be one text or number; for example {}", setting.key, setting.example)]
    NotOneValue { setting: &'static Setting, origin: Origin },
    #[error("{origin}: {} {value} {why}; for example {}", setting.key, setting.example)]
    Bad { setting: &'static Setting, origin: Origin, value: Shown, why: String },
    #[error("{} is not set, and its default needs a home directory; set it with {} or --{}, for example {}",
        setting.key, setting.variable(), setting.flag(), setting.example)]
    Missing { setting: &'static Setting },
    #[error("{origin}: the file {} cannot be read: {why}", path.display())]
    Unreadable { origin: Origin, path: PathBuf, why: std::io::Error },
    #[error("{origin}: {why}")]
    Syntax { origin: Origin, why: String },
}

/// A variable's place and name are one and the same.
fn place(origin: &Origin, name: &Shown) -> String {
    match origin {
        Origin::Variable(_) => origin.to_string(),
        _ => format!("{origin}: {name}"),
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

/// Something that a user gave, in quotes: on one line, and short.
#[derive(Debug)]
pub struct Shown(String);

impl Shown {
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_SHOWN_CHARS: usize = 100;
        let cut: String = self.0.chars().take(MAX_SHOWN_CHARS).collect();
        let dots = if cut.len() < self.0.len() { "…" } else { "" };
        write!(formatter, "{cut:?}{dots}")
    }
}
