//! The `cloud` block, or the `remote` backend, of the configuration in a directory.

use std::path::{Path, PathBuf};

use hcl_edit::structure::{Block, Body};

/// Backend where a directory keeps its state.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct CloudBlock {
    pub(crate) hostname: Option<String>,
    pub(crate) organization: Option<String>,
    pub(crate) workspace: Option<String>,
}

/// Files of a configuration, by name. What cannot be read is not there.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_configuration = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "tf" || kind == "tofu");
    let mut files: Vec<_> = entries.filter(is_configuration).collect();
    files.sort();
    files
}

/// The first `cloud` or `backend` block of a text that pleases. A text that does not parse has none: terraform will say
/// why.
fn first_block<T>(text: &str, visit: impl FnMut(&Block) -> Option<T>) -> Option<T> {
    let body: Body = text.parse().ok()?;
    let settings: Vec<&Block> = body.get_blocks("terraform").flat_map(|block| block.body.blocks()).collect();
    let kept = settings.into_iter().filter(|block| ["cloud", "backend"].contains(&block.ident.as_str()));
    kept.into_iter().find_map(visit)
}

fn cloud_block(block: &Block) -> Option<CloudBlock> {
    let remote = block.labels.iter().any(|label| label.as_str() == "remote");
    (block.ident.as_str() == "cloud" || remote).then(|| {
        let text = |body: &Body, name: &str| Some(body.get_attribute(name)?.value.as_str()?.to_owned());
        let workspaces = block.body.get_blocks("workspaces").next();
        CloudBlock {
            hostname: text(&block.body, "hostname"),
            organization: text(&block.body, "organization"),
            workspace: workspaces.and_then(|workspaces| text(&workspaces.body, "name")),
        }
    })
}

pub(crate) fn read(directory: &Path) -> Option<CloudBlock> {
    files(directory).into_iter().find_map(|file| parse(&std::fs::read_to_string(file).ok()?))
}

/// The block in the text of one file.
pub(crate) fn parse(text: &str) -> Option<CloudBlock> {
    first_block(text, cloud_block)
}

/// The file that says already where the state is kept.
pub(crate) fn file_with_backend(directory: &Path) -> Option<PathBuf> {
    let says_so = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).ok();
        text.is_some_and(|text| first_block(&text, |_| Some(())).is_some())
    };
    files(directory).into_iter().find(says_so)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory_with(text: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("there is room");
        std::fs::write(directory.path().join("a.tf"), "resource \"broken {").expect("it is written");
        std::fs::write(directory.path().join("main.tf"), text).expect("it is written");
        directory
    }

    #[test]
    fn a_cloud_block_says_host_organization_and_workspace() {
        let text = r#"
            locals { a = "${upper("x")}" }
            terraform {
              required_version = ">= 1.5" # a comment
              cloud {
                hostname     = "taco.example.com"
                organization = "acme"
                workspaces { name = "network" }
              }
            }"#;
        let expected = CloudBlock {
            hostname: Some("taco.example.com".into()),
            organization: Some("acme".into()),
            workspace: Some("network".into()),
        };
        let directory = directory_with(text);
        assert_eq!(read(directory.path()), Some(expected.clone()));
        assert!(file_with_backend(directory.path()).is_some_and(|file| file.ends_with("main.tf")));
        let remote = text.replace("cloud {", "backend \"remote\" {");
        assert_eq!(read(directory_with(&remote).path()), Some(expected));
    }

    #[test]
    fn what_is_not_said_is_absent() {
        let tags = "terraform {\n  cloud {\n    organization = var.name\n    workspaces { tags = [\"a\"] }\n  }\n}\n";
        assert_eq!(read(directory_with(tags).path()), Some(CloudBlock::default()));
        let other = directory_with("terraform {\n  backend \"s3\" {}\n}\n");
        assert_eq!(read(other.path()), None);
        assert!(file_with_backend(other.path()).is_some());
        assert!(file_with_backend(directory_with("locals {}\n").path()).is_none());
    }
}
