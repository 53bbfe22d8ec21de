//! Finds `opa` in the version that a policy set asks for, as engines are found: in the agent's own store, on `PATH`, or by a
//! download into the store whose checksum is pinned or was published beside it over https.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use semver::Version;
use sha2::{Digest, Sha256};
use tokio::process::Command;

use crate::engine_download::{architecture, fetch, platform, trimmed};
use crate::engine_trust::EngineTrust;
use crate::options::{EngineMirror, Options};
use crate::processes;

const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(300);
const CHECKSUM_TIMEOUT: Duration = Duration::from_secs(15);
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_PROGRAM_BYTES: usize = 512 * 1024 * 1024;
const MAX_CHECKSUM_BYTES: usize = 4096;

/// An `opa` that can be started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct InstalledOpa {
    pub(crate) program: PathBuf,
    pub(crate) version: Version,
}

pub(crate) struct OpaPrograms {
    store: PathBuf,
    path: Option<OsString>,
    mirror: EngineMirror,
    trust: EngineTrust,
    /// Cached version of the program on `PATH`, until its file changes.
    known: Mutex<HashMap<PathBuf, (SystemTime, Version)>>,
    /// Two phases that need the same version download it once.
    turn: tokio::sync::Mutex<()>,
}

impl OpaPrograms {
    /// `engines` is the directory for downloads of engines.
    pub(crate) fn new(engines: &Path, path: Option<OsString>, options: &Options) -> Self {
        Self {
            store: engines.join("opa"),
            path,
            mirror: options.engine_mirror.clone(),
            trust: options.engine_trust.clone(),
            known: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// The program for a set that asks for this version; without one, the newest that is here. The error is one for people.
    pub(crate) async fn find(&self, wanted: Option<&str>) -> Result<InstalledOpa, String> {
        let mut here = self.stored();
        here.extend(self.on_path().await);
        let Some(wanted) = wanted else {
            let oldest = Version::new(taco_opa::MIN_VERSION.0, taco_opa::MIN_VERSION.1, 0);
            let usable = here.into_iter().filter(|found| found.version >= oldest);
            return match usable.max_by(|a, b| a.version.cmp(&b.version)) {
                Some(newest) => Ok(newest),
                None => self.download(taco_opa::DEFAULT_VERSION).await,
            };
        };
        let version = Version::parse(wanted).map_err(|error| format!("{wanted} is no version of opa: {error}"))?;
        match here.into_iter().find(|found| found.version == version) {
            Some(found) => Ok(found),
            None => self.download(wanted).await,
        }
    }

    fn stored(&self) -> Vec<InstalledOpa> {
        let Ok(entries) = fs::read_dir(&self.store) else { return Vec::new() };
        let found = entries.flatten().filter_map(|entry| {
            let version = Version::parse(entry.file_name().to_str()?).ok()?;
            let program = entry.path().join("opa");
            program.is_file().then_some(InstalledOpa { program, version })
        });
        found.collect()
    }

    async fn on_path(&self) -> Option<InstalledOpa> {
        let program = taco_opa::find_on_path(self.path.as_ref()?)?;
        match self.version_of(&program).await {
            Ok(version) => Some(InstalledOpa { program, version }),
            Err(error) => {
                tracing::warn!(
                    event = "opa_version_unknown", program = %program.display(), %error,
                    "opa does not tell its version"
                );
                None
            }
        }
    }

    async fn version_of(&self, program: &Path) -> io::Result<Version> {
        let changed_at = fs::metadata(program)?.modified()?;
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(program).cloned();
        if let Some((at, version)) = known
            && at == changed_at
        {
            return Ok(version);
        }
        let mut command = Command::new(program);
        command.arg("version").env_clear().current_dir("/").kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let (child, _started) = processes::start(&mut command)?;
        let output = tokio::time::timeout(VERSION_TIMEOUT, child.wait_with_output()).await??;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = said.lines().find_map(|line| line.strip_prefix("Version:")).unwrap_or_default().trim();
        let version = Version::parse(version).map_err(io::Error::other)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(program.to_owned(), (changed_at, version.clone()));
        Ok(version)
    }

    async fn download(&self, version: &str) -> Result<InstalledOpa, String> {
        let parsed = Version::parse(version).map_err(|error| format!("{version} is no version of opa: {error}"))?;
        let _turn = self.turn.lock().await;
        let directory = self.store.join(version);
        let program = directory.join("opa");
        let found = InstalledOpa { program: program.clone(), version: parsed };
        if program.is_file() {
            return Ok(found);
        }
        let base = match &self.mirror {
            EngineMirror::Nowhere => {
                return Err(format!(
                    "opa {version} is not installed on this agent, and downloads are switched off here"
                ));
            }
            EngineMirror::At(base) => format!("{}/opa/{version}", trimmed(base)),
            EngineMirror::Makers => format!("https://openpolicyagent.org/downloads/v{version}"),
        };
        let missing = |why: String| format!("opa {version} is not installed on this agent: {why}");
        let name = format!("opa_{}_{}_static", platform(), architecture());
        // By this name a checksum is pinned: the file itself is called the same in every version.
        let expected = match self.trust.pinned(&format!("opa_{version}_{}_{}_static", platform(), architecture())) {
            Some(pinned) => pinned.to_owned(),
            None if base.starts_with("http:") => {
                return Err(missing(format!(
                    "{base} is a plain http address, and what comes from it anyone on the way could have changed: use https, \
                     or pin the checksum of opa_{version}_{}_{}_static in the file of engine_checksums (--engine-checksums)",
                    platform(),
                    architecture()
                )));
            }
            None => {
                let address = format!("{base}/{name}.sha256");
                let text = fetch(&address, CHECKSUM_TIMEOUT, MAX_CHECKSUM_BYTES).await.map_err(missing)?;
                checksum(&String::from_utf8_lossy(&text)).ok_or_else(|| missing(format!("{address} is no checksum")))?
            }
        };
        let address = format!("{base}/{name}");
        let bytes = fetch(&address, DOWNLOAD_TIMEOUT, MAX_PROGRAM_BYTES).await.map_err(missing)?;
        let actual = hex::encode(Sha256::digest(&bytes));
        if actual != expected {
            return Err(missing(format!("{address} has the checksum {actual}; expected is {expected}")));
        }
        let installing = tokio::task::spawn_blocking(move || install(&bytes, &directory));
        installing.await.map_err(|error| error.to_string())?.map_err(|error| missing(error.to_string()))?;
        tracing::info!(version, "opa was downloaded");
        Ok(found)
    }
}

/// The first word of what `sha256sum` prints.
fn checksum(text: &str) -> Option<String> {
    let sum = text.split_whitespace().next()?.to_ascii_lowercase();
    (sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(sum)
}

/// Puts the program where it is found, all at once: an agent that dies here leaves nothing that looks whole.
fn install(bytes: &[u8], directory: &Path) -> io::Result<()> {
    let parent = directory.parent().unwrap_or(directory);
    fs::create_dir_all(parent)?;
    let fresh = tempfile::tempdir_in(parent)?;
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(fresh.path().join("opa"));
    file?.write_all(bytes)?;
    fs::set_permissions(fresh.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    fs::rename(fresh.keep(), directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_read_as_its_program_prints_it() {
        let sum = "AB".repeat(32);
        let expected = Some(sum.to_ascii_lowercase());
        assert_eq!(checksum(&format!("{sum}  opa_linux_amd64_static\n")), expected);
        assert_eq!(checksum(&sum), expected);
        assert_eq!(checksum("<html>"), None);
        assert_eq!(checksum(""), None);
    }
}
