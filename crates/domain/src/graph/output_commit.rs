//! Output commits: the history of a workspace's outputs. A state that changes none of them makes none.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};
use taco_words::graph::OutputChange;
use taco_words::id_kinds;

use crate::author::Author;
use crate::id::{RunId, StateVersionId, WorkspaceId};
use crate::output::{CommittedOutput, CommittedOutputs, OutputDigest, changed_outputs, commit_outputs};
use crate::state_file::Output;

/// Number of output commits of a workspace that stay in memory; older ones are in pages in the bucket.
pub const LIVE_COMMITS: u32 = 12;

/// A state with more outputs has them compared as a whole.
pub const MAX_COMMITTED_OUTPUTS: usize = 1_000;
const MAX_OUTPUT_NAME_BYTES: usize = 64 * 1024;
const MAX_OUTPUT_TYPE_BYTES: usize = 256 * 1024;

/// Number of a workspace's output commit: 1, 2, 3, …
pub type OutputCommitNumber = u32;

id_kinds! {
    /// One change of a workspace's outputs.
    OutputCommitId = "oc";
}

impl OutputCommitId {
    pub fn of(workspace: WorkspaceId, number: OutputCommitNumber) -> Self {
        Self::derived(workspace.organization_prefix(), &format!("{workspace} {number}"))
    }
}

/// Change of a workspace's outputs, made by one state version.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct OutputCommit {
    pub id: OutputCommitId,
    pub workspace: WorkspaceId,
    pub number: OutputCommitNumber,
    pub state_version: StateVersionId,
    pub at: Timestamp,
    pub by: Author,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// By name. Empty if the outputs cannot be read one by one.
    pub changes: BTreeMap<String, OutputDifference>,
    /// Digest of outputs that cannot be read one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<OutputDigest>,
}

/// One output before and after a commit.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct OutputDifference {
    pub change: OutputChange,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<CommittedOutput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<CommittedOutput>,
}

impl Record for OutputCommit {
    const KIND: &'static str = "output-commit";
    const NOUN: &'static str = "output commit";
    const PART_OF: &'static [&'static str] = &["workspace"];
    type Id = OutputCommitId;
    type Indexes = OutputCommitIndexes;

    fn id(&self) -> &OutputCommitId {
        &self.id
    }

    references! {
        "workspace": WorkspaceId, cascade(|commits, id| commits.by().workspace.under(id));
        "state_version": StateVersionId, keep("it tells where the outputs came from");
        "run": RunId, keep("it tells what made the state");
    }
}

indexes! {
    pub struct OutputCommitIndexes for OutputCommit {
        /// Oldest first.
        pub workspace: (WorkspaceId, u64) => |commit| [(commit.workspace, u64::from(commit.number))];
    }
}

/// Outputs of a workspace's current state, and where their history is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct WorkspaceOutputs {
    pub workspace: WorkspaceId,
    /// The newest output commit.
    pub number: OutputCommitNumber,
    /// The state version that made the newest output commit.
    pub state_version: StateVersionId,
    pub outputs: BTreeMap<String, CurrentOutput>,
    /// Digest of outputs that cannot be read one by one: the state is encrypted, or has too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<OutputDigest>,
    /// Pages with older output commits, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<OutputCommitPage>,
}

/// One output as it is now.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct CurrentOutput {
    pub committed: CommittedOutput,
    /// The output commit that made it what it is.
    pub since: OutputCommitNumber,
}

/// Blob with output commits that left memory, as a JSON array, oldest first.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct OutputCommitPage {
    pub blob: String,
    pub first: OutputCommitNumber,
    pub last: OutputCommitNumber,
}

impl Record for WorkspaceOutputs {
    const KIND: &'static str = "workspace-outputs";
    const NOUN: &'static str = "outputs of a workspace";
    const PART_OF: &'static [&'static str] = &["workspace"];
    type Id = WorkspaceId;
    type Indexes = ();

    fn id(&self) -> &WorkspaceId {
        &self.workspace
    }

    references! {
        "workspace": WorkspaceId, cascade(|all, id| all.get(id).into_iter());
        "state_version": StateVersionId, keep("it tells where the outputs came from");
    }
}

/// Where a state came from, for its output commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutputSource {
    pub state_version: StateVersionId,
    pub at: Timestamp,
    pub by: Author,
    pub run: Option<RunId>,
}

