//! Reads an object that is a file, whole or piece by piece. Opening it for pieces reads the first too, so a small object
//! takes one trip to another thread.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use tokio::task::spawn_blocking;

use crate::bucket::{BucketError, Download, Key, Object, ObjectRange, Stat};
use crate::object_bucket::file_error;

/// Maximum size of a file that is read in one piece: most states are.
const MAX_WHOLE_FILE_BYTES: u64 = 1024 * 1024 + 64 * 1024;
/// Size of the pieces in which a larger one is read.
const READ_CHUNK_BYTES: u64 = 256 * 1024;

/// A file that is being read, and how much of it is wanted yet.
struct Reading {
    file: File,
    left: u64,
}

impl Reading {
    /// The next piece, which is empty at the end.
    fn piece(&mut self) -> io::Result<Bytes> {
        let wanted = if self.left <= MAX_WHOLE_FILE_BYTES { self.left } else { READ_CHUNK_BYTES };
        let mut piece = Vec::with_capacity(wanted as usize);
        (&self.file).take(wanted).read_to_end(&mut piece)?;
        if (piece.len() as u64) < wanted {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= wanted;
        Ok(piece.into())
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A whole file, or `None` where there is none. That there is none is what every probe of a ledger finds in calm times,
/// and the kernel knows it without the disk: it takes no trip to another thread.
pub(crate) async fn read(path: PathBuf, key: &Key) -> Result<Option<Object>, BucketError> {
    let file = match File::open(path) {
        Err(error) if is_absent(&error) => return Ok(None),
        other => other.map_err(|error| file_error("get", key, &error))?,
    };
    let read = spawn_blocking(move || -> io::Result<Option<Object>> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        (&file).read_to_end(&mut bytes)?;
        let last_modified = metadata.modified()?.try_into().unwrap_or(Timestamp::UNIX_EPOCH);
        Ok(Some(Object { bytes: bytes.into(), last_modified }))
    });
    read.await.unwrap_or_else(|gone| Err(gone.into())).map_err(|error| file_error("get", key, &error))
}

/// Size and time of a file, or `None` where there is none. The kernel knows them without the disk, as a rule.
pub(crate) fn stat(path: &Path, key: &Key) -> Result<Option<Stat>, BucketError> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata,
        Ok(_) => return Ok(None),
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(file_error("stat", key, &error)),
    };
    let modified = metadata.modified().map_err(|error| file_error("stat", key, &error))?;
    let last_modified = modified.try_into().unwrap_or(Timestamp::UNIX_EPOCH);
    Ok(Some(Stat { size: metadata.len(), last_modified }))
}

/// Ranges of files, each `None` where there is no file, and what there is of it if it ends sooner. All of them take one
/// trip to another thread.
pub(crate) async fn ranges(directory: PathBuf, wanted: Vec<ObjectRange>) -> Result<Vec<Option<Bytes>>, BucketError> {
    let first = wanted.first().map(|(key, _)| key.clone());
    let read = spawn_blocking(move || {
        let read = |(key, range): &ObjectRange| match range_of(&directory.join(key.as_str()), range) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(file_error("download", key, &error)),
        };
        wanted.iter().map(read).collect()
    });
    match (read.await, first) {
        (Ok(read), _) => read,
        (Err(gone), Some(key)) => Err(file_error("download", &key, &gone.into())),
        (Err(_), None) => Ok(Vec::new()),
    }
}

fn range_of(path: &Path, range: &Range<u64>) -> io::Result<Bytes> {
    let mut file = File::open(path)?;
    if range.start > 0 {
        file.seek(SeekFrom::Start(range.start))?;
    }
    let wanted = range.end.saturating_sub(range.start);
    let mut bytes = Vec::with_capacity(wanted.min(file.metadata()?.len()) as usize);
    match file.take(wanted).read_to_end(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => Err(io::ErrorKind::NotFound.into()),
        Err(error) => Err(error),
        Ok(_) => Ok(bytes.into()),
    }
}

/// Opens a file, or `None` where there is none. A range that begins behind the end is empty.
pub(crate) async fn open(path: PathBuf, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
    let opened = spawn_blocking(move || -> io::Result<(u64, Bytes, Reading)> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let size = metadata.len();
        let range = range.unwrap_or(0..size);
        let range = range.start.min(size)..range.end.min(size);
        if range.start > 0 {
            file.seek(SeekFrom::Start(range.start))?;
        }
        let mut reading = Reading { file, left: range.end.saturating_sub(range.start) };
        Ok((size, reading.piece()?, reading))
    });
    let (size, first, reading) = match opened.await.unwrap_or_else(|gone| Err(gone.into())) {
        Ok(opened) => opened,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(file_error("download", key, &error)),
    };
    let key = key.clone();
    let further = stream::try_unfold(reading, move |mut reading| {
        let key = key.clone();
        async move {
            if reading.left == 0 {
                return Ok(None);
            }
            let read = spawn_blocking(move || reading.piece().map(|piece| (piece, reading)));
            match read.await.unwrap_or_else(|gone| Err(gone.into())) {
                Ok(read) => Ok(Some(read)),
                Err(error) => Err(file_error("download", &key, &error)),
            }
        }
    });
    Ok(Some(Download { size, body: stream::iter([Ok(first)]).chain(further).boxed() }))
}
