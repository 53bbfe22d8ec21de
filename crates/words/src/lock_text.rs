//! Texts about locks, as people read them.

use std::borrow::Cow;

/// What the API's texts have between these words and a name that says enough without them.
const LOCKED_BY: &str = "locked by ";
const KINDS: [&str; 2] = ["User ", "Run "];

/// `is locked by User jane since …` is for terraform's clients, which look for these words. People read
/// `is locked by jane since …`.
pub fn for_people(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for kind in KINDS {
        let wire = format!("{LOCKED_BY}{kind}");
        if text.contains(&wire) {
            text = Cow::Owned(text.replace(&wire, LOCKED_BY));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_and_runs_are_known_by_their_names() {
        for (wire, people) in [
            ("The workspace is locked by User jane since 2026", "The workspace is locked by jane since 2026"),
            ("it is locked by Run run-1 (User error)", "it is locked by run-1 (User error)"),
            ("is locked by Team ops since", "is locked by Team ops since"),
            ("", ""),
        ] {
            assert_eq!(for_people(wire), people);
        }
    }
}
