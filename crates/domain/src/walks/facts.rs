//! Facts about units, as steps of walks need them, and what follows for a unit: a run, or none.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use taco_words::graph::{EdgeStatus, WalkResult};

use crate::graph::consumption::OwnInputs;
use crate::graph::dependency::Dependency;
use crate::graph::output_commit::{UsedOutputs, WorkspaceOutputs};
use crate::graph::status::EdgeState;
use crate::id::{RunId, WorkspaceId};
use crate::run::Run;
use crate::walks::walk::{SeenCommits, WalkNode};

/// Maximum wait for a unit's last state and run to be examined. After it the unit is run, as one of which nothing is known.
pub const MAX_EXAMINER_WAIT: SignedDuration = SignedDuration::from_secs(60);

/// Maximum number of names in a sentence.
const MAX_NAMES: usize = 5;

/// The world around a walk at one moment.
pub trait WalkFacts {
    fn now(&self) -> Timestamp;

    /// A unit whose turn it is; `None` if it is gone.
    fn unit(&self, node: &WalkNode) -> Option<UnitFacts>;

    /// Reason why a plan of the unit that was made against these commits must not be applied.
    fn moved_since(&self, unit: WorkspaceId, saw: &SeenCommits) -> Option<String>;

    fn run(&self, run: RunId) -> Option<&Run>;
}

/// A unit at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitFacts {
    /// Its current state and its newest run are examined.
    pub is_examined: bool,
    /// Reason why no run can start in it.
    pub refusal: Option<String>,
    /// Reason why it may have a change of its own; `None` if it has none.
    pub own_change: Option<String>,
    /// What it uses of others. What nobody wants to count is left out.
    pub uses: Vec<UseFacts>,
    /// Its state has resources or outputs, so that there is something to destroy.
    pub has_something: bool,
    /// The newest output commits of its producers.
    pub sees: SeenCommits,
}

/// One unit's use of another at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UseFacts {
    /// `None` if it leads to no unit here.
    pub producer: Option<WorkspaceId>,
    pub producer_name: String,
    pub used: UsedOutputs,
    /// Reason why what is used may differ from what was last applied; `None` if it is proven the same.
    pub difference: Option<String>,
}

/// Digests of a unit's own inputs compared: which differ, in words; `None` if none does.
pub fn own_change(now: &OwnInputs, applied: Option<&OwnInputs>) -> Option<String> {
    let Some(applied) = applied else {
        return Some("nothing tells with which configuration and variables it was last applied".to_owned());
    };
    let differences = [
        (now.configuration != applied.configuration, "configuration"),
        (now.variables != applied.variables, "variables"),
        (now.engine != applied.engine, "engine"),
        (now.lock_file != applied.lock_file, "lock file"),
    ];
    let words: Vec<&str> = differences.into_iter().filter_map(|(differs, word)| differs.then_some(word)).collect();
    (!words.is_empty()).then(|| format!("its own {} changed", words.join(" and ")))
}

/// Reason why what a consumer uses of a producer may differ from what it last applied; `None` if it is proven the same.
pub fn difference(edge: &EdgeState, producer: &str) -> Option<String> {
    let moved = || list(edge.moved.iter().map(|output| output.name.as_str()));
    Some(match edge.status {
        EdgeStatus::Fresh => return None,
        EdgeStatus::Stale | EdgeStatus::Retyped => match moved() {
            Some(names) => format!("{names} of {producer} changed"),
            None => format!("{producer} changed"),
        },
        EdgeStatus::Missing => match moved() {
            Some(names) => format!("{names} of {producer} changed, or is gone"),
            None => format!("an output of {producer} is gone"),
        },
        EdgeStatus::Unbound => format!("{producer} is not known here, or was never applied"),
        EdgeStatus::Opaque => format!("the outputs of {producer} cannot be read one by one"),
        EdgeStatus::Unobserved | EdgeStatus::Unknown => {
            format!("nothing proves which outputs of {producer} it last applied")
        }
    })
}

/// Reason why a plan that was made against commit `saw` of a producer must not be applied any more.
pub fn moved_since(
    dependency: &Dependency,
    producer: &str,
    saw: Option<u32>,
    outputs: Option<&WorkspaceOutputs>,
) -> Option<String> {
    let now = outputs.map(|outputs| outputs.number);
    if now == saw {
        return None;
    }
    let (Some(saw), Some(outputs)) = (saw, outputs) else {
        return Some(format!("the outputs of {producer} came or went"));
    };
    let moved = |name: &String| outputs.outputs.get(name).is_none_or(|output| output.since > saw);
    let names = match dependency.used() {
        _ if outputs.opaque.is_some() => return Some(format!("the outputs of {producer} changed")),
        UsedOutputs::All => return Some(format!("the outputs of {producer} changed")),
        UsedOutputs::Names(names) => names,
    };
    list(names.iter().filter(|name| moved(name)).map(String::as_str))
        .map(|names| format!("{names} of {producer} changed"))
}

/// Names in a sentence; `None` if there are none.
pub fn list<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.collect();
    let (shown, rest) = names.split_at(names.len().min(MAX_NAMES));
    let (last, before) = shown.split_last()?;
    Some(match (before, rest.len()) {
        ([], 0) => (*last).to_owned(),
        (before, 0) => format!("{} and {last}", before.join(", ")),
        (_, more) => format!("{} and {more} more", shown.join(", ")),
    })
}

/// What its producers' plans announce for a unit, in a walk that only plans.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Announced {
    /// In words.
    pub(crate) reason: String,
    /// Some of it is known only after an apply.
    pub(crate) has_unknown: bool,
}

pub(crate) fn announced(uses: &[UseFacts], planned: &BTreeMap<WorkspaceId, &WalkNode>) -> Option<Announced> {
    let mut has_unknown = false;
    let mut reasons = Vec::new();
    for one in uses {
        let node = one.producer.and_then(|producer| planned.get(&producer));
        let Some(node) = node.filter(|node| node.result == Some(WalkResult::Changed) || node.may_change) else {
            continue;
        };
        let name = &node.name;
        has_unknown |= node.may_change;
        let Some(outputs) = &node.planned_outputs else {
            has_unknown = true;
            reasons.push(format!("the plan of {name} has changes"));
            continue;
        };
        let used = outputs.iter().filter(|(name, _)| one.used.includes(name));
        let (unknown, known): (Vec<_>, Vec<_>) = used.partition(|(_, output)| output.unknown);
        has_unknown |= !unknown.is_empty();
        let known = list(known.iter().map(|(name, _)| name.as_str()));
        let unknown = list(unknown.iter().map(|(name, _)| name.as_str()));
        match (known, unknown) {
            (None, None) if node.may_change => reasons.push(format!("{name} may change when what it needs is applied")),
            (None, None) => {}
            (Some(known), None) => reasons.push(format!("the plan of {name} changes {known}")),
            (None, Some(unknown)) => reasons.push(format!("the plan of {name} may change {unknown}")),
            (Some(known), Some(unknown)) => {
                reasons.push(format!("the plan of {name} changes {known}, and may change {unknown}"));
            }
        }
    }
    (!reasons.is_empty()).then(|| Announced { reason: reasons.join("; "), has_unknown })
}
