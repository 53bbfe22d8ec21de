//! The configuration in a plan: what each module's expressions refer to.

use std::collections::BTreeMap;

use serde_json::Value;

use super::document::lenient;
use crate::graph::local_references::called_directory;

/// Modules nested deeper than this are not looked at.
const DEEPEST: usize = 64;

/// One module of a configuration.
#[derive(Default)]
pub(super) struct Module {
    /// Address, such as `module.a.module.b`; empty for the root module.
    pub(super) address: String,
    /// Directory, if it is known.
    pub(super) directory: Option<String>,
    pub(super) resources: Vec<Resource>,
    /// Traversals in outputs, calls, providers and everything else that is no resource.
    pub(super) others: Vec<Site>,
    pub(super) children: Vec<Self>,
}

/// Something with expressions.
pub(super) struct Site {
    /// Whole traversals, such as `data.terraform_remote_state.a.outputs.vpc_id`.
    pub(super) traversals: Vec<String>,
    /// Name of the variable that it is for, and of the call, if it is an argument of a module.
    pub(super) argument: Option<(String, String)>,
}

/// One resource or data block.
pub(super) struct Resource {
    /// Address within the configuration: without indexes.
    pub(super) address: String,
    pub(super) mode: String,
    pub(super) kind: String,
    pub(super) traversals: Vec<String>,
    /// Constant arguments.
    pub(super) constants: BTreeMap<String, Value>,
}

impl Module {
    pub(super) fn of(configuration: &Value) -> Self {
        let mut root = Self::of_module(&configuration["root_module"], String::new(), Some(String::new()), DEEPEST);
        // Providers are listed apart, with the module that configures them.
        for provider in configuration["provider_config"].as_object().into_iter().flat_map(|all| all.values()) {
            let traversals = traversals_within(&provider["expressions"]);
            let address = provider["module_address"].as_str().unwrap_or_default();
            if let Some(module) = root.find(address) {
                module.others.push(Site { traversals, argument: None });
            }
        }
        root
    }

    fn of_module(module: &Value, address: String, directory: Option<String>, depth: usize) -> Self {
        let prefix = if address.is_empty() { String::new() } else { format!("{address}.") };
        let mut found = Self { directory, ..Self::default() };
        for resource in module["resources"].as_array().into_iter().flatten() {
            found.resources.push(Resource::of(resource, &prefix));
        }
        for output in module["outputs"].as_object().into_iter().flat_map(|all| all.values()) {
            found.others.push(Site { traversals: traversals_within(output), argument: None });
        }
        for (name, call) in module["module_calls"].as_object().into_iter().flatten() {
            for (variable, expression) in call["expressions"].as_object().into_iter().flatten() {
                let traversals = traversals_within(expression);
                found.others.push(Site { traversals, argument: Some((name.clone(), variable.clone())) });
            }
            for part in ["count_expression", "for_each_expression", "depends_on"] {
                found.others.push(Site { traversals: traversals_within(&call[part]), argument: None });
            }
            if let Some(depth) = depth.checked_sub(1) {
                let source = call["source"].as_str().unwrap_or_default();
                let directory = found.directory.as_deref().and_then(|directory| called_directory(directory, source));
                let child = Self::of_module(&call["module"], format!("{prefix}module.{name}"), directory, depth);
                found.children.push(child);
            }
        }
        found.address = address;
        found
    }

    fn find(&mut self, address: &str) -> Option<&mut Self> {
        if self.address == address {
            return Some(self);
        }
        self.children.iter_mut().find_map(|child| child.find(address))
    }

    /// Calls `act` with this module and all within it.
    pub(super) fn each<'a>(&'a self, act: &mut impl FnMut(&'a Self)) {
        act(self);
        for child in &self.children {
            child.each(act);
        }
    }

    /// Traversals of the whole module.
    pub(super) fn traversals(&self) -> impl Iterator<Item = &String> {
        let of_resources = self.resources.iter().flat_map(|resource| &resource.traversals);
        of_resources.chain(self.others.iter().flat_map(|site| &site.traversals))
    }
}

impl Resource {
    fn of(resource: &Value, prefix: &str) -> Self {
        let text = |name: &str| resource[name].as_str().unwrap_or_default().to_owned();
        let expressions: BTreeMap<String, Value> = lenient(&resource["expressions"]);
        let constants = expressions.into_iter().filter_map(|(name, mut expression)| {
            let constant = expression.get_mut("constant_value")?.take();
            Some((name, constant))
        });
        let mut traversals = traversals_within(resource);
        // An order is no use of values.
        let ordered: Vec<String> = lenient(&resource["depends_on"]);
        traversals.retain(|traversal| !ordered.contains(traversal));
        Self {
            address: format!("{prefix}{}", text("address")),
            mode: text("mode"),
            kind: text("type"),
            constants: constants.collect(),
            traversals,
        }
    }
}

/// Whole traversals in expressions. A plan lists each together with all that it begins with: `a.b.c`, `a.b`, `a`.
fn traversals_within(expressions: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(expressions, &mut found);
    found
}

fn collect(expressions: &Value, found: &mut Vec<String>) {
    match expressions {
        Value::Array(elements) => elements.iter().for_each(|element| collect(element, found)),
        Value::Object(fields) => {
            for (name, field) in fields {
                match (name.as_str(), field) {
                    ("references", Value::Array(references)) => whole(references, found),
                    ("constant_value", _) => {}
                    _ => collect(field, found),
                }
            }
        }
        _ => {}
    }
}

fn whole(references: &[Value], found: &mut Vec<String>) {
    let mut before = "";
    for reference in references.iter().filter_map(Value::as_str) {
        let goes_on = before.strip_prefix(reference).is_some_and(|rest| rest.starts_with(['.', '[']));
        if !goes_on {
            found.push(reference.to_owned());
        }
        before = reference;
    }
}
