//! What a user told once: `~/.config/taco/cli.toml`, with `host` and `organization`.

use std::io;
use std::path::PathBuf;

use serde::Deserialize;

use crate::credentials::replace;
use crate::failure::Failure;
use crate::surroundings::Surroundings;

#[derive(Default, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserConfig {
    pub(crate) host: Option<String>,
    pub(crate) organization: Option<String>,
}

fn path(surroundings: &Surroundings) -> Option<PathBuf> {
    let directory = surroundings.variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let directory = directory.or_else(|| Some(surroundings.home()?.join(".config")))?;
    Some(directory.join("taco/cli.toml"))
}

fn text(surroundings: &Surroundings) -> Result<String, Failure> {
    let Some(path) = path(surroundings) else { return Ok(String::new()) };
    match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|error| Failure::error(format!("{} cannot be read", path.display())).because(error)),
    }
}

fn parse<T: serde::de::DeserializeOwned>(surroundings: &Surroundings) -> Result<T, Failure> {
    toml::from_str(&text(surroundings)?).map_err(|error| {
        let file = path(surroundings).unwrap_or_default();
        Failure::error(format!("{} is not as it should be", file.display()))
            .because(error.message())
            .hint("it may hold host = \"taco.example.com\" and organization = \"acme\"")
    })
}

pub(crate) fn read(surroundings: &Surroundings) -> Result<UserConfig, Failure> {
    parse(surroundings)
}

/// Makes a host the one that commands talk to unless told otherwise.
pub(crate) fn remember_host(surroundings: &Surroundings, address: &str) -> Result<(), Failure> {
    let Some(path) = path(surroundings) else { return Ok(()) };
    let mut table: toml::Table = parse(surroundings)?;
    table.insert("host".to_owned(), address.into());
    replace(&path, table.to_string().as_bytes())
        .map_err(|error| Failure::error(format!("{} cannot be written", path.display())).because(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_remembered_beside_the_organization() {
        let home = tempfile::tempdir().expect("there is room");
        let variables = [("XDG_CONFIG_HOME".to_owned(), home.path().display().to_string())].into();
        let surroundings = Surroundings { variables, directory: home.path().to_owned() };
        assert!(read(&surroundings).expect("absent is fine").host.is_none());
        replace(&home.path().join("taco/cli.toml"), b"organization = \"acme\"\n").expect("it is written");
        remember_host(&surroundings, "https://taco.example.com/").expect("it is written");
        let config = read(&surroundings).expect("it is read");
        assert_eq!(config.host.as_deref(), Some("https://taco.example.com/"));
        assert_eq!(config.organization.as_deref(), Some("acme"));
    }
}
