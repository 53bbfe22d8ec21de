//! A look at the heads of requests as they come. hyper takes a body that is said to be both chunked and so many bytes
//! long for a chunked one and does not tell; a proxy in front of us may read it the other way.

/// Maximum size of a head; hyper takes less.
const MAX_HEAD_BYTES: usize = 32 * 1024;

#[derive(Default, Debug)]
pub(super) struct HeadWatch {
    head: Vec<u8>,
    is_over: bool,
}

impl HeadWatch {
    /// Another head begins.
    pub(super) fn begin(&mut self) {
        self.head.clear();
        self.is_over = false;
    }

    /// Looks at more of the head; whether it says in two ways how long its body is.
    pub(super) fn look_at(&mut self, bytes: &[u8]) -> bool {
        if self.is_over {
            return false;
        }
        let bytes = match self.head.is_empty() {
            // Empty lines before a request are passed over.
            true => &bytes[bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()..],
            false => bytes,
        };
        // Most heads come in one piece, and need not be kept.
        if self.head.is_empty()
            && let Some(end) = end_of_head(bytes)
        {
            self.is_over = true;
            return is_ambiguous(&bytes[..end]);
        }
        let room = MAX_HEAD_BYTES.saturating_sub(self.head.len());
        // The end may have begun in what came before.
        let from = self.head.len().saturating_sub(2);
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let Some(end) = end_of_head(&self.head[from..]) else {
            self.is_over = room <= bytes.len();
            return false;
        };
        self.is_over = true;
        let ambiguous = is_ambiguous(&self.head[..from + end]);
        self.head.clear();
        ambiguous
    }
}

/// Offset of the empty line: lines end with or without a carriage return.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).enumerate().find_map(|(at, two)| match two {
        b"\n\n" => Some(at + 1),
        b"\n\r" if bytes.get(at + 2) == Some(&b'\n') => Some(at + 1),
        _ => None,
    })
}

fn is_ambiguous(head: &[u8]) -> bool {
    let (mut length, mut encoding) = (false, false);
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default().trim_ascii();
        length |= name.eq_ignore_ascii_case(b"content-length");
        encoding |= name.eq_ignore_ascii_case(b"transfer-encoding");
    }
    length && encoding
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_pieces(text: &str, size: usize) -> bool {
        let mut watch = HeadWatch::default();
        watch.begin();
        let mut found = 0;
        for piece in text.as_bytes().chunks(size) {
            found += usize::from(watch.look_at(piece));
        }
        assert!(found <= 1, "it is told once");
        found == 1
    }

    #[test]
    fn two_lengths_are_noticed_however_they_come() {
        let both = "POST /a HTTP/1.1\r\nhost: b\r\ncontent-length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        let swapped = "\r\n\r\nPOST /a HTTP/1.1\nTRANSFER-ENCODING: chunked\nContent-Length: 3\n\n";
        let one = "POST /a?content-length:transfer-encoding HTTP/1.1\r\nContent-Length: 3\r\n\r\ntransfer-encoding: 1\r\n\r\n";
        for size in [1, 2, 3, 7, 1000] {
            assert!(in_pieces(both, size) && in_pieces(swapped, size), "{size}");
            assert!(!in_pieces(one, size), "{size}");
        }
    }

    #[test]
    fn a_head_without_end_is_not_kept() {
        let mut watch = HeadWatch::default();
        watch.begin();
        for _ in 0..100 {
            assert!(!watch.look_at(&[b'x'; 1024]));
        }
        assert!(watch.head.len() <= MAX_HEAD_BYTES);
    }
}
