//! Logs as HTML: colours become classes, and everything else that a terminal would obey is left out.
//!
//! The output contains text, `<span class="…">` and `</span>`, and nothing else, whatever goes in: the tests feed it
//! noise and look. Titles, links, cursor movements, bells and characters that turn the direction of writing are gone.

use anstyle_parse::{Params, Parser, Perform};

use crate::text::is_deceptive;

/// The classes that can come out, besides colours: `f` and `b` with a number from 0 to 15.
const EFFECTS: [(Effect, &str); 4] =
    [(Effect::Bold, "bold"), (Effect::Faint, "faint"), (Effect::Italic, "italic"), (Effect::Underline, "underline")];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Effect {
    Bold,
    Faint,
    Italic,
    Underline,
}

/// Style of a character.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Pen {
    /// One bit for each of [`EFFECTS`].
    effects: u8,
    front: Option<u8>,
    back: Option<u8>,
}

/// Turns a log into HTML, piece by piece. Colours last from one piece to the next.
#[derive(Default)]
pub(crate) struct Renderer {
    parser: Parser,
    line: Line,
}

/// The line that is being written, as a terminal would show it.
#[derive(Default)]
struct Line {
    pen: Pen,
    cells: Vec<(char, Pen)>,
    /// Column of the next character: a carriage return takes it back to the beginning.
    column: usize,
}

impl Renderer {
    /// Adds the lines of `bytes` to `html`. One that is not whole waits for the rest.
    pub(crate) fn render(&mut self, bytes: &[u8], html: &mut String) {
        for byte in bytes {
            if *byte == b'\n' {
                self.end_line(html);
                html.push('\n');
            } else {
                self.parser.advance(&mut self.line, *byte);
            }
        }
    }

    /// Adds what is left of the last line.
    pub(crate) fn finish(&mut self, html: &mut String) {
        self.end_line(html);
    }

    /// An unterminated sequence would hide all that follows, so it ends with its line.
    fn end_line(&mut self, html: &mut String) {
        self.parser = Parser::default();
        self.line.write(html);
        self.line.cells.clear();
        self.line.column = 0;
    }
}

impl Line {
    fn write(&self, html: &mut String) {
        let mut pen = Pen::default();
        for (character, wanted) in &self.cells {
            if *wanted != pen {
                close(pen, html);
                open(*wanted, html);
                pen = *wanted;
            }
            push_escaped(*character, html);
        }
        close(pen, html);
    }
}

fn open(pen: Pen, html: &mut String) {
    if pen == Pen::default() {
        return;
    }
    html.push_str("<span class=\"");
    let mut first = true;
    let mut class = |class: &str| {
        if !std::mem::take(&mut first) {
            html.push(' ');
        }
        html.push_str(class);
    };
    for (effect, name) in EFFECTS {
        if pen.effects & bit(effect) != 0 {
            class(name);
        }
    }
    for (side, colour) in [("f", pen.front), ("b", pen.back)] {
        if let Some(colour) = colour {
            class(&format!("{side}{colour}"));
        }
    }
    html.push_str("\">");
}

fn close(pen: Pen, html: &mut String) {
    if pen != Pen::default() {
        html.push_str("</span>");
    }
}

/// As `askama` escapes what templates show.
pub(crate) fn push_escaped(character: char, html: &mut String) {
    match character {
        '&' => html.push_str("&#38;"),
        '<' => html.push_str("&#60;"),
        '>' => html.push_str("&#62;"),
        '"' => html.push_str("&#34;"),
        '\'' => html.push_str("&#39;"),
        other => html.push(other),
    }
}

const fn bit(effect: Effect) -> u8 {
    1 << effect as u8
}

impl Perform for Line {
    fn print(&mut self, character: char) {
        if is_deceptive(character) {
            return;
        }
        let cell = (character, self.pen);
        match self.cells.get_mut(self.column) {
            Some(old) => *old = cell,
            None => self.cells.push(cell),
        }
        self.column += 1;
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\r' => self.column = 0,
            b'\t' => {
                let to = self.column / 8 * 8 + 8;
                while self.column < to {
                    self.print(' ');
                }
            }
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: u8) {
        if ignore || !intermediates.is_empty() {
            return;
        }
        match action {
            b'm' => self.pen = self.pen.after(params),
            // Erases in the line: to its end, or all of it.
            b'K' => match params.iter().next().and_then(|first| first.first().copied()).unwrap_or(0) {
                0 => self.cells.truncate(self.column),
                2 => {
                    self.cells.clear();
                    self.column = 0;
                }
                _ => {}
            },
            _ => {}
        }
    }
}

impl Pen {
    fn after(self, params: &Params) -> Self {
        let mut pen = self;
        let mut codes = params.iter();
        if params.is_empty() {
            return Self::default();
        }
        while let Some(code) = codes.next() {
            match code.first().copied().unwrap_or(0) {
                0 => pen = Self::default(),
                1 => pen.effects |= bit(Effect::Bold),
                2 => pen.effects |= bit(Effect::Faint),
                3 => pen.effects |= bit(Effect::Italic),
                4 => pen.effects |= bit(Effect::Underline),
                22 => pen.effects &= !(bit(Effect::Bold) | bit(Effect::Faint)),
                23 => pen.effects &= !bit(Effect::Italic),
                24 => pen.effects &= !bit(Effect::Underline),
                colour @ 30..=37 => pen.front = Some((colour - 30) as u8),
                colour @ 90..=97 => pen.front = Some((colour - 82) as u8),
                39 => pen.front = None,
                colour @ 40..=47 => pen.back = Some((colour - 40) as u8),
                colour @ 100..=107 => pen.back = Some((colour - 92) as u8),
                49 => pen.back = None,
                38 => pen.front = extended(code, &mut codes).or(pen.front),
                48 => pen.back = extended(code, &mut codes).or(pen.back),
                _ => {}
            }
        }
        pen
    }
}

