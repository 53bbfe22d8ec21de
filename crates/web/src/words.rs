//! Short texts that several pages show.

use taco_domain::phase::ResourceCounts;
use taco_domain::run::RunSource;

/// Through what a run came to be.
pub(crate) fn source_words(source: RunSource) -> &'static str {
    match source {
        RunSource::Api => "API",
        RunSource::Page => "page",
        RunSource::Terraform => "remote backend",
        RunSource::Cloud => "command line",
        RunSource::ConfigurationVersion => "upload",
        RunSource::RunTrigger => "run trigger",
    }
}

/// `2 to add, 1 to change, 0 to destroy`.
pub(crate) fn counts_words(counts: &ResourceCounts) -> String {
    let mut words =
        format!("{} to add, {} to change, {} to destroy", counts.additions, counts.changes, counts.destructions);
    if counts.imports > 0 {
        words.push_str(&format!(", {} to import", counts.imports));
    }
    words
}

/// The first line of a message.
pub(crate) fn subject(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    crate::text::plain(line)
}
