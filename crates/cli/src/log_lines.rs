//! Logs of plans and applies, line by line: terraform writes text or, where the workspace wants it, JSON.

use serde_json::{Value, json};

use crate::colour::{Colour, Painter};

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

/// True for a line of terraform's JSON.
pub(crate) fn is_structured(line: &str) -> bool {
    structured(line).is_some()
}

/// True for what a plan would do, which the plan itself says better.
pub(crate) fn is_part_of_plan(line: &str) -> bool {
    let Some(object) = structured(line) else { return false };
    match object.get("type").and_then(Value::as_str) {
        Some("planned_change" | "resource_drift") => true,
        Some("change_summary") => object.pointer("/changes/operation").is_some_and(|operation| operation == "plan"),
        // Those of an apply have values, those of a plan say what happens to them.
        Some("outputs") => {
            let outputs = object.get("outputs").and_then(Value::as_object).into_iter().flatten();
            outputs.map(|(_, output)| output).all(|output| output.get("action").is_some())
        }
        _ => false,
    }
}

/// A line for people. Errors and warnings of the engine's JSON get the colours that it gives them itself.
pub(crate) fn as_text(line: &str, painter: Painter) -> String {
    let colours = painter.on;
    let Some(object) = structured(line) else { return without_controls(line, colours) };
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let colour = match (text("/@level"), text("/type")) {
        ("error", _) => Some(Colour::Red),
        ("warn", _) => Some(Colour::Yellow),
        (_, "apply_complete") => Some(Colour::Green),
        (_, "change_summary") => Some(Colour::Bold),
        (_, "refresh_start" | "refresh_complete" | "apply_progress" | "version") => Some(Colour::Dim),
        _ => None,
    };
    let mut said = painter.paint_if(&without_controls(text("/@message"), false), colour);
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
        assert_eq!(as_text(line, Painter { on: false }), "Error: no\n  one\n  two");
        assert_eq!(as_text(line, Painter { on: true }), "\u{1b}[31mError: no\u{1b}[0m\n  one\n  two");
        assert_eq!(as_json(line)["@level"], "error");
        assert_eq!(as_json("plain")["@message"], "plain");
        assert_eq!(as_text(r#"{"other": 1}"#, Painter { on: true }), r#"{"other": 1}"#);
    }

    #[test]
    fn what_a_plan_would_do_can_be_left_out() {
        for (line, is_part) in [
            (r#"{"@message":"a: Plan to create","type":"planned_change"}"#, true),
            (r#"{"@message":"Plan: 1 to add","type":"change_summary","changes":{"operation":"plan"}}"#, true),
            (r#"{"@message":"Apply complete!","type":"change_summary","changes":{"operation":"apply"}}"#, false),
            (r#"{"@message":"Outputs: 1","type":"outputs","outputs":{"a":{"action":"create"}}}"#, true),
            (r#"{"@message":"Outputs: 1","type":"outputs","outputs":{"a":{"value":1}}}"#, false),
            (r#"{"@message":"Error","type":"diagnostic"}"#, false),
            ("Plan: 1 to add", false),
        ] {
            assert_eq!(is_part_of_plan(line), is_part, "{line}");
        }
    }

    #[test]
    fn colours_are_all_that_a_line_may_ask_for() {
        let line = "\u{1b}[1mbold\u{1b}[0m \u{1b}[2Jgone\u{7}\tx";
        assert_eq!(without_controls(line, false), "bold gone\tx");
        assert_eq!(without_controls(line, true), "\u{1b}[1mbold\u{1b}[0m gone\tx");
    }
}
