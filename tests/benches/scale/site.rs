//! A bucket with many workspaces and runs, made once and kept for the next benchmark.
//!
//! Nobody waits for a million runs to happen, so the older ones come about in batches: each transaction puts a thousand
//! finished runs with all that hangs on them, as the rules of the domain make them, and the servers' own code then moves
//! them into history, page by page, and merges segments. Of these runs there are no blobs (plans, logs, states, archives),
//! and the commits that put them are removed once a snapshot covers them. The newest runs, a few thousand, are real: they
//! went through the API and the agents' verbs one by one, with logs, plans and states. What a run costs in the bucket is
//! measured in a site of which all runs are real, once they are old.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use harness::api_server::ApiServer;
use harness::configurations::packed;
use jiff::{SignedDuration, Timestamp};
use reqwest::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use taco_control_plane::{OrganizationSnapshot, PhaseCaller, PhaseOutcome, PhaseRequest, PlanForm, RequestInfo};
use taco_domain::OrganizationState;
use taco_domain::engine::Engine;
use taco_domain::id::ProjectId;
use taco_domain::phase::ResourceCounts;
use taco_domain::project::Project;
use taco_ledger::{Clock as _, Intent, Ledger, Location, SystemClock, Transaction, layout};

use crate::records::{Batch, Fate, Maker, message, workspace_name};

/// Goes up whenever sites are made in another way.
const VERSION: u32 = 2;
pub(crate) const ORGANIZATION: &str = "acme";
const USERS: usize = 30;
const PROJECTS: usize = 12;
/// As many as leave memory together.
const BATCH: usize = 1_000;
/// No commit is as small as what stands in the place of a packed one.
const LARGEST_PLACEHOLDER: u64 = 100;

/// Size of a site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    pub(crate) workspaces: usize,
    pub(crate) runs: usize,
    /// Number of the runs that went through the API.
    pub(crate) real: usize,
}

/// Facts about a generated site.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct Facts {
    pub(crate) runs: usize,
    pub(crate) real: usize,
    pub(crate) seconds: u64,
    /// Commits of the real runs.
    pub(crate) commits: u64,
    /// `None` where older commits are missing, so that none can be packed.
    pub(crate) settled: Option<Settled>,
}

/// What lies in the bucket once it is old: commits in packs, and runs in history.
#[derive(Clone, Copy, Serialize, Deserialize, Debug)]
pub(crate) struct Settled {
    pub(crate) packed_commits: u64,
    /// Bytes of packs, and of what stands in the places of their commits.
    pub(crate) packed_bytes: u64,
    /// Bytes of a commit that is not packed yet.
    pub(crate) plain_commit_bytes: u64,
    pub(crate) bundles: u64,
    pub(crate) history_bytes: u64,
    /// Bytes of snapshots and deltas; old ones go, so this does not grow with the number of runs.
    pub(crate) snapshot_bytes: u64,
}

/// A site in the cache.
pub(crate) struct Site {
    pub(crate) bucket: PathBuf,
    pub(crate) facts: Facts,
}

/// Cache directory of sites.
fn cache() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")));
    cache.expect("there is a home directory").join("taco/scale")
}

/// The site of this size, from the cache if it is there. Of each kind only the last one is kept.
pub(crate) async fn given_site(kind: &str, size: Size) -> Site {
    let name = format!("{kind}-v{VERSION}-{}-{}-{}", size.workspaces, size.runs, size.real);
    let path = cache().join(&name);
    if !path.join("facts.json").is_file() {
        for other in fs::read_dir(cache()).into_iter().flatten().flatten() {
            if other.file_name().to_string_lossy().starts_with(&format!("{kind}-")) {
                fs::remove_dir_all(other.path()).expect("it can be removed");
            }
        }
        let bucket = path.join("bucket");
        fs::create_dir_all(&bucket).expect("there is room");
        let facts = make(&bucket, size).await;
        let facts = serde_json::to_vec_pretty(&facts).expect("plain data");
        fs::write(path.join("facts.json"), facts).expect("there is room");
    }
    let facts = fs::read(path.join("facts.json")).expect("it is there");
    Site { bucket: path.join("bucket"), facts: serde_json::from_slice(&facts).expect("it was written here") }
}

impl Site {
    /// A bucket that begins with what this one has: links, since objects are never changed in place.
    pub(crate) fn copy(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir_in(cache()).expect("there is room");
        link_all(&self.bucket, &copy.path().join("bucket"));
        copy
    }
}

