//! History of a workspace's outputs: list its output commits, show one, compare two. Names and kinds of changes are for all
//! who may read outputs; values come from the states that made the commits, and are for those who may read states.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use taco_boxed::boxed;
use taco_domain::graph::output_commit::{
    OutputCommit, OutputCommitNumber, OutputCommitPage, OutputDifference, WorkspaceOutputs, differences_between,
};
use taco_domain::graph::words::OutputChange;
use taco_domain::id::{RunId, StateVersionId};
use taco_domain::output::CommittedOutputs;
use taco_domain::permission::Action;
use taco_ledger::{Key, layout};

use crate::blob_error::blob_error;
use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::workspace_view::{WorkspaceRef, WorkspaceView};

const WHAT: &str = "output commit";

const MAX_PAGE_BYTES: usize = 256 * 1024 * 1024;

/// Maximum number of output commits between the two ends of a comparison.
const MAX_COMPARED: u32 = 10_000;

/// An output commit as a door shows it.
#[derive(Clone)]
pub struct OutputCommitView {
    pub commit: OutputCommit,
    pub maker: Maker,
}

/// Who made an output commit, as far as the caller may know: a run is no business of those who only read outputs.
#[derive(Clone, Default, Debug)]
pub struct Maker {
    pub name: Option<String>,
    pub run: Option<RunId>,
}

impl Maker {
    fn of(commit: &OutputCommit, caller: &Caller, view: &WorkspaceView) -> Self {
        if !caller.may(Action::ReadRuns, view.resource()).allowed {
            return Self::default();
        }
        Self { name: Some(view.org.name_of(&commit.by)), run: commit.run }
    }
}

/// An output commit with all outputs as they were after it.
#[derive(Clone)]
pub struct OutputsAtCommit {
    pub commit: OutputCommit,
    pub maker: Maker,
    pub outputs: Vec<OutputAtCommit>,
}

/// One output as it was after a commit.
#[derive(Clone, Serialize, Debug)]
pub struct OutputAtCommit {
    pub name: String,
    #[serde(rename = "type")]
    pub detailed_type: String,
    pub sensitive: bool,
    /// For callers who may read the state, as long as it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Box<RawValue>>,
}

/// Differences between two points in the history of a workspace's outputs.
#[derive(Clone)]
pub struct OutputComparison {
    pub from: OutputCommitNumber,
    pub to: OutputCommitNumber,
    /// True if a wanted output differs, or if the outputs cannot be read and differ as a whole.
    pub changed: bool,
    pub changes: Vec<ComparedOutput>,
}

/// One output that differs.
#[derive(Clone, Serialize, Debug)]
pub struct ComparedOutput {
    pub name: String,
    pub change: OutputChange,
    pub sensitive: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Box<RawValue>>,
}

#[boxed]
impl ControlPlane {
    /// A workspace's output commits, newest first.
    pub async fn output_commits(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        page: PageRequest,
    ) -> Result<Listed<OutputCommitView>, Error> {
        let view = self.workspace_with_outputs(caller, workspace).await?;
        let newest = newest_commit(&view);
        let skipped = u32::try_from(page.skip()).unwrap_or(u32::MAX);
        let (last, size) = (newest.saturating_sub(skipped), u32::try_from(page.size()).unwrap_or(u32::MAX));
        let first = last.saturating_sub(size).saturating_add(1);
        let mut commits = if last == 0 { Vec::new() } else { self.commits_between(&view, first, last).await? };
        commits.reverse();
        let seen = |commit| OutputCommitView { maker: Maker::of(&commit, caller, &view), commit };
        let items = commits.into_iter().map(seen);
        Ok(Listed { items: items.collect(), page, total: newest as usize })
    }

    /// One output commit with all outputs as they were after it; the newest, if none is named.
    pub async fn outputs_at_commit(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        number: Option<OutputCommitNumber>,
    ) -> Result<OutputsAtCommit, Error> {
        let view = self.workspace_with_outputs(caller, workspace).await?;
        let number = number.unwrap_or_else(|| newest_commit(&view));
        let mut found = self.commits_between(&view, number, newest_commit(&view)).await?;
        if number == 0 || found.first().is_none_or(|commit| commit.number != number) {
            return Err(Error::NotFound(WHAT));
        }
        let committed = outputs_before(&view, &found[1..]);
        let commit = found.swap_remove(0);
        let mut values = self.values_at(caller, &view, Some(&commit)).await?;
        let outputs = committed.into_iter().map(|(name, output)| OutputAtCommit {
            value: values.remove(&name),
            name,
            detailed_type: output.detailed_type,
            sensitive: output.sensitive,
        });
        Ok(OutputsAtCommit { outputs: outputs.collect(), maker: Maker::of(&commit, caller, &view), commit })
    }

