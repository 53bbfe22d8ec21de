//! `taco outputs`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::states::shown;
use super::{plain_list, workspaces};
use crate::EXIT_CODES;
use crate::api::one;
use crate::colour::Colour;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::print::{Cell, on_one_line};
use crate::process_env::ProcessEnv;
use crate::resource::{Resource, in_words};
use crate::session::{Flags, Session, WorkspaceName};

/// What `taco outputs diff` ends with where something changed.
const CHANGED: u8 = 2;

/// Width of a value where there is no terminal.
const USUAL_WIDTH: usize = 200;

/// What stands for a value that the server does not tell.
const NO_VALUE: &str = "(no access to its value)";

/// Show the history of a workspace's outputs
#[derive(Args, Debug)]
#[command(after_help = format!("\
Every state version that changes an output makes an output commit: 1, 2, 3, and so on. Commit 0 is
the time before the first. Values are shown to those who may read the state.

`taco outputs diff` exits with 0 if nothing changed, and with 2 if something did.

Examples:
  taco outputs log network
  taco outputs show network 3
  taco outputs diff network 3 5
  taco outputs diff network 3 5 vpc_id subnet_ids || echo 'plan what uses them'

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List output commits, newest first
    Log {
        /// Workspace, or ORGANIZATION/WORKSPACE [default: as --ws]
        workspace: Option<String>,
    },
    /// Show all outputs as they were after a commit
    Show {
        /// Workspace, or ORGANIZATION/WORKSPACE
        workspace: String,
        /// Number of the output commit [default: the newest]
        commit: Option<u32>,
    },
    /// Compare the outputs of two commits; exits with 2 if they differ
    Diff {
        /// Workspace, or ORGANIZATION/WORKSPACE
        workspace: String,
        /// Number of the older commit
        old: u32,
        /// Number of the newer commit
        new: u32,
        /// Only these outputs
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<ExitCode, Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    let workspace = match &arguments.verb {
        Verb::Log { workspace } => workspace.as_deref(),
        Verb::Show { workspace, .. } | Verb::Diff { workspace, .. } => Some(workspace.as_str()),
    };
    let name = session.target.workspace(workspace)?;
    let (workspace, _) = workspaces::find(&session, &name).await?;
    let outputs = Outputs { session: &session, name, id: workspace.id() };
    match &arguments.verb {
        Verb::Log { .. } => outputs.log().await?,
        Verb::Show { commit, .. } => outputs.show(*commit).await?,
        Verb::Diff { old, new, names, .. } => {
            let is_changed = outputs.diff(*old, *new, names).await?;
            return Ok(if is_changed { ExitCode::from(CHANGED) } else { ExitCode::SUCCESS });
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The outputs of one workspace.
struct Outputs<'a> {
    session: &'a Session,
    name: WorkspaceName,
    id: &'a str,
}

impl Outputs<'_> {
    async fn commits(&self) -> Result<Vec<Resource>, Failure> {
        let subject = format!("output commits of {}", self.name);
        Ok(self.session.api.list(&subject, &["workspaces", self.id, "output-commits"], &[]).await?.data)
    }

    async fn log(&self) -> Result<(), Failure> {
        let commits = self.commits().await?;
        if self.session.json {
            return output::json(&plain_list(&commits));
        }
        let row = |commit: &Resource| {
            let run = commit.related_id("run").map_or_else(|| commit.text("run-id"), str::to_owned);
            [
                output::text(commit, "number"),
                output::time(commit, "at"),
                output::text(commit, "by"),
                run.into(),
                in_short(commit.get("changes")).into(),
            ]
        };
        let if_empty = format!("{} has no outputs yet: no state of it has any.", self.name);
        self.session.table(["COMMIT", "CREATED", "BY", "RUN", "CHANGES"], commits.iter().map(row), if_empty)
    }

    async fn show(&self, number: Option<u32>) -> Result<(), Failure> {
        let number = number.map_or_else(|| "newest".to_owned(), |number| number.to_string());
        let subject = format!("output commit {number} of {}", self.name);
        let path = ["workspaces", self.id, "output-commits", &number];
        let log = || format!("`taco outputs log {}` lists output commits", self.name);
        let found = self.session.api.get(&subject, &path, &[]).await;
        let commit = one(found.map_err(|failure| failure.hint_if(Kind::NotFound, log))?)?;
        if self.session.json {
            return output::json(&commit.plain());
        }
        let outputs = commit.get("outputs").as_array().map(Vec::as_slice).unwrap_or_default();
        let width = self.session.screen.width().unwrap_or(usize::MAX);
        let row = |output: &Value| {
            let value = value_in_words(output.get("value"), output["sensitive"] == true, width);
            [Cell::from(in_words(&output["name"])), in_words(&output["type"]).into(), value.into()]
        };
        let if_empty = format!("{} had no outputs after commit {}.", self.name, commit.text("number"));
        self.session.table(["NAME", "TYPE", "VALUE"], outputs.iter().map(row), if_empty)
    }

    /// Prints what differs; true if something does.
    async fn diff(&self, old: u32, new: u32, names: &[String]) -> Result<bool, Failure> {
        let subject = format!("output commits {old} and {new} of {}", self.name);
        let (from, to) = (old.to_string(), new.to_string());
        let query = [("from", from.as_str()), ("to", to.as_str())];
        let path = ["workspaces", self.id, "output-comparison"];
        let found = one(self.session.api.get(&subject, &path, &query).await?)?;
        let Difference { changes, as_a_whole } = Difference::of(found.attributes(), names);
        let is_changed = as_a_whole || !changes.is_empty();
        if self.session.json {
            let document = serde_json::json!({ "from": old, "to": new, "changed": is_changed, "changes": changes });
            output::json(&document)?;
        } else if self.session.quiet {
            // The exit code says it.
        } else if !self.session.screen.is_terminal() {
            let rows = changes.iter().map(|change| {
                let word = in_words(&change["change"]);
                [in_words(&change["name"]), word, values_in_words(change, USUAL_WIDTH)]
            });
            self.session.table(["NAME", "CHANGE", "VALUES"], rows, "No difference.")?;
        } else if as_a_whole {
            output::line(
                "The outputs changed. They can't be compared one by one: the state is encrypted, or has too many.",
            )?;
        } else if changes.is_empty() {
            let of = if names.is_empty() { String::new() } else { format!(" in {}", names.join(", ")) };
            output::line(&format!("No difference{of} between commits {old} and {new}."))?;
        } else {
            changes.iter().try_for_each(|change| self.line_of(change))?;
        }
        Ok(is_changed)
    }

    fn line_of(&self, change: &Value) -> Result<(), Failure> {
        let (sign, colour) = match change["change"].as_str() {
            Some("added") => ("+", Colour::Green),
            Some("removed") => ("-", Colour::Red),
            _ => ("~", Colour::Yellow),
        };
        let (name, screen) = (in_words(&change["name"]), self.session.screen);
        let width = screen.width().unwrap_or(USUAL_WIDTH).saturating_sub(name.chars().count() + 8);
        let what = match change["change"].as_str() {
            Some("type") => " (another type)",
            Some("sensitivity") => " (sensitivity)",
            _ => "",
        };
        let values = values_in_words(change, width);
        let sign = screen.painter().paint(sign, colour);
        output::line(&format!("{sign} {} = {values}{what}", on_one_line(&name)))
    }
}

/// What differs between two commits.
struct Difference<'a> {
    changes: Vec<&'a Value>,
    /// The outputs cannot be told apart, and changed.
    as_a_whole: bool,
}

