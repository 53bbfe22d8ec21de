//! Reads a Terraform state: what taco must know of it, and nothing else.
//!
//! States can be large, so a reader is enough: resources' attributes are skipped, never kept. Values of outputs are
//! kept as the exact text that the state has, because a number with 30 digits must not lose one; [`StateFile`] takes
//! [`IgnoredAny`] for the value's type where they are not wanted. Resources go one by one into a collection of the
//! caller's choice: a list, or a [`ResourceSummary`].

mod thinned;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufReader, Read};
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use thinned::Thinned;

/// The one format that Terraform since 0.12 and OpenTofu write.
const FORMAT: u64 = 4;

/// Chunk size for reading a state from a stream.
const READ_AT_ONCE: usize = 64 * 1024;

/// Prefix before the type of a data source.
const DATA: &str = "data.";

/// Parsed state file.
#[derive(Clone, Debug)]
pub struct StateFile<V = Box<RawValue>, R = Vec<Resource>> {
    pub serial: u64,
    pub lineage: String,
    pub contents: Contents<V, R>,
}

#[derive(Clone, Debug)]
pub enum Contents<V = Box<RawValue>, R = Vec<Resource>> {
    Plain(PlainState<V, R>),
    /// OpenTofu encrypted it on the client: only serial and lineage can be read.
    Encrypted,
}

#[derive(Clone, Debug)]
pub struct PlainState<V = Box<RawValue>, R = Vec<Resource>> {
    pub terraform_version: String,
    /// By name.
    pub outputs: BTreeMap<String, Output<V>>,
    pub resources: R,
}

#[derive(Clone, Deserialize, Debug)]
pub struct Output<V = Box<RawValue>> {
    pub value: V,
    /// The type in cty's notation, such as `["list","string"]`.
    #[serde(rename = "type")]
    pub detailed_type: Box<RawValue>,
    #[serde(default)]
    pub sensitive: bool,
}

impl<V> Output<V> {
    /// The type's family as the API names it: `string`, `array`, `object`…
    pub fn type_name(&self) -> &'static str {
        let text = self.detailed_type.get();
        let names = |kind: &str| text.trim_start_matches(['[', ' ', '\n', '\t']).starts_with(&format!("\"{kind}\""));
        match () {
            () if names("string") => "string",
            () if names("number") => "number",
            () if names("bool") => "boolean",
            () if names("list") || names("set") || names("tuple") => "array",
            () if names("map") || names("object") => "object",
            () => "dynamic",
        }
    }
}

/// One resource of a state, with all its instances.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Resource {
    /// Such as `module.network`; `None` in the root module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    pub mode: Mode,
    #[serde(rename = "type")]
    pub kind: String,
    pub name: String,
    /// Provider as written in the state, such as `provider["registry.terraform.io/hashicorp/null"]`.
    #[serde(default)]
    pub provider: String,
    #[serde(default, deserialize_with = "index_keys")]
    pub instances: Vec<Option<IndexKey>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    Managed,
    Data,
}

/// Index of an instance created by `count` or `for_each`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(untagged)]
pub enum IndexKey {
    Number(u64),
    Text(String),
}

impl fmt::Display for IndexKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Text(text) => write!(formatter, "{text:?}"),
        }
    }
}

fn index_keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Option<IndexKey>>, D::Error> {
    #[derive(Deserialize)]
    struct Instance {
        #[serde(default)]
        index_key: Option<IndexKey>,
    }
    let instances = Option::<Vec<Instance>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(instances.into_iter().map(|instance| instance.index_key).collect())
}

impl Resource {
    /// `module.network.aws_subnet.public[0]`: the address of one of its instances.
    pub fn address(&self, index: Option<&IndexKey>) -> String {
        let mut address = self.module.as_ref().map(|module| format!("{module}.")).unwrap_or_default();
        address.push_str(&format!("{}.{}", self.qualified_type(), self.name));
        if let Some(index) = index {
            address.push_str(&format!("[{index}]"));
        }
        address
    }

    /// The type, with `data.` before that of a data source.
    pub fn qualified_type(&self) -> String {
        match self.mode {
            Mode::Managed => self.kind.clone(),
            Mode::Data => format!("{DATA}{}", self.kind),
        }
    }

    /// The module as the API names it: `root`, or without the word `module`.
    pub fn module_name(&self) -> String {
        match &self.module {
            None => "root".to_owned(),
            Some(module) => module.split('.').filter(|part| *part != "module").collect::<Vec<_>>().join("."),
        }
    }
}