fn link_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("there is room");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => link_all(&entry.path(), &target),
            false => fs::hard_link(entry.path(), target).expect("one file system"),
        }
    }
}

async fn make(path: &Path, size: Size) -> Facts {
    let begun = Instant::now();
    let bucket: Arc<_> = Arc::new(Location::directory(path).open().expect("a bucket"));
    // The newest run is of today, so that nothing is in the future.
    let apart = SignedDuration::from_secs(30);
    let life = apart * i32::try_from(size.runs).expect("not so many") + SignedDuration::from_hours(24);
    let start = SystemClock.now() - life;
    taco_ledger::format::ensure(&*bucket, &SystemClock).await.expect("a bucket");
    let server = ApiServer::start_at(bucket, start).await;
    server.given_organization(ORGANIZATION).await;
    let mut maker = given_workspaces(&server, size.workspaces, start).await;

    let ledger = server.keyed_ledger().await;
    let batched = size.runs - size.real;
    let mut made = 0;
    while made < batched {
        let runs = BATCH.min(batched - made);
        let batch = maker.batch(runs, server.now(), apart);
        put(&ledger, batch).await;
        server.pass(apart * i32::try_from(runs).expect("not so many"));
        made += runs;
        archive(&server).await;
        if made.is_multiple_of(20 * BATCH) || made == batched {
            remove_covered(path, &ledger);
            eprintln!("{made} of {} runs after {:.0?}", size.runs, begun.elapsed());
        }
    }
    drop(ledger);

    let mut agent = Executant { server: &server, commits: 0 };
    for number in 0..size.real {
        agent.live(number, size.workspaces).await;
        server.pass(apart);
        if number.is_multiple_of(100) {
            archive(&server).await;
        }
    }
    server.pass(SignedDuration::from_hours(2));
    archive(&server).await;
    let commits = agent.commits;
    let settled = if batched == 0 { Some(settle(path, &server).await) } else { None };
    eprintln!("{} runs, {} of them real, after {:.0?}", size.runs, size.real, begun.elapsed());
    Facts { runs: size.runs, real: size.real, seconds: begun.elapsed().as_secs(), commits, settled }
}

/// Lets everything become old, so that servers pack what can be packed, and measures what lies there then.
async fn settle(bucket: &Path, server: &ApiServer) -> Settled {
    // Files are of today, and the site's time is a day behind.
    server.pass(SignedDuration::from_hours(48));
    while server.control_plane.pack_commits().await.expect("a bucket") {}
    let org = organization(server).await;
    let (sizes, state) = (sizes(bucket, &org), server.control_plane.state(&org));
    let part = |name: &str| sizes.get(name).copied().unwrap_or(0);
    let log: Vec<u64> = files(&bucket.join(format!("ledgers/{}/log", org.id()))).collect();
    let (packed, plain): (Vec<u64>, Vec<u64>) = log.into_iter().partition(|size| *size < LARGEST_PLACEHOLDER);
    Settled {
        packed_commits: packed.len() as u64,
        packed_bytes: part("packs") + packed.iter().sum::<u64>(),
        plain_commit_bytes: plain.iter().sum::<u64>() / plain.len().max(1) as u64,
        bundles: state.history_segments.iter().map(|segment| segment.bundles).sum(),
        history_bytes: part("history"),
        snapshot_bytes: part("snapshots") + part("deltas"),
    }
}

fn files(folder: &Path) -> impl Iterator<Item = u64> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| size_of(&entry.path()))
}

async fn organization(server: &ApiServer) -> OrganizationSnapshot {
    server.control_plane.all_organizations().await.expect("organizations").remove(0)
}

/// The users, projects and workspaces that everything happens in.
async fn given_workspaces(server: &ApiServer, workspaces: usize, now: Timestamp) -> Maker {
    let mut users = Vec::new();
    for number in 0..USERS {
        users.push(server.given_user(&format!("user-{number:02}")).await.0);
    }
    let prefix = organization(server).await.id().organization_prefix();
    let project = |number: usize| {
        let id = ProjectId::derived(prefix, &format!("project {number}"));
        Project::new(id, format!("Part {number}").parse().expect("a legal name"), now)
    };
    let projects: Vec<Project> = (0..PROJECTS).map(project).collect();
    let ids: Vec<ProjectId> = projects.iter().map(|project| project.id).collect();
    let maker = Maker::new(prefix, users, &ids, workspaces, now);
    let ledger = server.keyed_ledger().await;
    let made: Vec<_> = maker.workspaces().cloned().collect();
    commit(&ledger, "workspace.create", move |tx| {
        projects.iter().for_each(|project| tx.put(project));
        made.iter().for_each(|workspace| tx.put(workspace));
    })
    .await;
    maker
}

