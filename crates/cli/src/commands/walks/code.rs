//! `--code`: a directory tree with the code of many workspaces, uploaded once.

use std::fs;
use std::path::Path;

use reqwest::Method;
use serde_json::json;

use crate::api::{about, one};
use crate::failure::Failure;
use crate::resource::Resource;
use crate::session::Session;
use crate::slug;

/// Uploads a directory as a configuration of one of the workspaces that are found in it, which alone changes nothing for
/// that workspace; returns its id, for the walk to share it.
pub(super) async fn upload(session: &Session, organization: &str, directory: &Path) -> Result<String, Failure> {
    let archive = slug::pack(directory)?;
    let api = &session.api;
    let subject = format!("workspaces of organization {organization}");
    let workspaces = api.list(&subject, &["organizations", organization, "workspaces"], &[]).await?;
    let is_here = |workspace: &&Resource| has_configuration(&directory.join(workspace.text("working-directory")));
    let Some(workspace) = workspaces.data.iter().find(is_here) else {
        return Err(Failure::usage(format!("no workspace of {organization} has its code in {}", directory.display()))
            .because("a workspace is found by its working directory, and none of them is there with .tf files")
            .hint("`taco ws edit WS --working-directory DIR` sets it"));
    };
    let subject = format!("code in {}", directory.display());
    let body = about("configuration-versions", json!({ "auto-queue-runs": false, "speculative": true }), json!({}));
    let path = ["workspaces", workspace.id(), "configuration-versions"];
    let announced = one(api.send(&subject, Method::POST, &path, &body).await?)?;
    api.upload(&subject, &announced.text("upload-url"), archive).await?;
    Ok(announced.id().to_owned())
}

/// True if engines find a configuration in this directory.
fn has_configuration(directory: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.any(|name| [".tf", ".tf.json", ".tofu", ".tofu.json"].iter().any(|extension| name.ends_with(extension)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_with_files_of_an_engine_has_a_configuration() {
        let directory = tempfile::tempdir().expect("there is room");
        assert!(!has_configuration(directory.path()));
        fs::write(directory.path().join("README.md"), "").expect("written");
        assert!(!has_configuration(directory.path()));
        fs::write(directory.path().join("main.tf"), "").expect("written");
        assert!(has_configuration(directory.path()) && !has_configuration(&directory.path().join("none")));
    }
}
