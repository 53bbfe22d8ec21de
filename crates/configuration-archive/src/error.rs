use std::io;

/// Error in an archive, described for the person who packed it.
#[derive(thiserror::Error, Debug)]
pub enum ArchiveError {
    #[error("the configuration has more than {0} bytes packed")]
    PackedTooLarge(u64),
    #[error("the configuration expands beyond the limit of {0}")]
    Expands(String),
    #[error("the configuration has more than {0} entries")]
    TooManyEntries(usize),
    #[error("the names of the configuration's entries have more than {0} bytes together")]
    NamesTooLong(usize),
    #[error("the configuration's entry {name}: {reason}")]
    Entry { name: String, reason: &'static str },
    #[error("the configuration is no tar.gz archive (tar, compressed with gzip): {0}")]
    Unreadable(String),
    #[error("the configuration's archive is empty")]
    Empty,
    #[error(
        "the configuration has no file that ends in {extensions}{place}: pack the directory that has them",
        extensions = crate::inspect::EXTENSIONS.join(", "),
    )]
    NoConfiguration { place: String },
    /// Not the archive's fault.
    #[error("the configuration could not be unpacked: {0}")]
    Visit(io::Error),
}

impl ArchiveError {
    pub(crate) fn entry(name: &[u8], reason: &'static str) -> Self {
        // For people: not too long, and without what a terminal would obey.
        let name = String::from_utf8_lossy(name).chars().take(100).flat_map(char::escape_debug).collect();
        Self::Entry { name, reason }
    }
}
