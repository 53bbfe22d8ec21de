//! Lifetimes of tokens that forms offer.

use jiff::{SignedDuration, Timestamp};

use crate::error::PageError;
use crate::text::Moment;

/// In days, with their names.
const OFFERED: [(i64, &str); 5] =
    [(1, "one day"), (30, "30 days"), (90, "90 days"), (365, "one year"), (730, "two years")];

/// One of them, as a form shows it.
pub(crate) struct Lifetime {
    pub(crate) days: i64,
    pub(crate) name: &'static str,
    /// Expiry of a token that is created now.
    pub(crate) until: Moment,
    pub(crate) selected: bool,
}

/// Expiry of a token that is created now.
pub(crate) fn until(days: i64, now: Timestamp) -> Timestamp {
    now.checked_add(SignedDuration::from_hours(24 * days)).unwrap_or(Timestamp::MAX)
}

/// All that a form offers, with the usual one selected.
pub(crate) fn offered(usual: i64, now: Timestamp) -> Vec<Lifetime> {
    let lifetime = |(days, name)| Lifetime { days, name, until: Moment(until(days, now)), selected: days == usual };
    OFFERED.map(lifetime).into()
}

/// Expiry of a token for which this was chosen.
pub(crate) fn chosen(days: &str, now: Timestamp) -> Result<Timestamp, PageError> {
    let days = days.parse::<i64>().ok().filter(|days| OFFERED.iter().any(|(offered, _)| offered == days));
    let days = days.ok_or_else(|| PageError::bad_request("Choose one of the lifetimes that the form offers."))?;
    Ok(until(days, now))
}
