//! Records of finished runs, made by the rules of the domain, one life after the other.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use taco_domain::Author;
use taco_domain::comment::Comment;
use taco_domain::configuration_version::{ConfigurationStatus, ConfigurationVersion};
use taco_domain::id::{
    AgentId, AgentPoolId, CommentId, ConfigurationVersionId, OrganizationPrefix, ProjectId, RunId, StateVersionId,
    UserId, WorkspaceId,
};
use taco_domain::phase::{Executor, PhaseKind, ResourceCounts, StoredFile, StoredLog, StoredLogBlock};
use taco_domain::run::{Run, RunOptions, RunSource};
use taco_domain::run_status::{RunEvent, RunStatus};
use taco_domain::state_version::{StateOrigin, StateVersion, StateVersionStatus, listed_outputs};
use taco_domain::workspace::Workspace;

/// Fate of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Applied,
    OnlyPlanned,
    WithoutChanges,
    PlanFails,
    ApplyFails,
    Discarded,
    Canceled,
}

impl Fate {
    /// Of a hundred runs so many end in each way.
    const OF_A_HUNDRED: [(usize, Self); 7] = [
        (52, Self::Applied),
        (18, Self::OnlyPlanned),
        (10, Self::WithoutChanges),
        (7, Self::PlanFails),
        (3, Self::ApplyFails),
        (5, Self::Discarded),
        (5, Self::Canceled),
    ];

    pub(crate) fn of(number: usize) -> Self {
        let mut rest = number % 100;
        for (share, fate) in Self::OF_A_HUNDRED {
            match rest.checked_sub(share) {
                Some(left) => rest = left,
                None => return fate,
            }
        }
        Self::Applied
    }
}

/// A workspace with what its next run needs to know.
struct Progress {
    workspace: Workspace,
    runs: u64,
    configurations: u64,
    configuration: Option<ConfigurationVersionId>,
    serial: u64,
}

/// Records of some period.
#[derive(Clone, Default)]
pub(crate) struct Batch {
    pub(crate) workspaces: BTreeMap<WorkspaceId, Workspace>,
    pub(crate) configurations: Vec<ConfigurationVersion>,
    pub(crate) runs: Vec<Run>,
    pub(crate) states: Vec<StateVersion>,
    pub(crate) comments: Vec<Comment>,
}

/// Makes runs of many workspaces, a few of which have most of them.
pub(crate) struct Maker {
    prefix: OrganizationPrefix,
    rng: StdRng,
    users: Vec<UserId>,
    pool: AgentPoolId,
    agents: Vec<AgentId>,
    workspaces: Vec<Progress>,
    made: usize,
}

/// The name of a workspace. Those with small numbers are the busiest.
pub(crate) fn workspace_name(number: usize) -> String {
    const PARTS: [&str; 8] = ["network", "cluster", "database", "gateway", "queue", "storage", "identity", "metrics"];
    const STAGES: [&str; 4] = ["production", "staging", "testing", "sandbox"];
    format!("{}-{}-{number:05}", PARTS[number % PARTS.len()], STAGES[number / PARTS.len() % STAGES.len()])
}

/// As people and pull requests word it.
pub(crate) fn message(number: usize) -> String {
    match number % 6 {
        0 => format!("Raise the number of replicas to {}", number % 97),
        1 => format!("Merge pull request #{} from acme/feature-{}", number % 90_000, number % 1_009),
        2 => "Triggered via CLI".to_owned(),
        3 => format!("Rotate the certificates of region {} before they expire", number % 23),
        4 => format!("Follow the module network to 4.{}.{}", number % 61, number % 7),
        _ => "Triggered via API".to_owned(),
    }
}

fn source(number: usize) -> RunSource {
    [RunSource::Cloud, RunSource::Api, RunSource::Cloud, RunSource::Page, RunSource::ConfigurationVersion][number % 5]
}

fn digest(rng: &mut StdRng) -> String {
    hex::encode(rng.random::<[u8; 32]>())
}

impl Maker {
    pub(crate) fn new(
        prefix: OrganizationPrefix,
        users: Vec<UserId>,
        projects: &[ProjectId],
        workspaces: usize,
        now: Timestamp,
    ) -> Self {
        let mut rng = StdRng::seed_from_u64(workspaces as u64);
        let progress = |number: usize| {
            let id = WorkspaceId::within(prefix, rng.random());
            let name = workspace_name(number).parse().expect("a legal name");
            let mut workspace = Workspace::new(id, name, projects[number % projects.len()], now);
            workspace.description = format!("Made by the team of part {}", number % 40);
            workspace.auto_apply = number.is_multiple_of(3);
            workspace.tags = BTreeMap::from([("stage".parse().expect("a legal tag"), (number % 4).to_string())]);
            Progress { workspace, runs: 0, configurations: 0, configuration: None, serial: 0 }
        };
        let workspaces = (0..workspaces).map(progress).collect();
        let agents = (0..40).map(|_| AgentId::within(prefix, rng.random())).collect();
        let pool = AgentPoolId::within(prefix, rng.random());
        Self { prefix, rng, users, pool, agents, workspaces, made: 0 }
    }

