//! Settings from `taco.toml`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::layer::{Layer, Origin, recognise};
use super::{ConfigError, ProcessEnv, variables};

/// Default file, read if no other is named.
const USUAL_NAME: &str = "taco.toml";

/// `named` is the file that a flag asks for.
pub(super) fn layer(named: Option<&Path>, process_env: &ProcessEnv) -> Result<Layer, ConfigError> {
    let (path, origin) = match (named, process_env.variables.get(variables::CONFIG_FILE)) {
        (Some(path), _) => (path.to_owned(), Origin::Flag("config".to_owned())),
        (None, Some(path)) => (PathBuf::from(path), Origin::Variable(variables::CONFIG_FILE.to_owned())),
        (None, None) => (PathBuf::from(USUAL_NAME), Origin::Default),
    };
    match std::fs::read_to_string(process_env.working_directory.join(&path)) {
        Ok(text) => parse(&path, &text),
        Err(why) if why.kind() == ErrorKind::NotFound && origin == Origin::Default => Ok(Layer::default()),
        Err(why) => Err(ConfigError::Unreadable { origin, path, why }),
    }
}

fn parse(path: &Path, text: &str) -> Result<Layer, ConfigError> {
    let at = |offset: usize| Origin::File { path: path.to_owned(), line: line_of(text, offset) };
    let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        origin: at(error.span().map_or(0, |span| span.start)),
        why: error.message().replace('\n', " "),
    })?;
    let mut layer = Layer::default();
    // Line by line, so that of two complaints the upper one is made.
    let mut pairs: Vec<_> = table.into_inner().into_iter().collect();
    pairs.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in pairs {
        let (name, origin) = (key.get_ref(), at(key.span().start));
        let single = match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(number) => Some(number.to_string()),
            DeValue::Boolean(switch) => Some(switch.to_string()),
            _ => None,
        };
        match (single, recognise(name)) {
            (None, Some((setting, _))) => return Err(ConfigError::NotOneValue { setting, origin }),
            (single, _) => layer.add(name, single.unwrap_or_default(), origin)?,
        }
    }
    Ok(layer)
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}
