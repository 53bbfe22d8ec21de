//! Environment of a command, apart from its command line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::local::OwnServer;

#[derive(Clone, Default, Debug)]
pub(crate) struct ProcessEnv {
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) directory: PathBuf,
    /// Server that this process can be itself.
    pub(crate) own_server: OwnServer,
}

impl ProcessEnv {
    pub(crate) fn of_this_process(own_server: OwnServer) -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { variables: std::env::vars_os().filter_map(text).collect(), directory: PathBuf::from("."), own_server }
    }

    /// The same, for a command about another directory.
    pub(crate) fn at(&self, directory: &Path) -> Self {
        Self { directory: directory.to_owned(), ..self.clone() }
    }

    /// A variable's value; an empty one counts as absent.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.variable("HOME").or_else(|| self.variable("USERPROFILE")).map(PathBuf::from)
    }
}
