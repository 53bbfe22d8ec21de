//! A list with a search and a way through its pages, which pages of many nouns show.

use taco_control_plane::Listed;
use url::form_urlencoded::Serializer;

use crate::pagination::Pagination;

/// Rows of a list that can be searched: see `search` and `pages` in `parts.html`.
pub(crate) struct ListPage<Row> {
    /// Without a query.
    pub(crate) address: String,
    pub(crate) search: String,
    pub(crate) rows: Vec<Row>,
    pub(crate) pages: Pagination,
}

impl<Row> ListPage<Row> {
    pub(crate) fn of<T>(address: String, search: &str, listed: Listed<T>, row: impl FnMut(T) -> Row) -> Self {
        let page = |number: usize| {
            let mut fields = Serializer::new(format!("{address}?"));
            fields.append_pair("search", search).append_pair("page", &number.to_string()).finish()
        };
        let pages = Pagination::of(&listed, page);
        Self { rows: listed.items.into_iter().map(row).collect(), pages, search: search.to_owned(), address }
    }

    /// True if nothing was searched for.
    pub(crate) fn is_whole(&self) -> bool {
        self.search.is_empty()
    }
}