/// Outputs of one state, as digests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StateOutputs {
    Readable(CommittedOutputs),
    /// They cannot be read one by one; the digest tells whether they changed.
    Opaque(OutputDigest),
}

impl StateOutputs {
    /// Digests of the outputs of a state that can be read. Too many, or one that nobody can compare, are opaque: the
    /// state is kept all the same.
    pub fn of(key: &[u8; 32], outputs: &BTreeMap<String, Output>) -> Self {
        let names: usize = outputs.keys().map(String::len).sum();
        if outputs.len() <= MAX_COMMITTED_OUTPUTS && names <= MAX_OUTPUT_NAME_BYTES {
            let committed = commit_outputs(key, outputs);
            let is_short = |outputs: &CommittedOutputs| {
                outputs.values().map(|output| output.detailed_type.len()).sum::<usize>() <= MAX_OUTPUT_TYPE_BYTES
            };
            if let Some(committed) = committed.ok().filter(is_short) {
                return Self::Readable(committed);
            }
        }
        let mut text = Vec::new();
        for (name, output) in outputs {
            let kind = output.detailed_type.get();
            text.extend(
                [name.as_bytes(), b"\0", kind.as_bytes(), b"\0", output.value.get().as_bytes(), b"\0"].concat(),
            );
        }
        Self::Opaque(OutputDigest::of_bytes(key, "outputs", &text))
    }

    /// Outputs of a state that its client encrypted.
    pub fn encrypted(key: &[u8; 32], sha256: &str) -> Self {
        Self::Opaque(OutputDigest::of_bytes(key, "encrypted", sha256.as_bytes()))
    }
}

/// The output commit that a new current state makes, with the workspace's outputs after it; `None` if no output changed.
pub fn next_output_commit(
    before: Option<&WorkspaceOutputs>,
    workspace: WorkspaceId,
    new: &StateOutputs,
    source: OutputSource,
) -> Option<(OutputCommit, WorkspaceOutputs)> {
    let number = before.map_or(1, |before| before.number + 1);
    let committed_before: CommittedOutputs = before
        .map(|before| before.outputs.iter().map(|(name, output)| (name.clone(), output.committed.clone())).collect())
        .unwrap_or_default();
    let opaque_before = before.and_then(|before| before.opaque.as_ref());
    let nothing = CommittedOutputs::new();
    let (committed, opaque) = match new {
        StateOutputs::Readable(outputs) => (outputs, None),
        StateOutputs::Opaque(digest) => (&nothing, Some(digest)),
    };
    let changes = changed_outputs(&committed_before, committed);
    if changes.is_empty() && opaque_before == opaque {
        return None;
    }
    let differences = changes.into_iter().map(|(name, change)| {
        let (before, after) = (committed_before.get(&name).cloned(), committed.get(&name).cloned());
        (name, OutputDifference { change, before, after })
    });
    let changes: BTreeMap<String, OutputDifference> = differences.collect();
    let current = committed.iter().map(|(name, output)| {
        let unchanged = before.and_then(|before| before.outputs.get(name)).filter(|_| !changes.contains_key(name));
        (
            name.clone(),
            CurrentOutput { committed: output.clone(), since: unchanged.map_or(number, |output| output.since) },
        )
    });
    let outputs = WorkspaceOutputs {
        workspace,
        number,
        state_version: source.state_version,
        outputs: current.collect(),
        opaque: opaque.cloned(),
        pages: before.map(|before| before.pages.clone()).unwrap_or_default(),
    };
    let OutputSource { state_version, at, by, run } = source;
    let id = OutputCommitId::of(workspace, number);
    let commit = OutputCommit { id, workspace, number, state_version, at, by, run, changes, opaque: opaque.cloned() };
    Some((commit, outputs))
}

/// An output before the first and after the last of some commits.
type Ends<'a> = (Option<&'a CommittedOutput>, Option<&'a CommittedOutput>);

