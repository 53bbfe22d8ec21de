//! A bucket on `object_store`: S3, GCS, Azure Blob, a local directory, or memory.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    Error as StoreError, GetOptions, GetRange, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, UploadPart,
};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::bucket::{
    Bucket, BucketError, BucketErrorKind, ByteStream, Created, Download, Key, Object, ObjectRange, Stat,
    download_ranges,
};
use crate::retry::no_answer;
use crate::{file_download, file_upload};

/// Size of the parts of an upload, the smallest that S3 takes. No more than one is held in memory.
const PART_BYTES: usize = 5 * 1024 * 1024;

/// Size of the parts of an upload to a directory, which has no smallest part.
const FILE_PART_BYTES: usize = 512 * 1024;

/// Timeout for a single request to the bucket. Bodies of uploads and downloads are bounded by idle time instead.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(8);

/// Two clients of one bucket, because `object_store` retries inside a client: the first never does, so that a
/// conditional write reports what really happened; the second may, for the parts of an upload.
pub struct ObjectBucket {
    without_retries: Arc<dyn ObjectStore>,
    with_retries: Arc<dyn ObjectStore>,
    /// Directory of the objects, if they are files: listings and downloads read them directly.
    /// `object_store` would `stat` every file
    /// and change threads for every 8 KiB.
    directory: Option<PathBuf>,
    /// Store of the objects, if they are in memory: then they can be forked.
    memory: Option<Arc<InMemory>>,
    part: usize,
}

impl ObjectBucket {
    pub(crate) fn new(without_retries: Arc<dyn ObjectStore>, with_retries: Arc<dyn ObjectStore>) -> Self {
        Self { without_retries, with_retries, directory: None, memory: None, part: PART_BYTES }
    }

    pub(crate) fn on_directory(store: Arc<dyn ObjectStore>, directory: PathBuf) -> Self {
        let (without_retries, directory) = (Arc::clone(&store), Some(directory));
        Self { without_retries, with_retries: store, directory, memory: None, part: FILE_PART_BYTES }
    }

    /// A bucket that forgets everything when it is dropped.
    pub fn in_memory() -> Self {
        Self::of_memory(InMemory::new())
    }

    /// A bucket that has what this one has now, and goes its own way from here on; `None` if this one is not in memory.
    pub fn fork(&self) -> Option<Self> {
        self.memory.as_ref().map(|memory| Self::of_memory(memory.fork()))
    }

    fn of_memory(store: InMemory) -> Self {
        let store = Arc::new(store);
        let memory = Some(Arc::clone(&store));
        Self {
            without_retries: Arc::clone(&store) as _,
            with_retries: store,
            directory: None,
            memory,
            part: PART_BYTES,
        }
    }

    async fn upload_parts(
        &self,
        upload: &mut Box<dyn MultipartUpload>,
        mut filled: BytesMut,
        mut body: ByteStream,
        key: &Key,
    ) -> Result<u64, BucketError> {
        let mut size = 0;
        let mut sending = Sending::default();
        loop {
            while filled.len() >= self.part {
                let part = filled.split_to(self.part).freeze();
                size += part.len() as u64;
                sending.end().await.map_err(|error| explain("upload", key, &error))?;
                sending.begin(upload.put_part(part.into()));
                // A part for the network is large, and only one is held in memory.
                if self.directory.is_none() {
                    sending.end().await.map_err(|error| explain("upload", key, &error))?;
                }
            }
            match body.try_next().await? {
                Some(bytes) => {
                    // The part that was sent is free again, so this takes no more memory.
                    if filled.capacity() - filled.len() < bytes.len() {
                        filled.reserve(self.part + bytes.len());
                    }
                    filled.extend_from_slice(&bytes);
                }
                None => break,
            }
        }
        sending.end().await.map_err(|error| explain("upload", key, &error))?;
        if !filled.is_empty() {
            size += filled.len() as u64;
            let last = filled.freeze();
            upload.put_part(last.into()).await.map_err(|error| explain("upload", key, &error))?;
        }
        upload.complete().await.map_err(|error| explain("upload", key, &error))?;
        Ok(size)
    }
}

