//! History: which finished records leave memory, and what stays known of them.
//!
//! A finished run, with all that hangs on it, changes no more. So that memory and snapshots do not grow with every run, an
//! organization keeps the newest of them, and whatever something current depends on, and moves the rest into history: see
//! `docs/decisions/0029-history.md`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};

use crate::configuration_version::{ConfigurationStatus, ConfigurationVersion};
use crate::id::{CommentId, ConfigurationVersionId, HistorySegmentId, RunId, StateVersionId, WorkspaceId};
use crate::organization_state::OrganizationState;
use crate::phase::{Phase, PhaseStatus};
use crate::run::Run;
use crate::run_statistics::CONSIDERED_RUNS;
use crate::run_status::RunStatus;
use crate::state_version::{StateVersion, StateVersionStatus};
use crate::workspace::Workspace;

/// Bundles that left memory together, with the catalogs by which their records are found.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct HistorySegment {
    pub id: HistorySegmentId,
    pub created_at: Timestamp,
    /// Number of bundles in its catalogs.
    pub bundles: u64,
    /// Its objects in the bucket, by name, for instance `runs`.
    pub parts: BTreeMap<String, HistoryPart>,
    /// The pages in which its bundles lie. Empty in records that are older than this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<String>,
    /// Creation time of its newest run, so that whoever looks for newer ones need not read its catalog. `None` in
    /// records that are older than this, until a server has looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_run: Option<Timestamp>,
}

impl HistorySegment {
    /// Name of the part with one row for each run.
    pub const RUNS: &'static str = "runs";

    /// Number of rows in its catalog of runs.
    pub fn runs(&self) -> u64 {
        self.parts.get(Self::RUNS).map_or(0, |part| part.rows)
    }
}

/// An object of a segment.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct HistoryPart {
    /// Number of rows, or of its other items.
    pub rows: u64,
    pub size: u64,
    /// Digest of the object as stored in the bucket, in hexadecimal.
    pub sha256: String,
}

impl Record for HistorySegment {
    const KIND: &'static str = "history-segment";
    const NOUN: &'static str = "history segment";
    const CONCERNS_EVERYTHING: bool = true;
    type Id = HistorySegmentId;
    type Indexes = ();

    fn id(&self) -> &HistorySegmentId {
        &self.id
    }
}

/// A bundle whose records are in the ledger's state again, so that its rows in catalogs do not count.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct RestoredBundle {
    /// The page and the offset at which it lies, with a hyphen in between.
    pub id: String,
    pub at: Timestamp,
}

impl RestoredBundle {
    pub fn id_of(page: &str, offset: u32) -> String {
        format!("{page}-{offset}")
    }

    /// The page and the offset.
    pub fn place(&self) -> Option<(&str, u32)> {
        let (page, offset) = self.id.rsplit_once('-')?;
        Some((page, offset.parse().ok()?))
    }
}

impl Record for RestoredBundle {
    const KIND: &'static str = "restored-bundle";
    const NOUN: &'static str = "restored bundle";
    type Id = String;
    type Indexes = ();

    fn id(&self) -> &String {
        &self.id
    }
}

/// Sweep that removed unreferenced objects of history. There is one record, whose number goes up: a writer that wrote
/// an object before the sweep, and wants to reference it afterwards, is refused.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct HistorySweep {
    pub id: String,
    /// Number of sweeps so far.
    pub number: u64,
    pub at: Timestamp,
}

impl HistorySweep {
    const ID: &'static str = "last";

    pub fn new(number: u64, at: Timestamp) -> Self {
        Self { id: Self::ID.to_owned(), number, at }
    }
}

impl Record for HistorySweep {
    const KIND: &'static str = "history-sweep";
    const NOUN: &'static str = "history sweep";
    type Id = String;
    type Indexes = ();

    fn id(&self) -> &String {
        &self.id
    }
}

