//! Sends a log while it grows: the first bytes at once, then what has gathered, a few times a second.

use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::control::Control;
use crate::log_file::Written;
use crate::phase_requests::{PhaseRequests, RequestError};

/// Interval of uploads: a line is seen within half a second, and a server writes each part to its bucket.
const UPLOAD_INTERVAL: Duration = Duration::from_millis(300);
const MAX_PART_BYTES: u64 = 1024 * 1024;

/// Returns when the server has the whole log.
pub(crate) async fn upload(
    path: PathBuf,
    mut written: watch::Receiver<Written>,
    requests: PhaseRequests,
    mut control: Control,
) -> Result<(), RequestError> {
    let mut offset = 0;
    let mut next_part_at = Instant::now();
    loop {
        let Written { bytes, complete } = *written.borrow_and_update();
        if offset >= bytes {
            match complete {
                true => return Ok(()),
                false if written.changed().await.is_ok() => continue,
                false => return Err(RequestError::Lost),
            }
        }
        if !complete {
            let completed = written.wait_for(|written| written.complete);
            let _ = tokio::time::timeout_at(next_part_at, completed).await;
        }
        let end = written.borrow_and_update().bytes;
        offset = send_part(&path, offset, end, &requests, &mut control).await?;
        next_part_at = Instant::now() + UPLOAD_INTERVAL;
    }
}

/// Sends what follows `offset`, and says up to where the server has it.
pub(crate) async fn send_part(
    path: &Path,
    offset: u64,
    end: u64,
    requests: &PhaseRequests,
    control: &mut Control,
) -> Result<u64, RequestError> {
    let part = read(path, offset, (end - offset).min(MAX_PART_BYTES))
        .await
        .map_err(|error| RequestError::Refused(format!("the log on the agent's disk: {error}")))?;
    let next = requests.send_log(offset, part, control).await?;
    match next > end {
        // The server has more than was ever written: it is not the log of this attempt.
        true => Err(RequestError::Lost),
        false => Ok(next),
    }
}

async fn read(path: &Path, offset: u64, length: u64) -> io::Result<Bytes> {
    let mut file = tokio::fs::File::open(path).await?;
    file.seek(SeekFrom::Start(offset)).await?;
    let mut part = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact(&mut part).await?;
    Ok(part.into())
}
