//! Walks through a state's text once.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{EchoTokens, MAX_TOKENS, OutputRead, ReadUser, StateEvidence, output_read, read_via};
use crate::graph::address_steps::{may_use, without_indexes};
use crate::graph::token::{Attributes, HeldTokens, Holder, Token, TokenKey};
use crate::state_file::{IndexKey, Mode, Resource, StateFileError, check_format, explain};

/// Smallest number of held tokens at which repeated ones are dropped.
const TIDY_AT: usize = 1 << 20;

pub(super) fn read(reader: impl Read, key: TokenKey) -> Result<StateEvidence, StateFileError> {
    let mut collector = Collector::new(key);
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    let seen = Document(&mut collector).deserialize(&mut deserializer).map_err(explain)?;
    deserializer.end().map_err(explain)?;
    if !seen.encrypted {
        check_format(seen.version)?;
    }
    Ok(collector.finish(seen.encrypted))
}

struct Collector {
    key: TokenKey,
    tokens: EchoTokens,
    complete: bool,
    reads: Vec<OutputRead>,
    /// Configured address of each read, as dependencies name it.
    configured: Vec<String>,
    users: Vec<(ReadUser, Vec<String>)>,
    user_tokens: usize,
    /// Texts in outputs, each with a part of it.
    parts: Vec<[Token; 2]>,
    /// Number of held tokens at which repeated ones are dropped.
    tidy_at: usize,
}

/// One managed or data instance, as far as it counts.
#[derive(Default)]
struct Instance {
    index_key: Option<IndexKey>,
    deposed: bool,
    dependencies: Vec<String>,
    attributes: Option<Box<RawValue>>,
    held: HeldTokens,
}

impl Collector {
    fn new(key: TokenKey) -> Self {
        Self {
            key,
            tokens: EchoTokens::default(),
            complete: true,
            reads: Vec::new(),
            configured: Vec::new(),
            users: Vec::new(),
            user_tokens: 0,
            parts: Vec::new(),
            tidy_at: TIDY_AT,
        }
    }

    fn take(&mut self, resource: &Resource, mut instance: Instance) {
        let address = || resource.address(instance.index_key.as_ref());
        if resource.mode == Mode::Data {
            let read = read_via(&resource.kind).zip(instance.attributes.as_deref());
            let read = read.and_then(|(via, attributes)| output_read(address(), via, attributes));
            if let Some(read) = read {
                self.reads.push(read);
                self.configured.push(without_indexes(&resource.address(None)));
            }
            return;
        }
        // What an object held that is about to be destroyed says nothing about the unit.
        if instance.deposed {
            return;
        }
        instance.held.sort();
        self.tokens.made.extend(&instance.held.made);
        self.hold(&instance.held.distinctive);
        let mut names = instance.dependencies;
        names.retain(|name| is_read(name));
        if !names.is_empty() {
            let address = resource.address(instance.index_key.as_ref());
            let mut held = instance.held;
            self.user_tokens += held.distinctive.len() + held.telling.len();
            if self.user_tokens > MAX_TOKENS {
                self.complete = false;
                held = HeldTokens::default();
            }
            held.made = Vec::new();
            self.users.push((ReadUser { address, reads: Vec::new(), held }, names));
        }
    }

    fn hold(&mut self, tokens: &[Token]) {
        self.tokens.held.extend(tokens);
        if self.tokens.held.len() >= self.tidy_at {
            self.tidy_held();
            self.tidy_at = TIDY_AT.max(2 * self.tokens.held.len());
        }
    }

    fn tidy_held(&mut self) {
        tidy(&mut self.tokens.held);
        if self.tokens.held.len() > MAX_TOKENS {
            // Those that are kept are the same ones in every state that holds them.
            self.tokens.held.truncate(MAX_TOKENS);
            self.complete = false;
        }
    }

    fn finish(mut self, encrypted: bool) -> StateEvidence {
        self.tidy_held();
        tidy(&mut self.tokens.made);
        tidy(&mut self.parts);
        self.tokens.parts = self.parts.concat();
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, name) in self.configured.iter().enumerate() {
            by_name.entry(name).or_default().push(index);
        }
        let mut users = Vec::with_capacity(self.users.len());
        for (mut user, names) in self.users {
            for index in names.iter().filter_map(|name| by_name.get(name.as_str())).flatten() {
                if may_use(&user.address, &self.reads[*index].data) && !user.reads.contains(index) {
                    self.reads[*index].add_user(&user.address);
                    user.reads.push(*index);
                }
            }
            if !user.reads.is_empty() {
                users.push(user);
            }
        }
        StateEvidence { encrypted, reads: self.reads, tokens: self.tokens, users, complete: self.complete }
    }
}

fn tidy<T: Ord>(tokens: &mut Vec<T>) {
    tokens.sort_unstable();
    tokens.dedup();
}

/// True for the address of a data block that reads outputs, as dependencies name it.
fn is_read(address: &str) -> bool {
    [".terraform_remote_state.", ".tfe_outputs."]
        .iter()
        .any(|kind| address.find(kind).is_some_and(|at| address[..at].ends_with("data")))
}

/// What a state says of itself.
#[derive(Default)]
struct Seen {
    version: Option<u64>,
    encrypted: bool,
}

