//! Lines of engines that log JSON, for people: what the `cloud` block would print, and what each tells about a
//! resource.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

/// One line of `plan -json` or `apply -json`, as far as pages show it.
#[derive(Deserialize, Debug)]
pub(crate) struct EngineLine {
    #[serde(rename = "@level", default)]
    level: String,
    #[serde(rename = "@message")]
    message: String,
    #[serde(rename = "type", default)]
    pub(crate) kind: String,
    #[serde(rename = "@timestamp", default, deserialize_with = "moment")]
    pub(crate) at: Option<Timestamp>,
    pub(crate) diagnostic: Option<Diagnostic>,
    pub(crate) hook: Option<Hook>,
    /// Planned change.
    pub(crate) change: Option<Hook>,
}

/// A line with a time that nobody understands is a line nevertheless.
fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok(text.parse().ok())
}

#[derive(Clone, PartialEq, Eq, Deserialize, Debug)]
pub(crate) struct Diagnostic {
    #[serde(default)]
    pub(crate) severity: String,
    #[serde(default)]
    pub(crate) summary: String,
    #[serde(default)]
    pub(crate) detail: String,
    pub(crate) address: Option<String>,
    pub(crate) range: Option<Range>,
    pub(crate) snippet: Option<Snippet>,
}

#[derive(Clone, PartialEq, Eq, Deserialize, Debug)]
pub(crate) struct Range {
    pub(crate) filename: String,
    pub(crate) start: Position,
}

#[derive(Clone, PartialEq, Eq, Deserialize, Debug)]
pub(crate) struct Position {
    pub(crate) line: u64,
}

#[derive(Clone, PartialEq, Eq, Deserialize, Debug)]
pub(crate) struct Snippet {
    pub(crate) context: Option<String>,
    #[serde(default)]
    pub(crate) code: String,
    #[serde(default)]
    pub(crate) start_line: u64,
}

/// Progress of a change to a resource.
#[derive(Deserialize, Debug)]
pub(crate) struct Hook {
    pub(crate) resource: HookResource,
    #[serde(default)]
    pub(crate) action: String,
    pub(crate) elapsed_seconds: Option<f64>,
}

#[derive(Deserialize, Debug)]
pub(crate) struct HookResource {
    pub(crate) addr: String,
}

impl EngineLine {
    /// `None` for a line that is plain text, as those of `init`.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        if line.first() != Some(&b'{') {
            return None;
        }
        serde_json::from_slice(line).ok()
    }

    pub(crate) fn is_error(&self) -> bool {
        self.diagnostic.as_ref().map_or(self.level == "error", Diagnostic::is_error)
    }

    /// The line as a terminal would show it.
    pub(crate) fn in_words(&self) -> String {
        match &self.diagnostic {
            Some(diagnostic) => diagnostic.in_words(),
            None => {
                let (before, after) = match (self.level.as_str(), self.kind.as_str()) {
                    ("error", _) => ("\x1b[31m", "\x1b[0m"),
                    ("warn", _) => ("\x1b[33m", "\x1b[0m"),
                    (_, "change_summary") => ("\x1b[1m", "\x1b[0m"),
                    (_, "refresh_start" | "refresh_complete" | "version") => ("\x1b[2m", "\x1b[0m"),
                    _ => ("", ""),
                };
                format!("{before}{}{after}", self.message)
            }
        }
    }
}

impl Diagnostic {
    pub(crate) fn is_error(&self) -> bool {
        self.severity == "error"
    }

    /// The beginning of its detail, for a line of its own.
    pub(crate) fn message(&self) -> &str {
        self.detail.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
    }

    pub(crate) fn place(&self) -> Option<String> {
        self.range.as_ref().map(|range| format!("{} line {}", range.filename, range.start.line))
    }

    fn in_words(&self) -> String {
        let (colour, word) = if self.is_error() { (31, "Error") } else { (33, "Warning") };
        let mut words = format!("\x1b[{colour}m╷\n│ \x1b[1m{word}: \x1b[0m\x1b[1m{}\x1b[0m", self.summary);
        let mut line = |text: String| words.push_str(&format!("\n\x1b[{colour}m│\x1b[0m {text}"));
        if let Some(address) = &self.address {
            line(format!("  with {address}"));
        }
        if let Some(place) = self.place() {
            let context = self.snippet.as_ref().and_then(|snippet| snippet.context.as_ref());
            let context = context.map(|context| format!(", in {context}")).unwrap_or_default();
            line(format!("  on {place}{context}:"));
        }
        if let Some(snippet) = &self.snippet {
            for (number, code) in (snippet.start_line..).zip(snippet.code.lines()) {
                line(format!("  {number}: {code}"));
            }
        }
        if !self.detail.is_empty() {
            line(String::new());
        }
        for text in self.detail.lines() {
            line(text.to_owned());
        }
        words.push_str(&format!("\n\x1b[{colour}m╵\x1b[0m"));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERROR: &str = r#"{"@level":"error","@message":"Error: Reference to undeclared resource","@module":"terraform.ui","@timestamp":"2026-11-16T11:00:00Z","diagnostic":{"severity":"error","summary":"Reference to undeclared resource","detail":"A managed resource has not been declared.\nSecond line.","range":{"filename":"main.tf","start":{"line":3,"column":11,"byte":60},"end":{"line":3,"column":30,"byte":79}},"snippet":{"context":"output \"x\"","code":"  value = terraform_data.gone","start_line":3,"highlight_start_offset":10,"highlight_end_offset":29,"values":[]}},"type":"diagnostic"}"#;

    #[test]
    fn a_line_of_text_is_none_of_ours() {
        for line in ["", "Initializing the backend...", "{", "{}", "[1]", "{\"a\":1}"] {
            assert!(EngineLine::parse(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[test]
    fn a_message_is_all_that_people_read() {
        let line = r#"{"@level":"info","@message":"terraform_data.a: Creation complete after 0s [id=1]","type":"apply_complete","hook":{"resource":{"addr":"terraform_data.a"},"action":"create","elapsed_seconds":0}}"#;
        let line = EngineLine::parse(line.as_bytes()).expect("a line");
        assert_eq!(line.in_words(), "terraform_data.a: Creation complete after 0s [id=1]");
        assert_eq!(line.hook.expect("a hook").resource.addr, "terraform_data.a");
    }

    #[test]
    fn a_diagnostic_looks_as_in_a_terminal() {
        let words = EngineLine::parse(ERROR.as_bytes()).expect("a line").in_words();
        for part in
            ["Error: ", "on main.tf line 3, in output \"x\":", "3:   value = terraform_data.gone", "Second line."]
        {
            assert!(words.contains(part), "{part}: {words}");
        }
    }
}
