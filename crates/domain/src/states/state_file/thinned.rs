//! A state without most of the text that is ignored. Most of a large state is the text inside of its resources'
//! attributes, and the parser looks at each byte of it, slowly where it reads from a stream.

use std::io::{self, Read};

/// Depth of attributes: the state, its resources, one of them, its instances, one of them, its attributes.
const ATTRIBUTES: usize = 6;

/// Number of plain bytes of a string that are kept: as many as an escape needs after `\u`.
const KEPT: usize = 4;

/// Longer than the one key that counts.
const LONGEST_KEY: usize = 16;

/// Reads JSON and leaves out most of the plain text in strings, and of the blanks between them, inside of resources'
/// attributes. What a parser that ignores these values says of the rest is the same: only printable ASCII is left out,
/// never a quote, an escape, or a neighbour of a byte that is not ASCII. Lines keep their numbers, but not their
/// columns.
pub(super) struct Thinned<R> {
    reader: R,
    place: Place,
}

impl<R: Read> Thinned<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, place: Place::default() }
    }
}

impl<R: Read> Read for Thinned<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.reader.read(buffer)?;
            let kept = self.place.thin(&mut buffer[..count]);
            if kept > 0 || count == 0 {
                return Ok(kept);
            }
        }
    }
}

/// Position of the next byte in the state.
#[derive(Default)]
struct Place {
    depth: usize,
    in_string: bool,
    /// The byte before was a backslash.
    escaped: bool,
    /// Number of plain bytes, or blanks, since anything else.
    run: usize,
    /// The string of the state itself that came last.
    key: Vec<u8>,
    in_resources: bool,
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

/// Number of plain bytes at the beginning. Whole blocks are looked at together.
fn plain_bytes(bytes: &[u8]) -> usize {
    let blocks = bytes.chunks_exact(32).take_while(|block| block.iter().fold(true, |all, byte| all & is_plain(*byte)));
    let whole = 32 * blocks.count();
    whole + bytes[whole..].iter().take_while(|byte| is_plain(**byte)).count()
}

impl Place {
    /// Moves what is kept to the front, and tells how much it is.
    fn thin(&mut self, bytes: &mut [u8]) -> usize {
        let (mut kept, mut at) = (0, 0);
        while at < bytes.len() {
            if self.in_resources && self.depth >= ATTRIBUTES && !self.escaped {
                let rest = &bytes[at..];
                let (run, most) = match self.in_string {
                    true => (plain_bytes(rest), KEPT),
                    false => (rest.iter().take_while(|byte| **byte == b' ').count(), 1),
                };
                let wanted = run.min(most.saturating_sub(self.run));
                bytes.copy_within(at..at + wanted, kept);
                kept += wanted;
                self.run += run;
                at += run;
                if at == bytes.len() {
                    break;
                }
            }
            let byte = bytes[at];
            self.pass(byte);
            bytes[kept] = byte;
            kept += 1;
            at += 1;
        }
        kept
    }

    fn pass(&mut self, byte: u8) {
        self.run = 0;
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ if self.depth == 1 && self.key.len() < LONGEST_KEY => self.key.push(byte),
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 {
                    self.key.clear();
                }
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 => self.in_resources = self.key == b"resources",
            b',' if self.depth == 1 => self.in_resources = false,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text, read so many bytes at a time.
    fn thinned(text: &[u8], size: usize) -> Vec<u8> {
        let mut reader = Thinned::new(text);
        let (mut all, mut buffer) = (Vec::new(), vec![0; size]);
        loop {
            match reader.read(&mut buffer).expect("memory does not fail") {
                0 => return all,
                count => all.extend_from_slice(&buffer[..count]),
            }
        }
    }

    fn text(text: &str, size: usize) -> String {
        String::from_utf8(thinned(text.as_bytes(), size)).expect("text")
    }

    #[test]
    fn only_text_inside_of_attributes_gets_shorter() {
        let state = r#"{"lineage": "long enough to be shortened", "outputs": {"a": {"value": {"b": {"c": {"d": "kept as it is"}}}}},
            "resources": [{"type": "a_type_with_a_name", "instances": [{"index_key": "a long key", "attributes": {
                "some_name": "some value of some length",      "list": [{"a": "\u00e9\\\"0123456789"}], "number": 1234567890}}]}],
            "check_results": [[[[[[["not of a resource"]]]]]]]}"#;
        let expected = r#"{"lineage": "long enough to be shortened", "outputs": {"a": {"value": {"b": {"c": {"d": "kept as it is"}}}}},
            "resources": [{"type": "a_type_with_a_name", "instances": [{"index_key": "a long key", "attributes": {
 "some": "some", "list": [{"a": "\u00e9\\\"0123"}], "numb": 1234567890}}]}],
            "check_results": [[[[[[["not of a resource"]]]]]]]}"#;
        for size in [1, 2, 3, 7, 64, 10_000] {
            assert_eq!(text(state, size), expected, "{size} at a time");
        }
    }

    #[test]
    fn what_is_wrong_stays_wrong() {
        let within = |value: &[u8]| {
            let head = br#"{"resources": [{"instances": [{"attributes": {"a": ""#;
            [head, value, br#""}}]}]}"#].concat()
        };
        let is_json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).is_ok();
        let values: [(&[u8], bool); 9] = [
            (b"plain text without an end in sight", true),
            ("caf\u{e9} 0123456789 \u{1f32e} 0123456789".as_bytes(), true),
            (b"0123456789\\u00e90123456789", true),
            (b"0123456789\\u00e", false),
            (b"0123456789\\x0123456789", false),
            (b"0123456789\n0123456789", false),
            (b"\xc30123456789\xa9", false),
            (b"0123456789\xc3", false),
            (b"0123456789\"0123456789", false),
        ];
        for (value, valid) in values {
            let whole = within(value);
            assert_eq!(is_json(&whole), valid, "{}", String::from_utf8_lossy(value));
            for size in [1, 2, 5, 10_000] {
                assert_eq!(is_json(&thinned(&whole, size)), valid, "{}", String::from_utf8_lossy(value));
            }
        }
    }
}
