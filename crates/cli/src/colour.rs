//! Colours of the terminal, for those who want them.

/// Colour, or weight, of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Colour {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Colour {
    fn code(self) -> u8 {
        match self {
            Self::Bold => 1,
            Self::Dim => 2,
            Self::Red => 31,
            Self::Green => 32,
            Self::Yellow => 33,
            Self::Cyan => 36,
        }
    }
}

/// Paints, or leaves texts as they are.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Painter {
    pub(crate) on: bool,
}

impl Painter {
    pub(crate) fn paint(self, text: &str, colour: Colour) -> String {
        if self.on && !text.is_empty() { format!("\u{1b}[{}m{text}\u{1b}[0m", colour.code()) } else { text.to_owned() }
    }

    pub(crate) fn paint_if(self, text: &str, colour: Option<Colour>) -> String {
        colour.map_or_else(|| text.to_owned(), |colour| self.paint(text, colour))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_painted_for_those_who_want_none() {
        assert_eq!(Painter { on: true }.paint("x", Colour::Red), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(Painter { on: false }.paint("x", Colour::Red), "x");
    }
}
