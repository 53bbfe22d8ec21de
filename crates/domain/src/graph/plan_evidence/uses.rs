//! Which outputs a configuration uses, of what it reads.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use serde_json::value::RawValue;

use super::PlanRead;
use super::configuration::{Module, Resource};
use super::document::{Document, PriorResource};
use crate::graph::address_steps::{last_index, without_indexes};
use crate::graph::dependency::MAX_LISTED_USERS;
use crate::graph::local_references::{LocalReferences, LocalValue};
use crate::graph::output_commit::UsedOutputs;
use crate::graph::producer_address::ProducerAddress;
use crate::graph::state_evidence::{ReadVia, output_read, read_via};

/// Local values that refer to each other are followed so far.
const MAX_LOCALS_FOLLOWED: usize = 64;

/// Uses of one data block, by the index that an expression names; those without one are of all its instances.
#[derive(Default)]
struct Uses {
    by_index: BTreeMap<Option<String>, UsedOutputs>,
}

impl Uses {
    fn add(&mut self, index: Option<String>, used: &UsedOutputs) {
        let before = self.by_index.remove(&index).unwrap_or_else(nothing);
        self.by_index.insert(index, before.and(used));
    }

    fn of_instance(&self, index: Option<&str>) -> UsedOutputs {
        let matching = self.by_index.iter().filter(|(named, _)| match (named.as_deref(), index) {
            (Some(named), Some(index)) => named == index,
            _ => true,
        });
        matching.fold(nothing(), |all, (_, used)| all.and(used))
    }
}

fn nothing() -> UsedOutputs {
    UsedOutputs::Names(BTreeSet::new())
}

/// One data block of the configuration.
struct Block<'a> {
    resource: &'a Resource,
    via: ReadVia,
    uses: Uses,
    /// Addresses of resources whose expressions name it.
    users: BTreeSet<&'a str>,
}

/// Reads of a plan, and whether the configuration's files would tell more of them.
pub(super) fn reads(document: &Document, root: &Module, locals: &LocalReferences) -> (Vec<PlanRead>, bool) {
    let mut asks_for_files = false;
    let mut prior = Prior::default();
    document.prior_state.values.root_module.each(&mut |resource| prior.take(resource));
    let mut blocks: BTreeMap<&str, Block<'_>> = BTreeMap::new();
    root.each(&mut |module| {
        for (resource, via) in data_blocks(module) {
            let block = Block { resource, via, uses: Uses::default(), users: BTreeSet::new() };
            blocks.insert(&resource.address, block);
        }
    });
    root.each(&mut |module| named_uses(module, locals, &mut blocks));
    let is_all_new = document.is_all_new();
    root.each(&mut |module| {
        let is_known = module.directory.as_deref().is_some_and(|directory| locals.of_directory(directory).is_some());
        if is_known {
            return;
        }
        for (resource, _) in data_blocks(module) {
            let Some(block) = blocks.get_mut(resource.address.as_str()) else { continue };
            if is_all_new {
                block.uses_of_changes(document);
            } else if may_be_used_by_locals(module, resource, &prior) {
                block.uses.add(None, &UsedOutputs::All);
                asks_for_files |= module.directory.is_some();
            }
        }
    });
    let mut reads = Vec::new();
    for (address, block) in &blocks {
        let instances = prior.reads.get(*address).map(Vec::as_slice).unwrap_or_default();
        if instances.is_empty() {
            reads.push(block.unread(document, &prior));
        }
        reads.extend(instances.iter().filter_map(|instance| block.read(instance, &prior)));
    }
    (reads, asks_for_files)
}

/// Data blocks of a module that read outputs, and ephemeral ones.
fn data_blocks(module: &Module) -> impl Iterator<Item = (&Resource, ReadVia)> {
    let blocks = module.resources.iter().filter(|resource| resource.mode != "managed");
    blocks.filter_map(|resource| Some((resource, read_via(&resource.kind)?)))
}

