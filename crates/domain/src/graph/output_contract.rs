//! Output contracts: what a plan breaks for others, as its run keeps it, and how that is told. There are no values in it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use taco_words::graph::{BreakingChange, ContractPolicy, OutputUse};

use crate::attribute::{InvalidAttribute, as_plain_text, shown};
use crate::author::Author;
use crate::graph::HIDDEN_UNIT;
use crate::id::{RunId, WorkspaceId};

/// Maximum number of outputs that a run lists; it counts the rest.
pub const MAX_BROKEN_OUTPUTS: usize = 20;
/// Maximum number of consumers that an output lists; it counts the rest.
pub const MAX_BROKEN_CONSUMERS: usize = 10;
/// Maximum length of an output's name in a run, in characters.
pub const MAX_SHOWN_NAME: usize = 200;

/// Policy of an organization that has set none.
pub const DEFAULT_POLICY: ContractPolicy = ContractPolicy::Warn;

/// The policy that a sparse request asks for: `Some(None)` is to inherit it.
pub fn asked_policy(asked: Option<&Option<String>>) -> Result<Option<Option<ContractPolicy>>, InvalidAttribute> {
    let parse = |word: &String| {
        word.parse::<ContractPolicy>().map_err(|unknown| {
            let detail = format!("Output contract is one of {}; it is {}", unknown.allowed, shown(word));
            InvalidAttribute::new("taco-output-contract", detail)
        })
    };
    asked.map(|word| word.as_ref().map(parse).transpose()).transpose()
}

/// What a plan breaks for others.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct OutputContract {
    /// The policy when the plan ended.
    pub policy: ContractPolicy,
    /// By name.
    pub broken: Vec<BrokenOutput>,
    /// Number of broken outputs that are not listed.
    #[serde(default)]
    pub unlisted: u64,
    /// Number of consumers of all of them.
    pub consumers: u64,
    /// The run is not applied before a person has decided.
    pub stops: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<AcceptedChanges>,
}

/// An output that a plan removes or retypes, and who uses it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct BrokenOutput {
    pub output: String,
    pub change: BreakingChange,
    pub consumers: Vec<AffectedConsumer>,
    /// Number of consumers that are not listed.
    #[serde(default)]
    pub unlisted: u64,
}

/// A workspace that uses an output, as far as that is known.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct AffectedConsumer {
    pub workspace: WorkspaceId,
    pub how: OutputUse,
}

/// A person's word that the plan is to be applied all the same.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct AcceptedChanges {
    pub by: Author,
    pub at: Timestamp,
}

impl BrokenOutput {
    /// True if it is known that somebody uses it.
    pub fn is_certain(&self) -> bool {
        self.consumers.iter().any(|consumer| consumer.how == OutputUse::Uses)
    }

    /// The change and who uses the output, in a sentence. `name` tells what a workspace is called; `None` for one that
    /// the reader may not see.
    pub fn in_words(&self, name: &impl Fn(WorkspaceId) -> Option<String>) -> String {
        let what = match self.change {
            BreakingChange::Removed => "is removed",
            BreakingChange::Retyped => "gets another type",
        };
        let uses =
            [(OutputUse::Uses, "use"), (OutputUse::MayUse, "may use"), (OutputUse::ProbablyUses, "probably use")];
        let mut clauses: Vec<String> = uses
            .into_iter()
            .filter_map(|(how, verb)| {
                let of_this = self.consumers.iter().filter(|consumer| consumer.how == how);
                let ids: BTreeSet<WorkspaceId> = of_this.map(|consumer| consumer.workspace).collect();
                let subject = named(&ids, name)?;
                // "may use" is the same for one and for many.
                let verb =
                    if ids.len() == 1 && how != OutputUse::MayUse { format!("{verb}s") } else { verb.to_owned() };
                Some(format!("{subject} {verb} it"))
            })
            .collect();
        if self.unlisted > 0 {
            clauses.push(format!("so do {} more", self.unlisted));
        }
        format!("{} {what}: {}", self.output, clauses.join(", "))
    }
}

/// `app, web and a unit you may not see`.
fn named(ids: &BTreeSet<WorkspaceId>, name: &impl Fn(WorkspaceId) -> Option<String>) -> Option<String> {
    let mut names: Vec<String> = ids.iter().filter_map(|id| name(*id)).collect();
    names.sort_unstable();
    match ids.len() - names.len() {
        0 => {}
        1 => names.push(HIDDEN_UNIT.to_owned()),
        hidden => names.push(format!("{hidden} units you may not see")),
    }
    let (last, before) = names.split_last()?;
    Some(if before.is_empty() { last.clone() } else { format!("{} and {last}", before.join(", ")) })
}

impl OutputContract {
    /// The changes in sentences, one for each output.
    pub fn sentences(&self, name: &impl Fn(WorkspaceId) -> Option<String>) -> Vec<String> {
        let more = (self.unlisted > 0).then(|| format!("{} more outputs are removed or retyped", self.unlisted));
        self.broken.iter().map(|broken| broken.in_words(name)).chain(more).collect()
    }

