//! Settings of a directory for the commands in it: `.taco.toml`, there or in the nearest directory above, with `host`,
//! `organization` and `workspace`.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::failure::Failure;

const FILE_NAME: &str = ".taco.toml";

#[derive(Clone, PartialEq, Eq, Default, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectConfig {
    pub(crate) host: Option<String>,
    pub(crate) organization: Option<String>,
    pub(crate) workspace: Option<String>,
}

/// The file that counts in this directory, and what is in it.
pub(crate) fn read(directory: &Path) -> Result<Option<(PathBuf, ProjectConfig)>, Failure> {
    let directory = std::path::absolute(directory)?;
    for directory in directory.ancestors() {
        let file = directory.join(FILE_NAME);
        let refused = |what: &str| Failure::error(format!("{} {what}", file.display()));
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(refused("cannot be read").because(error)),
        };
        let config = toml::from_str(&text).map_err(|error: toml::de::Error| {
            refused("is not as it should be")
                .because(error.message())
                .hint("it may hold host = \"taco.example.com\", organization = \"acme\" and workspace = \"network\"")
        })?;
        return Ok(Some((file, config)));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_file_counts() {
        let above = tempfile::tempdir().expect("there is room");
        let (middle, below) = (above.path().join("a"), above.path().join("a/b"));
        std::fs::create_dir_all(&below).expect("they are made");
        std::fs::write(above.path().join(FILE_NAME), "organization = \"acme\"").expect("it is written");
        let organization = |directory: &Path| {
            let (file, config) = read(directory).expect("it is read").expect("it is there");
            (file.parent().map(Path::to_owned), config.organization)
        };
        assert_eq!(organization(&below), (Some(above.path().to_owned()), Some("acme".to_owned())));
        std::fs::write(middle.join(FILE_NAME), "workspace = \"network\"").expect("it is written");
        assert_eq!(organization(&below), (Some(middle.clone()), None), "the others are not mixed in");
        std::fs::write(below.join(FILE_NAME), "workspaces = \"network\"").expect("it is written");
        let refused = read(&below).expect_err("nobody knows this word").to_string();
        assert!(refused.contains(".taco.toml") && refused.contains("workspaces"), "{refused}");
    }
}