/// What the state before the plan tells, by configured address.
#[derive(Default)]
struct Prior<'a> {
    reads: BTreeMap<String, Vec<&'a PriorResource>>,
    /// Instances that depend on a data block.
    users: BTreeMap<&'a str, Vec<&'a str>>,
    /// What all instances of a managed resource depend on.
    dependencies: BTreeMap<String, BTreeSet<&'a str>>,
}

impl<'a> Prior<'a> {
    fn take(&mut self, resource: &'a PriorResource) {
        let address = without_indexes(&resource.address);
        if resource.mode == "data" {
            if read_via(&resource.kind).is_some() {
                self.reads.entry(address).or_default().push(resource);
            }
            return;
        }
        let dependencies = self.dependencies.entry(address).or_default();
        for dependency in &resource.depends_on {
            dependencies.insert(dependency);
            self.users.entry(dependency).or_default().push(&resource.address);
        }
    }
}

fn named_uses<'a>(module: &'a Module, locals: &LocalReferences, blocks: &mut BTreeMap<&str, Block<'a>>) {
    let of_module = module.directory.as_deref().and_then(|directory| locals.of_directory(directory));
    let mut take = |traversal: &str, user: Option<&'a str>| {
        for traversal in through_locals(traversal, of_module) {
            let Some(named) = NamedRead::of(&traversal) else { continue };
            let prefix = if module.address.is_empty() { String::new() } else { format!("{}.", module.address) };
            let Some(block) = blocks.get_mut(format!("{prefix}{}", named.block).as_str()) else { continue };
            block.uses.add(named.index, &named.used);
            block.users.extend(user);
        }
    };
    for resource in &module.resources {
        let user = (resource.mode == "managed").then_some(resource.address.as_str());
        resource.traversals.iter().for_each(|traversal| take(traversal, user));
    }
    for site in &module.others {
        site.traversals.iter().for_each(|traversal| take(traversal, None));
        // Resources of the module use what it is given.
        let Some((call, variable)) = &site.argument else { continue };
        let Some(child) = module.children.iter().find(|child| last_step(&child.address) == call) else { continue };
        let mut users = Vec::new();
        users_of_variable(child, variable, &mut users, 0);
        for user in users {
            site.traversals.iter().for_each(|traversal| take(traversal, Some(user)));
        }
    }
}

fn last_step(address: &str) -> &str {
    address.rsplit('.').next().unwrap_or_default()
}

/// Resources of a module, and of those that it calls, which use one of its variables.
fn users_of_variable<'a>(module: &'a Module, variable: &str, users: &mut Vec<&'a str>, depth: usize) {
    let is_meant = |traversal: &String| {
        let rest = traversal.strip_prefix("var.").and_then(|rest| rest.strip_prefix(variable));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    for resource in &module.resources {
        if resource.mode == "managed" && resource.traversals.iter().any(is_meant) {
            users.push(&resource.address);
        }
    }
    if depth >= MAX_LOCALS_FOLLOWED {
        return;
    }
    for site in module.others.iter().filter(|site| site.traversals.iter().any(is_meant)) {
        let Some((call, variable)) = &site.argument else { continue };
        if let Some(child) = module.children.iter().find(|child| last_step(&child.address) == call) {
            users_of_variable(child, variable, users, depth + 1);
        }
    }
}

