//! Short texts that several pages show.

use taco_domain::phase::ResourceCounts;
use taco_domain::run::RunSource;

use crate::text::plain;

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
    split(message).0
}

/// Body of a message: everything after its first line.
pub(crate) fn body(message: &str) -> String {
    split(message).1
}

fn split(message: &str) -> (String, String) {
    let message = message.trim();
    let (subject, body) = message.split_once('\n').unwrap_or((message, ""));
    (plain(subject.trim_end()), plain(body.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_a_subject_and_perhaps_a_body() {
        for (message, expected) in [
            ("", ("", "")),
            ("Bigger cache", ("Bigger cache", "")),
            ("\n Bigger cache\r\n\r\nBecause of load.\nAnd cost.\n", ("Bigger cache", "Because of load.\nAnd cost.")),
        ] {
            assert_eq!((subject(message).as_str(), body(message).as_str()), expected);
        }
    }
}