/// Summary of a workspace's history that stays in memory.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct WorkspaceHistory {
    pub workspace: WorkspaceId,
    /// Number of the workspace's runs in history.
    pub runs: u64,
    pub state_versions: u64,
    pub configuration_versions: u64,
    /// The newest of its runs there, newest first, for statistics.
    pub newest: Vec<PastRun>,
    /// The newest of its state versions there, newest first, for the curve of its resources. Empty in records that are
    /// older than this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub newest_states: Vec<PastState>,
    /// The workspace is deleted, so its rows in catalogs do not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

/// Number of past state versions of a workspace that stay known.
const KNOWN_PAST_STATES: usize = 30;

/// Fields of a past state version that the curve of resources needs.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct PastState {
    #[serde(rename = "s")]
    pub serial: u64,
    #[serde(rename = "t")]
    pub created_at: Timestamp,
    #[serde(rename = "r")]
    pub resources: u64,
}

/// Fields of a past run that statistics need.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct PastRun {
    #[serde(rename = "n")]
    pub number: u64,
    #[serde(rename = "f", default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Duration of the plan in milliseconds, if it succeeded.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<i64>,
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub apply: Option<i64>,
}

impl PastRun {
    pub fn of(run: &Run) -> Self {
        let took = |phase: &Phase| {
            let ended_well = phase.status == PhaseStatus::Finished;
            let took = phase.ended_at?.duration_since(phase.started_at?);
            ended_well.then(|| i64::try_from(took.as_millis()).unwrap_or(i64::MAX))
        };
        Self {
            number: run.number,
            failed: run.status == RunStatus::Errored,
            plan: took(&run.plan),
            apply: took(&run.apply),
        }
    }
}

impl WorkspaceHistory {
    pub fn new(workspace: WorkspaceId) -> Self {
        Self {
            workspace,
            runs: 0,
            state_versions: 0,
            configuration_versions: 0,
            newest: Vec::new(),
            newest_states: Vec::new(),
            deleted: false,
        }
    }

    /// From now on it says that its workspace is gone, so that nothing of it is found in history any more.
    fn mark_deleted(&mut self) {
        *self = Self { deleted: true, ..Self::new(self.workspace) };
    }

    /// The history with this run in it.
    fn add(&mut self, run: &Run) {
        self.runs += 1;
        self.newest.push(PastRun::of(run));
        self.newest.sort_by_key(|run| std::cmp::Reverse(run.number));
        self.newest.truncate(CONSIDERED_RUNS);
    }

    /// The history with this state version in it. What an apply wrote on its way is no point of the curve.
    fn add_state(&mut self, version: &StateVersion, is_intermediate: bool) {
        self.state_versions += 1;
        if is_intermediate || !version.has_known_resources() {
            return;
        }
        let past =
            PastState { serial: version.serial, created_at: version.created_at, resources: version.resource_count };
        // It may have been here before, and come back in between.
        self.newest_states.retain(|known| *known != past);
        self.newest_states.push(past);
        self.newest_states.sort_by_key(|state| std::cmp::Reverse((state.created_at, state.serial)));
        self.newest_states.truncate(KNOWN_PAST_STATES);
    }
}

impl Record for WorkspaceHistory {
    const KIND: &'static str = "workspace-history";
    const NOUN: &'static str = "workspace history";
    const PART_OF: &'static [&'static str] = &["workspace"];
    type Id = WorkspaceId;
    type Indexes = WorkspaceHistoryIndexes;

    fn id(&self) -> &WorkspaceId {
        &self.workspace
    }

    references! {
        "workspace": WorkspaceId, unlink(|all, id| all.get(id).into_iter(), |history| history.mark_deleted());
    }

    fn shrink(&mut self) {
        self.newest.shrink_to_fit();
        self.newest_states.shrink_to_fit();
    }
}

indexes! {
    pub struct WorkspaceHistoryIndexes for WorkspaceHistory {
        /// Histories of deleted workspaces.
        pub deleted: WorkspaceId => |history| history.deleted.then_some(history.workspace);
    }
}

/// Limits on what stays in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistoryRules {
    /// Number of an organization's bundles that stay, besides those that something current depends on.
    pub keep: usize,
    /// Maximum number that leave at a time.
    pub batch: usize,
    /// Grace period: runs that ended more recently stay in any case, as late messages may still arrive.
    pub settled_after: SignedDuration,
}