    pub(crate) fn workspaces(&self) -> impl Iterator<Item = &Workspace> {
        self.workspaces.iter().map(|progress| &progress.workspace)
    }

    /// The workspaces in which nothing has happened are the first to have a run; then those with small numbers have more.
    fn next_workspace(&mut self) -> usize {
        let count = self.workspaces.len();
        if self.made.is_multiple_of(2) && self.made / 2 < count {
            return self.made / 2;
        }
        let chance: f64 = self.rng.random();
        ((chance * chance * count as f64) as usize).min(count - 1)
    }

    /// Adds runs from `now` on, `apart` from each other.
    pub(crate) fn batch(&mut self, runs: usize, now: Timestamp, apart: SignedDuration) -> Batch {
        let mut batch = Batch::default();
        let mut at = now;
        for _ in 0..runs {
            let workspace = self.next_workspace();
            self.live(workspace, at, &mut batch);
            self.made += 1;
            at += apart;
        }
        batch
    }

    fn live(&mut self, workspace: usize, at: Timestamp, batch: &mut Batch) {
        let number = self.made;
        let author = Author::User(self.users[self.rng.random_range(0..self.users.len())]);
        let configuration = self.configuration(workspace, author, at, batch);
        let fate = Fate::of(self.rng.random_range(0..100));
        let progress = &mut self.workspaces[workspace];
        progress.runs += 1;
        let options = RunOptions {
            message: message(number),
            plan_only: fate == Fate::OnlyPlanned,
            auto_apply: progress.workspace.auto_apply && fate != Fate::OnlyPlanned,
            is_destroy: number.is_multiple_of(211),
            refresh_only: number.is_multiple_of(173),
            terraform_version: "1.11.4".to_owned(),
            ..RunOptions::default()
        };
        let run = Run {
            id: RunId::within(self.prefix, self.rng.random()),
            workspace: progress.workspace.id,
            configuration_version: configuration,
            number: progress.runs,
            place: (!options.plan_only).then_some(1),
            status: RunStatus::Pending,
            options,
            source: source(number),
            created_at: at,
            created_by: author,
            confirmed_by: None,
            plan: Default::default(),
            apply: Default::default(),
            has_changes: None,
            generated_configuration: false,
            structured_output: true,
            cancel: None,
            timestamps: Default::default(),
            history: Vec::new(),
            planned_serial: None,
            estimates_costs: false,
            own_inputs: None,
            preview: None,
            output_contract: None,
            bound: Vec::new(),
            stages: Vec::new(),
            policies: None,
        };
        let run = self.finished(run.created(at), fate, author, at);
        if matches!(run.status, RunStatus::Applied) {
            let state = self.state(workspace, &run, batch);
            batch.states.push(state);
        }
        let run = self.perhaps_comment(run, author, batch);
        batch.runs.push(run);
    }

    /// The configuration of the next run: mostly a new one.
    fn configuration(
        &mut self,
        workspace: usize,
        author: Author,
        at: Timestamp,
        batch: &mut Batch,
    ) -> ConfigurationVersionId {
        let progress = &mut self.workspaces[workspace];
        let is_new = self.rng.random_bool(0.6);
        if let Some(configuration) = progress.configuration.filter(|_| !is_new) {
            return configuration;
        }
        progress.configurations += 1;
        let id = ConfigurationVersionId::within(self.prefix, self.rng.random());
        progress.configuration = Some(id);
        batch.configurations.push(ConfigurationVersion {
            id,
            workspace: progress.workspace.id,
            number: progress.configurations,
            status: ConfigurationStatus::Uploaded,
            speculative: false,
            provisional: false,
            auto_queue_runs: false,
            source: "tfe-api".to_owned(),
            created_at: at,
            created_by: author,
            blob: hex::encode(self.rng.random::<[u8; 16]>()),
            has_readme: false,
            size: self.rng.random_range(900..40_000),
            sha256: digest(&mut self.rng),
            creator_may_apply: true,
            uploaded_at: Some(at),
            error: None,
            error_message: None,
            contents: None,
            shares_archive: false,
        });
        id
    }