/// Differences of two points in a workspace's history, from the commits between them, oldest first. What changed and
/// changed back is no difference.
pub fn differences_between<'a>(
    commits: impl IntoIterator<Item = &'a OutputCommit>,
) -> BTreeMap<String, OutputDifference> {
    let mut ends: BTreeMap<&String, Ends<'_>> = BTreeMap::new();
    for commit in commits {
        for (name, difference) in &commit.changes {
            ends.entry(name).or_insert((difference.before.as_ref(), None)).1 = difference.after.as_ref();
        }
    }
    let side = |pick: fn(&Ends<'_>) -> Option<CommittedOutput>| {
        ends.iter().filter_map(|(name, both)| Some(((*name).clone(), pick(both)?))).collect::<CommittedOutputs>()
    };
    let (before, after) = (side(|both| both.0.cloned()), side(|both| both.1.cloned()));
    let changes = changed_outputs(&before, &after).into_iter();
    changes
        .map(|(name, change)| {
            let (before, after) = (before.get(&name).cloned(), after.get(&name).cloned());
            (name, OutputDifference { change, before, after })
        })
        .collect()
}

/// Names of outputs that a consumer uses.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum UsedOutputs {
    /// It uses them as a whole, or nothing tells which.
    All,
    Names(BTreeSet<String>),
}

impl UsedOutputs {
    pub fn includes(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names.contains(name),
        }
    }

    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        match (self, other) {
            (Self::Names(mut names), Self::Names(more)) => {
                names.extend(more.iter().cloned());
                Self::Names(names)
            }
            _ => Self::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn workspace() -> WorkspaceId {
        WorkspaceId::from_random([1; 16])
    }

    fn outputs(listed: &[(&str, &str)]) -> StateOutputs {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("JSON");
        let output = |value: &str| Output { value: raw(value), detailed_type: raw("\"number\""), sensitive: false };
        StateOutputs::of(&KEY, &listed.iter().map(|(name, value)| ((*name).to_owned(), output(value))).collect())
    }

    fn source(number: u8) -> OutputSource {
        let state_version = StateVersionId::from_random([number; 16]);
        OutputSource { state_version, at: Timestamp::UNIX_EPOCH, by: Author::Taco, run: None }
    }

    /// The commits and the outputs after these states, one after the other.
    fn history(states: &[StateOutputs]) -> (Vec<OutputCommit>, Option<WorkspaceOutputs>) {
        let mut current: Option<WorkspaceOutputs> = None;
        let mut commits = Vec::new();
        for (number, state) in (1..).zip(states) {
            if let Some((commit, outputs)) = next_output_commit(current.as_ref(), workspace(), state, source(number)) {
                commits.push(commit);
                current = Some(outputs);
            }
        }
        (commits, current)
    }

    #[test]
    fn a_state_that_changes_no_output_makes_no_commit() {
        let (commits, current) = history(&[
            outputs(&[]),
            outputs(&[("a", "1"), ("b", "2")]),
            outputs(&[("a", "1.0"), ("b", "2")]),
            outputs(&[("a", "1"), ("b", "3")]),
        ]);
        let numbers: Vec<_> = commits.iter().map(|commit| (commit.number, commit.changes.len())).collect();
        assert_eq!(numbers, [(1, 2), (2, 1)]);
        let current = current.expect("outputs");
        assert_eq!((current.outputs["a"].since, current.outputs["b"].since), (1, 2));
        assert_eq!(current.state_version, source(4).state_version);
    }

    #[test]
    fn what_changed_and_changed_back_is_no_difference() {
        let (commits, _) = history(&[
            outputs(&[("a", "1"), ("b", "1")]),
            outputs(&[("a", "2"), ("b", "1")]),
            outputs(&[("a", "1"), ("b", "1"), ("c", "1")]),
        ]);
        let between = differences_between(&commits[1..]);
        let listed: Vec<_> = between.iter().map(|(name, both)| (name.as_str(), both.change)).collect();
        assert_eq!(listed, [("c", OutputChange::Added)]);
    }

    #[test]
    fn outputs_that_cannot_be_read_are_compared_as_a_whole() {
        let encrypted = |sha256| StateOutputs::encrypted(&KEY, sha256);
        let (commits, current) =
            history(&[outputs(&[("a", "1")]), encrypted("x"), encrypted("x"), encrypted("y"), outputs(&[("a", "1")])]);
        assert_eq!(commits.len(), 4);
        assert_eq!(commits[1].changes["a"].change, OutputChange::Removed);
        assert!(commits[1].opaque.is_some() && commits[3].opaque.is_none());
        assert_eq!(current.expect("outputs").outputs["a"].since, 4);
        let many: Vec<(String, String)> = (0..2000).map(|number| (format!("o{number}"), number.to_string())).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert!(matches!(outputs(&many), StateOutputs::Opaque(_)));
        assert_eq!(outputs(&many), outputs(&many));
    }
}
