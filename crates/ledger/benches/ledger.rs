//! Speed of the ledger, beside what the disk or the bucket alone would take.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use taco_bench::{Sample, Table, ratio, resident_memory, time};
use taco_ledger::bucket::{ByteStream, Created, Download, Object};
use taco_ledger::{
    Bucket, BucketError, Environment, Intent, Key, Ledger, LedgerName, Location, ObjectBucket, Options, Peers,
    Retrying, SharedRng, SystemClock,
};
use taco_tables::{Record, indexes, tables};

#[derive(Clone, Serialize, Deserialize)]
struct Workspace {
    id: String,
    name: String,
    project: String,
    description: String,
    execution_mode: String,
    terraform_version: String,
    tags: Vec<String>,
    created_at: String,
    auto_apply: bool,
}

impl Record for Workspace {
    const KIND: &'static str = "workspace";
    type Id = String;
    type Indexes = WorkspaceIndexes;

    fn id(&self) -> &String {
        &self.id
    }
}

indexes! {
    struct WorkspaceIndexes for Workspace {
        name: String => |workspace| [workspace.name.clone()];
        project: String => |workspace| [workspace.project.clone()];
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Run {
    id: String,
    workspace: String,
    status: String,
    message: String,
    configuration: String,
    created_by: String,
    created_at: String,
    plan: String,
    apply: String,
    additions: u32,
    changes: u32,
    destructions: u32,
}

impl Record for Run {
    const KIND: &'static str = "run";
    type Id = String;
    type Indexes = RunIndexes;

    fn id(&self) -> &String {
        &self.id
    }
}

indexes! {
    struct RunIndexes for Run {
        workspace: String => |run| [run.workspace.clone()];
        status: String => |run| [run.status.clone()];
    }
}

tables! {
    struct Everything {
        workspaces: Workspace;
        runs: Run;
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    if let Some(directory) = std::env::var_os(READY) {
        runtime.block_on(open_and_report(Path::new(&directory)));
        return;
    }
    let mut table = Table::new("Ledger");
    runtime.block_on(async {
        on_a_directory(&mut table).await;
        on_a_far_bucket(&mut table).await;
        from_a_snapshot(&mut table).await;
    });
    table.close();
}

fn workspace(number: usize) -> Workspace {
    Workspace {
        id: format!("ws-{number:016}"),
        name: format!("network-production-{number}"),
        project: format!("prj-{:016}", number % 50),
        description: "The network that everything else stands on".into(),
        execution_mode: "remote".into(),
        terraform_version: "1.11.4".into(),
        tags: vec!["production".into(), "network".into()],
        created_at: "2026-11-16T06:00:00Z".into(),
        auto_apply: false,
    }
}

fn run(number: usize) -> Run {
    Run {
        id: format!("run-{number:016}"),
        workspace: format!("ws-{:016}", number % 10_000),
        status: if number.is_multiple_of(100) { "planned" } else { "applied" }.into(),
        message: "Triggered by a push to main".into(),
        configuration: format!("cv-{number:016}"),
        created_by: format!("user-{:016}", number % 40),
        created_at: "2026-11-16T06:00:00Z".into(),
        plan: format!("plan-{number:016}"),
        apply: format!("apply-{number:016}"),
        additions: 3,
        changes: 1,
        destructions: 0,
    }
}

async fn open(bucket: Arc<dyn Bucket>) -> Ledger<Everything> {
    let rng = SharedRng::from_system();
    let environment = Environment {
        bucket: Arc::new(Retrying::new(bucket, rng.clone())),
        clock: Arc::new(SystemClock),
        rng,
        server: "bench".into(),
        peers: Peers::none(),
    };
    Ledger::open(environment, LedgerName::site(), Options::default()).await.expect("a ledger")
}

fn on(directory: &Path) -> Arc<dyn Bucket> {
    Arc::new(Location::directory(directory).open().expect("a directory"))
}

async fn commit(ledger: &Ledger<Everything>, number: usize) {
    let intent = Intent { actor: "bench".into(), action: "run.create", request: None };
    ledger
        .commit(intent, move |transaction| {
            transaction.put(&run(number));
            Ok::<_, ()>(())
        })
        .await
        .expect("a commit");
}

/// Cost of one durable file on the disk alone: write it, sync it, sync its directory.
fn durable_create(directory: &Path, number: usize, bytes: &[u8]) {
    let mut file = std::fs::File::create_new(directory.join(number.to_string())).expect("a file");
    file.write_all(bytes).expect("written");
    file.sync_all().expect("synced");
    std::fs::File::open(directory).and_then(|directory| directory.sync_all()).expect("synced");
}

async fn on_a_directory(table: &mut Table) {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(on(directory.path())).await;
    for number in 0..100 {
        commit(&ledger, number).await;
    }
    // By turns, so that both meet the same disk.
    let plain = tempfile::tempdir().expect("a directory");
    let payload = vec![b'x'; 700];
    let (mut creates, mut commits) = (Vec::new(), Vec::new());
    for number in 0..1_000 {
        let begun = Instant::now();
        durable_create(plain.path(), number, &payload);
        creates.push(begun.elapsed());
        let begun = Instant::now();
        commit(&ledger, 100 + number).await;
        commits.push(begun.elapsed());
    }
    let (create, single) = (Sample::of(creates).median(), Sample::of(commits).median());
    table.note("one durable create on this disk (median of 1,000)", time(create));
    let times = ratio(single, create);
    table.row("one commit, directory (median of 1,000)", time(single), "2 x durable create", times <= 2.0);

    let alone = throughput(&ledger, 1, 1_000).await;
    table.note("commits by 1 writer", format!("{alone:.0}/s"));
    for writers in [64, 256] {
        let many = throughput(&ledger, writers, 400).await;
        let reached = writers != 64 || many >= 20.0 * alone;
        table.row(&format!("transactions by {writers} writers"), format!("{many:.0}/s"), "20 x 1 writer", reached);
    }

    let mut reads = Vec::new();
    for _ in 0..5_000 {
        let begun = Instant::now();
        ledger.read().await.expect("a read");
        reads.push(begun.elapsed());
    }
    let read = Sample::of(reads).median();
    table.row("a fresh read with nothing new (median)", time(read), "100 µs", read < Duration::from_micros(100));
    let begun = Instant::now();
    let readers = (0..256).map(|_| {
        let ledger = ledger.clone();
        tokio::spawn(async move {
            for _ in 0..200 {
                ledger.read().await.expect("a read");
            }
        })
    });
    join_all(readers).await;
    table.note("fresh reads by 256 readers", format!("{:.0}/s", 256.0 * 200.0 / begun.elapsed().as_secs_f64()));
}

async fn throughput(ledger: &Ledger<Everything>, writers: usize, each: usize) -> f64 {
    let begun = Instant::now();
    let work = (0..writers).map(|writer| {
        let ledger = ledger.clone();
        tokio::spawn(async move {
            for number in 0..each {
                commit(&ledger, 1_000_000 * (writer + 1) + number).await;
            }
        })
    });
    join_all(work).await;
    (writers * each) as f64 / begun.elapsed().as_secs_f64()
}

async fn on_a_far_bucket(table: &mut Table) {
    const BUCKET_LATENCY: Duration = Duration::from_millis(30);
    let ledger = open(Arc::new(Far { bucket: ObjectBucket::in_memory(), away: BUCKET_LATENCY })).await;
    let mut commits = Vec::new();
    for number in 0..20 {
        let begun = Instant::now();
        commit(&ledger, number).await;
        commits.push(begun.elapsed());
    }
    let single = Sample::of(commits).median();
    table.row("one commit, 30 ms added to each operation", time(single), "80 ms", single < Duration::from_millis(80));
    let begun = Instant::now();
    join_all((0..1_000).map(|number| commit(&ledger, 1_000 + number))).await;
    let all = begun.elapsed();
    table.row("1,000 concurrent commits, 30 ms added", time(all), "1 s", all < Duration::from_secs(1));
    for readers in [1, 1_000] {
        let begun = Instant::now();
        join_all((0..readers).map(|_| ledger.read())).await;
        let took = begun.elapsed();
        let target = BUCKET_LATENCY + Duration::from_millis(10);
        let what = format!("{readers} fresh reads at once, 30 ms added");
        table.row(&what, time(took), "1 round trip + 10 ms", took <= target);
    }
}

/// Set in the child process that opens the large ledger, so that its memory is its own.
const READY: &str = "TACO_BENCH_LEDGER";

async fn from_a_snapshot(table: &mut Table) {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(on(directory.path())).await;
    for batch in 0..1_000 {
        let intent = Intent { actor: "bench".into(), action: "seed", request: None };
        ledger
            .commit(intent, move |transaction| {
                (batch * 10..(batch + 1) * 10).for_each(|number| transaction.put(&workspace(number)));
                (batch * 100..(batch + 1) * 100).for_each(|number| transaction.put(&run(number)));
                Ok::<_, ()>(())
            })
            .await
            .expect("a commit");
    }
    let snapshots = directory.path().join("ledgers/site/snapshots");
    while std::fs::read_dir(&snapshots).map_or(0, Iterator::count) == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let report = std::process::Command::new(std::env::current_exe().expect("a program"))
        .env(READY, directory.path())
        .output()
        .expect("a report");
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    let mut figures = report.split_whitespace().filter_map(|figure| figure.parse::<f64>().ok());
    let (seconds, bytes) = (figures.next().unwrap_or(f64::MAX), figures.next().unwrap_or(f64::MAX));
    let ready = format!("{:.0} ms", seconds * 1e3);
    table.row("ready: 10,000 workspaces and 100,000 runs, from a snapshot", ready, "2 s", seconds < 2.0);
    let megabytes = bytes / 1e6;
    table.row("memory held by that server's ledger", format!("{megabytes:.0} MB"), "300 MB", megabytes < 300.0);
}

async fn open_and_report(directory: &Path) {
    let begun = Instant::now();
    let ledger = open(on(directory)).await;
    let view = ledger.read().await.expect("a read");
    assert_eq!((view.workspaces.len(), view.runs.len()), (10_000, 100_000));
    assert_eq!(view.workspaces.by().name.len(), 10_000);
    assert_eq!(view.workspaces.by().project.get(&"prj-0000000000000007".to_owned()).count(), 200);
    assert_eq!(view.runs.by().workspace.get(&"ws-0000000000000007".to_owned()).count(), 10);
    assert_eq!(view.runs.by().status.get(&"planned".to_owned()).count(), 1_000);
    let ready = begun.elapsed();
    println!("{} {}", ready.as_secs_f64(), resident_memory(std::process::id()).unwrap_or(u64::MAX));
}

/// A bucket in memory that is some way off.
#[derive(Debug)]
struct Far {
    bucket: ObjectBucket,
    away: Duration,
}

#[async_trait]
impl Bucket for Far {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        tokio::time::sleep(self.away).await;
        self.bucket.create(key, bytes).await
    }

    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        tokio::time::sleep(self.away).await;
        self.bucket.put(key, bytes).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
        tokio::time::sleep(self.away).await;
        self.bucket.get(key).await
    }

    async fn list(&self, folder: &Key, after: Option<&Key>) -> Result<Vec<Key>, BucketError> {
        tokio::time::sleep(self.away).await;
        self.bucket.list(folder, after).await
    }

    async fn folders(&self, folder: &Key) -> Result<Vec<String>, BucketError> {
        tokio::time::sleep(self.away).await;
        self.bucket.folders(folder).await
    }

    async fn delete(&self, key: &Key) -> Result<(), BucketError> {
        tokio::time::sleep(self.away).await;
        self.bucket.delete(key).await
    }

    async fn upload(&self, key: &Key, body: ByteStream) -> Result<u64, BucketError> {
        tokio::time::sleep(self.away).await;
        self.bucket.upload(key, body).await
    }

    async fn download(&self, key: &Key, range: Option<std::ops::Range<u64>>) -> Result<Option<Download>, BucketError> {
        tokio::time::sleep(self.away).await;
        self.bucket.download(key, range).await
    }
}
