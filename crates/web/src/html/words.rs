//! Short texts that several pages show.

use taco_domain::phase::ResourceCounts;
use taco_domain::run::{RunOptions, RunSource};

use crate::text::plain;

/// Through what a run came to be.
pub(crate) fn source_words(source: RunSource) -> &'static str {
    match source {
        RunSource::Api => "API",
        RunSource::Page => "web",
        RunSource::Terraform => "remote backend",
        RunSource::Cloud => "command line",
        RunSource::ConfigurationVersion => "upload",
        RunSource::RunTrigger => "run trigger",
    }
}

/// Messages that runs get where nobody gave one, now or in earlier releases. They say no more than the source does.
const DEFAULT_MESSAGES: [&str; 9] = [
    "Started with the API",
    "Started from the command line",
    "Started on the web",
    "Started with taco CLI",
    "Queued by the API",
    "Queued from the command line",
    "Queued on the page",
    "Queued manually using Terraform",
    "Queued by the upload of a configuration",
];

/// What a run is for, in a list: its message's first line, or its kind where nobody wrote one.
pub(crate) fn list_title(options: &RunOptions) -> String {
    let subject = subject(&options.message);
    if subject.is_empty() || DEFAULT_MESSAGES.contains(&subject.as_str()) {
        kind_words(options).to_owned()
    } else {
        subject
    }
}

/// `Plan and apply`, `Destroy` …
pub(crate) fn kind_words(options: &RunOptions) -> &'static str {
    match options {
        RunOptions { is_destroy: true, plan_only: true, .. } => "Destroy plan",
        RunOptions { is_destroy: true, .. } => "Destroy",
        RunOptions { refresh_only: true, .. } => "Refresh only",
        RunOptions { plan_only: true, .. } => "Plan only",
        RunOptions { save_plan: true, .. } => "Save plan",
        _ => "Plan and apply",
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
    fn a_run_without_a_message_of_its_own_is_called_by_its_kind() {
        let of = |message: &str| RunOptions { message: message.to_owned(), ..RunOptions::default() };
        assert_eq!(list_title(&of("Bigger cache\nand more")), "Bigger cache");
        for message in ["", "Queued by the API", "Started with the API"] {
            assert_eq!(list_title(&of(message)), "Plan and apply");
            assert_eq!(list_title(&RunOptions { is_destroy: true, ..of(message) }), "Destroy");
        }
    }

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