/// A colour out of more than 16: we have classes for the first 16, and the others look as before.
fn extended<'a>(code: &[u16], codes: &mut impl Iterator<Item = &'a [u16]>) -> Option<u8> {
    let mut rest: Vec<u16> = code[1..].to_vec();
    if rest.is_empty() {
        let mut next = || codes.next().and_then(|code| code.first().copied());
        let kind = next()?;
        rest.push(kind);
        let parts = if kind == 2 { 3 } else { 1 };
        rest.extend((0..parts).filter_map(|_| next()));
    }
    match rest[..] {
        [5, colour] => u8::try_from(colour).ok().filter(|colour| *colour < 16),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(bytes: &[u8]) -> String {
        let (mut renderer, mut html) = (Renderer::default(), String::new());
        renderer.render(bytes, &mut html);
        renderer.finish(&mut html);
        html
    }

    #[test]
    fn colours_become_classes_and_nothing_else_is_obeyed() {
        for (text, expected) in [
            ("plain", "plain"),
            ("\x1b[31mred\x1b[0m.", "<span class=\"f1\">red</span>."),
            (
                "\x1b[1;4;92mx\x1b[22my\x1b[m",
                "<span class=\"bold underline f10\">x</span><span class=\"underline f10\">y</span>",
            ),
            ("\x1b[38;5;9ma\x1b[38;2;1;2;3mb\x1b[39mc", "<span class=\"f9\">ab</span>c"),
            ("\x1b[38:5:3ma", "<span class=\"f3\">a</span>"),
            ("<b>&\"'", "&#60;b&#62;&#38;&#34;&#39;"),
            ("10%\r20%\r100%\n", "100%\n"),
            ("long line\rshort\x1b[K", "short"),
            ("gone\x1b[2Kkept", "kept"),
            ("a\tb", "a       b"),
            ("\x02a\x00\x07\x08\x03\x7f", "a"),
            ("\x1b]0;title\x07a\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "alink"),
            ("\x1b[2J\x1b[10;10H\x1b[?25lx", "x"),
            ("a\u{202e}b\u{85}c", "abc"),
            ("\x1b]never ended\nseen", "\nseen"),
            ("\x1bPnever ended\nseen", "\nseen"),
        ] {
            assert_eq!(html(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn a_colour_lasts_over_lines_and_pieces() {
        let (mut renderer, mut html) = (Renderer::default(), String::new());
        for piece in ["\x1b[3", "1mre", "d\nst", "ill\x1b[0m\nplain\n"] {
            renderer.render(piece.as_bytes(), &mut html);
        }
        assert_eq!(html, "<span class=\"f1\">red</span>\n<span class=\"f1\">still</span>\nplain\n");
    }

    /// True if a text contains only markup that this file may write.
    fn is_harmless(html: &str) -> bool {
        let mut rest = html;
        let mut open = 0;
        while let Some(at) = rest.find(['<', '>', '"', '\'']) {
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("</span>") {
                open -= 1;
                rest = after;
                continue;
            }
            let Some((classes, after)) = rest.strip_prefix("<span class=\"").and_then(|rest| rest.split_once("\">"))
            else {
                return false;
            };
            let known = |class: &str| {
                let colour = class.strip_prefix(['f', 'b']).and_then(|number| number.parse::<u8>().ok());
                colour.is_some_and(|colour| colour < 16) || EFFECTS.iter().any(|(_, name)| *name == class)
            };
            if !classes.split(' ').all(known) {
                return false;
            }
            open += 1;
            rest = after;
        }
        open == 0 && !html.chars().any(|character| character != '\n' && is_deceptive(character))
    }

    #[test]
    fn noise_of_any_kind_comes_out_harmless() {
        // Pieces that parsers trip over, and every byte.
        let parts: [&[u8]; 16] = [
            b"\x1b[",
            b"\x1b]",
            b"\x1bP",
            b"\x1b\\",
            b"\x07",
            b"31",
            b";",
            b"m",
            b"<script>",
            b"\"'>&",
            b"\r",
            b"\n",
            b"\xc2\x9b31m",
            "\u{202e}".as_bytes(),
            b"38;5;",
            b"K",
        ];
        // A small generator: the same noise each time.
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = |limit: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % limit
        };
        for _ in 0..4000 {
            let (mut renderer, mut rendered) = (Renderer::default(), String::new());
            let mut fed = Vec::new();
            for _ in 0..next(40) {
                let piece = match next(3) {
                    0 => vec![next(256) as u8],
                    _ => parts[next(parts.len() as u64) as usize].to_vec(),
                };
                renderer.render(&piece, &mut rendered);
                fed.extend(piece);
            }
            renderer.finish(&mut rendered);
            assert!(is_harmless(&rendered), "{fed:?}\n{rendered}");
            assert_eq!(rendered, html(&fed), "pieces make no difference");
        }
    }
}
