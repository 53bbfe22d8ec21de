//! The way through a long list.

use serde::Deserialize;
use taco_control_plane::{Listed, PageRequest};

/// As many rows as a page has.
pub(crate) const ROWS: usize = PageRequest::LARGEST_SIZE;

/// Query of a list's address, with or without a search.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct PageQuery {
    pub(crate) search: String,
    pub(crate) page: String,
}

/// Pagination below a list: see `parts.html`.
pub(crate) struct Pagination {
    pub(crate) first: usize,
    pub(crate) last: usize,
    pub(crate) total: usize,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

impl Pagination {
    /// `address` tells where the page of a number is.
    pub(crate) fn of<T>(listed: &Listed<T>, address: impl Fn(usize) -> String) -> Self {
        let (number, skipped) = (listed.page.number(), listed.page.skip());
        let last_page = listed.total_pages();
        Self {
            first: (skipped + 1).min(listed.total),
            last: skipped.saturating_add(listed.items.len()).min(listed.total),
            total: listed.total,
            // From beyond the end, one step leads back to where something is.
            before: (number > 1).then(|| address((number - 1).min(last_page))),
            after: (number < last_page).then(|| address(number + 1)),
        }
    }
}

/// The page that an address asks for; the first where it asks for none that there can be.
pub(crate) fn asked_for(number: &str) -> PageRequest {
    PageRequest::new(number.parse().unwrap_or(1), ROWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_knows_where_it_goes_on() {
        let shown = |number: &str, total: usize| {
            let Pagination { first, last, total, before, after } =
                Pagination::of(&Listed::from_all(0..total, asked_for(number)), |number| number.to_string());
            (first, last, total, before, after)
        };
        assert_eq!(shown("1", 0), (0, 0, 0, None, None));
        assert_eq!(shown("x", 250), (1, 100, 250, None, Some("2".to_owned())));
        assert_eq!(shown("3", 250), (201, 250, 250, Some("2".to_owned()), None));
        assert_eq!(shown("9", 250).3.as_deref(), Some("3"));
    }
}