/// The traversal, or what it is once local values are replaced by what they refer to.
fn through_locals(traversal: &str, locals: Option<&BTreeMap<String, LocalValue>>) -> Vec<String> {
    let Some(locals) = locals else { return vec![traversal.to_owned()] };
    let (mut waiting, mut found) = (vec![traversal.to_owned()], Vec::new());
    let mut seen = BTreeSet::new();
    while let Some(traversal) = waiting.pop() {
        let Some(rest) = traversal.strip_prefix("local.") else {
            found.push(traversal);
            continue;
        };
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        if seen.len() >= MAX_LOCALS_FOLLOWED * MAX_LOCALS_FOLLOWED || !seen.insert(traversal.clone()) {
            continue;
        }
        match locals.get(name) {
            // Locals that refer to themselves through each other are refused by every engine; they only grow here.
            Some(LocalValue::Traversal(target)) if target.len() + rest.len() <= 4096 => {
                waiting.push(format!("{target}{rest}"));
            }
            Some(LocalValue::Traversal(_)) | None => {}
            Some(LocalValue::Expression(targets)) => waiting.extend(targets.iter().cloned()),
        }
    }
    found
}

/// Use of a data block by one traversal.
struct NamedRead {
    /// Its address within the module, without index.
    block: String,
    /// As in its address, with brackets.
    index: Option<String>,
    used: UsedOutputs,
}

impl NamedRead {
    fn of(traversal: &str) -> Option<Self> {
        let mut steps = Steps(traversal);
        let mode = steps.name().filter(|mode| matches!(*mode, "data" | "ephemeral"))?;
        let (kind, name) = (steps.name()?, steps.name()?);
        let via = read_via(kind)?;
        let index = steps.index().map(|index| index.to_owned());
        let attribute = steps.name_or_key();
        let used = match (via, attribute.as_deref()) {
            // Backend, configuration and workspace are no outputs.
            (ReadVia::RemoteState, Some("outputs")) | (ReadVia::TfeOutputs, Some("values" | "nonsensitive_values")) => {
                steps.name_or_key().map(|name| UsedOutputs::Names([name].into())).unwrap_or(UsedOutputs::All)
            }
            (_, Some(_)) => nothing(),
            (_, None) => UsedOutputs::All,
        };
        Some(Self { block: format!("{mode}.{kind}.{name}"), index, used })
    }
}

/// Steps of a traversal that are left.
struct Steps<'a>(&'a str);

impl<'a> Steps<'a> {
    fn name(&mut self) -> Option<&'a str> {
        let rest = self.0.strip_prefix('.').unwrap_or(self.0);
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        self.0 = rest;
        (!name.is_empty()).then_some(name)
    }

    /// `[0]` or `["key"]`.
    fn index(&mut self) -> Option<&'a str> {
        if !self.0.starts_with('[') {
            return None;
        }
        let (mut in_quotes, mut escaped) = (false, false);
        for (at, byte) in self.0.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_quotes => escaped = true,
                b'"' => in_quotes = !in_quotes,
                b']' if !in_quotes => {
                    let (index, rest) = self.0.split_at(at + 1);
                    self.0 = rest;
                    return Some(index);
                }
                _ => {}
            }
        }
        None
    }

    fn name_or_key(&mut self) -> Option<String> {
        if self.0.starts_with('[') {
            let index = self.index()?;
            return serde_json::from_str(&index[1..index.len() - 1]).ok();
        }
        self.name().map(str::to_owned)
    }
}

/// True unless something rules out that a local value leads to the data block. Resources list all that they depend on, so
/// a local value that one of them uses, which does not depend on the block, does not lead there.
fn may_be_used_by_locals(module: &Module, block: &Resource, prior: &Prior<'_>) -> bool {
    let local = |traversal: &str| {
        let rest = traversal.strip_prefix("local.")?;
        Some(rest[..rest.find(['.', '[']).unwrap_or(rest.len())].to_owned())
    };
    let mut suspects: BTreeSet<String> = module.traversals().filter_map(|traversal| local(traversal)).collect();
    for resource in module.resources.iter().filter(|resource| resource.mode == "managed") {
        let Some(dependencies) = prior.dependencies.get(&resource.address) else { continue };
        if !dependencies.contains(block.address.as_str()) {
            for cleared in resource.traversals.iter().filter_map(|traversal| local(traversal)) {
                suspects.remove(&cleared);
            }
        }
    }
    for site in &module.others {
        let Some((call, variable)) = &site.argument else { continue };
        let Some(child) = module.children.iter().find(|child| last_step(&child.address) == call) else { continue };
        let mut users = Vec::new();
        users_of_variable(child, variable, &mut users, 0);
        let is_cleared = users.iter().any(|user| {
            prior.dependencies.get(*user).is_some_and(|dependencies| !dependencies.contains(block.address.as_str()))
        });
        if is_cleared {
            for cleared in site.traversals.iter().filter_map(|traversal| local(traversal)) {
                suspects.remove(&cleared);
            }
        }
    }
    !suspects.is_empty()
}

