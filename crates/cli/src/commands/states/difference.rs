//! `taco state diff`

use serde_json::{Value, json};

use super::States;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::print::{cut, on_one_line};
use crate::resource::Resource;
use crate::state_file::{Action, OutputChange, ResourceChange, difference};

/// Width of a value where there is no terminal.
const USUAL_WIDTH: usize = 200;

pub(super) async fn show(states: &States<'_>, old: Option<&str>, new: &str) -> Result<(), Failure> {
    let new = states.version(new).await?;
    let old = match old {
        Some(old) => states.version(old).await?,
        None => before(states, &new).await?,
    };
    let found = difference(&states.file(&old).await?, &states.file(&new).await?);
    if states.session.json {
        let version = |version: &Resource| json!({ "id": version.id(), "serial": version.get("serial") });
        let (resources, outputs) = (&found.resources, &found.outputs);
        let document =
            json!({ "old": version(&old), "new": version(&new), "resources": resources, "outputs": outputs });
        return output::json(&document);
    }
    let screen = states.session.screen;
    let width = screen.width().unwrap_or(USUAL_WIDTH);
    if !screen.is_terminal() {
        let resources = found.resources.iter().flat_map(|change| rows_of_resource(change, width));
        let rows: Vec<[String; 3]> =
            resources.chain(found.outputs.iter().map(|change| row_of_output(change, width))).collect();
        return states.session.table(["", "WHAT", "CHANGE"], rows.into_iter(), "No difference.");
    }
    if found.resources.is_empty() && found.outputs.is_empty() {
        return output::line(&format!(
            "No difference between serial {} and {}.",
            old.text("serial"),
            new.text("serial")
        ));
    }
    for change in &found.resources {
        let sign = screen.painter().paint(change.action.sign(), change.action.colour());
        output::line(&format!("{sign} {}", on_one_line(&change.address)))?;
        let names = change.values.iter().map(|value| value.name.chars().count()).max().unwrap_or_default();
        for value in &change.values {
            let sign = screen.painter().paint(value.action.sign(), value.action.colour());
            let text = value.in_words(width.saturating_sub(names + 9));
            output::line(&format!("    {sign} {:names$} = {text}", on_one_line(&value.name)))?;
        }
    }
    for change in &found.outputs {
        let sign = screen.painter().paint(change.action.sign(), change.action.colour());
        let [_, name, value] = row_of_output(change, width.saturating_sub(change.name.chars().count() + 12));
        output::line(&format!("{sign} {} = {value}", on_one_line(&name)))?;
    }
    Ok(())
}

/// The version that was there before another one.
async fn before(states: &States<'_>, version: &Resource) -> Result<Resource, Failure> {
    let mut versions = states.versions().await?.into_iter().skip_while(|other| other.id() != version.id()).skip(1);
    versions.next().ok_or_else(|| {
        let what = format!("{} is the first: there is nothing to compare it with", states.subject(version));
        Failure::new(Kind::NotFound, what)
    })
}

/// A row for the resource, or one for each of its attributes that changed.
fn rows_of_resource(change: &ResourceChange, width: usize) -> Vec<[String; 3]> {
    let row = |text: String| [change.action.sign().to_owned(), change.address.clone(), text];
    if change.action != Action::Changed || change.values.is_empty() {
        return vec![row(String::new())];
    }
    change.values.iter().map(|value| row(format!("{}: {}", value.name, value.in_words(width)))).collect()
}

fn row_of_output(change: &OutputChange, width: usize) -> [String; 3] {
    let values = match change {
        OutputChange { sensitive: true, .. } => "(sensitive)".to_owned(),
        OutputChange { before: Value::Null, after, .. } => shown(after, width),
        OutputChange { before, after: Value::Null, .. } => shown(before, width),
        OutputChange { before, after, .. } => format!("{} → {}", shown(before, width / 2), shown(after, width / 2)),
    };
    [change.action.sign().to_owned(), format!("output.{}", change.name), values]
}

/// A value on one line of at most this width.
pub(crate) fn shown(value: &Value, width: usize) -> String {
    cut(&on_one_line(&value.to_string()), width.max(8))
}