    /// Have outputs changed between two commits? `0` is the time before the first. With names it is asked of those alone.
    pub async fn compare_outputs(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        (from, to): (OutputCommitNumber, OutputCommitNumber),
        names: &[String],
    ) -> Result<OutputComparison, Error> {
        let view = self.workspace_with_outputs(caller, workspace).await?;
        let newest = newest_commit(&view);
        let (older, newer) = (from.min(to), from.max(to));
        if newer > newest {
            let has =
                if newest == 0 { "no output commits".to_owned() } else { format!("output commits 1 to {newest}") };
            return Err(Error::invalid("to", format!("there is no output commit {newer}: the workspace has {has}")));
        }
        if newer - older > MAX_COMPARED {
            return Err(Error::invalid(
                "from",
                format!("at most {MAX_COMPARED} output commits can be between the two"),
            ));
        }
        let commits = self.commits_between(&view, older.max(1), newer).await?;
        let between: Vec<&OutputCommit> = commits.iter().filter(|commit| commit.number > older).collect();
        let is_wanted = |name: &String| names.is_empty() || names.contains(name);
        let mut differences = differences_between(between.iter().copied());
        differences.retain(|name, _| is_wanted(name));
        let opaque_at = |number: OutputCommitNumber| {
            commits.iter().find(|commit| commit.number == number).and_then(|commit| commit.opaque)
        };
        let differs_as_a_whole = opaque_at(older) != opaque_at(newer);
        let end = |number| commits.iter().find(|commit| commit.number == number);
        let mut before = self.values_at(caller, &view, end(older)).await?;
        let mut after = self.values_at(caller, &view, end(newer)).await?;
        let compared = |(name, difference): (String, OutputDifference)| {
            let (mut old, mut new) = (before.remove(&name), after.remove(&name));
            let mut change = difference.change;
            if from > to {
                std::mem::swap(&mut old, &mut new);
                change = reversed(change);
            }
            let either = [&difference.before, &difference.after];
            let sensitive = either.iter().any(|output| output.as_ref().is_some_and(|output| output.sensitive));
            ComparedOutput { name, change, sensitive, before: old, after: new }
        };
        let changes: Vec<ComparedOutput> = differences.into_iter().map(compared).collect();
        Ok(OutputComparison { from, to, changed: !changes.is_empty() || differs_as_a_whole, changes })
    }

    /// A workspace with the history of its outputs, for whoever may read them.
    pub async fn workspace_with_outputs(&self, caller: &Caller, wanted: &WorkspaceRef) -> Result<WorkspaceView, Error> {
        let view = self.find_workspace(caller, wanted).await?;
        caller.require(Action::ReadOutputs, view.resource(), "workspace")?;
        self.take_in_first_outputs(&view.org, view.workspace.id).await?;
        let mut org = view.org;
        org.state = org.last_seen();
        Ok(WorkspaceView { org, ..view })
    }

    /// The output commits of these numbers, oldest first: those in memory, and those in pages.
    async fn commits_between(
        &self,
        view: &WorkspaceView,
        first: OutputCommitNumber,
        last: OutputCommitNumber,
    ) -> Result<Vec<OutputCommit>, Error> {
        let id = view.workspace.id;
        let mut commits = BTreeMap::new();
        let pages =
            view.org.state.workspace_outputs.get(&id).map(|outputs| outputs.pages.as_slice()).unwrap_or_default();
        for page in pages.iter().filter(|page| page.first <= last && page.last >= first) {
            for commit in self.read_output_commits(&view.org, page).await? {
                commits.insert(commit.number, commit);
            }
        }
        for commit in view.org.state.output_commits.by().workspace.under(&id) {
            commits.insert(commit.number, commit.clone());
        }
        Ok(commits.into_values().filter(|commit| (first..=last).contains(&commit.number)).collect())
    }

    pub(crate) async fn read_output_commits(
        &self,
        org: &OrganizationSnapshot,
        page: &OutputCommitPage,
    ) -> Result<Vec<OutputCommit>, Error> {
        let key = output_page_key(org, &page.blob);
        let found = self.blobs().read_bytes(&key, MAX_PAGE_BYTES).await.map_err(blob_error)?;
        let bytes = found.ok_or_else(|| blob_error(taco_ledger::blob::BlobError::Missing(key.clone())))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Error::Corrupt(taco_ledger::Error::Corrupt { object: key, why: error.to_string() }))
    }

    /// Values of a state's outputs by name, for a caller who may read the state; none where it is gone.
    async fn values_at(
        &self,
        caller: &Caller,
        view: &WorkspaceView,
        commit: Option<&OutputCommit>,
    ) -> Result<BTreeMap<String, Box<RawValue>>, Error> {
        let may = caller.may(Action::ReadState, view.resource()).allowed;
        let Some(version) = commit.filter(|_| may).map(|commit| commit.state_version) else {
            return Ok(BTreeMap::new());
        };
        self.values_of(caller, version).await
    }

    async fn values_of(
        &self,
        caller: &Caller,
        version: StateVersionId,
    ) -> Result<BTreeMap<String, Box<RawValue>>, Error> {
        match self.outputs(caller, version).await {
            Ok(outputs) => Ok(outputs.into_iter().filter_map(|output| Some((output.name, output.value?))).collect()),
            // The state was deleted, and its commit tells what it was like.
            Err(Error::NotFound(_)) => Ok(BTreeMap::new()),
            Err(error) => Err(error),
        }
    }
}

pub(crate) fn output_page_key(org: &OrganizationSnapshot, blob: &str) -> Key {
    layout::blob(org.ledger.name(), "output-commits", blob)
}

fn newest_commit(view: &WorkspaceView) -> OutputCommitNumber {
    view.org.state.workspace_outputs.get(&view.workspace.id).map_or(0, |outputs: &WorkspaceOutputs| outputs.number)
}

/// The outputs as they were before these commits, which lead to how they are now, oldest first.
fn outputs_before(view: &WorkspaceView, later: &[OutputCommit]) -> CommittedOutputs {
    let current = view.org.state.workspace_outputs.get(&view.workspace.id);
    let mut outputs: CommittedOutputs = current
        .map(|current| current.outputs.iter().map(|(name, output)| (name.clone(), output.committed.clone())).collect())
        .unwrap_or_default();
    for commit in later.iter().rev() {
        for (name, difference) in &commit.changes {
            match &difference.before {
                Some(before) => outputs.insert(name.clone(), before.clone()),
                None => outputs.remove(name),
            };
        }
    }
    outputs
}

fn reversed(change: OutputChange) -> OutputChange {
    match change {
        OutputChange::Added => OutputChange::Removed,
        OutputChange::Removed => OutputChange::Added,
        other => other,
    }
}