    /// The change in a few words, without names of workspaces: `removes vpc_id, which 2 workspaces use`.
    pub fn in_short(&self) -> String {
        let of = |change| {
            let names = self.broken.iter().filter(move |broken| broken.change == change);
            let names: Vec<&str> = names.map(|broken| broken.output.as_str()).collect();
            (!names.is_empty()).then(|| names.join(", "))
        };
        let more = if self.unlisted > 0 { format!(" and {} more", self.unlisted) } else { String::new() };
        let what = match (of(BreakingChange::Removed), of(BreakingChange::Retyped)) {
            (Some(removed), Some(retyped)) => format!("removes {removed} and retypes {retyped}"),
            (Some(removed), None) => format!("removes {removed}"),
            (None, retyped) => format!("retypes {}", retyped.unwrap_or_default()),
        };
        let who = match self.consumers {
            1 => "1 workspace uses".to_owned(),
            many => format!("{many} workspaces use"),
        };
        format!("{what}{more}, which {who}")
    }

    /// True as long as a person has to decide.
    pub fn waits_for_decision(&self) -> bool {
        self.stops && self.accepted.is_none()
    }

    /// Lines at the end of the plan's log, as its engine would write a warning.
    pub fn log_text(&self, log: &ContractLog, name: &impl Fn(WorkspaceId) -> Option<String>) -> String {
        const SUMMARY: &str = "Outputs that other workspaces use";
        let mut lines = self.sentences(name);
        if self.stops {
            lines.push(String::new());
            lines.push(match log.auto_apply {
                true => format!(
                    "So this run is not auto-applied. Approve it on its page, or with\n  taco run apply {} \
                     --accept-output-changes",
                    log.run
                ),
                false => "Approve this run only if that is meant.".to_owned(),
            });
        }
        let lines: Vec<String> = lines.iter().map(|line| as_plain_text(line, usize::MAX)).collect();
        let detail = lines.join("\n");
        if !log.structured {
            return format!("\nWarning: {SUMMARY}\n\n{detail}\n");
        }
        let line = json!({
            "@level": "warn", "@message": format!("Warning: {SUMMARY}"), "@module": "taco.ui", "@timestamp": log.at,
            "diagnostic": { "severity": "warning", "summary": SUMMARY, "detail": detail }, "type": "diagnostic",
        });
        format!("{line}\n")
    }
}

/// The log to which a warning is added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContractLog {
    pub run: RunId,
    pub at: Timestamp,
    /// Its lines are JSON.
    pub structured: bool,
    pub auto_apply: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn unit(number: u8) -> WorkspaceId {
        WorkspaceId::from_random([number; 16])
    }

    fn contract() -> OutputContract {
        let consumer = |number, how| AffectedConsumer { workspace: unit(number), how };
        let vpc = BrokenOutput {
            output: "vpc_id".to_owned(),
            change: BreakingChange::Removed,
            consumers: vec![
                consumer(1, OutputUse::Uses),
                consumer(2, OutputUse::Uses),
                consumer(3, OutputUse::MayUse),
                consumer(4, OutputUse::MayUse),
            ],
            unlisted: 0,
        };
        let zone = BrokenOutput {
            output: "zone".to_owned(),
            change: BreakingChange::Retyped,
            consumers: vec![consumer(1, OutputUse::ProbablyUses)],
            unlisted: 2,
        };
        OutputContract {
            policy: ContractPolicy::Stop,
            broken: vec![vpc, zone],
            unlisted: 0,
            consumers: 6,
            stops: true,
            accepted: None,
        }
    }

    fn names(id: WorkspaceId) -> Option<String> {
        [(unit(1), "web"), (unit(2), "app")].into_iter().find(|known| known.0 == id).map(|known| known.1.to_owned())
    }

    #[test]
    fn a_reader_gets_the_names_of_what_they_may_see() {
        let expected = [
            "vpc_id is removed: app and web use it, 2 units you may not see may use it",
            "zone gets another type: web probably uses it, so do 2 more",
        ];
        assert_eq!(contract().sentences(&names), expected);
        assert_eq!(contract().in_short(), "removes vpc_id and retypes zone, which 6 workspaces use");
        let hidden = contract().broken[1].in_words(&|_| None);
        assert_eq!(hidden, "zone gets another type: a unit you may not see probably uses it, so do 2 more");
    }

    #[test]
    fn the_log_has_a_warning_in_the_engines_own_form() {
        let log = ContractLog {
            run: RunId::from_random([1; 16]),
            at: Timestamp::UNIX_EPOCH,
            structured: false,
            auto_apply: true,
        };
        let plain = contract().log_text(&log, &names);
        assert!(plain.starts_with("\nWarning: Outputs that other workspaces use\n\nvpc_id is removed: "), "{plain}");
        assert!(plain.ends_with(&format!("taco run apply {} --accept-output-changes\n", log.run)), "{plain}");
        let line = contract().log_text(&ContractLog { structured: true, auto_apply: false, ..log }, &names);
        assert_eq!(line.matches('\n').count(), 1);
        let line: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!((&line["type"], &line["diagnostic"]["severity"]), (&json!("diagnostic"), &json!("warning")));
        let detail = line["diagnostic"]["detail"].as_str().expect("a text");
        assert!(detail.ends_with("\n\nApprove this run only if that is meant."), "{detail}");
    }
}
