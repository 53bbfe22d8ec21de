//! Looks: the colour, the sign and the words of a unit.

use taco_words::graph::{EdgeStatus, Freshness};

use crate::document::{Edge, Unit};

/// How a unit looks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Look {
    pub tone: Tone,
    pub sign: Sign,
    pub words: String,
}

macro_rules! words_of {
    ($($(#[$attribute:meta])* $name:ident { $($(#[$variant_attribute:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum $name {
            $($(#[$variant_attribute])* $variant,)*
        }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word for it in classes and ids.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    )*};
}

words_of! {
    /// Class of a colour, as badges have them.
    Tone {
        Calm = "calm",
        Busy = "busy",
        Asks = "asks",
        Good = "good",
        Bad = "bad",
        Off = "off",
    }

    /// A shape that differs from the others without any colour.
    Sign {
        Check = "check",
        Triangle = "triangle",
        Cross = "cross",
        Diamond = "diamond",
        Question = "question",
        Dashes = "dashes",
        /// Units that use each other.
        Circle = "circle",
        Outside = "outside",
        Play = "play",
        Pause = "pause",
        Dots = "dots",
        /// Passed over.
        Skip = "skip",
    }
}

impl Sign {
    /// A line drawing of 16 by 16.
    pub fn path(self) -> &'static str {
        match self {
            Self::Check => "M8 1.5a6.5 6.5 0 1 0 .01 0M5 8.2l2.1 2.1L11.2 6",
            Self::Triangle => "M8 1.5 15 14H1ZM8 6v3.6M8 11.6v.4",
            Self::Cross => "M5 1.5h6L14.5 5v6L11 14.5H5L1.5 11V5ZM5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4",
            Self::Diamond => "M8 .8 15.2 8 8 15.2.8 8ZM5 8.6c1-1.6 2-1.6 3-.6s2 1 3-.6",
            Self::Question => "M2 2h12v12H2ZM6 6.4c0-2.6 4-2.6 4 0C10 8 8 7.8 8 9.4M8 11.6v.4",
            Self::Dashes => {
                "M8 1.5h1.6M12.6 3l1.1 1.2M14.5 8v1.4M13 12.4l-1.1 1.1M8 14.5H6.4M3.4 13l-1.1-1.2M1.5 8V6.6M3 3.6l1.1-1.1"
            }
            Self::Circle => "M13.5 6A6 6 0 0 0 3 4.6M2.5 1.6v3.2h3.2M2.5 10A6 6 0 0 0 13 11.4M13.5 14.4v-3.2h-3.2",
            Self::Outside => "M6.5 2.5h-4v11h11v-4M9 2.5h4.5V7M13.5 2.5 7.5 8.5",
            Self::Play => "M8 1.5a6.5 6.5 0 1 0 .01 0M6.5 5.2v5.6L11 8Z",
            Self::Pause => "M8 1.5a6.5 6.5 0 1 0 .01 0M6.3 5.5v5M9.7 5.5v5",
            Self::Dots => "M8 1.5a6.5 6.5 0 1 0 .01 0M5 8h.2M8 8h.2M11 8h.2",
            Self::Skip => "M3 3.5 8 8l-5 4.5ZM8 3.5 13 8l-5 4.5Z",
        }
    }
}

impl Look {
    /// By freshness, activity and health.
    pub fn of(unit: &Unit) -> Self {
        Self { words: unit.words(), ..Self::of_freshness(unit.freshness) }
    }

    /// By what an edge's consumer last applied against.
    pub fn of_edge(edge: &Edge) -> Self {
        let (tone, sign, word) = match edge.status {
            EdgeStatus::Fresh => (Tone::Good, Sign::Check, "fresh"),
            EdgeStatus::Stale => (Tone::Asks, Sign::Triangle, "stale"),
            EdgeStatus::Missing => (Tone::Bad, Sign::Cross, "output gone"),
            EdgeStatus::Retyped => (Tone::Bad, Sign::Cross, "type changed"),
            EdgeStatus::Unbound => (Tone::Off, Sign::Outside, "no outputs known"),
            EdgeStatus::Unobserved => (Tone::Off, Sign::Dashes, "declared, not seen"),
            EdgeStatus::Opaque => (Tone::Calm, Sign::Question, "can't be read"),
            EdgeStatus::Unknown => (Tone::Calm, Sign::Question, "unknown"),
        };
        let probably = if edge.certain || edge.status != EdgeStatus::Stale { "" } else { "probably " };
        if !edge.counts() {
            return Self { tone: Tone::Off, sign: Sign::Skip, words: format!("{word}, does not count") };
        }
        Self { tone, sign, words: format!("{probably}{word}") }
    }

    pub fn of_freshness(freshness: Freshness) -> Self {
        let (tone, sign) = match freshness {
            Freshness::Clean => (Tone::Good, Sign::Check),
            Freshness::Stale => (Tone::Asks, Sign::Triangle),
            Freshness::Broken => (Tone::Bad, Sign::Cross),
            Freshness::MayChange => (Tone::Busy, Sign::Diamond),
            Freshness::Unknown => (Tone::Calm, Sign::Question),
            Freshness::NeverApplied => (Tone::Off, Sign::Dashes),
        };
        Self { tone, sign, words: freshness.text().to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn an_edge_says_when_it_is_not_certain_and_when_it_does_not_count() {
        let mut edge = Edge::new("app", "network", EdgeStatus::Stale);
        assert_eq!(Look::of_edge(&edge).words, "stale");
        edge.certain = false;
        assert_eq!(Look::of_edge(&edge).words, "probably stale");
        edge.muted = true;
        assert_eq!(Look::of_edge(&edge).words, "stale, does not count");
    }

    #[test]
    fn freshness_differs_in_its_sign_and_in_its_word() {
        let looks: Vec<Look> = Freshness::ALL.iter().map(|freshness| Look::of_freshness(*freshness)).collect();
        let count = |of: &dyn Fn(&Look) -> String| looks.iter().map(of).collect::<BTreeSet<_>>().len();
        assert_eq!(count(&|look| look.sign.path().to_owned()), looks.len());
        assert_eq!(count(&|look| look.words.clone()), looks.len());
        assert_eq!(count(&|look| look.tone.word().to_owned()), looks.len());
    }
}
