//! Tree of the changes in a plan, for people: modules, their resources, and which attributes change. Pure functions on
//! the engine's JSON; sensitive values are masked here once more, whatever the JSON contains.

mod action;
mod attributes;
mod shown;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

pub(crate) use action::Action;
pub(crate) use attributes::Attribute;
pub(crate) use shown::Shown;

use crate::text::plain;

/// A page with more than this many resources helps no one; the console view has them all.
const MAX_SHOWN_RESOURCES: usize = 1000;

/// The engine's JSON, as far as it is shown. The providers' schemas in it are skipped.
#[derive(Deserialize)]
struct PlanJson {
    #[serde(default)]
    resource_changes: Vec<ResourceJson>,
    #[serde(default)]
    resource_drift: Vec<ResourceJson>,
    #[serde(default)]
    output_changes: BTreeMap<String, ChangeJson>,
}

#[derive(Deserialize)]
struct ResourceJson {
    #[serde(default)]
    address: String,
    #[serde(default)]
    module_address: String,
    #[serde(default)]
    mode: String,
    previous_address: Option<String>,
    deposed: Option<String>,
    action_reason: Option<String>,
    change: ChangeJson,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChangeJson {
    actions: Vec<String>,
    before: Value,
    after: Value,
    after_unknown: Value,
    before_sensitive: Value,
    after_sensitive: Value,
    replace_paths: Vec<Vec<Value>>,
    importing: Option<Value>,
}

/// A plan as its page shows it.
#[derive(Default, Debug)]
pub(crate) struct PlanView {
    /// The root module first, then the others by address.
    pub(crate) modules: Vec<Module>,
    /// Changes made outside of the engine since the last apply.
    pub(crate) drift: Vec<Resource>,
    pub(crate) outputs: Vec<Output>,
    /// Resources that stay as they are.
    pub(crate) unchanged: usize,
    /// Resources that change and are not shown, because there are too many.
    pub(crate) left_out: usize,
}

#[derive(Debug)]
pub(crate) struct Module {
    /// Empty for the root.
    pub(crate) address: String,
    pub(crate) resources: Vec<Resource>,
}

#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) address: String,
    /// The address within its module.
    pub(crate) name: String,
    pub(crate) action: Action,
    /// Reasons for the change, and other remarks.
    pub(crate) notes: Vec<String>,
    pub(crate) attributes: Vec<Attribute>,
    /// Attributes that stay as they are.
    pub(crate) unchanged: usize,
}

#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) action: Action,
    pub(crate) attributes: Vec<Attribute>,
}

impl Module {
    /// Nesting depth.
    pub(crate) fn depth(&self) -> usize {
        self.address.split('.').filter(|part| *part == "module").count().min(6)
    }
}

impl PlanView {
    /// Reads the engine's JSON.
    pub(crate) fn of(json: &[u8]) -> Result<Self, serde_json::Error> {
        let plan: PlanJson = serde_json::from_slice(json)?;
        let mut view = Self::default();
        let mut modules: BTreeMap<String, Vec<Resource>> = BTreeMap::new();
        let mut shown = 0;
        for change in &plan.resource_changes {
            match Resource::of(change) {
                None => view.unchanged += usize::from(change.mode == "managed"),
                Some(_) if shown == MAX_SHOWN_RESOURCES => view.left_out += 1,
                Some(resource) => {
                    shown += 1;
                    modules.entry(plain(&change.module_address)).or_default().push(resource);
                }
            }
        }
        view.modules = modules.into_iter().map(|(address, resources)| Module { address, resources }).collect();
        view.drift = plan.resource_drift.iter().filter_map(Resource::of).take(MAX_SHOWN_RESOURCES).collect();
        view.outputs = plan.output_changes.iter().filter_map(|(name, change)| Output::of(name, change)).collect();
        Ok(view)
    }