/// Counts by type, as the API shows them: `null_resource` becomes `null-resource`.
pub type TypeCounts = BTreeMap<String, u64>;

/// Summary of a state's resources, as the attributes of a state version show it.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub struct ResourceSummary {
    pub modules: BTreeMap<String, TypeCounts>,
    pub providers: BTreeMap<String, TypeCounts>,
    pub resources: Vec<ResourceCount>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct ResourceCount {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    pub count: u64,
    pub module: Arc<str>,
    pub provider: Arc<str>,
}

impl ResourceSummary {
    /// Number of managed resource instances in the state.
    pub fn managed(&self) -> u64 {
        let managed = self.resources.iter().filter(|resource| !resource.kind.starts_with(DATA));
        managed.map(|resource| resource.count).sum()
    }
}

impl Extend<Resource> for ResourceSummary {
    fn extend<I: IntoIterator<Item = Resource>>(&mut self, resources: I) {
        for resource in resources {
            let count = resource.instances.len() as u64;
            let kind = resource.qualified_type();
            let shown_kind = kind.replace('_', "-");
            let module = resource.module_name();
            for (group, name) in [(&mut self.modules, &module), (&mut self.providers, &resource.provider)] {
                *group.entry(name.clone()).or_default().entry(shown_kind.clone()).or_default() += count;
            }
            // States list resources in the order of their addresses, so neighbours have most of it in common.
            let before = self.resources.last();
            let shared = |text: &str, before: Option<&Arc<str>>| match before {
                Some(before) if **before == *text => Arc::clone(before),
                _ => text.into(),
            };
            self.resources.push(ResourceCount {
                kind: shared(&kind, before.map(|before| &before.kind)),
                count,
                module: shared(&module, before.map(|before| &before.module)),
                provider: shared(&resource.provider, before.map(|before| &before.provider)),
                name: resource.name,
            });
        }
    }
}

/// Reason why bytes are not a state that taco stores.
#[derive(thiserror::Error, Debug)]
pub enum StateFileError {
    #[error("the state is empty")]
    Empty,
    #[error("the state is not JSON: {0}")]
    NotJson(String),
    #[error(
        "state format version {0} is not supported; taco keeps version {FORMAT}, which Terraform 0.12 and later write"
    )]
    Format(u64),
    #[error("this is no Terraform state: {0}")]
    NotState(String),
    /// The reader failed; the bytes are not to blame.
    #[error("reading the state failed: {0}")]
    Read(std::io::Error),
}

impl<V: DeserializeOwned, R: Default + Extend<Resource>> StateFile<V, R> {
    pub fn parse(bytes: &[u8]) -> Result<Self, StateFileError> {
        serde_json::from_slice::<Document<V, R>>(bytes).map_err(explain)?.check()
    }

    /// Reads to the end. Of bytes that are no JSON it tells the line, but not the column.
    pub fn read(reader: impl Read) -> Result<Self, StateFileError> {
        let reader = BufReader::with_capacity(READ_AT_ONCE, Thinned::new(reader));
        serde_json::from_reader::<_, Document<V, R>>(reader).map_err(|error| without_column(explain(error)))?.check()
    }
}

pub(crate) fn explain(error: serde_json::Error) -> StateFileError {
    use serde_json::error::Category;
    match error.classify() {
        Category::Io => StateFileError::Read(error.into()),
        Category::Eof if (error.line(), error.column()) <= (1, 0) => StateFileError::Empty,
        Category::Eof | Category::Syntax => StateFileError::NotJson(error.to_string()),
        Category::Data => StateFileError::NotState(error.to_string()),
    }
}

/// Refuses states that are not written in the one format that is known.
pub(crate) fn check_format(version: Option<u64>) -> Result<(), StateFileError> {
    match version {
        None => Err(StateFileError::NotState("it has no version".to_owned())),
        Some(FORMAT) => Ok(()),
        Some(other) => Err(StateFileError::Format(other)),
    }
}

/// Attributes were left out of the text that the parser saw, so that its columns are not those of the state.
fn without_column(error: StateFileError) -> StateFileError {
    let cut = |text: String| match text.rsplit_once(" column ") {
        Some((text, _)) => text.to_owned(),
        None => text,
    };
    match error {
        StateFileError::NotJson(text) => StateFileError::NotJson(cut(text)),
        StateFileError::NotState(text) => StateFileError::NotState(cut(text)),
        other => other,
    }
}

/// The fields of a state, before anyone asked whether they make one.
struct Document<V, R> {
    version: Option<u64>,
    serial: Option<u64>,
    lineage: Option<String>,
    terraform_version: Option<String>,
    outputs: Option<BTreeMap<String, Output<V>>>,
    resources: R,
    encrypted: bool,
}

