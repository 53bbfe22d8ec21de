//! Ranking of names by what someone typed into the search.

use std::cmp::Reverse;

/// What someone looks for: words that all have to fit, in any order, whatever their case.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Query {
    words: Vec<String>,
}

/// How well a text fits: the greatest fits best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rank {
    fit: Fit,
    /// Of texts that fit alike, the shorter has less beside what was looked for.
    length: Reverse<usize>,
}

/// How one word fits, from the weakest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fit {
    /// The letters are there in this order, as `npr` in `network-prod`.
    Letters,
    Within,
    /// At the beginning of a word, as `prod` in `network-prod`.
    WordStart,
    Start,
    Whole,
}

impl Query {
    /// More words than anyone types are left out.
    const MAX_WORDS: usize = 8;

    pub fn new(typed: &str) -> Self {
        Self { words: typed.to_lowercase().split_whitespace().take(Self::MAX_WORDS).map(str::to_owned).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// True if one of the words is the beginning of `word`.
    pub fn has_beginning_of(&self, word: &str) -> bool {
        self.words.iter().any(|typed| word.starts_with(typed))
    }

    /// The query without the words that begin one of these.
    pub fn without_beginnings_of(&self, words: &[&str]) -> Self {
        let stays = |typed: &&String| !words.iter().any(|word| word.starts_with(typed.as_str()));
        Self { words: self.words.iter().filter(stays).cloned().collect() }
    }

    /// How well `text` fits; `None` if a word does not. The worst word counts. Nothing typed fits everything.
    pub fn rank(&self, text: &str) -> Option<Rank> {
        let text = text.to_lowercase();
        let mut worst = Fit::Whole;
        for word in &self.words {
            worst = worst.min(fit(word, &text)?);
        }
        Some(Rank { fit: worst, length: Reverse(text.len()) })
    }

    /// The best of these by the text that `name` gives, best first, and by name where several fit alike. `sees` is asked
    /// only of those that fit, until there are enough.
    pub fn best<'a, T>(
        &self,
        all: impl Iterator<Item = &'a T>,
        name: impl Fn(&'a T) -> &'a str,
        sees: impl Fn(&'a T) -> bool,
        limit: usize,
    ) -> Vec<&'a T> {
        let mut ranked: Vec<_> = all
            .filter_map(|item| {
                let name = name(item);
                Some((Reverse(self.rank(name)?), name, item))
            })
            .collect();
        ranked.sort_by(|one, other| (one.0, one.1).cmp(&(other.0, other.1)));
        ranked.into_iter().map(|(_, _, item)| item).filter(|item| sees(item)).take(limit).collect()
    }
}

fn fit(word: &str, text: &str) -> Option<Fit> {
    if word == text {
        return Some(Fit::Whole);
    }
    if text.starts_with(word) {
        return Some(Fit::Start);
    }
    let mut places = text.match_indices(word).map(|(at, _)| at).peekable();
    if places.peek().is_some() {
        let begins = |at: usize| text[..at].chars().next_back().is_some_and(|before| !before.is_alphanumeric());
        return Some(if places.any(begins) { Fit::WordStart } else { Fit::Within });
    }
    has_letters(word, text).then_some(Fit::Letters)
}

/// True if the letters of `word` are in `text` in their order, the first at its beginning.
fn has_letters(word: &str, text: &str) -> bool {
    let mut left = text.chars();
    word.chars().next() == text.chars().next() && word.chars().all(|letter| left.any(|other| other == letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(typed: &str, names: &[&'static str]) -> Vec<&'static str> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let found = Query::new(typed).best(names.iter(), |name| name, |_| true, 10);
        found.into_iter().map(|name| &*name.clone().leak()).collect()
    }

    #[test]
    fn what_fits_better_comes_first() {
        let names = ["a-web-shop", "cobweb", "web-prod", "web", "wide-edge-box", "network"];
        assert_eq!(ordered("WEB", &names), ["web", "web-prod", "a-web-shop", "cobweb", "wide-edge-box"]);
        assert_eq!(ordered("web-", &names), ["web-prod", "a-web-shop"]);
        assert_eq!(ordered("nothing", &names), [""; 0]);
    }

    #[test]
    fn all_words_have_to_fit_and_their_order_does_not_matter() {
        let names = ["network-prod", "network-test", "shop-prod"];
        for typed in ["prod net", " net  prod "] {
            assert_eq!(ordered(typed, &names), ["network-prod"], "{typed:?}");
        }
        assert_eq!(ordered("prod", &names), ["shop-prod", "network-prod"], "the shorter first");
    }

    #[test]
    fn words_of_a_command_are_told_from_the_rest() {
        let typed = Query::new("sta prod");
        assert!(typed.has_beginning_of("start") && !typed.has_beginning_of("run"));
        assert_eq!(typed.without_beginnings_of(&["start", "run"]), Query::new("prod"));
    }

    #[test]
    fn nothing_typed_fits_everything_and_letters_beyond_ascii_are_no_trouble() {
        assert!(Query::new("  ").is_empty() && Query::new("").rank("anything").is_some());
        assert!(Query::new("ß").rank("straße").is_some());
        assert!(Query::new("é").rank("cafe").is_none());
    }

    #[test]
    fn who_may_not_see_something_does_not_use_up_the_limit() {
        let names = ["a1", "a2", "a3"].map(str::to_owned);
        let found = Query::new("a").best(names.iter(), |name| name, |name| *name != "a1", 2);
        assert_eq!(found, [&names[1], &names[2]]);
    }
}
