//! Lines of a log as HTML: each with its number, which is a link to it, and what engines tell about reading what is
//! there already folded into one line.

use std::fmt::Write as _;

use taco_domain::phase::PhaseKind;

use crate::ansi::Renderer;
use crate::engine_line::EngineLine;

/// Fewer lines than this are not worth folding.
const FEWEST_FOLDED: usize = 3;

/// Anchor of a line: `p-L120` is line 120 of the plan's log.
fn anchor(kind: PhaseKind, line: u64) -> String {
    format!("{}{line}", prefix(kind))
}

/// The number of the line that an anchor of this phase's log names.
pub(crate) fn line_of(kind: PhaseKind, anchor: &str) -> Option<u64> {
    anchor.strip_prefix(prefix(kind))?.parse().ok()
}

fn prefix(kind: PhaseKind) -> &'static str {
    match kind {
        PhaseKind::Plan => "p-L",
        PhaseKind::Apply => "a-L",
    }
}

/// Turns a log into HTML as it grows, line by line.
pub(crate) struct LogText {
    kind: PhaseKind,
    /// The number of the line that comes next, where it is known.
    next: Option<u64>,
    /// The number of the first line that tells of an error.
    first_error: Option<u64>,
    renderer: Renderer,
    /// The beginning of a line whose end has not come.
    rest: Vec<u8>,
    folded: Folded,
}

/// Lines that follow each other and tell that something was read.
#[derive(Default)]
struct Folded {
    html: String,
    lines: usize,
    resources: usize,
    data_sources: usize,
}

/// Message of a line about reading existing resources.
#[derive(PartialEq, Eq, Debug)]
enum Reading {
    Resource,
    DataSource,
    /// Progress of one of them.
    More,
}

impl Reading {
    fn of(words: &str) -> Option<Self> {
        match words {
            _ if words.contains(": Refreshing state...") => Some(Self::Resource),
            _ if words.contains(": Read complete after ") => Some(Self::DataSource),
            _ if [": Reading...", ": Refresh complete", ": Still reading..."]
                .iter()
                .any(|part| words.contains(part)) =>
            {
                Some(Self::More)
            }
            _ => None,
        }
    }
}

impl LogText {
    /// Begins with line `number`. Where that is not known, lines have no numbers and no links.
    pub(crate) fn from_line(kind: PhaseKind, number: Option<u64>) -> Self {
        Self {
            kind,
            next: number,
            first_error: None,
            renderer: Renderer::default(),
            rest: Vec::new(),
            folded: Folded::default(),
        }
    }

    /// The HTML of the lines that are whole now.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        let mut html = String::new();
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
            self.rest.extend_from_slice(bytes);
            return html;
        };
        let mut whole = std::mem::take(&mut self.rest);
        whole.extend_from_slice(&bytes[..=end]);
        self.rest = bytes[end + 1..].to_vec();
        for line in whole.split_inclusive(|byte| *byte == b'\n') {
            self.line(line, &mut html);
        }
        self.folded.write(&mut html);
        html
    }

    /// The HTML of what is left.
    pub(crate) fn finish(&mut self) -> String {
        let mut html = String::new();
        let rest = std::mem::take(&mut self.rest);
        // The mark at a log's end is no line.
        if rest.iter().any(|byte| !matches!(byte, 0x02 | 0x03)) {
            self.line(&rest, &mut html);
            self.folded.write(&mut html);
        }
        html
    }

    /// The anchor of the first line that tells of an error.
    pub(crate) fn first_error(&self) -> Option<String> {
        self.first_error.map(|line| anchor(self.kind, line))
    }

    /// Number of bytes buffered until the end of their line.
    pub(crate) fn waiting(&self) -> u64 {
        self.rest.len() as u64
    }

    fn line(&mut self, line: &[u8], html: &mut String) {
        let number = self.next;
        self.next = number.map(|number| number + 1);
        let parsed = EngineLine::parse(line);
        let words = match &parsed {
            Some(parsed) => format!("{}\n", parsed.in_words()).into_bytes(),
            None => line.to_vec(),
        };
        let text = String::from_utf8_lossy(&words);
        if self.first_error.is_none() && parsed.map_or_else(|| tells_error(&text), |parsed| parsed.is_error()) {
            self.first_error = number;
        }
        let reading = Reading::of(&text);
        let to = match reading {
            Some(_) => &mut self.folded.html,
            None => {
                self.folded.write(html);
                &mut *html
            }
        };
        let _ = match number {
            Some(number) => {
                let anchor = anchor(self.kind, number);
                write!(to, "<div id=\"{anchor}\"><a href=\"#{anchor}\" tabindex=\"-1\">{number}</a>")
            }
            None => write!(to, "<div>"),
        };
        self.renderer.render(&words, to);
        self.renderer.finish(to);
        to.push_str("</div>");
        if let Some(reading) = reading {
            self.folded.count(&reading);
        }
    }
}

/// True if a terminal would show a line that begins with `Error:`, perhaps after a border.
fn tells_error(line: &str) -> bool {
    line.contains("Error: ") && without_colours(line).trim_start_matches(['│', '╷', ' ']).starts_with("Error: ")
}

fn without_colours(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}

impl Folded {
    fn count(&mut self, reading: &Reading) {
        self.lines += 1;
        match reading {
            Reading::Resource => self.resources += 1,
            Reading::DataSource => self.data_sources += 1,
            Reading::More => {}
        }
    }

