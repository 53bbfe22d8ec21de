//! Configuration: flags over `TACO_*` variables over `taco.toml` over defaults.
//!
//! Each source becomes a layer of texts that know where they came from; the first layer that has a setting wins,
//! and only then is the text parsed. So every complaint can name its origin, and `taco config show` can too.
//! `docs/decisions/0002-configuration.md` says why no library does this for us.

mod error;
mod file;
mod flags;
mod layer;
mod settings;
mod value;
mod variables;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

pub use error::ConfigError;
pub use flags::{BucketFlags, Flags, ServerFlags};
pub use layer::Origin;
pub use settings::{DefaultValue, Group, Setting, Settings, TABLE};
pub use value::{AgentEnvironment, BucketUrl, FilePath, HttpUrl, LogFilter, LogFormat, MirrorUrl, PublicUrl, Secret};

use value::Value;

/// Environment of a process, besides its flags.
#[derive(Clone, Debug)]
pub struct ProcessEnv {
    pub variables: BTreeMap<String, String>,
    pub working_directory: PathBuf,
    /// True if a person watches the log as it is written.
    pub log_on_terminal: bool,
}

impl ProcessEnv {
    pub fn of_this_process() -> Self {
        Self {
            variables: crate::environment::variables(),
            working_directory: std::env::current_dir().unwrap_or_default(),
            log_on_terminal: std::io::stderr().is_terminal(),
        }
    }
}

/// The settings, and where each of them came from.
#[derive(Clone, Debug)]
pub struct Configuration {
    pub settings: Settings,
    /// One for each row of [`TABLE`], in its order.
    pub entries: Vec<Entry>,
}

impl Configuration {
    pub fn load(flags: &Flags, process_env: &ProcessEnv) -> Result<Self, ConfigError> {
        let mut layers =
            [flags.layer()?, variables::layer(process_env)?, file::layer(flags.config_file(), process_env)?];
        let mut entries = Vec::with_capacity(TABLE.len());
        for setting in TABLE {
            let given = layers.iter_mut().find_map(|layer| layer.take(setting));
            entries.push(match given {
                Some(given) => {
                    let text = Some(given.read(setting, process_env)?);
                    let secret_in = given.file(process_env).filter(|_| setting.secret);
                    Entry { setting, text, secret_in, origin: given.origin }
                }
                None => {
                    let text = setting.default.text(&entries, process_env);
                    Entry { setting, text, secret_in: None, origin: Origin::Default }
                }
            });
        }
        Ok(Self { settings: Settings::read(&entries)?, entries })
    }

    /// Name and origin of the bucket: the beginning of an error message about it.
    pub fn bucket_in_words(&self) -> String {
        format!("bucket {} ({})", self.settings.bucket.as_str(), self.origin_of("bucket"))
    }

    /// Origin of a setting.
    pub fn origin_of(&self, key: &str) -> &Origin {
        &self.entries.iter().find(|entry| entry.setting.key == key).expect("it is a setting").origin
    }
}

/// One setting's text before it is parsed.
#[derive(Clone)]
pub struct Entry {
    pub setting: &'static Setting,
    text: Option<String>,
    /// The file that a secret is in.
    secret_in: Option<PathBuf>,
    pub origin: Origin,
}

impl Entry {
    /// The value as people may see it.
    pub fn shown(&self) -> Option<&str> {
        let text = self.text.as_deref()?;
        Some(if self.setting.secret { "(hidden)" } else { text })
    }

    /// True if somebody has set it.
    pub fn is_given(&self) -> bool {
        self.origin != Origin::Default
    }

    /// The value for the setting's flag: for a secret the file that it was read from, if there is one.
    pub fn flag_value(&self) -> Option<String> {
        match &self.secret_in {
            Some(file) => Some(file.display().to_string()),
            None => self.text.clone().filter(|_| !self.setting.secret),
        }
    }

    fn parse<T: Value>(&self) -> Result<T, ConfigError> {
        let Some(text) = &self.text else {
            return T::absent().ok_or(ConfigError::Missing { setting: self.setting });
        };
        let outcome = if text.trim().is_empty() { Err("is empty".to_owned()) } else { T::parse(text) };
        outcome.map_err(|why| ConfigError::Bad {
            setting: self.setting,
            origin: self.origin.clone(),
            value: error::Shown::new(self.shown().unwrap_or_default()),
            why,
        })
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} = {:?} from {}", self.setting.key, self.shown(), self.origin)
    }
}

#[cfg(test)]
mod tests;