impl Block<'_> {
    /// Where everything is new, the plan lists every attribute that counts, with local values seen through.
    fn uses_of_changes(&mut self, document: &Document) {
        for relevant in &document.relevant_attributes {
            let mut address = relevant.resource.clone();
            let index = index_of(&address).map(str::to_owned);
            if let Some(index) = &index {
                address.truncate(address.len() - index.len());
            }
            if without_indexes(&address) != self.resource.address {
                continue;
            }
            let steps: Vec<&str> = relevant.attribute.iter().filter_map(Value::as_str).collect();
            let used = match steps.as_slice() {
                ["outputs" | "values" | "nonsensitive_values", name, ..] => {
                    UsedOutputs::Names([(*name).to_owned()].into())
                }
                ["outputs" | "values" | "nonsensitive_values"] | [] => UsedOutputs::All,
                _ => continue,
            };
            self.uses.add(index, &used);
        }
    }

    fn read(&self, instance: &PriorResource, prior: &Prior<'_>) -> Option<PlanRead> {
        let read = output_read(instance.address.clone(), self.via, instance.values.as_deref()?)?;
        let mut found = self.described(instance.address.clone(), prior);
        found.used = self.uses.of_instance(index_of(&instance.address));
        found.producer = read.producer;
        found.values = read.values;
        found.defaults = read.defaults;
        Some(found)
    }

    /// A block that was not read while planning, as far as its constants tell.
    fn unread(&self, document: &Document, prior: &Prior<'_>) -> PlanRead {
        let mut found = self.described(self.resource.address.clone(), prior);
        let awaited = document.resource_changes.iter().filter(|change| read_via(&change.kind) == Some(self.via));
        let awaited = awaited
            .filter(|change| without_indexes(&change.address) == self.resource.address)
            .find_map(|change| output_read(String::new(), self.via, change.awaited()?));
        found.producer = awaited.and_then(|read| read.producer).or_else(|| self.constant_producer());
        found
    }

    fn constant_producer(&self) -> Option<ProducerAddress> {
        let constants = serde_json::to_string(&self.resource.constants).ok()?;
        let read = output_read(String::new(), self.via, &RawValue::from_string(constants).ok()?)?;
        let has_config = self.via == ReadVia::TfeOutputs || self.resource.constants.contains_key("config");
        read.producer.filter(|_| has_config)
    }

    fn described(&self, data: String, prior: &Prior<'_>) -> PlanRead {
        let instances = prior.users.get(self.resource.address.as_str()).map(Vec::as_slice).unwrap_or_default();
        let mut users: BTreeSet<&str> = instances.iter().copied().collect();
        let known: BTreeSet<String> = users.iter().map(|user| without_indexes(user)).collect();
        users.extend(self.users.iter().filter(|user| !known.contains(**user)));
        PlanRead {
            data,
            via: self.via,
            producer: None,
            used: self.uses.of_instance(None),
            values: BTreeMap::new(),
            defaults: BTreeSet::new(),
            user_count: users.len() as u64,
            users: users.into_iter().take(MAX_LISTED_USERS).map(str::to_owned).collect(),
        }
    }
}

/// Index at the end of an address, with its brackets.
fn index_of(address: &str) -> Option<&str> {
    let last = last_index(address);
    (!last.is_empty()).then_some(last)
}
