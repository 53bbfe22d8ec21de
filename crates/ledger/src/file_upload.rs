//! Writes an object that is a file under a name that is new, with one `fsync`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use bytes::Bytes;
use tokio::task::spawn_blocking;

/// Writes a file that nothing names yet. It appears as a whole, and is on the disk when this returns: the file is
/// synchronised under the name that it keeps, and the journal of a Linux file system (ext4, XFS, btrfs) takes a file's
/// newest name along with the file. So the directory, which would have to be synchronised for a file that replaces
/// another, needs no `fsync` of its own. What a power cut leaves behind before that, nothing names.
///
/// The folder must be there.
pub(crate) async fn write(path: PathBuf, bytes: Bytes) -> io::Result<()> {
    let write = move || {
        // Listings pass over such names.
        let mut draft = path.clone().into_os_string();
        draft.push("#new");
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        let written = file.write_all(&bytes).and_then(|()| fs::rename(&draft, &path));
        if let Err(error) = written {
            // It stays as garbage if this fails too.
            fs::remove_file(&draft).ok();
            return Err(error);
        }
        file.sync_all()
    };
    spawn_blocking(write).await.unwrap_or_else(|gone| Err(gone.into()))
}
