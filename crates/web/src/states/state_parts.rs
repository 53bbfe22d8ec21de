//! Contents of a state, as pages show them: outputs, and resources with their counts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Deserialize;
use taco_control_plane::{Listed, OutputView, PageRequest};
use taco_domain::id::OutputId;
use taco_domain::json_tree::JsonTree;
use taco_domain::state_file::{ResourceCount, ResourceSummary};
use url::form_urlencoded::Serializer;

use crate::pagination::{self, Pagination};
use crate::state_resource::resource_address;
use crate::text;

/// Of a longer value only this much is shown.
const MAX_SHOWN_VALUE_CHARS: usize = 2000;

pub(crate) struct OutputRow {
    pub(crate) id: OutputId,
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) shown: ShownValue,
}

/// The outputs of a state that a page shows.
pub(crate) struct OutputRows {
    pub(crate) rows: Vec<OutputRow>,
    /// Total number, shown or not.
    pub(crate) total: usize,
}

impl OutputRows {
    pub(crate) fn of(outputs: Vec<OutputView>) -> Self {
        let total = outputs.len();
        Self { rows: outputs.into_iter().take(MAX_SHOWN_OUTPUTS).map(OutputRow::of).collect(), total }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }
}

/// A page shows this many outputs; the API and the state have the others.
const MAX_SHOWN_OUTPUTS: usize = 500;

/// Of a name, a page shows this many characters.
const MAX_SHOWN_NAME_CHARS: usize = 250;

/// The beginning of a name that is too long to be read.
fn shown_name(name: String) -> String {
    match name.char_indices().nth(MAX_SHOWN_NAME_CHARS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}

pub(crate) enum ShownValue {
    Sensitive,
    /// Only those who can decrypt the state know it.
    Encrypted,
    Text(String),
}

impl OutputRow {
    /// A sensitive value stays hidden, also from one who may download the whole state: others look at screens too.
    pub(crate) fn of(output: OutputView) -> Self {
        let shown = match output.value {
            _ if output.type_name == "encrypted" => ShownValue::Encrypted,
            Some(value) if !output.sensitive => ShownValue::Text(laid_out(value.get())),
            _ => ShownValue::Sensitive,
        };
        Self { id: output.id, name: shown_name(output.name), kind: output.type_name, shown }
    }
}

/// A value of an output, indented as if it stood alone; a text as it is.
pub(crate) fn whole_value(value: &str) -> String {
    match serde_json::from_str::<String>(value) {
        Ok(text) => text::plain(&text),
        Err(_) => {
            JsonTree::parse(value.as_bytes()).map_or_else(|_| text::plain(value), |tree| text::plain(&tree.pretty()))
        }
    }
}

/// A value of an output, indented as if it stood alone.
fn laid_out(value: &str) -> String {
    match JsonTree::parse(value.as_bytes()) {
        Ok(tree) => shortened(&tree.pretty()),
        Err(_) => shortened(value),
    }
}

/// Text of a state as a page may show it.
pub(crate) fn shortened(value: &str) -> String {
    match value.char_indices().nth(MAX_SHOWN_VALUE_CHARS) {
        Some((end, _)) => format!("{} …", text::plain(&value[..end])),
        None => text::plain(value),
    }
}

pub(crate) struct ResourceRow {
    pub(crate) address: String,
    /// Of its page.
    pub(crate) link: String,
    pub(crate) module: String,
    pub(crate) provider: String,
    pub(crate) instances: u64,
}

/// Query of the address of a page that lists resources.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct ResourceQuery {
    /// A part of an address, a module or a provider.
    resource: String,
    page: String,
}

/// The resources of a state that a page shows: see `resources.html`.
pub(crate) struct Resources {
    pub(crate) search: String,
    pub(crate) managed: u64,
    pub(crate) types: Vec<(String, u64)>,
    pub(crate) rows: Vec<ResourceRow>,
    pub(crate) pages: Pagination,
}

