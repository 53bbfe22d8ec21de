//! The log of a phase as it grows, on disk: all that the server does not have is still there, also after a restart.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use taco_agent_protocol::ResourceCounts;
use tokio::sync::watch;

use crate::mask::Mask;

pub(crate) const STX: u8 = 0x02;
pub(crate) const ETX: u8 = 0x03;
/// Maximum length of a line that is waited for.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// Length of the log so far, and whether more will come.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Written {
    pub(crate) bytes: u64,
    pub(crate) complete: bool,
}

/// Data found in the engine's lines, apart from what they show to people.
#[derive(Clone, Default)]
pub(crate) struct Observed {
    /// The summary of the first error.
    pub(crate) error: Option<String>,
    /// Counts of an apply, if it logs JSON.
    pub(crate) applied: Option<ResourceCounts>,
}

#[derive(Clone)]
pub(crate) struct LogFile {
    inner: Arc<Mutex<Inner>>,
    written: watch::Sender<Written>,
}

struct Inner {
    file: File,
    mask: Mask,
    /// The beginning of a line whose end has not come.
    rest: Vec<u8>,
    observed: Observed,
}

impl LogFile {
    /// Creates it, for its owner alone, with the byte that every log begins with.
    pub(crate) fn create(path: &Path, mask: Mask) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let inner = Inner { file, mask, rest: Vec::new(), observed: Observed::default() };
        let log = Self { inner: Arc::new(Mutex::new(inner)), written: watch::Sender::default() };
        log.with(|inner| inner.file.write_all(&[STX]).map(|()| 1))?;
        Ok(log)
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Written> {
        self.written.subscribe()
    }

    pub(crate) fn observed(&self) -> Observed {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).observed.clone()
    }

    /// Writes a line of the agent's own.
    pub(crate) fn say(&self, line: &str) -> io::Result<()> {
        self.flush()?;
        self.write(format!("{line}\n").as_bytes())
    }

    /// Takes output of the engine. The last line waits until it is whole, or [`LogFile::flush`].
    pub(crate) fn write(&self, output: &[u8]) -> io::Result<()> {
        self.with(|inner| {
            inner.rest.extend_from_slice(output);
            let whole = match inner.rest.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => end + 1,
                None if inner.rest.len() > MAX_LINE_BYTES => inner.rest.len(),
                None => return Ok(0),
            };
            let rest = inner.rest.split_off(whole);
            let lines = std::mem::replace(&mut inner.rest, rest);
            inner.put(lines)
        })
    }

    /// True if part of a line waits for its end.
    pub(crate) fn waits(&self) -> bool {
        !self.inner.lock().unwrap_or_else(PoisonError::into_inner).rest.is_empty()
    }

    pub(crate) fn flush(&self) -> io::Result<()> {
        self.with(|inner| {
            let lines = std::mem::take(&mut inner.rest);
            inner.put(lines)
        })
    }

    /// Writes the byte that every log ends with.
    pub(crate) fn complete(&self) -> io::Result<()> {
        self.flush()?;
        self.with(|inner| inner.file.write_all(&[ETX]).map(|()| 1))?;
        self.written.send_modify(|written| written.complete = true);
        Ok(())
    }

    fn with(&self, write: impl FnOnce(&mut Inner) -> io::Result<u64>) -> io::Result<()> {
        let bytes = write(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))?;
        if bytes > 0 {
            self.written.send_modify(|written| written.bytes += bytes);
        }
        Ok(())
    }
}

impl Inner {
    fn put(&mut self, lines: Vec<u8>) -> io::Result<u64> {
        if lines.is_empty() {
            return Ok(0);
        }
        let lines = self.mask.hide_bytes(lines);
        for line in lines.split(|byte| *byte == b'\n') {
            self.observed.observe(line);
        }
        self.file.write_all(&lines)?;
        Ok(lines.len() as u64)
    }
}

impl Observed {
    fn observe(&mut self, line: &[u8]) {
        match line.first() {
            Some(b'{') => self.observe_json(line),
            Some(_) if self.error.is_none() => {
                let line = without_colours(&String::from_utf8_lossy(line));
                let text = line.trim_start_matches(['│', '╷', '|', ' ']);
                // What both say first when a configuration is broken tells nothing yet.
                let summary =
                    text.strip_prefix("Error: ").filter(|text| !text.contains("encountered problems during init"));
                if let Some(summary) = summary {
                    self.error = Some(summary.trim().to_owned());
                }
            }
            _ => {}
        }
    }

    fn observe_json(&mut self, line: &[u8]) {
        #[derive(Deserialize)]
        struct Line {
            r#type: String,
            #[serde(default)]
            diagnostic: Option<Diagnostic>,
            #[serde(default)]
            changes: Option<Changes>,
        }
        #[derive(Deserialize)]
        struct Diagnostic {
            severity: String,
            summary: String,
        }
        #[derive(Deserialize)]
        struct Changes {
            add: u64,
            change: u64,
            remove: u64,
            #[serde(default)]
            import: u64,
            operation: String,
        }
        let Ok(line) = serde_json::from_slice::<Line>(line) else { return };
        match (line.r#type.as_str(), line.diagnostic, line.changes) {
            ("diagnostic", Some(diagnostic), _) if diagnostic.severity == "error" => {
                self.error.get_or_insert(diagnostic.summary);
            }
            ("change_summary", _, Some(changes)) if changes.operation != "plan" => {
                self.applied = Some(ResourceCounts {
                    additions: changes.add,
                    changes: changes.change,
                    destructions: changes.remove,
                    imports: changes.import,
                });
            }
            _ => {}
        }
    }
}

fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => {
                characters.by_ref().find(char::is_ascii_alphabetic);
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_framed_and_its_lines_are_whole() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("log");
        let log = LogFile::create(&path, Mask::default()).expect("a log");
        log.write(b"first\nsec").expect("room");
        assert_eq!(std::fs::read(&path).expect("a file"), b"\x02first\n");
        assert!(log.waits());
        log.write(b"ond\n").expect("room");
        log.write(b"no end").expect("room");
        log.complete().expect("room");
        let whole = std::fs::read(&path).expect("a file");
        assert_eq!(whole, b"\x02first\nsecond\nno end\x03");
        assert_eq!(*log.watch().borrow(), Written { bytes: whole.len() as u64, complete: true });
    }

    #[test]
    fn errors_and_counts_are_found_in_text_and_in_json() {
        let mut observed = Observed::default();
        observed.observe(
            "\u{1b}[31m│\u{1b}[0m \u{1b}[0m\u{1b}[1m\u{1b}[31mError: \u{1b}[0m\u{1b}[0m\u{1b}[1mNo\u{1b}[0m".as_bytes(),
        );
        assert_eq!(observed.error.as_deref(), Some("No"));
        let mut observed = Observed::default();
        observed.observe(br#"{"type":"diagnostic","diagnostic":{"severity":"warning","summary":"Careful"}}"#);
        observed.observe(br#"{"type":"diagnostic","diagnostic":{"severity":"error","summary":"Broken"}}"#);
        observed.observe(br#"{"type":"change_summary","changes":{"add":9,"change":9,"remove":9,"operation":"plan"}}"#);
        observed.observe(
            br#"{"type":"change_summary","changes":{"add":1,"change":2,"import":4,"remove":3,"operation":"apply"}}"#,
        );
        assert_eq!(observed.error.as_deref(), Some("Broken"));
        let counts = ResourceCounts { additions: 1, changes: 2, destructions: 3, imports: 4 };
        assert_eq!(observed.applied, Some(counts));
    }
}