async fn commit(
    ledger: &Ledger<OrganizationState>,
    action: &'static str,
    change: impl Fn(&mut Transaction<OrganizationState>) + Send + 'static,
) {
    let intent = Intent { actor: "taco".to_owned(), action, request: None };
    let done = ledger.commit(intent, move |tx| {
        change(tx);
        Ok::<_, std::convert::Infallible>(())
    });
    done.await.expect("a bucket");
}

async fn put(ledger: &Ledger<OrganizationState>, batch: Batch) {
    commit(ledger, "phase.finish", move |tx| {
        batch.configurations.iter().for_each(|configuration| tx.put(configuration));
        batch.runs.iter().for_each(|run| tx.put(run));
        batch.states.iter().for_each(|state| tx.put(state));
        batch.comments.iter().for_each(|comment| tx.put(comment));
        batch.workspaces.values().for_each(|workspace| tx.put(workspace));
    })
    .await;
}

/// Moves into history what a server would have moved there by now.
async fn archive(server: &ApiServer) {
    organization(server).await;
    while server.control_plane.archive_finished().await.expect("a bucket").more {}
    // Once more, for segments to merge.
    server.control_plane.archive_finished().await.expect("a bucket");
}

/// Removes commits that a snapshot covers: those that put a thousand runs at once are no server's.
fn remove_covered(bucket: &Path, ledger: &Ledger<OrganizationState>) {
    let folder = |key: taco_ledger::Key| bucket.join(key.as_str());
    let number = |path: &Path| path.file_name()?.to_str()?.split('.').next()?.parse::<u64>().ok();
    let files = |folder: PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(move |entry| Some((number(&entry.path())?, entry.path()))).collect::<Vec<_>>()
    };
    let snapshots = files(folder(layout::snapshots(ledger.name())));
    let Some(newest) = snapshots.iter().map(|(number, _)| *number).max() else { return };
    let commits = files(folder(layout::log(ledger.name())));
    for (number, path) in commits.into_iter().filter(|(number, _)| *number < newest) {
        fs::remove_file(path).unwrap_or_else(|error| panic!("commit {number} cannot be removed: {error}"));
    }
}

/// Sizes of the parts of an organization in the bucket, in bytes.
fn sizes(bucket: &Path, open: &OrganizationSnapshot) -> BTreeMap<String, u64> {
    let mut sizes = BTreeMap::new();
    let roots = [format!("ledgers/{}", open.id()), format!("blobs/{}", open.id())];
    for root in roots.map(|root| bucket.join(root)) {
        for entry in fs::read_dir(root).into_iter().flatten().flatten() {
            *sizes.entry(entry.file_name().to_string_lossy().into_owned()).or_default() += size_of(&entry.path());
        }
    }
    sizes
}

fn size_of(path: &Path) -> u64 {
    match path.is_dir() {
        true => fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size_of(&entry.path())).sum(),
        false => path.metadata().map_or(0, |file| file.len()),
    }
}

/// Someone who starts runs, and the agent that executes them.
struct Executant<'a> {
    server: &'a ApiServer,
    commits: u64,
}

