//! Suggestions for names that are misspelt.

/// The candidate that is spelled most alike, if one is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let distance = |candidate: &str| strsim::osa_distance(&lower, &candidate.to_lowercase());
    let allowed = (lower.chars().count() / 3).clamp(1, 4);
    let found = candidates.into_iter().map(|candidate| (distance(candidate), candidate));
    found.filter(|(distance, _)| *distance <= allowed).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// A hint: what may be meant, or else how to see all names.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    otherwise: impl FnOnce() -> String,
) -> String {
    match nearest(word, candidates) {
        Some(name) => format!("did you mean {name}? {}", otherwise()),
        None => otherwise(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_near_is_suggested() {
        let names = ["network-prod", "network-dev", "app"];
        assert_eq!(nearest("netwrk-prod", names), Some("network-prod"));
        assert_eq!(nearest("App", names), Some("app"));
        assert_eq!(nearest("database", names), None);
        assert_eq!(nearest("ap", []), None);
        let hint = did_you_mean("netwrk-dev", names, || "`taco ws ls` lists workspaces".to_owned());
        assert_eq!(hint, "did you mean network-dev? `taco ws ls` lists workspaces");
    }
}