/// A part that is being written while the next one comes.
#[derive(Default)]
struct Sending(Option<JoinHandle<object_store::Result<()>>>);

impl Sending {
    fn begin(&mut self, part: UploadPart) {
        self.0 = Some(tokio::spawn(part));
    }

    /// Waits until it is written, if there is one.
    async fn end(&mut self) -> object_store::Result<()> {
        match self.0.take() {
            Some(part) => part.await?,
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Bucket for ObjectBucket {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        match self.without_retries.put_opts(&path(key), bytes.into(), PutMode::Create.into()).await {
            Ok(_) => Ok(Created::Now),
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => Ok(Created::AlreadyThere),
            Err(error) => Err(explain("create", key, &error)),
        }
    }

    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.without_retries.put(&path(key), bytes.into()).await.map_err(|error| explain("put", key, &error))?;
        Ok(())
    }

    async fn put_new(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        if let Some(directory) = &self.directory
            && file_upload::write(directory.join(key.as_str()), bytes.clone()).await.is_ok()
        {
            return Ok(());
        }
        // It makes folders, and knows what errors mean.
        self.put(key, bytes).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
        if let Some(directory) = &self.directory {
            return file_download::read(directory.join(key.as_str()), key).await;
        }
        let found = match self.without_retries.get(&path(key)).await {
            Err(error) if is_absent(&error) => return Ok(None),
            other => other.map_err(|error| explain("get", key, &error))?,
        };
        let last_modified = timestamp(found.meta.last_modified);
        let bytes = found.bytes().await.map_err(|error| explain("get", key, &error))?;
        Ok(Some(Object { bytes, last_modified }))
    }

    async fn stat(&self, key: &Key) -> Result<Option<Stat>, BucketError> {
        if let Some(directory) = &self.directory {
            return file_download::stat(&directory.join(key.as_str()), key);
        }
        match self.without_retries.head(&path(key)).await {
            Ok(found) => Ok(Some(Stat { size: found.size, last_modified: timestamp(found.last_modified) })),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(explain("stat", key, &error)),
        }
    }

    fn is_local(&self) -> bool {
        self.directory.is_some()
    }

    async fn list(&self, folder: &Key, after: Option<&Key>) -> Result<Vec<Key>, BucketError> {
        if let Some(directory) = &self.directory {
            return on_files("list", folder, directory, {
                let (folder, after) = (folder.clone(), after.cloned());
                move |directory| {
                    let mut keys = Vec::new();
                    files_below(&directory.join(folder.as_str()), folder.as_str(), &mut keys)?;
                    keys.retain(|key| after.as_ref().is_none_or(|after| key > after));
                    keys.sort_unstable();
                    Ok(keys)
                }
            })
            .await;
        }
        let folder_path = path(folder);
        let listing = match after {
            Some(after) => self.without_retries.list_with_offset(Some(&folder_path), &path(after)),
            None => self.without_retries.list(Some(&folder_path)),
        };
        let mut keys: Vec<Key> = listing
            .map_ok(|meta| Key::new(meta.location.as_ref()))
            .try_collect()
            .await
            .map_err(|error| explain("list", folder, &error))?;
        keys.sort_unstable();
        Ok(keys)
    }

    async fn list_sizes(&self, folder: &Key) -> Result<Vec<(Key, u64)>, BucketError> {
        if let Some(directory) = &self.directory {
            let keys = self.list(folder, None).await?;
            return on_files("list", folder, directory, move |directory| {
                let size = |key: Key| match std::fs::metadata(directory.join(key.as_str())) {
                    Ok(metadata) => Some(Ok((key, metadata.len()))),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                    Err(error) => Some(Err(error)),
                };
                keys.into_iter().filter_map(size).collect()
            })
            .await;
        }
        let listing = self.without_retries.list(Some(&path(folder)));
        let listing = listing.map_ok(|meta| (Key::new(meta.location.as_ref()), meta.size)).try_collect();
        let mut found: Vec<(Key, u64)> = listing.await.map_err(|error| explain("list", folder, &error))?;
        found.sort_unstable();
        Ok(found)
    }

    async fn folders(&self, folder: &Key) -> Result<Vec<String>, BucketError> {
        if let Some(directory) = &self.directory {
            return on_files("list", folder, directory, {
                let folder = folder.clone();
                move |directory| folders_in(&directory.join(folder.as_str()))
            })
            .await;
        }
        let listing = self
            .without_retries
            .list_with_delimiter(Some(&path(folder)))
            .await
            .map_err(|error| explain("list", folder, &error))?;
        let mut names: Vec<String> =
            listing.common_prefixes.iter().filter_map(|prefix| prefix.filename().map(str::to_owned)).collect();
        names.sort_unstable();
        Ok(names)
    }

    async fn delete(&self, key: &Key) -> Result<(), BucketError> {
        match self.without_retries.delete(&path(key)).await {
            Err(error) if !is_absent(&error) => Err(explain("delete", key, &error)),
            _ => Ok(()),
        }
    }

    async fn upload(&self, key: &Key, mut body: ByteStream) -> Result<u64, BucketError> {
        // With room for a whole part from the start: growing step by step would take half as much again.
        let mut filled = BytesMut::with_capacity(self.part + FILE_PART_BYTES);
        while filled.len() < self.part {
            match body.try_next().await? {
                Some(bytes) => filled.extend_from_slice(&bytes),
                None => {
                    // It all fits in one request: most states and logs do.
                    let size = filled.len() as u64;
                    self.put(key, filled.freeze()).await?;
                    return Ok(size);
                }
            }
        }
        let begin = timeout(REQUEST_TIMEOUT, self.with_retries.put_multipart(&path(key))).await;
        let begun = begin.map_err(|_| no_answer("upload", key, REQUEST_TIMEOUT))?;
        let mut upload = begun.map_err(|error| explain("upload", key, &error))?;
        let outcome = self.upload_parts(&mut upload, filled, body, key).await;
        if outcome.is_err()
            && let Err(error) = upload.abort().await
        {
            tracing::debug!(%key, %error, "an abandoned upload could not be removed; it is garbage, not a danger");
        }
        outcome
    }

    async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
        if let Some(directory) = &self.directory {
            return file_download::open(directory.join(key.as_str()), key, range).await;
        }
        let options = GetOptions { range: range.map(GetRange::Bounded), ..GetOptions::default() };
        let found = match self.with_retries.get_opts(&path(key), options).await {
            Err(error) if is_absent(&error) => return Ok(None),
            other => other.map_err(|error| explain("download", key, &error))?,
        };
        let size = found.meta.size;
        let key = key.clone();
        let body = found.into_stream().map_err(move |error| explain("download", &key, &error)).boxed();
        Ok(Some(Download { size, body }))
    }

