//! Finds terraform or tofu in the version that a workspace asks for: in the agent's own store, on `PATH`, or by a
//! download into the store.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use semver::Version;
use serde::Deserialize;
use taco_agent_protocol::{Engine, EngineRequest, MAX_AGENT_ENGINES};
use tokio::process::Command;

use crate::engine_download::Downloads;
use crate::engine_version::VersionRequest;
use crate::options::Options;
use crate::processes;

/// A program that can be started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct InstalledEngine {
    pub(crate) engine: Engine,
    pub(crate) program: PathBuf,
    pub(crate) version: Version,
}

impl InstalledEngine {
    /// Engine as it is reported: the version is exact.
    pub(crate) fn request(&self) -> EngineRequest {
        EngineRequest { engine: self.engine, version: self.version.to_string() }
    }
}

pub(crate) struct Engines {
    store: PathBuf,
    path: Option<std::ffi::OsString>,
    downloads: Downloads,
    /// Cached versions of programs on `PATH`, until their file changes.
    known: Mutex<HashMap<PathBuf, (SystemTime, Version)>>,
}

impl Engines {
    pub(crate) fn new(store: PathBuf, path: Option<std::ffi::OsString>, options: &Options) -> Self {
        let downloads = Downloads::new(store.clone(), options);
        Self { store, path, downloads, known: Mutex::default() }
    }

    /// Directory for downloads.
    pub(crate) fn store(&self) -> &PathBuf {
        &self.store
    }

    /// All that are here without a download, or the newest if those are very many.
    pub(crate) async fn installed(&self) -> Vec<InstalledEngine> {
        let mut found = Vec::new();
        for engine in Engine::ALL {
            found.extend(self.stored(engine));
            found.extend(self.on_path(engine).await);
        }
        found.sort_by(|a, b| b.version.cmp(&a.version));
        found.truncate(MAX_AGENT_ENGINES);
        found
    }

    /// The program for a workspace. The error is one for people.
    pub(crate) async fn find(&self, request: &EngineRequest) -> Result<InstalledEngine, String> {
        let engine = request.engine;
        let wanted: VersionRequest = request.version.parse().map_err(|error| format!("{engine}: {error}"))?;
        let mut here = self.stored(engine);
        let newest_allowed = |here: &[InstalledEngine]| {
            here.iter().filter(|found| wanted.allows(&found.version)).max_by(|a, b| a.version.cmp(&b.version)).cloned()
        };
        if wanted == VersionRequest::Latest {
            here.extend(self.on_path(engine).await);
            let newest_here = newest_allowed(&here);
            return match self.downloads.newest(engine, &wanted).await {
                Some(newest) if newest_here.as_ref().is_none_or(|here| here.version < newest) => {
                    match (self.downloads.download(engine, &newest).await, newest_here) {
                        (Ok(found), _) => Ok(found),
                        (Err(error), Some(here)) => {
                            tracing::warn!(
                                event = "engine_download_failed", %engine, error,
                                "the newest version cannot be had; using {}", here.version
                            );
                            Ok(here)
                        }
                        (Err(error), None) => Err(error),
                    }
                }
                // Someone who has only a version before a release means that one.
                _ => {
                    newest_here.or_else(|| here.into_iter().max_by(|a, b| a.version.cmp(&b.version))).ok_or_else(|| {
                        format!("{engine} is not installed on this agent, and no address to download it from answers")
                    })
                }
            };
        }
        if let Some(found) = newest_allowed(&here) {
            return Ok(found);
        }
        here.extend(self.on_path(engine).await);
        if let Some(found) = newest_allowed(&here) {
            return Ok(found);
        }
        let version = match wanted {
            VersionRequest::Exactly(version) => Some(version),
            _ => self.downloads.newest(engine, &wanted).await,
        };
        let installed: Vec<_> = here.iter().map(|found| found.version.to_string()).collect();
        let installed = if installed.is_empty() { "none".to_owned() } else { installed.join(", ") };
        match version {
            Some(version) => self.downloads.download(engine, &version).await.map_err(|error| {
                format!("{engine} {} is not on this agent (installed: {installed}): {error}", request.version)
            }),
            None => Err(format!("no {engine} fits {} (installed: {installed})", request.version)),
        }
    }

    fn stored(&self, engine: Engine) -> Vec<InstalledEngine> {
        let Ok(entries) = std::fs::read_dir(self.store.join(engine.to_string())) else { return Vec::new() };
        let found = entries.flatten().filter_map(|entry| {
            let version = Version::parse(entry.file_name().to_str()?).ok()?;
            let program = entry.path().join(engine.to_string());
            program.is_file().then_some(InstalledEngine { engine, program, version })
        });
        found.collect()
    }

    async fn on_path(&self, engine: Engine) -> Option<InstalledEngine> {
        let path = self.path.as_ref()?;
        let program =
            std::env::split_paths(path).map(|directory| directory.join(engine.to_string())).find(|p| p.is_file())?;
        match self.version_of(&program).await {
            Ok(version) => Some(InstalledEngine { engine, program, version }),
            Err(error) => {
                tracing::warn!(
                    event = "engine_version_unknown", program = %program.display(), %error,
                    "an engine does not tell its version"
                );
                None
            }
        }
    }

    async fn version_of(&self, program: &Path) -> io::Result<Version> {
        let changed_at = std::fs::metadata(program)?.modified()?;
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(program).cloned();
        if let Some((at, version)) = known
            && at == changed_at
        {
            return Ok(version);
        }
        let version = ask_version(program).await?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(program.to_owned(), (changed_at, version.clone()));
        Ok(version)
    }
}

/// Both engines call it `terraform_version`.
async fn ask_version(program: &Path) -> io::Result<Version> {
    #[derive(Deserialize)]
    struct Answer {
        terraform_version: String,
    }
    let mut command = Command::new(program);
    command
        .args(["version", "-json"])
        .env_clear()
        .env("CHECKPOINT_DISABLE", "1")
        .env("TF_CLI_CONFIG_FILE", "/dev/null");
    command.current_dir("/").kill_on_drop(true).stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let (child, _started) = processes::start(&mut command)?;
    let output = tokio::time::timeout(Duration::from_secs(20), child.wait_with_output()).await??;
    let answer: Answer = serde_json::from_slice(&output.stdout)?;
    Version::parse(&answer.terraform_version).map_err(io::Error::other)
}