/// Declares visitors that walk through an object, a list or anything else.
macro_rules! expecting {
    ($text:literal) => {
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str($text)
        }
    };
}

struct Document<'a>(&'a mut Collector);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = Seen;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Seen, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = Seen;

    expecting!("a Terraform state, which is an object");

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Seen, A::Error> {
        let mut seen = Seen::default();
        while let Some(field) = map.next_key::<String>()? {
            match field.as_str() {
                "version" => seen.version = Some(map.next_value()?),
                "outputs" => map.next_value_seed(Outputs(self.0))?,
                "resources" => map.next_value_seed(Resources(self.0))?,
                "encrypted_data" => {
                    map.next_value::<IgnoredAny>()?;
                    seen.encrypted = true;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(seen)
    }
}

struct Outputs<'a>(&'a mut Collector);

#[derive(Deserialize)]
struct OutputValue {
    value: Box<RawValue>,
}

impl<'de> DeserializeSeed<'de> for Outputs<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Outputs<'_> {
    type Value = ();

    expecting!("outputs by name");

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let output = map.next_value::<OutputValue>()?;
            self.0.tokens.outputs.insert(name, self.0.key.of_value(&output.value));
            self.0.parts.extend(self.0.key.parts_of_value(&output.value));
        }
        Ok(())
    }
}

struct Resources<'a>(&'a mut Collector);

impl<'de> DeserializeSeed<'de> for Resources<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Resources<'_> {
    type Value = ();

    expecting!("a list of resources");

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(OneResource(&mut *self.0))?.is_some() {}
        Ok(())
    }
}

struct OneResource<'a>(&'a mut Collector);

impl<'de> DeserializeSeed<'de> for OneResource<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OneResource<'_> {
    type Value = ();

    expecting!("a resource");

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut module, mut mode, mut kind, mut name) = (None::<String>, None, None::<String>, None::<String>);
        // Whoever sorts a state's keys puts the instances first. They wait until it is known whose they are.
        let mut waiting: Option<Box<RawValue>> = None;
        while let Some(field) = map.next_key::<String>()? {
            match field.as_str() {
                "module" => module = map.next_value()?,
                "mode" => mode = Some(map.next_value::<Mode>()?),
                "type" => kind = Some(map.next_value()?),
                "name" => name = Some(map.next_value()?),
                "instances" => match (mode, &kind, &name) {
                    (Some(mode), Some(kind), Some(name)) => {
                        let resource = resource(module.clone(), mode, kind.clone(), name.clone());
                        map.next_value_seed(Instances { collector: &mut *self.0, resource: &resource })?;
                    }
                    _ => waiting = Some(map.next_value()?),
                },
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let missing = |field| <A::Error as serde::de::Error>::missing_field(field);
        let mode = mode.ok_or_else(|| missing("mode"))?;
        let resource =
            resource(module, mode, kind.ok_or_else(|| missing("type"))?, name.ok_or_else(|| missing("name"))?);
        if let Some(waiting) = waiting {
            let mut deserializer = serde_json::Deserializer::from_str(waiting.get());
            let instances = Instances { collector: self.0, resource: &resource };
            instances.deserialize(&mut deserializer).map_err(serde::de::Error::custom)?;
        }
        Ok(())
    }
}

fn resource(module: Option<String>, mode: Mode, kind: String, name: String) -> Resource {
    Resource { module, mode, kind, name, provider: String::new(), instances: Vec::new() }
}

struct Instances<'a> {
    collector: &'a mut Collector,
    resource: &'a Resource,
}

impl<'de> DeserializeSeed<'de> for Instances<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Instances<'_> {
    type Value = ();

    expecting!("a list of instances");

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let keeps_attributes = self.resource.mode == Mode::Data && read_via(&self.resource.kind).is_some();
        let key = self.collector.key;
        let is_managed = self.resource.mode == Mode::Managed;
        while let Some(instance) = list.next_element_seed(OneInstance { key, is_managed, keeps_attributes })? {
            self.collector.take(self.resource, instance);
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct OneInstance {
    key: TokenKey,
    is_managed: bool,
    keeps_attributes: bool,
}

impl<'de> DeserializeSeed<'de> for OneInstance {
    type Value = Instance;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Instance, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OneInstance {
    type Value = Instance;

    expecting!("an instance");

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Instance, A::Error> {
        let mut instance = Instance::default();
        while let Some(field) = map.next_key::<String>()? {
            match field.as_str() {
                "index_key" => instance.index_key = lenient(&map.next_value::<Box<RawValue>>()?),
                "deposed" => {
                    instance.deposed =
                        lenient::<String>(&map.next_value::<Box<RawValue>>()?).is_some_and(|key| !key.is_empty());
                }
                "dependencies" => {
                    instance.dependencies = lenient(&map.next_value::<Box<RawValue>>()?).unwrap_or_default();
                }
                "attributes" if self.keeps_attributes => instance.attributes = Some(map.next_value()?),
                "attributes" | "attributes_flat" if self.is_managed => {
                    map.next_value_seed(Attributes(Holder { key: self.key, held: &mut instance.held }))?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(instance)
    }
}

/// A field whose odd value is nobody's concern here.
fn lenient<T: for<'de> Deserialize<'de>>(raw: &RawValue) -> Option<T> {
    serde_json::from_str::<Option<T>>(raw.get()).ok().flatten()
}
