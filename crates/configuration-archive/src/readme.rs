//! README of a configuration.

use std::path::{Path, PathBuf};

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

impl Readme {
    /// Number of bytes of a file that [`Self::take`] wants to see. What a link leads to is not looked for.
    pub(crate) fn wants(&self, path: &Path) -> usize {
        let is_readme = path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("readme.md"));
        let is_in_place =
            path.parent().is_some_and(|parent| parent == self.working_directory || parent == Path::new(""));
        if is_readme && is_in_place { MAX_README_BYTES } else { 0 }
    }

    pub(crate) fn take(&mut self, path: &Path, beginning: Vec<u8>) {
        if self.wants(path) == 0 {
            return;
        }
        let is_of_unit = path.parent() == Some(&self.working_directory);
        let kept = if is_of_unit { &mut self.of_working_directory } else { &mut self.of_root };
        if kept.is_none() {
            *kept = beginning_of(beginning);
        }
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