impl Default for HistoryRules {
    fn default() -> Self {
        Self { keep: 2_000, batch: 1_000, settled_after: SignedDuration::from_mins(10) }
    }
}

/// The records that leave memory together.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BundleIds {
    pub run: Option<RunId>,
    pub comments: Vec<CommentId>,
    pub state_versions: Vec<StateVersionId>,
    pub configuration_version: Option<ConfigurationVersionId>,
}

impl BundleIds {
    pub fn len(&self) -> usize {
        usize::from(self.run.is_some())
            + self.comments.len()
            + self.state_versions.len()
            + usize::from(self.configuration_version.is_some())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Leading record of a bundle, with the time by which bundles are ordered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Lead {
    Run(RunId),
    StateVersion(StateVersionId),
    ConfigurationVersion(ConfigurationVersionId),
}

/// The bundles that are to leave an organization's state: the oldest, and none if that would not make a batch.
pub fn due_bundles(state: &OrganizationState, rules: HistoryRules, now: Timestamp) -> Vec<BundleIds> {
    let settled = now.saturating_sub(rules.settled_after).unwrap_or(Timestamp::MIN);
    let mut pins = Pins::new(state);
    let runs = state.runs.by().newest.iter().filter(|run| !pins.pins_run(run) && run.entered_status_at() <= settled);
    let mut leads: Vec<(Timestamp, Lead)> = runs.map(|run| (run.created_at, Lead::Run(run.id))).collect();
    let mut pins = Pins::new(state);
    let alone =
        state.state_versions.iter().filter(|version| pins.frees_alone(version) && version.created_at <= settled);
    leads.extend(alone.map(|version| (version.created_at, Lead::StateVersion(version.id))));
    let mut pins = Pins::new(state);
    let unused = state.configuration_versions.iter().filter(|version| {
        let runs = &state.runs.by().configuration_version;
        version.created_at <= settled && runs.first(&version.id).is_none() && !pins.pins_configuration(version)
    });
    leads.extend(unused.map(|version| (version.created_at, Lead::ConfigurationVersion(version.id))));
    if leads.len() < rules.keep.saturating_add(rules.batch) {
        return Vec::new();
    }
    leads.sort_unstable();
    leads.truncate(rules.batch);
    bundles_led_by(state, &leads)
}

fn bundles_led_by(state: &OrganizationState, leads: &[(Timestamp, Lead)]) -> Vec<BundleIds> {
    let mut pins = Pins::new(state);
    let mut gone = HashSet::new();
    let mut bundle = |lead: &Lead| match *lead {
        Lead::StateVersion(id) => BundleIds { state_versions: vec![id], ..BundleIds::default() },
        Lead::ConfigurationVersion(id) => BundleIds { configuration_version: Some(id), ..BundleIds::default() },
        Lead::Run(id) => {
            gone.insert(id);
            let configuration = state.runs.get(&id).map(|run| run.configuration_version);
            let configuration = configuration.and_then(|id| state.configuration_versions.get(&id)).filter(|version| {
                let mut runs = state.runs.by().configuration_version.get(&version.id);
                runs.all(|run| gone.contains(&run.id)) && !pins.pins_configuration(version)
            });
            BundleIds {
                run: Some(id),
                comments: state.comments.by().run.under(&id).map(|comment| comment.id).collect(),
                state_versions: state.state_versions.by().run.get(&id).map(|version| version.id).collect(),
                configuration_version: configuration.map(|version| version.id),
            }
        }
    };
    leads.iter().map(|(_, lead)| bundle(lead)).collect()
}

/// True if nothing current depends on a bundle, so that it may leave. Asked again within the transaction that moves it.
pub fn may_leave(state: &OrganizationState, bundle: &BundleIds) -> bool {
    let mut pins = Pins::new(state);
    if let Some(id) = bundle.run {
        return state.runs.get(&id).is_some_and(|run| !pins.pins_run(run));
    }
    let versions = bundle.state_versions.iter().map(|id| state.state_versions.get(id));
    let configuration = bundle.configuration_version.map(|id| state.configuration_versions.get(&id));
    versions.into_iter().all(|version| version.is_some_and(|version| pins.frees_alone(version)))
        && configuration.is_none_or(|version| version.is_some_and(|version| !pins.pins_configuration(version)))
}

/// Records that have to stay, computed once for each workspace.
struct Pins<'a> {
    state: &'a OrganizationState,
    of_workspaces: HashMap<WorkspaceId, PinsOfWorkspace>,
}

#[derive(Clone, Default)]
struct PinsOfWorkspace {
    runs: BTreeSet<RunId>,
    configurations: BTreeSet<ConfigurationVersionId>,
    current_state: Option<StateVersionId>,
}

impl<'a> Pins<'a> {
    fn new(state: &'a OrganizationState) -> Self {
        Self { state, of_workspaces: HashMap::new() }
    }

