//! A plan with its attributes as text, from the redacted JSON that servers send: as `terraform show` prints it. Pure
//! functions; sensitive values are hidden here once more, whatever the JSON contains.

mod change;
mod diff;
mod render;
mod resource;
mod schema;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::colour::{Colour, Painter};
use change::Change;
use diff::{Action, Diff};
use render::{Options, Renderer, identifier};
use resource::{ResourceAction, ResourceChange};
use schema::BlockSchema;

/// Maximum number of lines. Nobody reads more; the page and `taco run logs` have them all.
const MAX_LINES: usize = 10_000;

/// The engine's JSON, as far as it is shown.
#[derive(Deserialize, Debug)]
pub(crate) struct Plan {
    #[serde(default)]
    resource_changes: Vec<ResourceChange>,
    #[serde(default)]
    resource_drift: Vec<ResourceChange>,
    #[serde(default)]
    output_changes: BTreeMap<String, Value>,
    #[serde(default)]
    relevant_attributes: Vec<RelevantAttribute>,
    #[serde(default)]
    provider_schemas: BTreeMap<String, ProviderSchemas>,
}

#[derive(Deserialize, Debug)]
struct RelevantAttribute {
    #[serde(default)]
    resource: String,
}

#[derive(Default, Deserialize, Debug)]
#[serde(default)]
struct ProviderSchemas {
    resource_schemas: BTreeMap<String, Value>,
    data_source_schemas: BTreeMap<String, Value>,
}

/// Text that grows up to a limit.
#[derive(Default)]
struct Pages {
    text: String,
    lines: usize,
    left_out: usize,
}

impl Pages {
    fn add(&mut self, block: &str) {
        let lines = block.lines().count();
        if self.lines + lines > MAX_LINES && self.lines > 0 {
            self.left_out += 1;
        } else {
            self.lines += lines;
            self.text.push_str(block);
        }
    }
}

impl Plan {
    pub(crate) fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    fn schema(&self, change: &ResourceChange) -> BlockSchema<'_> {
        let provider = self.provider_schemas.get(&change.provider_name);
        let schema = provider.and_then(|provider| match change.mode.as_str() {
            "data" => provider.data_source_schemas.get(&change.kind),
            _ => provider.resource_schemas.get(&change.kind),
        });
        BlockSchema::of_resource(schema)
    }

    /// The whole plan. A refresh-only one shows everything that was changed elsewhere.
    pub(crate) fn render(&self, painter: Painter, refresh_only: bool) -> String {
        let renderer = Renderer { painter };
        let shown: Vec<(&ResourceChange, ResourceAction)> =
            self.resource_changes.iter().filter_map(|change| Some((change, change.action()?))).collect();
        let outputs = self.outputs(&renderer);
        let mut pages = Pages::default();
        self.drift(&renderer, refresh_only, shown.is_empty() && outputs.is_empty(), &mut pages);
        if shown.is_empty() && outputs.is_empty() && pages.text.is_empty() {
            return format!(
                "\n{}\n",
                painter.paint("No changes. Infrastructure matches the configuration.", Colour::Bold)
            );
        }
        if !shown.is_empty() {
            pages.add("\nTerraform will perform the following actions:\n");
        }
        for (change, action) in &shown {
            pages.add(&format!("\n{}\n", change.render(&renderer, *action, self.schema(change), false)));
        }
        let left_out = pages.left_out;
        let mut text = pages.text;
        if left_out > 0 {
            text.push_str(&format!("\n  # ({left_out} more resources are not shown here)\n"));
        }
        if !shown.is_empty() {
            text.push_str(&format!("\n{} {}\n", painter.paint("Plan:", Colour::Bold), self.summary(&shown)));
        }
        if !outputs.is_empty() {
            text.push_str(&format!("\nChanges to Outputs:\n{outputs}"));
        }
        text
    }

    fn summary(&self, shown: &[(&ResourceChange, ResourceAction)]) -> String {
        let count = |test: fn(ResourceAction) -> bool| shown.iter().filter(|(_, action)| test(*action)).count();
        let importing = shown.iter().filter(|(change, _)| change.importing().is_some()).count();
        let (add, change) = (count(ResourceAction::creates), count(|action| action == ResourceAction::Update));
        let (destroy, forget) = (count(ResourceAction::destroys), count(|action| action == ResourceAction::Forget));
        let some = |number: usize, what: &str| if number > 0 { format!("{number} to {what}, ") } else { String::new() };
        let forget = if forget > 0 { format!(", {forget} to forget") } else { String::new() };
        format!("{}{add} to add, {change} to change, {destroy} to destroy{forget}.", some(importing, "import"))
    }

    fn drift(&self, renderer: &Renderer, refresh_only: bool, is_all: bool, pages: &mut Pages) {
        if is_all && !refresh_only {
            return;
        }
        let relevant: BTreeSet<&str> = self.relevant_attributes.iter().map(|one| one.resource.as_str()).collect();
        let matters = |change: &&ResourceChange| refresh_only || relevant.contains(change.address.as_str());
        let changes = self.resource_drift.iter().filter(matters);
        let changes: Vec<_> = changes.filter_map(|change| Some((change, change.action()?))).collect();
        if changes.is_empty() {
            return;
        }
        let note = renderer.painter.paint("Note: Objects have changed outside of Terraform", Colour::Bold);
        pages.add(&format!("\n{note}\n"));
        for (change, action) in changes {
            pages.add(&format!("\n{}\n", change.render(renderer, action, self.schema(change), true)));
        }
    }

    fn outputs(&self, renderer: &Renderer) -> String {
        let diffs: Vec<(String, Diff)> = self
            .output_changes
            .iter()
            .map(|(name, json)| (identifier(name), Diff::dynamic(Change::of(json))))
            .collect();
        let width = diffs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        let changed = diffs.iter().filter(|(_, diff)| diff.action != Action::Keep);
        changed.map(|(name, diff)| renderer.output(name, width, diff)).collect()
    }
}

impl Renderer {
    fn output(&self, name: &str, width: usize, diff: &Diff) -> String {
        let padding = " ".repeat(width.saturating_sub(name.chars().count()));
        format!("{} {name}{padding} = {}\n", self.sign(diff.action), self.render(diff, 0, Options::default()))
    }
}

#[cfg(test)]
mod tests;