impl Executant<'_> {
    /// One run from its configuration to its end.
    async fn live(&mut self, number: usize, workspaces: usize) {
        let before = organization(self.server).await;
        let fate = Fate::of(number * 37);
        let name = workspace_name(number * number % workspaces);
        let state = self.server.control_plane.state(&before);
        let workspace = state.workspace_named(&name).expect("it was made").id.to_string();
        let is_usable = state.usable_configuration(workspace.parse().expect("an id")).is_some();
        if number % 10 < 6 || !is_usable {
            self.configure(&workspace).await;
        }
        let attributes =
            json!({ "message": message(number), "plan-only": fate == Fate::OnlyPlanned, "auto-apply": false });
        let workspace = json!({ "workspace": { "data": { "type": "workspaces", "id": workspace } } });
        let body = json!({ "data": { "type": "runs", "attributes": attributes, "relationships": workspace } });
        let run = self.server.admin().post("/api/v2/runs", &body).await.expect(StatusCode::CREATED).id();
        if fate == Fate::Canceled {
            self.act(&run, "cancel").await;
        } else {
            self.plan(&run, fate).await;
        }
        self.commits += organization(self.server).await.moment().organization - before.moment().organization;
    }

    async fn plan(&self, run: &str, fate: Fate) {
        let phase = self.take().await;
        self.log(&phase, 120).await;
        if fate == Fate::PlanFails {
            return self.finish(&phase, failed("plan")).await;
        }
        for form in PlanForm::ALL {
            let plan = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from(vec![b'{'; 6_000]))]);
            self.server.control_plane.upload_plan(&phase, form, plan).await.expect("it is taken");
        }
        let has_changes = fate != Fate::WithoutChanges;
        let (counts, engine) = (counts(), engine());
        self.finish(
            &phase,
            PhaseOutcome::Planned { has_changes, counts, generated_configuration: false, engine, policies: Vec::new() },
        )
        .await;
        match fate {
            Fate::OnlyPlanned | Fate::WithoutChanges => {}
            Fate::Discarded => self.act(run, "discard").await,
            _ => {
                self.act(run, "apply").await;
                self.apply(fate).await;
            }
        }
    }

    async fn apply(&self, fate: Fate) {
        let phase = self.take().await;
        self.log(&phase, 200).await;
        if fate == Fate::ApplyFails {
            return self.finish(&phase, failed("apply")).await;
        }
        let open = organization(self.server).await;
        let state = self.server.control_plane.state(&open);
        let run = state.runs.get(&phase.attempt.run).expect("it is there");
        let workspace = state.workspaces.get(&run.workspace).expect("it is there");
        let current = state.current_state_version(workspace);
        let (serial, lineage) = current.map_or((1, "a-lineage"), |current| (current.serial + 1, &current.lineage));
        let output = json!({ "value": "https://example.test", "type": "string" });
        let state = json!({
            "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": lineage,
            "outputs": { "endpoint": output }, "resources": [], "check_results": "-".repeat(3_000),
        });
        let state = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from(state.to_string()))]);
        self.server.control_plane.write_phase_state(&phase, state).await.expect("it is taken");
        self.finish(&phase, PhaseOutcome::Applied { counts: counts(), engine: engine() }).await;
    }

    async fn act(&self, run: &str, action: &str) {
        let path = format!("/api/v2/runs/{run}/actions/{action}");
        self.server.admin().post(&path, &json!({})).await.expect(StatusCode::ACCEPTED);
    }

    async fn configure(&self, workspace: &str) {
        let body = json!({ "data": { "type": "configuration-versions", "attributes": { "auto-queue-runs": false } } });
        let path = format!("/api/v2/workspaces/{workspace}/configuration-versions");
        let announced = self.server.admin().post(&path, &body).await.expect(StatusCode::CREATED);
        let address = announced.attribute("upload-url").as_str().expect("an address").to_owned();
        let path = address.strip_prefix("http://taco.test").expect("an address of this site");
        let anyone = self.server.with_authorization(None);
        anyone.send("PUT", path, None, packed(&[("main.tf", "")])).await.expect(StatusCode::OK);
    }

    async fn take(&self) -> PhaseCaller {
        let control_plane = &self.server.control_plane;
        let (agent, org) = (control_plane.id_for_agent_within(), organization(self.server).await);
        let taken = control_plane.take_phase(&org, PhaseRequest::within(agent, "within")).await.expect("a bucket");
        let token = taken.expect("a phase is ready").token;
        control_plane.phase_caller(&token, RequestInfo::default()).await.expect("a phase's token")
    }

    async fn log(&self, phase: &PhaseCaller, lines: usize) {
        let log = Bytes::from("terraform_data.service: Refreshing state... [id=00000001]\n".repeat(lines));
        self.server.control_plane.append_log(phase, 0, log).await.expect("it is taken");
    }

    async fn finish(&self, phase: &PhaseCaller, outcome: PhaseOutcome) {
        self.server.control_plane.finish_phase(phase, outcome).await.expect("the phase ends");
    }
}

fn engine() -> (Engine, String) {
    (Engine::Terraform, "1.11.4".to_owned())
}

fn counts() -> ResourceCounts {
    ResourceCounts { additions: 2, ..ResourceCounts::default() }
}

fn failed(what: &str) -> PhaseOutcome {
    let message = format!("terraform {what} ended with exit status 1: see the log");
    PhaseOutcome::Errored { message, engine: Some(engine()) }
}
