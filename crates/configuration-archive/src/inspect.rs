//! Inspection of an archive by a server that does not unpack it.

use std::io::BufRead;
use std::path::Path;

use crate::error::ArchiveError;
use crate::limits::Limits;
use crate::readme::Readme;
use crate::tree::inside;
use crate::walk::walk_through;

/// Extensions of the files that terraform or tofu reads.
pub(crate) const EXTENSIONS: [&str; 4] = [".tf", ".tf.json", ".tofu", ".tofu.json"];

/// An archive that agents can unpack and run.
#[derive(PartialEq, Eq, Debug)]
pub struct Inspected {
    /// The text of the working directory's `README.md`, or else of the root's, or its beginning.
    pub readme: Option<String>,
}

/// Reads an archive to its end. With a working directory, the configuration has to be in it; without, it may lie
/// anywhere.
pub fn inspect(packed: impl BufRead, limits: Limits, working_directory: &str) -> Result<Inspected, ArchiveError> {
    let directory = inside(Path::new(""), Path::new(working_directory), false, limits).unwrap_or_default();
    let mut readme = Readme::of(&directory);
    let tree = walk_through(packed, limits, &mut readme)?;
    if tree.names().next().is_none() {
        return Err(ArchiveError::Empty);
    }
    if directory.as_os_str().is_empty() {
        if !tree.names().any(is_configuration) {
            return Err(ArchiveError::NoConfiguration { place: String::new() });
        }
    } else if !tree.has_in(&directory, is_configuration) {
        let place = format!(" in the working directory {}", directory.display());
        return Err(ArchiveError::NoConfiguration { place });
    }
    Ok(Inspected { readme: readme.text() })
}

fn is_configuration(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    EXTENSIONS.iter().any(|extension| name.ends_with(extension.as_bytes()))
}
