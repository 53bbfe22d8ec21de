//! Sends the state whenever it changed during an apply, so that a host that dies loses seconds and not the state.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};
use taco_agent_protocol::Upload;
use tokio::time::Instant;

use crate::control::Control;
use crate::file_of_run::FileOfRun;
use crate::phase_requests::{Content, PhaseRequests, RequestError};

const POLL_INTERVAL: Duration = Duration::from_millis(200);
const UPLOAD_INTERVAL: Duration = Duration::from_secs(2);

/// Files in which an engine keeps a state.
#[derive(Clone)]
pub(crate) struct StateFiles {
    state: FileOfRun,
    /// File for a state that it could not write to its place.
    errored: FileOfRun,
}

impl StateFiles {
    /// Both lie below `root`, which is the agent's own.
    pub(crate) fn new(root: &Path, state: &Path, errored: &Path) -> Self {
        Self { state: FileOfRun::new(root, state), errored: FileOfRun::new(root, errored) }
    }

    /// The state that counts: one that could not be written to its place is newer than what is there.
    pub(crate) fn newest(&self) -> Option<Bytes> {
        read(&self.errored).ok().flatten().or_else(|| read(&self.state).ok().flatten())
    }
}

/// Knows what the server has.
pub(crate) struct StateUpload {
    files: StateFiles,
    requests: PhaseRequests,
    control: Control,
    /// Digest of the last state that the server has, or that it gave.
    pub(crate) sent: Option<[u8; 32]>,
    seen: Option<(SystemTime, u64)>,
}

impl StateUpload {
    /// The state that is in its place now is the server's.
    pub(crate) fn new(files: StateFiles, requests: PhaseRequests, control: Control) -> Self {
        let sent = read(&files.state).ok().flatten().map(|state| digest(&state));
        Self { files, requests, control, sent, seen: None }
    }

    /// Looks and sends until it is dropped. `sent` is told what the server has.
    pub(crate) async fn follow(&mut self, mut sent: impl FnMut([u8; 32])) -> Result<(), RequestError> {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            if self.is_changed() {
                let before = Instant::now();
                if let Some(digest) = self.send().await? {
                    sent(digest);
                    tokio::time::sleep_until(before + UPLOAD_INTERVAL).await;
                }
            }
        }
    }

    fn is_changed(&mut self) -> bool {
        let Ok(metadata) = std::fs::symlink_metadata(self.files.state.path()) else { return false };
        let now = metadata.modified().ok().map(|at| (at, metadata.len()));
        std::mem::replace(&mut self.seen, now) != now
    }

    /// Sends the state if the server does not have it, and says which it has then.
    pub(crate) async fn send(&mut self) -> Result<Option<[u8; 32]>, RequestError> {
        let Some(state) = self.files.newest() else { return Ok(None) };
        let digest = digest(&state);
        if self.sent == Some(digest) {
            return Ok(None);
        }
        self.requests.send(Upload::State, Content::Bytes(state), &mut self.control).await?;
        self.sent = Some(digest);
        Ok(Some(digest))
    }
}

pub(crate) fn digest(state: &[u8]) -> [u8; 32] {
    Sha256::digest(state).into()
}

/// `None` for what is no state: tofu leaves the file empty until it persists, and both engines write it in place, so
/// that half of it can be there.
fn read(file: &FileOfRun) -> io::Result<Option<Bytes>> {
    #[derive(Deserialize)]
    struct State {
        #[serde(rename = "serial")]
        _serial: IgnoredAny,
    }
    let state = match file.read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    Ok(serde_json::from_slice::<State>(&state).is_ok().then(|| state.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_state_is_no_state() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("terraform.tfstate");
        let file = FileOfRun::new(directory.path(), &path);
        assert_eq!(read(&file).expect("no error"), None, "no file");
        for (content, expected) in
            [("", false), ("{\"serial\": 1, \"reso", false), ("{}", false), ("{\"serial\": 1}", true)]
        {
            std::fs::write(&path, content).expect("a file");
            assert_eq!(read(&file).expect("no error").is_some(), expected, "{content:?}");
        }
    }

    #[test]
    fn a_state_that_could_not_be_written_to_its_place_counts() {
        let directory = tempfile::tempdir().expect("a directory");
        let (errored, path) = (directory.path().join("errored.tfstate"), directory.path().join("terraform.tfstate"));
        let files = StateFiles::new(directory.path(), &path, &errored);
        std::fs::write(&path, "{\"serial\": 1}").expect("a file");
        assert_eq!(files.newest().as_deref(), Some(b"{\"serial\": 1}".as_slice()));
        std::fs::write(&errored, "{\"serial\": 2}").expect("a file");
        assert_eq!(files.newest().as_deref(), Some(b"{\"serial\": 2}".as_slice()));
    }
}