    async fn ranges(&self, wanted: &[ObjectRange]) -> Result<Vec<Option<Bytes>>, BucketError> {
        match &self.directory {
            Some(directory) => file_download::ranges(directory.clone(), wanted.to_vec()).await,
            None => download_ranges(self, wanted).await,
        }
    }
}

impl fmt::Debug for ObjectBucket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.without_retries)
    }
}

fn path(key: &Key) -> Path {
    Path::from(key.as_str())
}

fn timestamp(time: impl Into<std::time::SystemTime>) -> Timestamp {
    Timestamp::try_from(time.into()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// True if the object is not there. That the whole bucket is not there is another matter, though it has the same status.
fn is_absent(error: &StoreError) -> bool {
    let no_bucket = |text: &str| text.contains("NoSuchBucket") || text.contains("ContainerNotFound");
    matches!(error, StoreError::NotFound { source, .. } if !no_bucket(&source.to_string()))
}

/// Sorts an error of `object_store` by what can be done about it.
fn explain(operation: &'static str, key: &Key, error: &StoreError) -> BucketError {
    let kind = match error {
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => BucketErrorKind::Denied,
        // Not the object, see `is_absent`: the bucket.
        StoreError::NotFound { .. }
        | StoreError::InvalidPath { .. }
        | StoreError::NotSupported { .. }
        | StoreError::NotImplemented { .. }
        | StoreError::UnknownConfigurationKey { .. } => BucketErrorKind::Refused,
        other => {
            io_kind(other).and_then(kind_of_io_error).unwrap_or_else(|| kind_of_status(http_status(&other.to_string())))
        }
    };
    let why = match error {
        // "Generic S3 error" helps nobody.
        StoreError::Generic { source, .. } => error_chain(source.as_ref()),
        other => error_chain(other),
    };
    BucketError::new(operation, key, kind, why)
}

/// Kind of an I/O error that goes away only when somebody makes room, or lets us write.
fn kind_of_io_error(kind: io::ErrorKind) -> Option<BucketErrorKind> {
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(BucketErrorKind::Full),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Some(BucketErrorKind::Denied),
        _ => None,
    }
}

/// Kind of an HTTP status that has no meaning of its own in `object_store`.
fn kind_of_status(status: Option<u16>) -> BucketErrorKind {
    match status {
        Some(507) => BucketErrorKind::Full,
        Some(401 | 403) => BucketErrorKind::Denied,
        // "Too slow", "in each other's way", "too early", "too many". S3 also says 400 for a body that came too slowly.
        Some(400 | 408 | 409 | 425 | 429) => BucketErrorKind::OutcomeUnknown,
        // 501 is what a store says that knows no conditional writes.
        Some(300..=499 | 501) => BucketErrorKind::Refused,
        Some(_) | None => BucketErrorKind::OutcomeUnknown,
    }
}

/// `object_store` keeps the status of an answer to itself, except in its text.
fn http_status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}

