//! Texts in pictures: short enough, and harmless wherever they are put.

use std::fmt::Write as _;

/// A text of somebody else within XML, in an element or in an attribute.
pub(crate) fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(' '),
            // XML cannot have them at all.
            character if character.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&character) => {
                escaped.push('\u{fffd}');
            }
            character => escaped.push(character),
        }
    }
    escaped
}

/// Without control characters, on one line.
pub(crate) fn line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// A name that may be too long for its place: its beginning and its end, which tell names apart.
pub(crate) fn fitting(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most || most < 3 {
        return text.to_owned();
    }
    let end = (most - 1) / 2;
    let begin = most - 1 - end;
    let characters: Vec<char> = text.chars().collect();
    format!("{}…{}", String::from_iter(&characters[..begin]), String::from_iter(&characters[count - end..]))
}

/// `a, b and 3 more`.
pub(crate) fn some_of<S: AsRef<str>>(texts: &[S], most: usize) -> String {
    let mut text = String::new();
    for (number, item) in texts.iter().take(most).enumerate() {
        let comma = if number > 0 { ", " } else { "" };
        write!(text, "{comma}{}", item.as_ref()).expect("a text takes all");
    }
    if texts.len() > most {
        write!(text, " and {} more", texts.len() - most).expect("a text takes all");
    }
    text
}

/// `1 workspace`, `2 workspaces`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_somebody_called_a_unit_leaves_its_place() {
        assert_eq!(xml("a\"<b>&'\n\u{1}\u{ffff}ü"), "a&quot;&lt;b&gt;&amp;&#39; \u{fffd}\u{fffd}ü");
        assert_eq!(line("a\nb\u{7}"), "a b ");
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(fitting("network", 10), "network");
        assert_eq!(fitting("production-network-eu", 11), "produ…rk-eu");
        assert_eq!(fitting("ünïcödé-nämé", 5), "ün…mé");
    }

    #[test]
    fn of_many_the_first_are_named() {
        assert_eq!(some_of(&["a", "b"], 3), "a, b");
        assert_eq!(some_of(&["a", "b", "c"], 1), "a and 2 more");
        assert_eq!((counted(1, "unit"), counted(0, "unit")), ("1 unit".to_owned(), "0 units".to_owned()));
    }
}