impl Resources {
    /// `address` is where the page is, `state` where the page of the state is.
    pub(crate) fn of(summary: &ResourceSummary, query: ResourceQuery, address: &str, state: &str) -> Self {
        let search = query.resource;
        let listed = resources(summary, &search, pagination::asked_for(&query.page), state);
        let page = |number: usize| {
            let mut fields = Serializer::new(String::new());
            fields.append_pair("resource", &search).append_pair("page", &number.to_string());
            format!("{address}?{}#resources", fields.finish())
        };
        let pages = Pagination::of(&listed, page);
        Self { managed: summary.managed(), types: types(summary), pages, rows: listed.items, search }
    }
}

/// Counts by type, the highest first.
fn types(summary: &ResourceSummary) -> Vec<(String, u64)> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for resource in &summary.resources {
        *counts.entry(&resource.kind).or_default() += resource.count;
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts
}

/// The resources whose address, module or provider has `search` in it.
fn resources(summary: &ResourceSummary, search: &str, page: PageRequest, state: &str) -> Listed<ResourceRow> {
    let search = search.trim().to_lowercase();
    let fits = |resource: &&ResourceCount| {
        let has = |text: &str| text.to_lowercase().contains(&search);
        search.is_empty()
            || has(&format!("{}.{}", resource.kind, resource.name))
            || has(&resource.module)
            || has(&resource.provider)
    };
    Listed::from_all(summary.resources.iter().filter(fits), page).map(|resource| ResourceRow {
        address: text::plain(&format!("{}.{}", resource.kind, resource.name)),
        link: resource_address(state, &full_address(resource)),
        module: text::plain(&resource.module),
        provider: text::plain(provider_name(&resource.provider)),
        instances: resource.count,
    })
}

/// As the page of a resource takes it: with its module, of which the words `module` are left out.
fn full_address(resource: &ResourceCount) -> String {
    let ResourceCount { module, kind, name, .. } = resource;
    if **module == *"root" { format!("{kind}.{name}") } else { format!("{module}.{kind}.{name}") }
}

/// `provider["registry.terraform.io/hashicorp/null"]` is called `hashicorp/null`.
pub(crate) fn provider_name(provider: &str) -> &str {
    let source = provider.split('"').nth(1).unwrap_or(provider);
    source.split_once('/').map_or(source, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> ResourceSummary {
        let resource = |name: &str, kind: &str, count: u64, module: &str| ResourceCount {
            name: name.into(),
            kind: kind.into(),
            count,
            module: module.into(),
            provider: r#"provider["registry.terraform.io/hashicorp/null"]"#.into(),
        };
        ResourceSummary {
            resources: vec![
                resource("a", "null_resource", 2, "root"),
                resource("b", "random_id", 3, "network"),
                resource("c", "null_resource", 4, "network"),
            ],
            ..ResourceSummary::default()
        }
    }

    #[test]
    fn types_are_counted_and_the_most_come_first() {
        assert_eq!(types(&summary()), [("null_resource".to_owned(), 6), ("random_id".to_owned(), 3)]);
    }

    #[test]
    fn resources_are_found_by_any_part_of_them() {
        let found = |search: &str| {
            let listed = resources(&summary(), search, PageRequest::default(), "/states/sv-1");
            listed.items.into_iter().map(|row| row.address).collect::<Vec<_>>()
        };
        assert_eq!(found(""), ["null_resource.a", "random_id.b", "null_resource.c"]);
        assert_eq!(found("NULL_resource.c"), ["null_resource.c"]);
        assert_eq!(found("net"), ["random_id.b", "null_resource.c"]);
        assert_eq!(found("hashicorp").len(), 3);
        assert_eq!(provider_name("odd"), "odd");
        let links = resources(&summary(), "b", PageRequest::default(), "/states/sv-1").items;
        assert_eq!(links[0].link, "/states/sv-1/resources?address=network.random_id.b");
    }
}