    /// The run at its end.
    fn finished(&mut self, run: Run, fate: Fate, author: Author, at: Timestamp) -> Run {
        let mut now = at;
        let mut later = |rng: &mut StdRng, most: i64| {
            now += SignedDuration::from_millis(rng.random_range(100..most));
            now
        };
        let legal = "a run of this status takes this event";
        let mut run = match run.status {
            RunStatus::Pending => run.after(RunEvent::ReachedFront, at, Author::Taco).expect(legal),
            _ => run,
        };
        if fate == Fate::Canceled {
            return run.after(RunEvent::Canceled, later(&mut self.rng, 9_000), author).expect(legal);
        }
        run = run.taken(self.executor(), later(&mut self.rng, 2_000)).expect(legal).0;
        run.planned_serial = Some(run.number);
        let planned = later(&mut self.rng, 60_000);
        self.end_phase(&mut run, PhaseKind::Plan);
        if fate == Fate::PlanFails {
            run.plan.error = Some("terraform plan ended with exit status 1: see the log".to_owned());
            return run.after(RunEvent::Failed, planned, Author::Taco).expect(legal);
        }
        let has_changes = fate != Fate::WithoutChanges;
        run.has_changes = Some(has_changes);
        run = run.after_plan(has_changes, planned).expect(legal);
        if run.status.is_final() {
            return run;
        }
        if fate == Fate::Discarded && run.status == RunStatus::Planned {
            return run.after(RunEvent::Discarded, later(&mut self.rng, 600_000), author).expect(legal);
        }
        if run.status == RunStatus::Planned {
            run = run.after(RunEvent::Confirmed, later(&mut self.rng, 600_000), author).expect(legal);
        }
        run = run.taken(self.executor(), later(&mut self.rng, 2_000)).expect(legal).0;
        let applied = later(&mut self.rng, 300_000);
        self.end_phase(&mut run, PhaseKind::Apply);
        match fate {
            Fate::ApplyFails => {
                run.apply.error = Some("terraform apply ended with exit status 1: see the log".to_owned());
                run.after(RunEvent::Failed, applied, Author::Taco).expect(legal)
            }
            _ => run.after(RunEvent::Applied, applied, Author::Taco).expect(legal),
        }
    }

    fn executor(&mut self) -> Executor {
        let number = self.rng.random_range(0..self.agents.len());
        let pool = number.is_multiple_of(2).then_some(self.pool);
        Executor { agent: self.agents[number], agent_name: format!("agent-{number:02}"), pool }
    }

    /// Ends a phase in the record, as an agent would.
    fn end_phase(&mut self, run: &mut Run, kind: PhaseKind) {
        let rng = &mut self.rng;
        let counts = ResourceCounts { additions: rng.random_range(0..9), ..ResourceCounts::default() };
        let log =
            StoredLog { blocks: vec![StoredLogBlock { end: rng.random_range(2_000..40_000), digest: digest(rng) }] };
        let forms = ["plans", "json-plans", "redacted-plans"].into_iter();
        let mut file =
            |form: &str| (form.to_owned(), StoredFile { size: rng.random_range(2_000..60_000), sha256: digest(rng) });
        let files = (kind == PhaseKind::Plan).then(|| forms.map(&mut file).collect());
        let phase = run.phase_mut(kind);
        (phase.counts, phase.log, phase.files) = (counts, Some(log), files);
    }

    /// The state that an apply leaves, which becomes the workspace's.
    fn state(&mut self, workspace: usize, run: &Run, batch: &mut Batch) -> StateVersion {
        let progress = &mut self.workspaces[workspace];
        progress.serial += 1;
        let id = StateVersionId::within(self.prefix, self.rng.random());
        let resources = self.rng.random_range(3..120);
        progress.workspace.current_state_version = Some(id);
        progress.workspace.resource_count = resources;
        batch.workspaces.insert(progress.workspace.id, progress.workspace.clone());
        let names = [("endpoint", false), ("password", true), ("subnets", false)];
        let outputs = &names[..(progress.serial % 4) as usize % names.len()];
        StateVersion {
            id,
            workspace: progress.workspace.id,
            status: StateVersionStatus::Finalized,
            serial: progress.serial,
            lineage: format!("3f2c5a1e-0000-4000-8000-{workspace:012}"),
            md5: hex::encode(self.rng.random::<[u8; 16]>()),
            blob: hex::encode(self.rng.random::<[u8; 16]>()),
            sha256: digest(&mut self.rng),
            size: self.rng.random_range(2_000..90_000),
            force: false,
            origin: StateOrigin::Apply,
            created_at: run.entered_status_at(),
            created_by: Author::Run(run.id),
            run: Some(run.id),
            terraform_version: Some("1.11.4".to_owned()),
            encrypted: false,
            resource_count: resources,
            outputs: listed_outputs(id, outputs.iter().copied()).unwrap_or_default(),
            unlisted_outputs: None,
            has_json: false,
            json_blob: String::new(),
            revealed: None,
        }
    }

    /// Of a hundred runs one is talked about.
    fn perhaps_comment(&mut self, mut run: Run, author: Author, batch: &mut Batch) -> Run {
        if !self.made.is_multiple_of(100) {
            return run;
        }
        let at = run.entered_status_at() + SignedDuration::from_mins(3);
        let comment = Comment {
            id: CommentId::within(self.prefix, self.rng.random()),
            run: run.id,
            body: "Looks good; the change of the subnets was agreed on with the network team".to_owned(),
            created_at: at,
            created_by: author,
        };
        run.note("commented", author, at);
        if let Some(entry) = run.history.last_mut() {
            entry.comment = Some(comment.id);
        }
        batch.comments.push(comment);
        run
    }
}
