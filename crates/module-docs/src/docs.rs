//! The documentation of a module, as it is stored and shown.

use serde::{Deserialize, Serialize};

/// A module at one version: its root, and the modules within it.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub struct ModuleDocs {
    pub root: ModulePart,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub submodules: Vec<ModulePart>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<ModulePart>,
}

/// One directory with a module in it.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub struct ModulePart {
    /// Such as `modules/subnet`; empty for the root.
    #[serde(default)]
    pub path: String,
    /// Text of its README, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readme: Option<String>,
    /// Constraints on the version of the engine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_versions: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Output>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<RequiredProvider>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub module_calls: Vec<ModuleCall>,
    /// Files that could not be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableFile>,
}

/// A variable that callers of the module set.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub struct Input {
    pub name: String,
    /// Type constraint as written; empty where there is none.
    #[serde(default, rename = "type")]
    pub constraint: String,
    /// Default as written; `None` where a value is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub sensitive: bool,
    #[serde(default)]
    pub ephemeral: bool,
    /// False where `null` is refused.
    #[serde(default = "yes")]
    pub nullable: bool,
    /// Error messages of its validations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validations: Vec<String>,
}

fn yes() -> bool {
    true
}

impl Input {
    pub fn is_required(&self) -> bool {
        self.default.is_none()
    }
}

/// A value that the module gives its callers.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub struct Output {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub sensitive: bool,
}

/// A provider that the module needs.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub struct RequiredProvider {
    /// The name by which the module calls it.
    pub name: String,
    /// Such as `hashicorp/aws`; empty where none is written.
    #[serde(default)]
    pub source: String,
    /// Constraint on its version.
    #[serde(default)]
    pub version: String,
}

/// A resource or a data source that the module declares.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub struct Resource {
    #[serde(rename = "type")]
    pub kind: String,
    pub name: String,
    /// True for a data source.
    #[serde(default)]
    pub data: bool,
}

/// A call of another module.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, Debug)]
pub struct ModuleCall {
    pub name: String,
    #[serde(default)]
    pub source: String,
    /// Constraint on its version.
    #[serde(default)]
    pub version: String,
}

#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub struct UnreadableFile {
    pub file: String,
    /// Completes "… could not be read: ".
    pub reason: String,
}
