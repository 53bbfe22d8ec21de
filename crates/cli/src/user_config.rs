//! Settings of a user: `~/.config/taco/cli.toml`, with `host` and `organization`.

use std::io;
use std::path::PathBuf;

use serde::Deserialize;

use crate::credentials::replace;
use crate::failure::Failure;
use crate::process_env::ProcessEnv;

#[derive(Default, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserConfig {
    pub(crate) host: Option<String>,
    pub(crate) organization: Option<String>,
}

/// Directory of a user's settings.
pub(crate) fn directory(process_env: &ProcessEnv) -> Option<PathBuf> {
    let directory = process_env.variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let directory = directory.or_else(|| Some(process_env.home()?.join(".config")))?;
    Some(directory.join("taco"))
}

fn path(process_env: &ProcessEnv) -> Option<PathBuf> {
    Some(directory(process_env)?.join("cli.toml"))
}

fn text(process_env: &ProcessEnv) -> Result<String, Failure> {
    let Some(path) = path(process_env) else { return Ok(String::new()) };
    match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|error| Failure::error(format!("{} cannot be read", path.display())).because(error)),
    }
}

fn parse<T: serde::de::DeserializeOwned>(process_env: &ProcessEnv) -> Result<T, Failure> {
    toml::from_str(&text(process_env)?).map_err(|error| {
        let file = path(process_env).unwrap_or_default();
        Failure::error(format!("{} is not as it should be", file.display()))
            .because(error.message())
            .hint("it may hold host = \"taco.example.com\" and organization = \"acme\"")
    })
}

pub(crate) fn read(process_env: &ProcessEnv) -> Result<UserConfig, Failure> {
    parse(process_env)
}

/// Makes a host the one that commands talk to unless told otherwise.
pub(crate) fn remember_host(process_env: &ProcessEnv, address: &str) -> Result<(), Failure> {
    let Some(path) = path(process_env) else { return Ok(()) };
    let mut table: toml::Table = parse(process_env)?;
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
        let process_env = ProcessEnv { variables, directory: home.path().to_owned(), ..ProcessEnv::default() };
        assert!(read(&process_env).expect("absent is fine").host.is_none());
        replace(&home.path().join("taco/cli.toml"), b"organization = \"acme\"\n").expect("it is written");
        remember_host(&process_env, "https://taco.example.com/").expect("it is written");
        let config = read(&process_env).expect("it is read");
        assert_eq!(config.host.as_deref(), Some("https://taco.example.com/"));
        assert_eq!(config.organization.as_deref(), Some("acme"));
    }
}
