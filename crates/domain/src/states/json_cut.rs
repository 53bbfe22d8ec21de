//! Cuts values out of a JSON document that flows past in pieces, so that a large one need not be in memory.
//!
//! It finds its way and checks nothing: what is kept still has to be parsed, and what is no JSON fails there.

/// Keys up to this length are compared; the keys of a place are shorter.
const LONGEST_KEY: usize = 64;

/// A piece of the document, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece<'a> {
    Kept(&'a [u8]),
    /// Bytes of a value to cut out. `begins` marks the first of them; `place` is the index of its place.
    Cut {
        place: usize,
        begins: bool,
        bytes: &'a [u8],
    },
}

/// Position of the next byte in a document, and the values to cut out of it.
#[derive(Debug)]
pub struct JsonCut {
    /// Each a path of keys from the top, such as `["data", "attributes"]`.
    places: &'static [&'static [&'static str]],
    deepest: usize,
    open: Vec<Container>,
    /// The key that was read last in each open object, as deep as a place can be.
    keys: Vec<Vec<u8>>,
    awaits_key: bool,
    token: Token,
    cut: Option<Cut>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Container {
    Object,
    Array,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token {
    Between,
    Key {
        escaped: bool,
    },
    Text {
        escaped: bool,
    },
    /// A number, or a literal such as `true`.
    Bare,
}

#[derive(Clone, Copy, Debug)]
struct Cut {
    place: usize,
    depth: usize,
    begun: bool,
}

impl JsonCut {
    pub fn new(places: &'static [&'static [&'static str]]) -> Self {
        let deepest = places.iter().map(|place| place.len()).max().unwrap_or_default();
        let keys = vec![Vec::new(); deepest];
        Self { places, deepest, open: Vec::new(), keys, awaits_key: false, token: Token::Between, cut: None }
    }

    /// Takes the next bytes of the document, and hands them on in pieces.
    pub fn push<'a>(&mut self, bytes: &'a [u8], mut hand_on: impl FnMut(Piece<'a>)) {
        let (mut from, mut at) = (0, 0);
        while at < bytes.len() {
            match self.token {
                Token::Key { escaped: true } => {
                    self.note_key(&bytes[at..=at]);
                    self.token = Token::Key { escaped: false };
                    at += 1;
                }
                Token::Text { escaped: true } => {
                    self.token = Token::Text { escaped: false };
                    at += 1;
                }
                Token::Key { escaped: false } | Token::Text { escaped: false } => {
                    let key = matches!(self.token, Token::Key { .. });
                    let end = memchr::memchr2(b'"', b'\\', &bytes[at..]).map_or(bytes.len(), |length| at + length);
                    let upto = (end + 1).min(bytes.len());
                    if key {
                        self.note_key(&bytes[at..upto]);
                    }
                    at = upto;
                    match bytes.get(end) {
                        Some(b'\\') if key => self.token = Token::Key { escaped: true },
                        Some(b'\\') => self.token = Token::Text { escaped: true },
                        Some(_) if key => self.end_key(),
                        Some(_) => self.end_value(bytes, &mut from, at, &mut hand_on),
                        None => {}
                    }
                }
                Token::Bare if matches!(bytes[at], b',' | b']' | b'}') || bytes[at].is_ascii_whitespace() => {
                    self.end_value(bytes, &mut from, at, &mut hand_on);
                }
                Token::Bare => at += 1,
                Token::Between => {
                    self.step(bytes, &mut from, at, &mut hand_on);
                    at += 1;
                }
            }
        }
        self.hand_on(&bytes[from..], &mut hand_on);
    }

    fn step<'a>(&mut self, bytes: &'a [u8], from: &mut usize, at: usize, hand_on: &mut impl FnMut(Piece<'a>)) {
        match bytes[at] {
            b',' => self.awaits_key = self.open.last() == Some(&Container::Object),
            b':' => {}
            byte if byte.is_ascii_whitespace() => {}
            b'"' if self.awaits_key => {
                self.awaits_key = false;
                self.token = Token::Key { escaped: false };
                if let Some(key) = self.open.len().checked_sub(1).and_then(|depth| self.keys.get_mut(depth)) {
                    key.clear();
                }
            }
            b'}' | b']' => {
                self.open.pop();
                self.awaits_key = false;
                self.end_value(bytes, from, at + 1, hand_on);
            }
            byte => {
                if self.cut.is_none()
                    && let Some(place) = self.place()
                {
                    self.hand_on(&bytes[*from..at], hand_on);
                    *from = at;
                    self.cut = Some(Cut { place, depth: self.open.len(), begun: false });
                }
                match byte {
                    b'"' => self.token = Token::Text { escaped: false },
                    b'{' => self.open.push(Container::Object),
                    b'[' => self.open.push(Container::Array),
                    _ => self.token = Token::Bare,
                }
                self.awaits_key = byte == b'{';
            }
        }
    }

    /// The place that a value has which begins now.
    fn place(&self) -> Option<usize> {
        let depth = self.open.len();
        if depth > self.deepest || self.open.contains(&Container::Array) {
            return None;
        }
        let here = |place: &&[&str]| {
            place.len() == depth
                && place.iter().zip(&self.keys).all(|(wanted, key)| wanted.as_bytes() == key.as_slice())
        };
        self.places.iter().position(here)
    }

    fn note_key(&mut self, bytes: &[u8]) {
        if let Some(key) = self.open.len().checked_sub(1).and_then(|depth| self.keys.get_mut(depth)) {
            key.extend(bytes.iter().take(LONGEST_KEY.saturating_sub(key.len())));
        }
    }

    fn end_key(&mut self) {
        self.token = Token::Between;
        if let Some(key) = self.open.len().checked_sub(1).and_then(|depth| self.keys.get_mut(depth)) {
            if key.contains(&b'\\') {
                let quoted = [b"\"", key.as_slice()].concat();
                *key = serde_json::from_slice::<String>(&quoted).unwrap_or_default().into_bytes();
            } else if key.last() == Some(&b'"') {
                key.pop();
            }
        }
    }

    fn end_value<'a>(&mut self, bytes: &'a [u8], from: &mut usize, at: usize, hand_on: &mut impl FnMut(Piece<'a>)) {
        self.token = Token::Between;
        if self.cut.is_some_and(|cut| cut.depth == self.open.len()) {
            self.hand_on(&bytes[*from..at], hand_on);
            *from = at;
            self.cut = None;
        }
    }

    fn hand_on<'a>(&mut self, bytes: &'a [u8], hand_on: &mut impl FnMut(Piece<'a>)) {
        if bytes.is_empty() {
            return;
        }
        match &mut self.cut {
            None => hand_on(Piece::Kept(bytes)),
            Some(cut) => {
                hand_on(Piece::Cut { place: cut.place, begins: !cut.begun, bytes });
                cut.begun = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text that is kept, with `%` where a value began that was cut, and what was cut from each place.
    fn cut(places: &'static [&'static [&'static str]], document: &str, size: usize) -> (String, Vec<String>) {
        let mut json = JsonCut::new(places);
        let (mut kept, mut taken) = (Vec::new(), vec![Vec::new(); places.len()]);
        for bytes in document.as_bytes().chunks(size) {
            json.push(bytes, |piece| match piece {
                Piece::Kept(bytes) => kept.extend_from_slice(bytes),
                Piece::Cut { place, begins, bytes } => {
                    kept.extend(begins.then_some(b'%'));
                    taken[place].extend_from_slice(bytes);
                }
            });
        }
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (text(kept), taken.into_iter().map(text).collect())
    }

    const STATE: &[&[&str]] = &[&["data", "attributes", "state"]];
    const NUMBERS: &[&[&str]] = &[&["serial"], &["lineage"]];

    #[test]
    fn a_value_is_cut_out_wherever_the_pieces_end() {
        for (places, document, kept, taken) in [
            (
                STATE,
                r#"{"data":{"attributes":{"serial":1,"state":"AA\"=="},"type":"x"}}"#,
                r#"{"data":{"attributes":{"serial":1,"state":%},"type":"x"}}"#,
                vec![r#""AA\"==""#],
            ),
            (
                STATE,
                r#"{"data":{"attributes":{"st\u0061te":"AA"}}}"#,
                r#"{"data":{"attributes":{"st\u0061te":%}}}"#,
                vec![r#""AA""#],
            ),
            (
                STATE,
                r#"{"state":"a","data":{"state":"b","attributes":{"a":{"state":"c"},"l":["state",{"state":"d"}],"state":{"x":[1,{}]}}}}"#,
                r#"{"state":"a","data":{"state":"b","attributes":{"a":{"state":"c"},"l":["state",{"state":"d"}],"state":%}}}"#,
                vec![r#"{"x":[1,{}]}"#],
            ),
            (
                STATE,
                r#"[{"data":{"attributes":{"state":"x"}}}]"#,
                r#"[{"data":{"attributes":{"state":"x"}}}]"#,
                vec![""],
            ),
            (
                NUMBERS,
                r#"{ "serial" : 12 , "resources":[{"serial":1}], "lineage":"a-b"}"#,
                r#"{ "serial" : % , "resources":[{"serial":1}], "lineage":%}"#,
                vec!["12", r#""a-b""#],
            ),
            (NUMBERS, r#"{"serial":7}"#, r#"{"serial":%}"#, vec!["7", ""]),
            (NUMBERS, r#"{"a\\":"\\","serial":null}"#, r#"{"a\\":"\\","serial":%}"#, vec!["null", ""]),
        ] {
            for size in 1..=document.len() {
                let expected: Vec<String> = taken.iter().map(|text| (*text).to_owned()).collect();
                assert_eq!(cut(places, document, size), (kept.to_owned(), expected), "{document} by {size}");
            }
        }
    }

    #[test]
    fn what_is_no_json_passes() {
        for document in ["}}]]", "\"", "{\"data", "nonsense", "{{{{\"\"\"", "[,:\\\"]"] {
            for size in 1..=document.len() {
                assert_eq!(cut(STATE, document, size).0, document);
            }
        }
    }
}