    fn of(&mut self, workspace: WorkspaceId) -> &PinsOfWorkspace {
        let state = self.state;
        self.of_workspaces.entry(workspace).or_insert_with(|| PinsOfWorkspace::of(state, workspace))
    }

    /// True if a run has to stay: it is not over, its tasks are still asked, or something current is found through it.
    fn pins_run(&mut self, run: &Run) -> bool {
        if !run.status.is_final() || run.running_stage().is_some() {
            return true;
        }
        let state = self.state;
        let pins = self.of(run.workspace);
        let is_used = |version: &StateVersion| {
            pins.current_state == Some(version.id) || version.status == StateVersionStatus::Pending
        };
        pins.runs.contains(&run.id)
            || pins.configurations.contains(&run.configuration_version)
            || state.state_versions.by().run.get(&run.id).any(is_used)
    }

    /// True if a state version may leave, and belongs to no run that takes it along.
    fn frees_alone(&mut self, version: &StateVersion) -> bool {
        let belongs_to_run = version.run.is_some_and(|run| self.state.runs.contains(&run));
        !belongs_to_run
            && version.status != StateVersionStatus::Pending
            && self.of(version.workspace).current_state != Some(version.id)
    }

    fn pins_configuration(&mut self, version: &ConfigurationVersion) -> bool {
        version.status == ConfigurationStatus::Pending
            || self.of(version.workspace).configurations.contains(&version.id)
    }
}

impl PinsOfWorkspace {
    fn of(state: &OrganizationState, id: WorkspaceId) -> Self {
        let Some(workspace) = state.workspaces.get(&id) else { return Self::default() };
        let newest = state.configurations_of(id).next();
        let configurations = [newest, state.current_configuration(id), state.usable_configuration(id)];
        let runs = [state.runs_of(id).next(), state.current_run(id)];
        Self {
            runs: runs.into_iter().flatten().map(|run| run.id).collect(),
            configurations: configurations.into_iter().flatten().map(|version| version.id).collect(),
            current_state: workspace.current_state_version,
        }
    }
}

/// Summaries of the history of every workspace these bundles come from, once they have left.
pub fn workspace_histories(state: &OrganizationState, bundles: &[BundleIds]) -> Vec<WorkspaceHistory> {
    let mut changed: BTreeMap<WorkspaceId, WorkspaceHistory> = BTreeMap::new();
    let mut history_of = |workspace: WorkspaceId, change: &dyn Fn(&mut WorkspaceHistory)| {
        let before = || {
            let known = state.workspace_histories.get(&workspace).cloned();
            known.unwrap_or_else(|| WorkspaceHistory::new(workspace))
        };
        change(changed.entry(workspace).or_insert_with(before));
    };
    for bundle in bundles {
        if let Some(run) = bundle.run.and_then(|id| state.runs.get(&id)) {
            history_of(run.workspace, &|history| history.add(run));
        }
        for version in bundle.state_versions.iter().filter_map(|id| state.state_versions.get(id)) {
            let is_intermediate = state.is_intermediate(version);
            history_of(version.workspace, &|history| history.add_state(version, is_intermediate));
        }
        let configuration = bundle.configuration_version.and_then(|id| state.configuration_versions.get(&id));
        if let Some(version) = configuration {
            history_of(version.workspace, &|history| history.configuration_versions += 1);
        }
    }
    changed.into_values().collect()
}

/// A workspace's history once these records of it are in the state again.
pub fn without_restored(
    history: &WorkspaceHistory,
    run: Option<&Run>,
    state_versions: u64,
    configuration_versions: u64,
) -> WorkspaceHistory {
    let mut history = history.clone();
    if let Some(run) = run {
        history.runs = history.runs.saturating_sub(1);
        history.newest.retain(|past| past.number != run.number);
    }
    history.state_versions = history.state_versions.saturating_sub(state_versions);
    history.configuration_versions = history.configuration_versions.saturating_sub(configuration_versions);
    history
}

impl OrganizationState {
    /// The last time that objects of history were removed.
    pub fn history_sweep(&self) -> Option<&HistorySweep> {
        self.history_sweeps.iter().next()
    }