impl<'a> Difference<'a> {
    fn of(answer: &'a Value, names: &[String]) -> Self {
        let all: Vec<&Value> = answer["changes"].as_array().into_iter().flatten().collect();
        let as_a_whole = answer["changed"] == true && all.is_empty();
        let is_wanted = |change: &&Value| names.is_empty() || names.iter().any(|name| change["name"] == name.as_str());
        Self { changes: all.into_iter().filter(is_wanted).collect(), as_a_whole }
    }
}

/// `+a ~b -c`
fn in_short(changes: &Value) -> String {
    let Some(changes) = changes.as_array().filter(|changes| !changes.is_empty()) else {
        return "(all, which can't be told apart)".to_owned();
    };
    let short = changes.iter().map(|change| {
        let sign = match change["change"].as_str() {
            Some("added") => '+',
            Some("removed") => '-',
            _ => '~',
        };
        format!("{sign}{}", in_words(&change["name"]))
    });
    short.collect::<Vec<_>>().join(" ")
}

/// A value on one line; what is sensitive, or was not told, is named as that.
fn value_in_words(value: Option<&Value>, is_sensitive: bool, width: usize) -> String {
    match value {
        _ if is_sensitive => "(sensitive)".to_owned(),
        Some(value) => shown(value, width),
        None => NO_VALUE.to_owned(),
    }
}

fn values_in_words(change: &Value, width: usize) -> String {
    let [before, after] = ["before", "after"].map(|side| change.get(side));
    let is_sensitive = change["sensitive"] == true;
    match (change["change"].as_str(), before, after) {
        _ if is_sensitive => "(sensitive)".to_owned(),
        (Some("added"), _, value) | (Some("removed"), value, _) => value_in_words(value, false, width),
        (_, None, None) => NO_VALUE.to_owned(),
        (_, before, after) => {
            format!("{} → {}", value_in_words(before, false, width / 2), value_in_words(after, false, width / 2))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_named_outputs_count() {
        let answer = json!({ "changed": true, "changes": [{ "name": "a", "change": "value" }] });
        let changed = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let found = Difference::of(&answer, &names);
            (found.changes.len(), found.as_a_whole)
        };
        assert_eq!(changed(&[]), (1, false));
        assert_eq!(changed(&["a", "b"]), (1, false));
        assert_eq!(changed(&["b"]), (0, false));
        let opaque = json!({ "changed": true, "changes": [] });
        assert!(Difference::of(&opaque, &["b".to_owned()]).as_a_whole, "it may be among them");
    }

    #[test]
    fn values_are_shown_as_far_as_they_are_told() {
        let words = |change: Value| values_in_words(&change, 100);
        assert_eq!(words(json!({ "change": "value", "before": "x", "after": [1] })), r#""x" → [1]"#);
        assert_eq!(words(json!({ "change": "added", "after": null })), "null");
        assert_eq!(words(json!({ "change": "removed", "before": 1 })), "1");
        assert_eq!(words(json!({ "change": "value" })), NO_VALUE);
        assert_eq!(words(json!({ "change": "value", "sensitive": true, "before": 1, "after": 2 })), "(sensitive)");
    }

    #[test]
    fn a_commit_is_told_in_short() {
        let changes = json!([{ "name": "a", "change": "added" }, { "name": "b", "change": "type" },
            { "name": "c", "change": "removed" }]);
        assert_eq!(in_short(&changes), "+a ~b -c");
        assert_eq!(in_short(&json!([])), "(all, which can't be told apart)");
    }
}
