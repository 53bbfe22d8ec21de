//! Flash messages after a form was submitted: the response is a redirect, and its address names one of these.

use axum::response::{IntoResponse, Redirect, Response};

/// Lists the messages once: each with its word in addresses, and the text that the next page shows.
macro_rules! flashes {
    ($($name:ident = $word:literal: $text:literal,)*) => {
        /// Message about what was done, for the next page. No other text can be brought onto a page from outside.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Flash {
            $($name,)*
        }

        impl Flash {
            const ALL: &'static [Self] = &[$(Self::$name,)*];

            fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }

            pub(crate) fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

flashes! {
    Saved = "saved": "Saved.",
    Created = "created": "Created.",
    Deleted = "deleted": "Deleted.",
    Archived = "archived": "Archived: its files are gone.",
    Locked = "locked": "The workspace is locked.",
    Unlocked = "unlocked": "The workspace is unlocked.",
    Restored = "restored": "The old state is current again, under a new serial.",
    StateUploaded = "state-uploaded": "The state was uploaded, and is the current one.",
    StateKnown = "state-known": "The current state is this one already: nothing has changed.",
    Confirmed = "confirmed": "Confirmed: the apply is queued.",
    Discarded = "discarded": "The plan was discarded.",
    Canceled = "canceled": "Cancel was asked for.",
    Begun = "begun": "The run goes before the others, which are over.",
    Started = "started": "The run is started.",
    Commented = "commented": "Your comment was added.",
    Revoked = "revoked": "Revoked.",
    OthersClosed = "closed": "Your other sessions have ended.",
    PasswordChanged = "password": "Your password is changed, and your other sessions have ended.",
    Suspended = "suspended": "Suspended: their sessions and tokens open nothing any more.",
    Joined = "joined": "Welcome: you are a member now.",
    Declined = "declined": "Declined: the invitation is gone.",
    Verified = "verified": "Verified: invitations to the address are theirs.",
    Resumed = "resumed": "They may log in again.",
    Imported = "imported": "The variables were taken over.",
}

impl Flash {
    /// The message that `query` asks for with `notice=…`.
    pub(crate) fn asked_for(query: &str) -> Option<Self> {
        let word = query.split('&').find_map(|pair| pair.strip_prefix("notice="))?;
        Self::ALL.iter().copied().find(|flash| flash.word() == word)
    }

    /// Leads to the page at `address`, which then shows this message.
    pub(crate) fn redirect_to(self, address: &str) -> Response {
        Redirect::to(&self.added_to(address)).into_response()
    }

    fn added_to(self, address: &str) -> String {
        let sign = if address.contains('?') { '&' } else { '?' };
        format!("{address}{sign}notice={}", self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_words_have_a_text() {
        assert_eq!(Flash::asked_for("page=2&notice=saved").map(Flash::text), Some("Saved."));
        assert_eq!(Flash::asked_for("notice=%3Cb%3E"), None);
        assert_eq!(Flash::asked_for(""), None);
        assert_eq!(Flash::Saved.added_to("/app/a"), "/app/a?notice=saved");
        assert_eq!(Flash::Saved.added_to("/app/a?x=1"), "/app/a?x=1&notice=saved");
        for flash in Flash::ALL {
            assert_eq!(Flash::asked_for(&format!("notice={}", flash.word())), Some(*flash), "each has its own word");
        }
    }
}
