//! Flash messages after a form was submitted: the response is a redirect, and its address names one of these.

/// The texts by their keys in the address. No other text can be brought onto a page from outside.
const NOTICES: &[(&str, &str)] = &[
    ("saved", "Saved."),
    ("created", "Created."),
    ("deleted", "Deleted."),
    ("archived", "Archived: its files are gone."),
    ("locked", "The workspace is locked."),
    ("unlocked", "The workspace is unlocked."),
    ("restored", "The old state is current again, under a new serial."),
    ("state-uploaded", "The state was uploaded, and is the current one."),
    ("state-known", "The current state is this one already: nothing has changed."),
    ("confirmed", "Confirmed: the apply is queued."),
    ("discarded", "The plan was discarded."),
    ("canceled", "Cancel was asked for."),
    ("begun", "The run goes before the others, which are over."),
    ("started", "The run is started."),
    ("commented", "Your comment was added."),
    ("revoked", "Revoked."),
    ("closed", "Your other sessions have ended."),
    ("password", "Your password is changed, and your other sessions have ended."),
    ("suspended", "Suspended: their sessions and tokens open nothing any more."),
    ("joined", "Welcome: you are a member now."),
    ("declined", "Declined: the invitation is gone."),
    ("verified", "Verified: invitations to the address are theirs."),
    ("resumed", "They may log in again."),
    ("imported", "The variables were taken over."),
];

/// The text that `query` asks for with `notice=…`.
pub(crate) fn asked_for(query: &str) -> Option<&'static str> {
    let word = query.split('&').find_map(|pair| pair.strip_prefix("notice="))?;
    NOTICES.iter().find(|(key, _)| *key == word).map(|(_, text)| *text)
}

/// `address` with a notice.
pub(crate) fn with(address: &str, word: &'static str) -> String {
    debug_assert!(NOTICES.iter().any(|(key, _)| *key == word), "no text for {word}");
    let sign = if address.contains('?') { '&' } else { '?' };
    format!("{address}{sign}notice={word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_words_have_a_text() {
        assert_eq!(asked_for("page=2&notice=saved"), Some("Saved."));
        assert_eq!(asked_for("notice=%3Cb%3E"), None);
        assert_eq!(asked_for(""), None);
        assert_eq!(with("/app/a", "saved"), "/app/a?notice=saved");
        assert_eq!(with("/app/a?x=1", "saved"), "/app/a?x=1&notice=saved");
    }
}
