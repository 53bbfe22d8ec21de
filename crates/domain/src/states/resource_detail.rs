//! One resource of a state for people: its instances with their attributes, what it depends on, and what depends on it.
//! Give it a state that is masked: see [`crate::state_mask`].

use std::collections::BTreeSet;

use crate::json_tree::JsonTree;
use crate::state_diff::leaves;

/// More instances than this help no one on a page.
pub const MAX_SHOWN_INSTANCES: usize = 100;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourceDetail {
    /// As engines spell it, without an index: `module.network.aws_subnet.public`.
    pub address: String,
    /// Such as `module.network`; empty in the root module.
    pub module: String,
    pub is_data: bool,
    /// Provider as written in the state.
    pub provider: String,
    /// The first of those that are wanted.
    pub instances: Vec<InstanceDetail>,
    /// Number of instances, wanted or not.
    pub total: usize,
    /// Addresses, each once.
    pub depends_on: Vec<String>,
    pub used_by: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstanceDetail {
    pub address: String,
    /// `tainted`, mostly nothing.
    pub status: Option<String>,
    pub deposed: Option<String>,
    /// Path and value. Empty values are left out.
    pub attributes: Vec<(String, String)>,
}

/// The resource that `address` names, with or without an index, and with or without the words `module`. With an index,
/// that instance alone.
pub fn resource_detail(state: &JsonTree, address: &str) -> Option<ResourceDetail> {
    let resources = state.get("resources").map(JsonTree::elements).unwrap_or_default();
    let found = resources.iter().find(|resource| names(resource, address))?;
    let own = address_of(found);
    let all = found.get("instances").map(JsonTree::elements).unwrap_or_default();
    let wanted = |instance: &&JsonTree| {
        let index = index_of(instance);
        index.is_empty() || !has_index(found, address) || address.ends_with(&index)
    };
    let instances = all.iter().filter(wanted).take(MAX_SHOWN_INSTANCES).map(|instance| InstanceDetail {
        address: format!("{own}{}", index_of(instance)),
        status: text_of(instance, "status"),
        deposed: text_of(instance, "deposed"),
        attributes: attributes_of(instance),
    });
    let used_by = resources.iter().filter(|other| dependencies(other).contains(&own)).map(address_of);
    Some(ResourceDetail {
        module: text_of(found, "module").unwrap_or_default(),
        is_data: text_of(found, "mode").as_deref() == Some("data"),
        provider: text_of(found, "provider").unwrap_or_default(),
        instances: instances.collect(),
        total: all.len(),
        depends_on: dependencies(found).into_iter().filter(|other| *other != own).collect(),
        used_by: used_by.filter(|other| *other != own).collect::<BTreeSet<_>>().into_iter().collect(),
        address: own,
    })
}

fn attributes_of(instance: &JsonTree) -> Vec<(String, String)> {
    let named = ["attributes", "attributes_flat"].into_iter().filter_map(|name| instance.get(name));
    named.flat_map(leaves).collect()
}

fn text_of(tree: &JsonTree, name: &str) -> Option<String> {
    tree.get(name).and_then(JsonTree::as_text).filter(|text| !text.is_empty())
}

/// `[0]` or `["a"]`; empty where there is none.
fn index_of(instance: &JsonTree) -> String {
    instance.get("index_key").map(|key| format!("[{}]", key.compact())).unwrap_or_default()
}

fn address_of(resource: &JsonTree) -> String {
    let module = text_of(resource, "module").map(|module| format!("{module}.")).unwrap_or_default();
    format!("{module}{}", address_within(resource))
}

fn address_within(resource: &JsonTree) -> String {
    let text = |name: &str| text_of(resource, name).unwrap_or_default();
    let data = if text("mode") == "data" { "data." } else { "" };
    format!("{data}{}.{}", text("type"), text("name"))
}

/// The same without the words `module`, as the API and lists of resources spell it.
fn short_address(resource: &JsonTree) -> String {
    let module = text_of(resource, "module").unwrap_or_default();
    let names = module.split('.').filter(|part| *part != "module").chain([""]).collect::<Vec<_>>().join(".");
    format!("{}{}", if module.is_empty() { "" } else { &names }, address_within(resource))
}

fn names(resource: &JsonTree, address: &str) -> bool {
    let is_named = |own: String| {
        address.strip_prefix(&own).is_some_and(|rest| rest.is_empty() || rest.starts_with('[') && rest.ends_with(']'))
    };
    is_named(address_of(resource)) || is_named(short_address(resource))
}

fn has_index(resource: &JsonTree, address: &str) -> bool {
    address != address_of(resource) && address != short_address(resource)
}

fn dependencies(resource: &JsonTree) -> BTreeSet<String> {
    let instances = resource.get("instances").map(JsonTree::elements).unwrap_or_default();
    let all = instances.iter().flat_map(|one| one.get("dependencies").map(JsonTree::elements).unwrap_or_default());
    all.filter_map(JsonTree::as_text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_mask::mask;

    fn state() -> JsonTree {
        let text = r#"{"version":4,"resources":[
            {"mode":"managed","type":"random_id","name":"seed","provider":"p","instances":[
                {"attributes":{"id":"x","keepers":null,"secret":"hunter2"},
                 "sensitive_attributes":[[{"type":"get_attr","value":"secret"}]]}]},
            {"mode":"data","type":"random_id","name":"seed","provider":"p","instances":[{"attributes":{"id":"data"}}]},
            {"module":"module.net[\"a\"]","mode":"managed","type":"null_resource","name":"many","provider":"q","instances":[
                {"index_key":0,"status":"tainted","attributes":{"id":"0","tags":{"a":"b"}},"dependencies":["random_id.seed"]},
                {"index_key":"k","attributes":{"id":"k"},"dependencies":["random_id.seed","data.random_id.seed"]}]}
        ]}"#;
        mask(JsonTree::parse(text.as_bytes()).expect("JSON"))
    }

    fn attributes(instance: &InstanceDetail) -> Vec<String> {
        instance.attributes.iter().map(|(path, value)| format!("{path}={value}")).collect()
    }

    #[test]
    fn a_resource_tells_its_attributes_and_hides_what_is_sensitive() {
        let seed = resource_detail(&state(), "random_id.seed").expect("it is there");
        assert_eq!(attributes(&seed.instances[0]), ["id=\"x\"", "secret=(sensitive)"]);
        assert_eq!(seed.used_by, [r#"module.net["a"].null_resource.many"#]);
        assert!(!seed.is_data && seed.depends_on.is_empty() && seed.module.is_empty());
        let data = resource_detail(&state(), "data.random_id.seed").expect("it is there");
        assert!(data.is_data && attributes(&data.instances[0]) == ["id=\"data\""]);
    }

    #[test]
    fn addresses_may_leave_out_the_words_module_and_may_have_an_index() {
        for address in [r#"module.net["a"].null_resource.many"#, r#"net["a"].null_resource.many"#] {
            let all = resource_detail(&state(), address).expect(address);
            assert_eq!((all.instances.len(), all.total), (2, 2));
            assert_eq!(all.depends_on, ["data.random_id.seed", "random_id.seed"]);
            for (index, id) in [("[0]", "id=\"0\""), (r#"["k"]"#, "id=\"k\"")] {
                let one = resource_detail(&state(), &format!("{address}{index}")).expect(index);
                assert_eq!((one.instances.len(), one.total), (1, 2));
                assert_eq!(attributes(&one.instances[0])[0], id);
                assert!(one.instances[0].address.ends_with(index), "{}", one.instances[0].address);
            }
        }
        let tainted = resource_detail(&state(), r#"net["a"].null_resource.many[0]"#).expect("it is there");
        assert_eq!(tainted.instances[0].status.as_deref(), Some("tainted"));
        for address in ["", "random_id", "random_id.see", "random_id.seedling", "net.null_resource.many"] {
            assert_eq!(resource_detail(&state(), address), None, "{address}");
        }
    }
}
