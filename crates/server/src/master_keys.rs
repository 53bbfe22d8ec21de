//! The key that seals what is sensitive before it goes to the bucket. It must not lie in the bucket itself.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use taco_ledger::SharedRng;
use taco_ledger::seal::{MasterKey, MasterKeys, WeakSecret};
use url::Url;

use crate::config::{Secret, Settings};

#[derive(thiserror::Error, Debug)]
pub enum KeyError {
    #[error(
        "TACO_SECRET_KEY is not set: all servers on {bucket} need the same one. Create it once with `openssl rand -hex 32` and store it outside the bucket"
    )]
    Missing { bucket: String },
    #[error("{key}: {why}")]
    Weak { key: &'static str, why: WeakSecret },
    #[error("the key file {path} cannot be used: {why}; or set TACO_SECRET_KEY")]
    File { path: String, why: io::Error },
}

/// Checks the keys as far as possible before anything is created or requested: that none is missing, or too short.
pub(crate) fn check(settings: &Settings) -> Result<(), KeyError> {
    if settings.secret_key.is_none() && key_file(settings.bucket.as_str()).is_none() {
        return Err(KeyError::Missing { bucket: settings.bucket.as_str().to_owned() });
    }
    settings.secret_key.iter().try_for_each(|secret| from_setting("secret_key", secret).map(|_| ()))?;
    older(settings).map(|_| ())
}

fn older(settings: &Settings) -> Result<Vec<MasterKey>, KeyError> {
    settings.previous_secret_key.iter().map(|secret| from_setting("previous_secret_key", secret)).collect()
}

/// The keys that the settings give. For a bucket in a local directory one is generated at the first start and stored
/// next to that directory; servers that share a bucket over a network have to be given theirs.
pub(crate) fn load(settings: &Settings, rng: &SharedRng) -> Result<MasterKeys, KeyError> {
    let current = match &settings.secret_key {
        Some(secret) => from_setting("secret_key", secret)?,
        None => {
            let missing = || KeyError::Missing { bucket: settings.bucket.as_str().to_owned() };
            from_file(&key_file(settings.bucket.as_str()).ok_or_else(missing)?, rng)?
        }
    };
    Ok(MasterKeys::new(current, older(settings)?, rng.clone()))
}

/// The keys that the settings give or that are next to the bucket; `None` if there are none. Generates nothing: for
/// read-only commands.
pub(crate) fn find(settings: &Settings, rng: &SharedRng) -> Result<Option<MasterKeys>, KeyError> {
    let lies_beside = || key_file(settings.bucket.as_str()).is_some_and(|path| path.exists());
    if settings.secret_key.is_none() && !lies_beside() {
        return Ok(None);
    }
    load(settings, rng).map(Some)
}

fn from_setting(key: &'static str, secret: &Secret) -> Result<MasterKey, KeyError> {
    MasterKey::from_secret(secret.expose()).map_err(|why| KeyError::Weak { key, why })
}

/// The bucket itself, if it is a directory.
pub(crate) fn directory(bucket: &str) -> Option<PathBuf> {
    Url::parse(bucket).ok().filter(|url| url.scheme() == "file")?.to_file_path().ok()
}

/// `…/taco/bucket.key` for `…/taco/bucket`; `None` for a bucket that is not a directory.
pub(crate) fn key_file(bucket: &str) -> Option<PathBuf> {
    let directory = directory(bucket)?;
    let mut name = directory.file_name()?.to_owned();
    name.push(".key");
    Some(directory.with_file_name(name))
}

fn from_file(path: &Path, rng: &SharedRng) -> Result<MasterKey, KeyError> {
    let refuse = |why| KeyError::File { path: path.display().to_string(), why };
    let secret = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make(path, rng).map_err(refuse)?;
            fs::read_to_string(path).map_err(refuse)?
        }
        other => other.map_err(refuse)?,
    };
    MasterKey::from_secret(&secret).map_err(|why| refuse(io::Error::other(why)))
}

/// Makes a key file that only its owner can read. It appears whole or not at all, and where two servers start at once
/// the first one's stays.
fn make(path: &Path, rng: &SharedRng) -> io::Result<()> {
    let unfinished = path.with_extension(format!("key.{}", rng.unique()));
    let mut file = fs::File::create_new(&unfinished)?;
    let written = file
        .set_permissions(Permissions::from_mode(0o600))
        .and_then(|()| writeln!(file, "{}{}", rng.unique(), rng.unique()))
        .and_then(|()| file.sync_all())
        .and_then(|()| match fs::hard_link(&unfinished, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        });
    let removed = fs::remove_file(&unfinished);
    written.and(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_for_its_owner_alone() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("bucket.key");
        let first = from_file(&path, &SharedRng::from_seed(1)).expect("a new key").id();
        let again = from_file(&path, &SharedRng::from_seed(2)).expect("the same key").id();
        assert_eq!(first, again);
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(home.path()).expect("a directory").count(), 1, "nothing is left behind");
    }

    #[test]
    fn a_key_lies_beside_its_directory_and_nowhere_else() {
        assert_eq!(key_file("file:///srv/taco"), Some("/srv/taco.key".into()));
        assert_eq!(key_file("s3://bucket/prefix"), None);
        assert_eq!(key_file("file:///"), None);
    }

    #[test]
    fn a_short_key_file_is_refused() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("bucket.key");
        fs::write(&path, "too short\n").expect("written");
        let error = from_file(&path, &SharedRng::from_seed(1)).expect_err("weak").to_string();
        assert!(error.contains("bucket.key cannot be used"), "{error}");
    }
}
