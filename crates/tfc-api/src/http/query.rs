//! Queries: a page, related resources to include, filters. Unknown keys are ignored, because real clients send some.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use taco_control_plane::PageRequest;
use taco_domain::attribute::shown;
use url::form_urlencoded;

use crate::error::ApiError;

/// A request's query, with its keys as they were sent, such as `page[number]`.
#[derive(Clone, Default, Debug)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// The last value of a key; an empty one counts as absent.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Tells whether a key begins like this.
    pub(crate) fn has_any(&self, beginning: &str) -> bool {
        self.0.iter().any(|(name, _)| name.starts_with(beginning))
    }

    /// The parts of a list that is separated by commas.
    pub(crate) fn list(&self, key: &str) -> Vec<&str> {
        let parts = self.get(key).into_iter().flat_map(|value| value.split(','));
        parts.map(str::trim).filter(|part| !part.is_empty()).collect()
    }

    /// All values of a key, which may be given several times and with commas.
    pub(crate) fn all(&self, key: &str) -> Vec<String> {
        let values = self.0.iter().filter(|(name, _)| name == key || name.strip_suffix("[]") == Some(key));
        let parts = values.flat_map(|(_, value)| value.split(','));
        parts.map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    /// The value of a key that has to be there.
    pub(crate) fn required(&self, key: &str) -> Result<&str, ApiError> {
        self.get(key).ok_or_else(|| ApiError::parameter(key, format!("{key} must be given")))
    }

    /// The id of something that has to be named.
    pub(crate) fn id<I: FromStr<Err: Display>>(&self, key: &str) -> Result<I, ApiError> {
        // An id that cannot be one belongs to nothing.
        self.required(key)?.parse().map_err(|_| ApiError::not_found())
    }

    /// The value of a key, if it is there.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.get(key).map(str::to_owned)
    }

    /// The parts of a list that is separated by commas, as texts of their own.
    pub(crate) fn texts(&self, key: &str) -> Vec<String> {
        self.list(key).into_iter().map(str::to_owned).collect()
    }

    /// Sizes beyond the largest mean the largest, as in Terraform Cloud; what is no positive number is refused.
    pub(crate) fn page(&self) -> Result<PageRequest, ApiError> {
        let number = |key: &str, default: usize| match self.get(key) {
            None => Ok(default),
            Some(text) => match text.parse::<u64>() {
                Ok(0) | Err(_) => {
                    let detail = format!("{key} must be a whole number of at least 1; it is {}", shown(text));
                    Err(ApiError::parameter(key, detail))
                }
                Ok(number) => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
            },
        };
        Ok(PageRequest::new(number("page[number]", 1)?, number("page[size]", PageRequest::DEFAULT_SIZE)?))
    }

    /// Tells whether `include` names something. Clients write `current_run` and `current-run`.
    pub(crate) fn includes(&self, name: &str) -> bool {
        let spelled = |text: &str| text.replace('_', "-");
        self.list("include").iter().any(|asked| spelled(asked) == spelled(name))
    }

    /// Refuses to include what is not among `known`, where clients rely on being told. Elsewhere it is ignored.
    pub(crate) fn check_include(&self, known: &[&str]) -> Result<(), ApiError> {
        let is_known = |asked: &str| known.iter().any(|name| name.replace('_', "-") == asked.replace('_', "-"));
        match self.list("include").into_iter().find(|asked| !is_known(asked)) {
            Some(asked) => {
                let detail = format!("Invalid include parameter: {} is none of {}", shown(asked), known.join(", "));
                Err(ApiError::parameter("include", detail))
            }
            None => Ok(()),
        }
    }

    /// `filter[tagged][N][key]` with its `filter[tagged][N][value]`, in the order of N.
    pub(crate) fn tagged(&self) -> Vec<(String, Option<String>)> {
        let mut tagged: BTreeMap<&str, (Option<&str>, Option<&str>)> = BTreeMap::new();
        for (name, value) in &self.0 {
            let Some((index, field)) =
                name.strip_prefix("filter[tagged][").and_then(|rest| rest.strip_suffix(']')?.split_once("]["))
            else {
                continue;
            };
            let entry = tagged.entry(index).or_default();
            match field {
                "key" => entry.0 = Some(value),
                "value" => entry.1 = Some(value).filter(|value| !value.is_empty()).map(String::as_str),
                _ => {}
            }
        }
        let pairs = tagged.into_values().filter_map(|(key, value)| Some((key?.to_owned(), value.map(str::to_owned))));
        pairs.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_clamped_or_refused() {
        for (query, expected) in [
            ("", Some((1, 20))),
            ("page[number]=3&page[size]=50", Some((3, 50))),
            ("page%5Bnumber%5D=3&page%5Bsize%5D=1000000000", Some((3, 100))),
            ("page[number]=18446744073709551615", Some((usize::MAX, 20))),
            ("page[number]=&page[size]=", Some((1, 20))),
            ("page[size]=0", None),
            ("page[size]=-1", None),
            ("page[size]=x", None),
            ("page[size]=1e9", None),
            ("page[number]=0", None),
        ] {
            let page = Query::parse(query).page().ok().map(|page| (page.number(), page.size()));
            assert_eq!(page, expected, "{query}");
        }
    }

    #[test]
    fn lists_are_separated_by_commas() {
        let query = Query::parse("include=current_run.plan%2Cproject&search[tags]=a, b,,&search[tags]=c");
        assert!(query.includes("project") && query.includes("current-run.plan") && !query.includes("plan"));
        assert_eq!(query.list("search[tags]"), ["c"]);
        assert_eq!(Query::parse("search[tags]=a, b,,").list("search[tags]"), ["a", "b"]);
    }

    #[test]
    fn tags_come_in_pairs() {
        let query = Query::parse(
            "filter[tagged][1][key]=team&filter[tagged][0][key]=env&filter[tagged][0][value]=dev&TagBindings=%7B+env+dev%7D",
        );
        assert_eq!(query.tagged(), [("env".to_owned(), Some("dev".to_owned())), ("team".to_owned(), None)]);
    }
}