/// The I/O error at the bottom of a chain of errors, which tells a full disk from an absent one.
fn io_kind(error: &(dyn std::error::Error + 'static)) -> Option<io::ErrorKind> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(io_error) = error.downcast_ref::<io::Error>() {
            return Some(io_error.kind());
        }
        cause = error.source();
    }
    None
}

/// An error with its causes on one line, each said once.
fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut story = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !story.contains(&text) {
            story = format!("{story}: {text}");
        }
        cause = error.source();
    }
    story.replace('\n', " ")
}

async fn on_files<T: Send + 'static>(
    operation: &'static str,
    key: &Key,
    directory: &FilePath,
    work: impl FnOnce(&FilePath) -> io::Result<T> + Send + 'static,
) -> Result<T, BucketError> {
    let directory = directory.to_owned();
    let outcome = tokio::task::spawn_blocking(move || work(&directory)).await.unwrap_or_else(|gone| Err(gone.into()));
    outcome.map_err(|error| file_error(operation, key, &error))
}

/// Error of an operation on a file.
pub(crate) fn file_error(operation: &'static str, key: &Key, error: &io::Error) -> BucketError {
    let kind = kind_of_io_error(error.kind()).unwrap_or(BucketErrorKind::OutcomeUnknown);
    BucketError::new(operation, key, kind, error.to_string())
}

fn files_below(directory: &FilePath, prefix: &str, keys: &mut Vec<Key>) -> io::Result<()> {
    for entry in entries_of(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        // Unfinished writes are called `name#1`; no key of ours holds such a character.
        let Some(name) = name.to_str().filter(|name| !name.contains('#')) else { continue };
        let key = format!("{prefix}/{name}");
        if entry.file_type()?.is_dir() {
            files_below(&entry.path(), &key, keys)?;
        } else {
            keys.push(Key::new(key));
        }
    }
    Ok(())
}

fn folders_in(directory: &FilePath) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in entries_of(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir()
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// A folder that is not there is an empty one, as in any bucket.
fn entries_of(directory: &FilePath) -> io::Result<impl Iterator<Item = io::Result<std::fs::DirEntry>>> {
    match std::fs::read_dir(directory) {
        Ok(entries) => Ok(Some(entries).into_iter().flatten()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None.into_iter().flatten()),
        Err(error) => Err(error),
    }
}
