//! Settings of a directory for the commands in it: `.taco.toml`, there or in the nearest directory above, with `host` or
//! `bucket`, `organization` and `workspace`, or a table of `workspaces` by their directories.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::failure::Failure;

const FILE_NAME: &str = ".taco.toml";

#[derive(Clone, PartialEq, Eq, Default, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectConfig {
    pub(crate) host: Option<String>,
    /// Bucket that commands serve themselves: an address, or the path of a directory beside the file.
    pub(crate) bucket: Option<String>,
    pub(crate) s3_endpoint: Option<String>,
    pub(crate) s3_region: Option<String>,
    pub(crate) organization: Option<String>,
    pub(crate) workspace: Option<String>,
    /// Workspaces by their directories, as paths beside the file.
    #[serde(default)]
    pub(crate) workspaces: BTreeMap<PathBuf, String>,
}

impl ProjectConfig {
    /// Workspace of a directory, by the table of the file at `file`.
    fn mapped(&self, file: &Path, directory: &Path) -> Option<&String> {
        let beside = directory.strip_prefix(file.parent()?).ok()?;
        let plain = |path: &Path| -> PathBuf { path.components().filter(|part| part.as_os_str() != ".").collect() };
        self.workspaces.iter().find(|(path, _)| plain(path) == plain(beside)).map(|(_, name)| name)
    }
}

/// The file that counts in this directory, and what is in it.
pub(crate) fn read(directory: &Path) -> Result<Option<(PathBuf, ProjectConfig)>, Failure> {
    let start = std::path::absolute(directory)?;
    // Paths of links and with `..` are not those that the table has.
    let start = start.canonicalize().unwrap_or(start);
    for directory in start.ancestors() {
        let file = directory.join(FILE_NAME);
        let refused = |what: &str| Failure::error(format!("{} {what}", file.display()));
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(refused("cannot be read").because(error)),
        };
        let mut config: ProjectConfig = toml::from_str(&text).map_err(|error: toml::de::Error| {
            refused("is not as it should be")
                .because(error.message())
                .hint("it may hold host = \"taco.example.com\" or bucket = \"s3://acme-taco\", organization = \"acme\" and workspace = \"network\"")
        })?;
        if config.host.is_some() && config.bucket.is_some() {
            return Err(refused("names a host and a bucket")
                .because("a directory is served by a server, or by the commands themselves")
                .hint("keep the bucket to work without a server, or the host if there is one"));
        }
        config.workspace = config.mapped(&file, &start).cloned().or(config.workspace);
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
        std::fs::write(below.join(FILE_NAME), "worspace = \"network\"").expect("it is written");
        let refused = read(&below).expect_err("nobody knows this word").to_string();
        assert!(refused.contains(".taco.toml") && refused.contains("worspace"), "{refused}");
    }

    #[test]
    fn a_table_names_the_workspaces_of_directories() {
        let above = tempfile::tempdir().expect("there is room");
        let below = above.path().join("prod/network");
        std::fs::create_dir_all(&below).expect("they are made");
        let text = "bucket = \"../bucket\"\nworkspace = \"rest\"\n[workspaces]\n\"./prod/network\" = \"net-prod\"\n";
        std::fs::write(above.path().join(FILE_NAME), text).expect("it is written");
        let workspace = |directory: &Path| read(directory).expect("it is read").expect("it is there").1.workspace;
        assert_eq!(workspace(&below).as_deref(), Some("net-prod"));
        assert_eq!(workspace(&above.path().join("prod")).as_deref(), Some("rest"));
        std::fs::write(below.join(FILE_NAME), "host = \"h\"\nbucket = \"s3://b\"").expect("it is written");
        let refused = read(&below).expect_err("one of them").to_string();
        assert!(refused.contains("names a host and a bucket"), "{refused}");
    }
}
