//! Buckets that a user has confirmed: `~/.config/taco/buckets`, one to a line.

use std::io;
use std::path::PathBuf;

use crate::credentials::replace;
use crate::failure::Failure;
use crate::process_env::ProcessEnv;
use crate::user_config;

fn path(process_env: &ProcessEnv) -> Result<PathBuf, Failure> {
    let directory = user_config::directory(process_env);
    let missing = || Failure::error("there is no home directory: HOME is not set");
    Ok(directory.ok_or_else(missing)?.join("buckets"))
}

fn text(process_env: &ProcessEnv) -> Result<String, Failure> {
    let path = path(process_env)?;
    match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|error| Failure::error(format!("{} cannot be read", path.display())).because(error)),
    }
}

pub(crate) fn contains(process_env: &ProcessEnv, bucket: &str) -> Result<bool, Failure> {
    Ok(text(process_env)?.lines().any(|line| line == bucket))
}

pub(crate) fn add(process_env: &ProcessEnv, bucket: &str) -> Result<(), Failure> {
    let path = path(process_env)?;
    let text = format!("{}{bucket}\n", text(process_env)?);
    replace(&path, text.as_bytes())
        .map_err(|error| Failure::error(format!("{} cannot be written", path.display())).because(error))
}