    /// What an apply of it does: each address with its action, in the words of [`crate::run::progress`].
    pub(crate) fn steps(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let resources = self.modules.iter().flat_map(|module| &module.resources);
        resources.flat_map(|resource| {
            let actions: &[&'static str] = match resource.action {
                Action::Create => &["create"],
                Action::Update => &["change"],
                Action::Delete => &["destroy"],
                Action::Replace { create_first: false } => &["destroy", "create"],
                Action::Replace { create_first: true } => &["create", "destroy"],
                Action::Read | Action::Forget | Action::Import | Action::Move => &[],
            };
            actions.iter().map(|action| (resource.address.as_str(), *action))
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.modules.is_empty() && self.drift.is_empty() && self.outputs.is_empty()
    }
}

impl Resource {
    /// `None` for one that stays as it is.
    fn of(json: &ResourceJson) -> Option<Self> {
        let moved_from = json.previous_address.as_ref().filter(|previous| **previous != json.address);
        let imported = json.change.importing.is_some();
        let action = match Action::of(&json.change.actions) {
            None if imported => Action::Import,
            None if moved_from.is_some() => Action::Move,
            other => other?,
        };
        let mut notes = Vec::new();
        notes.extend(json.action_reason.as_deref().and_then(action::reason).map(str::to_owned));
        notes.extend(moved_from.map(|previous| format!("moved from {}", plain(previous))));
        notes.extend(json.deposed.as_ref().map(|key| format!("the deposed object {}", plain(key))));
        if imported && action != Action::Import {
            notes.push("imported".to_owned());
        }
        let (attributes, unchanged) = attributes::of(&json.change);
        let address = plain(&json.address);
        let prefix = format!("{}.", plain(&json.module_address));
        let name = address.strip_prefix(&prefix).unwrap_or(&address).to_owned();
        Some(Self { name, address, action, notes, attributes, unchanged })
    }
}

impl Output {
    fn of(name: &str, json: &ChangeJson) -> Option<Self> {
        let action = Action::of(&json.actions)?;
        Some(Self { name: plain(name), action, attributes: attributes::of_value(json) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(name: &str) -> PlanView {
        let json = match name {
            "first" => include_bytes!("plan_view/samples/first.json").as_slice(),
            _ => include_bytes!("plan_view/samples/second.json").as_slice(),
        };
        PlanView::of(json).expect("a plan")
    }

    fn resource<'a>(view: &'a PlanView, address: &str) -> &'a Resource {
        let mut all = view.modules.iter().flat_map(|module| &module.resources);
        all.find(|resource| resource.address == address).unwrap_or_else(|| panic!("no {address}"))
    }

    fn told(resource: &Resource) -> Vec<String> {
        resource.attributes.iter().map(Attribute::in_words).collect()
    }

    #[test]
    fn a_first_plan_creates_everything_module_by_module() {
        let view = plan("first");
        let modules: Vec<_> = view.modules.iter().map(|module| (module.address.as_str(), module.depth())).collect();
        assert_eq!(modules, [("", 0), ("module.network", 1), ("module.network.module.zone[\"a\"]", 2)]);
        assert!(view.modules.iter().flat_map(|module| &module.resources).all(|one| one.action == Action::Create));
        let server = resource(&view, "terraform_data.server[0]");
        let words = told(server);
        assert!(words.contains(&"+ id = (known after apply)".to_owned()), "{words:?}");
        assert!(words.contains(&"+ input.size = \"small\"".to_owned()), "{words:?}");
        let nested = resource(&view, "module.network.module.zone[\"a\"].terraform_data.subnet");
        assert_eq!(nested.name, "terraform_data.subnet");
    }

    #[test]
    fn a_second_plan_changes_replaces_and_destroys() {
        let view = plan("second");
        let action = |address: &str| resource(&view, address).action;
        assert_eq!(action("terraform_data.server[0]"), Action::Update);
        assert_eq!(action("terraform_data.server[1]"), Action::Delete);
        assert_eq!(action("terraform_data.replaced"), Action::Replace { create_first: false });
        assert_eq!(action("terraform_data.renamed"), Action::Move);
        let changed = told(resource(&view, "terraform_data.server[0]"));
        assert!(changed.contains(&"~ input.size = \"small\" → \"large\"".to_owned()), "{changed:?}");
        let gone = resource(&view, "terraform_data.server[1]");
        assert!(gone.notes.iter().any(|note| note.contains("count")), "{:?}", gone.notes);
        let replaced = resource(&view, "terraform_data.replaced");
        let forced = replaced.attributes.iter().filter(|attribute| attribute.forces_replacement).count();
        assert!(forced > 0, "{:?}", told(replaced));
        assert!(resource(&view, "terraform_data.renamed").notes.iter().any(|note| note.contains("moved from")));
        assert!(view.unchanged > 0);
    }

    #[test]
    fn what_is_sensitive_is_never_shown() {
        for name in ["first", "second"] {
            let view = plan(name);
            let resources = view.modules.iter().flat_map(|module| &module.resources);
            // What a provider copies elsewhere is not marked: the engine shows it too, and agents mask what they know.
            let marked = resources.flat_map(|resource| &resource.attributes).filter(|one| one.path != "output");
            let text = format!("{:?} {:?}", marked.collect::<Vec<_>>(), view.outputs);
            assert!(!text.contains("hunter2"), "{name}: {text}");
            let secret = told(resource(&view, "terraform_data.secret"));
            assert!(secret.iter().any(|line| line.contains("(sensitive)")), "{secret:?}");
            let output = view.outputs.iter().find(|output| output.name == "password").expect("it changes");
            assert!(output.attributes[0].in_words().contains("(sensitive)"));
        }
    }

    #[test]
    fn a_plan_of_nothing_is_empty_and_nonsense_is_no_plan() {
        assert!(PlanView::of(b"{}").expect("a plan").is_empty());
        for nonsense in ["", "7", "{\"resource_changes\":3}"] {
            assert!(PlanView::of(nonsense.as_bytes()).is_err(), "{nonsense}");
        }
    }
}
