//! README of a configuration.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tar::{Entry, EntryType};

use crate::walk::Visitor;

/// Maximum size of a README; the rest is cut off.
pub const MAX_README_BYTES: usize = 64 * 1024;

/// Keeps the README of the working directory, or else that of the root.
pub(crate) struct Readme {
    working_directory: PathBuf,
    of_working_directory: Option<String>,
    of_root: Option<String>,
}

impl Readme {
    pub(crate) fn of(working_directory: &Path) -> Self {
        Self { working_directory: working_directory.to_owned(), of_working_directory: None, of_root: None }
    }

    pub(crate) fn text(self) -> Option<String> {
        self.of_working_directory.or(self.of_root)
    }
}

impl Visitor for Readme {
    fn visit<R: Read>(&mut self, path: &Path, entry: &mut Entry<'_, R>) -> io::Result<()> {
        // What a link leads to is not looked for.
        let is_file = matches!(entry.header().entry_type(), EntryType::Regular | EntryType::Continuous);
        let is_readme = path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("readme.md"));
        if !is_file || !is_readme {
            return Ok(());
        }
        let kept = if path.parent() == Some(&self.working_directory) {
            &mut self.of_working_directory
        } else if path.parent() == Some(Path::new("")) {
            &mut self.of_root
        } else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        entry.take(MAX_README_BYTES as u64).read_to_end(&mut bytes)?;
        if kept.is_none() {
            *kept = beginning_of(bytes);
        }
        Ok(())
    }
}

/// The text, without a character that was cut in two. What is no UTF-8 is no text.
fn beginning_of(mut bytes: Vec<u8>) -> Option<String> {
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_kept_whole_or_not_at_all() {
        let text = "ä".repeat(3);
        assert_eq!(beginning_of(text.as_bytes()[..5].to_vec()).as_deref(), Some("ää"));
        assert_eq!(beginning_of(text.clone().into_bytes()), Some(text));
        assert_eq!(beginning_of(b"a\xff b".to_vec()), None);
    }
}