    /// Adds what was gathered, and is empty again.
    fn write(&mut self, html: &mut String) {
        let folded = std::mem::take(self);
        if folded.lines < FEWEST_FOLDED {
            html.push_str(&folded.html);
            return;
        }
        let _ = write!(html, "<details><summary>{}</summary>{}</details>", folded.in_words(), folded.html);
    }

    fn in_words(&self) -> String {
        let some = |count: usize, what: &str| {
            (count > 0).then(|| format!("{count} {what}{}", if count == 1 { "" } else { "s" }))
        };
        match (some(self.resources, "resource"), some(self.data_sources, "data source")) {
            (Some(resources), Some(data)) => format!("Refreshed {resources}, read {data}"),
            (Some(resources), None) => format!("Refreshed {resources}"),
            (None, Some(data)) => format!("Read {data}"),
            (None, None) => "Reads what is there".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_log() -> LogText {
        LogText::from_line(PhaseKind::Plan, Some(1))
    }

    #[test]
    fn json_lines_become_sentences_and_others_stay() {
        let mut text = plan_log();
        let mut html = text.push(b"\x02Initializing...\n{\"@level\":\"info\",\"@mess");
        html.push_str(&text.push(b"age\":\"a <b>: Plan to create\",\"type\":\"planned_change\"}\nlast"));
        assert_eq!(
            html,
            "<div id=\"p-L1\"><a href=\"#p-L1\" tabindex=\"-1\">1</a>Initializing...\n</div>\
             <div id=\"p-L2\"><a href=\"#p-L2\" tabindex=\"-1\">2</a>a &#60;b&#62;: Plan to create\n</div>"
        );
        assert_eq!(text.waiting(), 4);
        assert_eq!(text.finish(), "<div id=\"p-L3\"><a href=\"#p-L3\" tabindex=\"-1\">3</a>last</div>");
        assert_eq!(text.push(b"\x03"), "");
        assert_eq!(text.finish(), "", "the mark at the end is no line");
        assert_eq!((line_of(PhaseKind::Plan, "p-L3"), line_of(PhaseKind::Apply, "p-L3")), (Some(3), None));
        let mut apply = LogText::from_line(PhaseKind::Apply, Some(120));
        assert!(apply.push(b"x\n").starts_with("<div id=\"a-L120\">"));
        let mut uncounted = LogText::from_line(PhaseKind::Plan, None);
        assert_eq!(uncounted.push(b"Error: no\nx\n"), "<div>Error: no\n</div><div>x\n</div>");
        assert_eq!(uncounted.first_error(), None, "nothing leads to it");
    }

    #[test]
    fn a_colour_lasts_from_line_to_line_and_every_line_is_closed() {
        let mut text = plan_log();
        let html = text.push(b"\x1b[31mred\nstill\n") + &text.push(b"and on\x1b[0m\nplain\n");
        assert_eq!(html.matches("<span class=\"f1\">").count(), 3);
        assert_eq!(html.matches("</span>").count(), 3);
        assert!(html.ends_with("4</a>plain\n</div>"), "{html}");
    }

    #[test]
    fn what_was_only_read_is_folded() {
        let mut text = plan_log();
        let refresh = |name: &str| format!("\x1b[0m\x1b[1m{name}: Refreshing state... [id=1]\x1b[0m\n");
        let log = [
            refresh("a.b"),
            refresh("a.c"),
            "data.x.y: Reading...\n".to_owned(),
            "data.x.y: Still reading... [10s elapsed]\n".to_owned(),
            "data.x.y: Read complete after 0s [id=z]\n".to_owned(),
            "Plan: 1 to add\n".to_owned(),
            refresh("a.d"),
        ];
        let html = text.push(log.concat().as_bytes());
        assert!(
            html.starts_with("<details><summary>Refreshed 2 resources, read 1 data source</summary><div"),
            "{html}"
        );
        let (folded, rest) = html.split_once("</details>").expect("a fold");
        assert_eq!(folded.matches("<div ").count(), 5);
        assert!(rest.contains("Plan: 1 to add") && rest.contains("a.d: Refreshing"), "one line alone stays: {rest}");
        assert!(!rest.contains("<details>"));
        let structured = (0..3).map(|number| {
            format!("{{\"@level\":\"info\",\"@message\":\"a.b[{number}]: Refreshing state... [id=1]\",\"type\":\"refresh_start\"}}\n")
        });
        let html = text.push(structured.collect::<String>().as_bytes());
        assert!(html.contains("<summary>Refreshed 3 resources</summary>"), "{html}");
    }

    #[test]
    fn the_first_error_is_known_by_its_line() {
        for (line, is_error) in [
            ("\x1b[31m│\x1b[0m \x1b[0m\x1b[1m\x1b[31mError: \x1b[0m\x1b[0m\x1b[1mno\x1b[0m\n", true),
            ("Error: no\n", true),
            ("a resource named Error: no\n", false),
            (
                "{\"@level\":\"error\",\"@message\":\"Error: no\",\"type\":\"diagnostic\",\"diagnostic\":{\"severity\":\"error\",\"summary\":\"no\"}}\n",
                true,
            ),
            (
                "{\"@level\":\"warn\",\"@message\":\"Warning: so\",\"type\":\"diagnostic\",\"diagnostic\":{\"severity\":\"warning\",\"summary\":\"so\"}}\n",
                false,
            ),
        ] {
            let mut text = plan_log();
            text.push(b"first\n");
            text.push(line.as_bytes());
            text.push(b"Error: later\n");
            assert_eq!(text.first_error, Some(if is_error { 2 } else { 3 }), "{line:?}");
        }
    }
}
