//! Line-by-line diff of two texts.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::text;

/// Around each change so many lines are shown that are the same.
const CONTEXT_LINES: usize = 3;

/// Of a longer difference only the beginning is shown.
const MAX_SHOWN_LINES: usize = 3000;

/// After this time the difference may be larger than it has to be.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    /// `+`, `-`, a space, or `…` where lines are left out.
    pub(crate) sign: char,
    pub(crate) text: String,
}

impl Line {
    pub(crate) fn class(&self) -> &'static str {
        match self.sign {
            '+' => "added",
            '-' => "removed",
            '…' => "gap",
            _ => "same",
        }
    }
}

pub(crate) fn lines(before: &str, after: &str) -> Vec<Line> {
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(before, after);
    let mut lines = Vec::new();
    for (position, group) in diff.grouped_ops(CONTEXT_LINES).iter().enumerate() {
        if position > 0 {
            lines.push(Line { sign: '…', text: String::new() });
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            if lines.len() >= MAX_SHOWN_LINES {
                lines.push(Line { sign: '…', text: "There is more: download both states.".to_owned() });
                return lines;
            }
            let sign = match change.tag() {
                ChangeTag::Insert => '+',
                ChangeTag::Delete => '-',
                ChangeTag::Equal => ' ',
            };
            lines.push(Line { sign, text: text::plain(change.value().trim_end_matches('\n')) });
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_shown_with_what_is_around_it() {
        let text = |changed: &str| {
            (0..20)
                .map(|line| if line == 10 { changed.to_owned() } else { line.to_string() })
                .collect::<Vec<_>>()
                .join("\n")
        };
        let shown: Vec<_> =
            lines(&text("old"), &text("new")).iter().map(|line| format!("{}{}", line.sign, line.text)).collect();
        assert_eq!(shown, [" 7", " 8", " 9", "-old", "+new", " 11", " 12", " 13"]);
        assert_eq!(lines("a", "a"), []);
    }

    #[test]
    fn a_long_difference_ends_somewhere() {
        let text: String = (0..10_000).map(|line| format!("{line}\n")).collect();
        let shown = lines("", &text);
        assert_eq!(shown.len(), MAX_SHOWN_LINES + 1);
        assert!(shown[MAX_SHOWN_LINES].text.contains("There is more"));
    }
}
