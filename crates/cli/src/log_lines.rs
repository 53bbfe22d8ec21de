//! Logs of plans and applies, line by line: terraform writes text or, where the workspace wants it, JSON.

use serde_json::{Value, json};

/// Marks at both ends of a log.
const STX: u8 = 0x02;
const ETX: u8 = 0x03;

/// Cuts what comes in pieces into lines.
#[derive(Default)]
pub(crate) struct LogLines {
    rest: Vec<u8>,
    pub(crate) ended: bool,
}

impl LogLines {
    /// The lines that are complete now.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Vec<String> {
        self.ended |= bytes.contains(&ETX);
        self.rest.extend(bytes.iter().filter(|byte| ![STX, ETX].contains(byte)));
        let complete = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let lines: Vec<u8> = self.rest.drain(..complete).collect();
        String::from_utf8_lossy(&lines).lines().map(str::to_owned).collect()
    }

    /// The last line, if nothing ended it.
    pub(crate) fn finish(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.rest);
        (!rest.is_empty()).then(|| String::from_utf8_lossy(&rest).into_owned())
    }
}

/// A line as an object of terraform's own: it always has `@message`.
pub(crate) fn as_json(line: &str) -> Value {
    structured(line).unwrap_or_else(|| json!({ "@message": without_controls(line, false) }))
}

/// A line for people.
pub(crate) fn as_text(line: &str, colours: bool) -> String {
    let Some(object) = structured(line) else { return without_controls(line, colours) };
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let mut said = text("/@message").to_owned();
    for more in [text("/diagnostic/address"), text("/diagnostic/detail")] {
        if !more.is_empty() {
            said.push_str("\n  ");
            said.push_str(&more.replace('\n', "\n  "));
        }
    }
    said.lines().map(|line| without_controls(line, colours)).collect::<Vec<_>>().join("\n")
}

fn structured(line: &str) -> Option<Value> {
    let object: Value = serde_json::from_str(line).ok()?;
    object.get("@message").is_some().then_some(object)
}

/// Line without control sequences: the output of a run must not steer the terminal; it may only have colours.
fn without_controls(line: &str, colours: bool) -> String {
    let mut shown = String::new();
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' && letters.next_if_eq(&'[').is_some() {
            let mut sequence = String::from("\u{1b}[");
            while let Some(letter) = letters.next_if(|letter| letter.is_ascii_digit() || *letter == ';') {
                sequence.push(letter);
            }
            if letters.next() == Some('m') && colours {
                shown.push_str(&sequence);
                shown.push('m');
            }
        } else if letter == '\t' || !letter.is_control() {
            shown.push(letter);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_lines_without_the_marks() {
        let mut log = LogLines::default();
        assert_eq!(log.add(b"\x02one\ntw"), ["one"]);
        assert!(!log.ended);
        assert_eq!(log.add(b"o\nthree\x03"), ["two"]);
        assert!(log.ended);
        assert_eq!((log.finish().as_deref(), log.finish()), (Some("three"), None));
    }

    #[test]
    fn json_is_shown_as_what_it_says() {
        let line = r#"{"@level":"error","@message":"Error: no","diagnostic":{"detail":"one\ntwo"}}"#;
        assert_eq!(as_text(line, false), "Error: no\n  one\n  two");
        assert_eq!(as_json(line)["@level"], "error");
        assert_eq!(as_json("plain")["@message"], "plain");
        assert_eq!(as_text(r#"{"other": 1}"#, true), r#"{"other": 1}"#);
    }

    #[test]
    fn colours_are_all_that_a_line_may_ask_for() {
        let line = "\u{1b}[1mbold\u{1b}[0m \u{1b}[2Jgone\u{7}\tx";
        assert_eq!(without_controls(line, false), "bold gone\tx");
        assert_eq!(without_controls(line, true), "\u{1b}[1mbold\u{1b}[0m gone\tx");
    }
}