    /// Number of runs a workspace has had, those in history included.
    pub fn run_count(&self, workspace: &Workspace) -> u64 {
        let past = self.workspace_histories.get(&workspace.id).map_or(0, |history| history.runs);
        past + self.runs_of(workspace.id).count() as u64
    }

    /// Number of states a workspace has had, those in history included.
    pub fn state_version_count(&self, workspace: &Workspace) -> u64 {
        let past = self.workspace_histories.get(&workspace.id).map_or(0, |history| history.state_versions);
        past + self.state_versions_of(workspace.id).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Author;
    use crate::configuration_version::tests::given_configuration;
    use crate::run::tests::given_run;
    use crate::run_queue::tests::given_state;
    use crate::state_version::StateOrigin;

    const ALL: HistoryRules = HistoryRules { keep: 0, batch: 1, settled_after: SignedDuration::ZERO };

    fn finished(number: u8) -> Run {
        let created_at = Timestamp::from_second(number.into()).expect("a timestamp");
        Run { status: RunStatus::Applied, place: None, created_at, ..given_run(number) }
    }

    fn leads(bundles: &[BundleIds]) -> Vec<RunId> {
        bundles.iter().filter_map(|bundle| bundle.run).collect()
    }

    #[test]
    fn the_oldest_finished_runs_leave_and_the_newest_stay() {
        let runs: Vec<Run> = (1..=6).map(finished).collect();
        let (state, _) = given_state(&runs);
        let due = |keep, batch| {
            let rules = HistoryRules { keep, batch, ..ALL };
            leads(&due_bundles(&state, rules, Timestamp::MAX))
        };
        // The sixth is the workspace's newest: five could leave.
        assert_eq!(due(0, 5), [1, 2, 3, 4, 5].map(|number| given_run(number).id));
        assert_eq!(due(3, 2), [1, 2].map(|number| given_run(number).id));
        assert_eq!(due(4, 2), Vec::<RunId>::new(), "that would not make a batch");
    }

    #[test]
    fn what_goes_on_or_ended_a_moment_ago_stays() {
        let waiting = Run { status: RunStatus::Planned, ..finished(1) };
        let (state, _) = given_state(&[waiting, finished(2), finished(3), finished(4)]);
        let rules = HistoryRules { settled_after: SignedDuration::from_secs(10), ..ALL };
        let now = Timestamp::from_second(12).expect("a timestamp");
        assert_eq!(leads(&due_bundles(&state, rules, now)), [given_run(2).id]);
        let now = Timestamp::from_second(11).expect("a timestamp");
        assert_eq!(leads(&due_bundles(&state, rules, now)), Vec::<RunId>::new());
    }

    #[test]
    fn what_something_current_depends_on_stays() {
        let speculative = |number| {
            let run = finished(number);
            let options = crate::run::RunOptions { plan_only: true, ..run.options.clone() };
            Run { options, ..run }
        };
        let (mut state, _) = given_state(&[finished(1), finished(2), speculative(3), speculative(4)]);
        let all = HistoryRules { batch: 2, ..ALL };
        let due = |state: &OrganizationState| leads(&due_bundles(state, all, Timestamp::MAX));
        assert_eq!(due(&state), [given_run(1).id, given_run(3).id], "the second is the current run");
        let configuration = given_configuration(1);
        state.configuration_versions.put(&configuration).expect("put");
        let configured = |number| Run { configuration_version: configuration.id, ..finished(number) };
        state.runs.put(&configured(1)).expect("put");
        assert_eq!(due(&state), Vec::<RunId>::new(), "the workspace's next run uses the configuration of the first");
    }

    #[test]
    fn a_configuration_leaves_with_the_last_of_its_runs() {
        let (mut state, _) = given_state(&[finished(1), finished(2), finished(3)]);
        let (old, new) = (given_configuration(1), given_configuration(2));
        for version in [&old, &new] {
            state.configuration_versions.put(version).expect("put");
        }
        state.runs.put(&Run { configuration_version: new.id, ..finished(3) }).expect("put");
        let bundles = due_bundles(&state, HistoryRules { batch: 2, ..ALL }, Timestamp::MAX);
        let with: Vec<_> = bundles.iter().map(|bundle| bundle.configuration_version).collect();
        assert_eq!(with, [None, Some(old.id)]);
        assert!(bundles.iter().all(|bundle| may_leave(&state, bundle)));
        let one = due_bundles(&state, HistoryRules { batch: 1, ..ALL }, Timestamp::MAX);
        assert_eq!(one[0].configuration_version, None, "another run has it still");
    }

    #[test]
    fn a_workspaces_history_counts_what_left_and_remembers_the_newest() {
        let runs: Vec<Run> = (1..=40).map(finished).collect();
        let (state, workspace) = given_state(&runs);
        let bundles = due_bundles(&state, HistoryRules { batch: 39, ..ALL }, Timestamp::MAX);
        let histories = workspace_histories(&state, &bundles);
        assert_eq!(histories.len(), 1);
        assert_eq!((histories[0].workspace, histories[0].runs), (workspace.id, 39));
        assert_eq!(histories[0].newest.len(), CONSIDERED_RUNS);
        assert_eq!(histories[0].newest[0].number, 39);
        let restored = without_restored(&histories[0], Some(&finished(39)), 0, 0);
        assert_eq!((restored.runs, restored.newest[0].number), (38, 38));
    }

    #[test]
    fn a_workspaces_history_knows_how_many_resources_there_were() {
        let (mut state, workspace) = given_state(&[finished(1)]);
        let version = |number: u8, encrypted| StateVersion {
            id: StateVersionId::within(workspace.id.organization_prefix(), [number; 16]),
            workspace: workspace.id,
            status: StateVersionStatus::Finalized,
            serial: number.into(),
            lineage: "L".into(),
            md5: String::new(),
            blob: String::new(),
            sha256: String::new(),
            size: 0,
            force: false,
            origin: StateOrigin::Push,
            created_at: Timestamp::from_second(number.into()).expect("a timestamp"),
            created_by: Author::Taco,
            run: None,
            terraform_version: None,
            encrypted,
            resource_count: u64::from(number) * 2,
            outputs: Vec::new(),
            unlisted_outputs: None,
            has_json: false,
            json_blob: String::new(),
            revealed: None,
        };
        let versions: Vec<StateVersion> = (1..=41).map(|number| version(number, number == 41)).collect();
        versions.iter().for_each(|version| _ = state.state_versions.put(version).expect("put"));
        let alone = |version: &StateVersion| BundleIds { state_versions: vec![version.id], ..BundleIds::default() };
        let bundles: Vec<BundleIds> = versions.iter().map(alone).collect();
        let history = &workspace_histories(&state, &bundles)[0];
        assert_eq!((history.state_versions, history.newest_states.len()), (41, KNOWN_PAST_STATES));
        let newest = history.newest_states[0];
        assert_eq!((newest.serial, newest.resources), (40, 80), "nobody knows what is in an encrypted one");
    }
}
