//! Decodes base64 that comes in pieces, as a JSON string with its quotes and escapes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;

/// Takes the pieces of one string.
#[derive(Default)]
pub(crate) struct Base64Text {
    /// Symbols that wait for the rest of their group of four.
    waiting: Vec<u8>,
    /// The part so far of an escape such as `\/` or `\u002b`.
    escape: Vec<u8>,
    /// A group ended in `=`, so it was the last.
    ended: bool,
}

impl Base64Text {
    /// Decodes the next piece. The error says what was wrong.
    pub(crate) fn push(&mut self, piece: &[u8], decoded: &mut BytesMut) -> Result<(), String> {
        if self.escape.is_empty() && !piece.contains(&b'\\') {
            let piece = piece.strip_prefix(b"\"").unwrap_or(piece);
            self.waiting.extend_from_slice(piece.strip_suffix(b"\"").unwrap_or(piece));
        } else {
            for byte in piece {
                self.take(*byte)?;
            }
        }
        if self.waiting.iter().any(u8::is_ascii_whitespace) {
            self.waiting.retain(|symbol| !symbol.is_ascii_whitespace());
        }
        let whole = self.waiting.len() / 4 * 4;
        if whole == 0 {
            return Ok(());
        }
        if self.ended {
            return Err("more follows after its end".to_owned());
        }
        let before = decoded.len();
        decoded.resize(before + whole / 4 * 3, 0);
        let length = STANDARD.decode_slice(&self.waiting[..whole], &mut decoded[before..]);
        let length = length.map_err(|error| error.to_string())?;
        decoded.truncate(before + length);
        self.ended = self.waiting[whole - 1] == b'=';
        self.waiting.drain(..whole);
        Ok(())
    }

    fn take(&mut self, byte: u8) -> Result<(), String> {
        match (self.escape.as_slice(), byte) {
            ([], b'\\') => self.escape.push(byte),
            // The quotes around it. One within would have been escaped.
            ([], b'"') => {}
            ([], symbol) => self.waiting.push(symbol),
            ([_], b'u') => self.escape.push(byte),
            ([_], b'/') => self.end_escape(b'/'),
            ([_], b'n' | b'r' | b't') => self.end_escape(b' '),
            ([_, b'u', digits @ ..], digit) if digits.len() < 3 => self.escape.push(digit),
            ([_, b'u', digits @ ..], digit) => {
                let digits = [digits, &[digit]].concat();
                let symbol = str::from_utf8(&digits).ok().and_then(|text| u8::from_str_radix(text, 16).ok());
                self.end_escape(symbol.ok_or("it has an escape that is no symbol of base64")?);
            }
            _ => return Err("it has an escape that is no symbol of base64".to_owned()),
        }
        Ok(())
    }

    fn end_escape(&mut self, symbol: u8) {
        self.escape.clear();
        self.waiting.push(symbol);
    }

    /// Says whether the text could end here.
    pub(crate) fn finish(&self) -> Result<(), String> {
        match self.waiting.len() {
            0 => Ok(()),
            _ => Err("its length is no multiple of four".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str, size: usize) -> Result<Vec<u8>, String> {
        let (mut decoder, mut decoded) = (Base64Text::default(), BytesMut::new());
        for piece in text.as_bytes().chunks(size) {
            decoder.push(piece, &mut decoded)?;
        }
        decoder.finish().map(|()| decoded.to_vec())
    }

    #[test]
    fn text_decodes_wherever_the_pieces_end() {
        let cases: [(&str, &[u8]); 5] = [
            (r#""""#, b""),
            (r#""aGVsbG8=""#, b"hello"),
            (r#"" aGVs\nbG8h\r\n ""#, b"hello!"),
            (r#""\/\/\/\/""#, &[255; 3]),
            (r#""\u002F\u002b8=""#, &[0xff, 0xef]),
        ];
        for (text, plain) in cases {
            for size in 1..=text.len() {
                assert_eq!(decode(text, size).as_deref(), Ok(plain), "{text} by {size}");
            }
        }
    }

    #[test]
    fn what_is_no_base64_is_refused() {
        for text in [r#""aGV""#, r#""aGVs!""#, r#""aGVsbG8=aGVs""#, r#""a\"bc""#, r#""aGV\u20ac""#, r#""====""#] {
            for size in 1..=text.len() {
                assert!(decode(text, size).is_err(), "{text} by {size}");
            }
        }
    }
}