impl<V, R> Document<V, R> {
    fn check(self) -> Result<StateFile<V, R>, StateFileError> {
        let missing = |field: &str| StateFileError::NotState(format!("it has no {field}"));
        if !self.encrypted {
            check_format(self.version)?;
        }
        let serial = self.serial.ok_or_else(|| missing("serial"))?;
        let lineage = self.lineage.ok_or_else(|| missing("lineage"))?;
        let contents = if self.encrypted {
            Contents::Encrypted
        } else {
            Contents::Plain(PlainState {
                terraform_version: self.terraform_version.unwrap_or_default(),
                outputs: self.outputs.unwrap_or_default(),
                resources: self.resources,
            })
        };
        Ok(StateFile { serial, lineage, contents })
    }
}

impl<'de, V: DeserializeOwned, R: Default + Extend<Resource>> Deserialize<'de> for Document<V, R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DocumentVisitor(PhantomData))
    }
}

struct DocumentVisitor<V, R>(PhantomData<(V, R)>);

impl<'de, V: DeserializeOwned, R: Default + Extend<Resource>> Visitor<'de> for DocumentVisitor<V, R> {
    type Value = Document<V, R>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a Terraform state, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document<V, R>, A::Error> {
        let mut document = Document {
            version: None,
            serial: None,
            lineage: None,
            terraform_version: None,
            outputs: None,
            resources: R::default(),
            encrypted: false,
        };
        while let Some(field) = map.next_key::<String>()? {
            // In another format the same fields mean other things, and its number is all that the caller needs.
            let known_format = document.version.is_none_or(|version| version == FORMAT);
            match field.as_str() {
                "version" => document.version = Some(map.next_value()?),
                "serial" => document.serial = Some(map.next_value()?),
                "lineage" => document.lineage = Some(map.next_value()?),
                "terraform_version" if known_format => document.terraform_version = map.next_value()?,
                "outputs" if known_format => document.outputs = map.next_value()?,
                "resources" if known_format => map.next_value_seed(OneByOne(&mut document.resources))?,
                "encrypted_data" => {
                    map.next_value::<IgnoredAny>()?;
                    document.encrypted = true;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(document)
    }
}

/// Reads a list of resources, or null, into a collection.
struct OneByOne<'a, R>(&'a mut R);

impl<'de, R: Extend<Resource>> DeserializeSeed<'de> for OneByOne<'_, R> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, R: Extend<Resource>> Visitor<'de> for OneByOne<'_, R> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of resources")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(resource) = list.next_element::<Resource>()? {
            self.0.extend([resource]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: &str = r#"{
        "version": 4, "terraform_version": "1.11.4", "serial": 7, "lineage": "8094ef40",
        "outputs": {
            "big": {"value": 123456789012345678901234567890.10, "type": "number"},
            "secret": {"value": "s3cr3t", "type": "string", "sensitive": true},
            "list": {"value": ["a"], "type": ["list", "string"]},
            "object": {"value": {"a": 1.0}, "type": ["object", {"a": "number"}]}
        },
        "resources": [
            {"mode": "managed", "type": "null_resource", "name": "one",
             "provider": "provider[\"registry.terraform.io/hashicorp/null\"]",
             "instances": [{"schema_version": 0, "attributes": {"id": "1", "deep": [{"x": null}]}}]},
            {"module": "module.media.module.bucket[\"a\"]", "mode": "managed", "type": "null_resource", "name": "many",
             "provider": "provider[\"registry.terraform.io/hashicorp/null\"]",
             "instances": [{"index_key": 0}, {"index_key": "b\"c"}]},
            {"mode": "data", "type": "terraform_remote_state", "name": "up",
             "provider": "provider[\"terraform.io/builtin/terraform\"]", "instances": [{}]}
        ],
        "check_results": null
    }"#;

    fn plain() -> PlainState {
        match StateFile::parse(STATE.as_bytes()).expect("a state").contents {
            Contents::Plain(state) => state,
            Contents::Encrypted => panic!("it is not encrypted"),
        }
    }

    #[test]
    fn a_state_tells_serial_lineage_and_version() {
        let state: StateFile = StateFile::parse(STATE.as_bytes()).expect("a state");
        assert_eq!((state.serial, state.lineage.as_str()), (7, "8094ef40"));
        assert_eq!(plain().terraform_version, "1.11.4");
        let read: StateFile<IgnoredAny> = StateFile::read(STATE.as_bytes()).expect("a state");
        assert_eq!((read.serial, read.lineage.as_str()), (7, "8094ef40"));
    }

    #[test]
    fn values_keep_their_exact_text() {
        let outputs = plain().outputs;
        assert_eq!(outputs["big"].value.get(), "123456789012345678901234567890.10");
        assert_eq!(outputs["object"].value.get(), r#"{"a": 1.0}"#);
        assert!(outputs["secret"].sensitive && !outputs["list"].sensitive);
        let names: Vec<_> = outputs.iter().map(|(name, output)| (name.as_str(), output.type_name())).collect();
        assert_eq!(names, [("big", "number"), ("list", "array"), ("object", "object"), ("secret", "string")]);
        assert_eq!(outputs["list"].detailed_type.get(), r#"["list", "string"]"#);
    }

    #[test]
    fn resources_have_addresses() {
        let state = plain();
        let addresses: Vec<String> = state
            .resources
            .iter()
            .flat_map(|resource| resource.instances.iter().map(|index| resource.address(index.as_ref())))
            .collect();
        assert_eq!(
            addresses,
            [
                "null_resource.one",
                r#"module.media.module.bucket["a"].null_resource.many[0]"#,
                r#"module.media.module.bucket["a"].null_resource.many["b\"c"]"#,
                "data.terraform_remote_state.up",
            ]
        );
    }

    #[test]
    fn a_summary_counts_by_module_and_provider() {
        let file: StateFile<IgnoredAny, ResourceSummary> = StateFile::read(STATE.as_bytes()).expect("a state");
        let Contents::Plain(PlainState { resources: summary, .. }) = file.contents else {
            panic!("it is not encrypted")
        };
        assert_eq!(summary.managed(), 3, "data sources are not managed");
        assert_eq!(summary.modules["root"]["null-resource"], 1);
        assert_eq!(summary.modules["root"]["data.terraform-remote-state"], 1);
        assert_eq!(summary.modules[r#"media.bucket["a"]"#]["null-resource"], 2);
        assert_eq!(summary.providers[r#"provider["registry.terraform.io/hashicorp/null"]"#]["null-resource"], 3);
        assert_eq!(summary.resources[1].count, 2);
        assert_eq!(&*summary.resources[2].kind, "data.terraform_remote_state");
    }

    #[test]
    fn a_state_that_tofu_encrypted_shows_serial_and_lineage() {
        let json = r#"{"serial":3,"lineage":"x","meta":{"key_provider.pbkdf2.k":"e30="},"encrypted_data":"AAAA","encryption_version":"v0"}"#;
        let state: StateFile = StateFile::parse(json.as_bytes()).expect("a state");
        assert_eq!((state.serial, state.lineage.as_str()), (3, "x"));
        assert!(matches!(state.contents, Contents::Encrypted));
    }

    #[test]
    fn what_is_no_state_is_refused_with_a_reason() {
        for (json, expected) in [
            ("", "the state is empty"),
            ("   ", "the state is not JSON"),
            ("garbage", "the state is not JSON"),
            (r#"{"version":4"#, "the state is not JSON"),
            ("[]", "this is no Terraform state"),
            ("7", "this is no Terraform state"),
            ("{}", "this is no Terraform state: it has no version"),
            (r#"{"version":4}"#, "this is no Terraform state: it has no serial"),
            (r#"{"version":4,"serial":1}"#, "this is no Terraform state: it has no lineage"),
            (r#"{"version":4,"serial":-1,"lineage":"x"}"#, "this is no Terraform state"),
            (r#"{"version":4,"serial":1,"lineage":"x","resources":[7]}"#, "this is no Terraform state"),
            (r#"{"version":3,"serial":1,"lineage":"x","modules":[]}"#, "state format version 3 is not supported"),
            (r#"{"version":5,"serial":1,"lineage":"x","resources":7}"#, "state format version 5 is not supported"),
            (r#"{"serial":1,"lineage":"x"} x"#, "the state is not JSON"),
        ] {
            let error = StateFile::<IgnoredAny>::parse(json.as_bytes()).expect_err(json).to_string();
            assert!(error.starts_with(expected), "{json}: {error}");
        }
    }

    #[test]
    fn null_counts_as_nothing() {
        let json = r#"{"version":4,"serial":1,"lineage":"","outputs":null,"resources":null,"terraform_version":null}"#;
        let state: StateFile = StateFile::parse(json.as_bytes()).expect("a state");
        assert!(matches!(state.contents, Contents::Plain(plain) if plain.resources.is_empty()));
    }
}
