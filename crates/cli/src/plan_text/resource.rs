//! Changes of resources: what happens to each, and why.

use serde::Deserialize;
use serde_json::Value;

use super::change::Change;
use super::diff::Diff;
use super::render::{Options, Renderer, printable, quoted};
use super::schema::BlockSchema;
use crate::colour::Colour;

#[derive(Deserialize, Debug)]
pub(super) struct ResourceChange {
    #[serde(default)]
    pub(super) address: String,
    #[serde(default)]
    module_address: String,
    previous_address: Option<String>,
    #[serde(default)]
    pub(super) mode: String,
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    #[serde(default)]
    name: String,
    index: Option<Value>,
    deposed: Option<String>,
    #[serde(default)]
    pub(super) provider_name: String,
    action_reason: Option<String>,
    #[serde(default)]
    change: Value,
}

/// What happens to a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ResourceAction {
    Keep,
    Create,
    Read,
    Update,
    DeleteThenCreate,
    CreateThenDelete,
    Delete,
    Forget,
}

impl ResourceAction {
    fn of(actions: &[Value]) -> Self {
        let words: Vec<&str> = actions.iter().filter_map(Value::as_str).collect();
        match words[..] {
            ["create"] => Self::Create,
            ["read"] => Self::Read,
            ["update"] => Self::Update,
            ["delete", "create"] => Self::DeleteThenCreate,
            ["create", "delete"] => Self::CreateThenDelete,
            ["delete"] => Self::Delete,
            ["forget"] => Self::Forget,
            ["create", "forget"] => Self::CreateThenDelete,
            _ => Self::Keep,
        }
    }

    pub(super) fn creates(self) -> bool {
        matches!(self, Self::Create | Self::DeleteThenCreate | Self::CreateThenDelete)
    }

    pub(super) fn destroys(self) -> bool {
        matches!(self, Self::Delete | Self::DeleteThenCreate | Self::CreateThenDelete)
    }

    fn is_replacement(self) -> bool {
        self.creates() && self.destroys()
    }

    fn sign(self, renderer: &Renderer) -> String {
        let paint = |text: &str, colour| renderer.painter.paint(text, colour);
        match self {
            Self::Keep => "   ".to_owned(),
            Self::Create => paint("  +", Colour::Green),
            Self::Read => paint(" <=", Colour::Cyan),
            Self::Update => paint("  ~", Colour::Yellow),
            Self::DeleteThenCreate => format!("{}/{}", paint("-", Colour::Red), paint("+", Colour::Green)),
            Self::CreateThenDelete => format!("{}/{}", paint("+", Colour::Green), paint("-", Colour::Red)),
            Self::Delete => paint("  -", Colour::Red),
            Self::Forget => paint("  .", Colour::Red),
        }
    }
}

impl ResourceChange {
    /// `None` for one that stays as it is, and for data that is no longer read.
    pub(super) fn action(&self) -> Option<ResourceAction> {
        let actions = self.change.get("actions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let action = ResourceAction::of(actions);
        let shown = match action {
            ResourceAction::Keep => self.moved_from().is_some() || self.importing().is_some(),
            ResourceAction::Delete => self.mode != "data",
            _ => true,
        };
        shown.then_some(action)
    }

    fn moved_from(&self) -> Option<&str> {
        self.previous_address.as_deref().filter(|previous| !previous.is_empty() && *previous != self.address)
    }

    /// The import that brings it, if one does.
    pub(super) fn importing(&self) -> Option<&Value> {
        self.change.get("importing").filter(|importing| importing.is_object())
    }

    /// Comment, header and body.
    pub(super) fn render(
        &self,
        renderer: &Renderer,
        action: ResourceAction,
        schema: BlockSchema<'_>,
        is_drift: bool,
    ) -> String {
        let comments = self.comments(action, is_drift).into_iter().enumerate().map(|(index, line)| {
            // The first says what happens; the others, why.
            let line = printable(&line);
            format!("  # {}\n", if index == 0 { renderer.painter.paint(&line, Colour::Bold) } else { line })
        });
        let comments: String = comments.collect();
        let block = if self.mode == "data" { "data" } else { "resource" };
        let diff = Diff::block(&Change::of(&self.change), schema);
        let options = Options { unchanged: self.importing().is_some(), without_null: false };
        let (sign, body) = (action.sign(renderer), renderer.render(&diff, 0, options));
        format!("{comments}{sign} {block} {} {} {body}", quoted(&self.kind), quoted(&self.name))
    }

    fn comments(&self, action: ResourceAction, is_drift: bool) -> Vec<String> {
        use ResourceAction as A;
        let deposed = self.deposed.as_ref().map(|key| format!(" (deposed object {key})")).unwrap_or_default();
        let address = format!("{}{deposed}", self.address);
        let reason = self.action_reason.as_deref().unwrap_or_default();
        let mut comments = match action {
            A::Create => vec![format!("{address} will be created")],
            A::Read => vec![format!("{address} will be read during apply")],
            A::Update if is_drift => vec![format!("{address} has changed")],
            A::Update => vec![format!("{address} will be updated in-place")],
            _ if action.is_replacement() => vec![match reason {
                "replace_because_tainted" => format!("{address} is tainted, so must be replaced"),
                "replace_by_request" => format!("{address} will be replaced, as requested"),
                "replace_by_triggers" => format!("{address} will be replaced due to changes in replace_triggered_by"),
                _ => format!("{address} must be replaced"),
            }],
            A::Delete if is_drift => vec![format!("{address} has been deleted")],
            A::Delete => vec![format!("{address} will be destroyed")],
            A::Forget => vec![format!("{address} will no longer be managed by Terraform, but will not be destroyed")],
            _ if self.importing().is_some() => vec![format!("{address} will be imported")],
            _ => {
                let previous = self.moved_from().unwrap_or_default();
                return vec![format!("{previous} has moved to {address}")];
            }
        };
        comments.extend(self.why(reason).map(|why| format!("({why})")));
        if self.deposed.is_some() {
            comments.push("(left over from a partially-failed replacement of this instance)".to_owned());
        }
        comments.extend(self.moved_from().map(|previous| format!("(moved from {previous})")));
        if let Some(id) = self.importing().and_then(|importing| importing.get("id")).and_then(Value::as_str)
            && action != A::Keep
        {
            comments.push(format!("(imported from {})", quoted(id)));
        }
        comments
    }

    fn why(&self, reason: &str) -> Option<String> {
        let base = || match self.address.rfind('[') {
            Some(at) if self.index.is_some() => &self.address[..at],
            _ => &self.address,
        };
        let index = || self.index.as_ref().map(Value::to_string).unwrap_or_default();
        Some(match reason {
            "delete_because_no_resource_config" => format!("because {} is not in configuration", base()),
            "delete_because_no_module" => format!("because {} is not in configuration", self.module_address),
            "delete_because_wrong_repetition" if self.index.is_some() => {
                "because resource does not use count or for_each".to_owned()
            }
            "delete_because_wrong_repetition" => "because resource uses count or for_each".to_owned(),
            "delete_because_count_index" => format!("because index [{}] is out of range for count", index()),
            "delete_because_each_key" => format!("because key [{}] is not in for_each map", index()),
            "read_because_config_unknown" => "config refers to values not yet known".to_owned(),
            "read_because_dependency_pending" => "depends on a resource or a module with changes pending".to_owned(),
            _ => return None,
        })
    }
}
