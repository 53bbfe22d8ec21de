//! `taco state pull` and `push`

use std::io::{self, Read};
use std::path::Path;

use md5::{Digest, Md5};
use reqwest::Method;
use serde_json::json;

use super::States;
use super::lock::while_locked;
use crate::api::{about, one};
use crate::commands::done;
use crate::failure::Failure;
use crate::output;
use crate::resource::Resource;
use crate::state_file::StateFile;

pub(super) async fn pull(states: &States<'_>, version: &str) -> Result<(), Failure> {
    let version = states.version(version).await?;
    // With --json too: a state is JSON.
    output::bytes(&states.bytes(&version).await?)
}

pub(super) async fn push(states: &States<'_>, file: &Path, force: bool) -> Result<(), Failure> {
    let bytes = read(file)?;
    let state = StateFile::parse(&bytes, &file.display().to_string())?;
    let stored = while_locked(states, "taco state push", store(states, &state, bytes, force)).await?;
    let sentence = format!("Uploaded serial {} of {} ({}).", stored.text("serial"), states.name, stored.id());
    done(states.session, &stored, &sentence)
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = match file == Path::new("-") {
        true => io::stdin().lock().read_to_end(&mut bytes),
        false => std::fs::File::open(file).and_then(|mut file| file.read_to_end(&mut bytes)),
    };
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Failure::error(format!("{} cannot be read", file.display())).because(error)),
    }
}

/// Announces the state, then sends its bytes.
async fn store(states: &States<'_>, state: &StateFile, bytes: Vec<u8>, force: bool) -> Result<Resource, Failure> {
    let api = &states.session.api;
    let subject = format!("state of {}", states.name);
    let md5 = hex::encode(Md5::digest(&bytes));
    let attributes = json!({ "serial": state.serial, "lineage": state.lineage, "md5": md5, "force": force });
    let body = about("state-versions", attributes, json!({}));
    let announced =
        one(api.send(&subject, Method::POST, &["workspaces", states.id(), "state-versions"], &body).await?)?;
    // A server that knows these bytes as this very version needs them no more.
    if announced.get("status") != "finalized"
        && let Some(address) = announced.get("hosted-state-upload-url").as_str()
    {
        api.upload(&subject, address, bytes).await?;
    }
    one(api.get(&subject, &["state-versions", announced.id()], &[]).await?)
}
