//! `kill -9` of processes that write one ledger as fast as they can. Afterwards nothing that any of them was told is
//! missing, nothing is there twice, and no manual repair was needed.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use harness::bucket_servers::{BucketServer, variables_of};
use harness::operation_lists::{OperationLists, append};
use taco_ledger::{
    Bucket, Environment, Ledger, LedgerName, Location, Options, Peers, Retrying, SharedRng, SystemClock, audit,
};

/// Three processes at a time, each of them killed this often.
const PROCESSES: usize = 3;
const LIVES: usize = 6;

/// One process, and a thread that notes what it says.
struct Writer {
    process: Child,
    heard: JoinHandle<Vec<String>>,
}

impl Writer {
    fn start(location: &Location, name: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ledger-writer"));
        command.arg(name).envs(variables_of(location)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("ledger-writer starts");
        let output = process.stdout.take().expect("its output");
        let heard = std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.filter_map(|line| line.strip_prefix("done ").map(str::to_owned)).collect()
        });
        Self { process, heard }
    }

    /// Kills it and returns everything it was told. A line that the kill cut short was not said.
    fn kill(mut self) -> Vec<String> {
        let died_before = self.process.try_wait().expect("a process");
        self.process.kill().expect("killed");
        self.process.wait().expect("gone");
        let mut heard = self.heard.join().expect("all it said");
        heard.retain(|operation| operation.len() == 32);
        if let Some(status) = died_before {
            let mut said = String::new();
            std::io::Read::read_to_string(&mut self.process.stderr.take().expect("its errors"), &mut said).ok();
            panic!("a writer died by itself, {status}: {said}");
        }
        heard
    }
}

/// Kills writers one after the other, at moments that a seed decides, while the others go on.
async fn nothing_is_lost_on(location: &Location) {
    let rng = SharedRng::from_seed(7);
    let mut acknowledged = BTreeSet::new();
    let mut writers: Vec<Writer> =
        (0..PROCESSES).map(|number| Writer::start(location, &format!("writer-{number}"))).collect();
    for life in 0..LIVES {
        for (number, writer) in writers.iter_mut().enumerate() {
            tokio::time::sleep(Duration::from_millis(150 + (rng.fraction() * 500.0) as u64)).await;
            let next = Writer::start(location, &format!("writer-{number}-{life}"));
            acknowledged.extend(std::mem::replace(writer, next).kill());
        }
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    for writer in writers {
        acknowledged.extend(writer.kill());
    }
    assert!(acknowledged.len() > 100, "only {} operations were acknowledged", acknowledged.len());

    let rng = SharedRng::from_system();
    let bucket: Arc<dyn Bucket> = Arc::new(Retrying::new(Arc::new(location.open().expect("opened")), rng.clone()));
    let environment = Environment {
        bucket: Arc::clone(&bucket),
        clock: Arc::new(SystemClock),
        rng,
        server: "survivor".into(),
        peers: Peers::none(),
    };
    let ledger: Ledger<OperationLists> =
        Ledger::open(environment, LedgerName::site(), Options::default()).await.expect("no repair is needed");
    append(&ledger, "survivor", "last words").await.expect("it goes on");
    let view = ledger.read().await.expect("read");
    let all: Vec<&String> = view.lists.iter().flat_map(|list| &list.operations).collect();
    let distinct: BTreeSet<&String> = all.iter().copied().collect();
    assert_eq!(all.len(), distinct.len(), "an operation happened twice");
    let missing: Vec<&String> = acknowledged.iter().filter(|operation| !distinct.contains(operation)).collect();
    assert!(missing.is_empty(), "{} of {} acknowledged operations are missing", missing.len(), acknowledged.len());

    let reports = audit::verify(&*bucket, None, None).await.expect("verified");
    assert!(reports.iter().all(audit::LedgerReport::is_sound), "{reports:?}");
    assert!(reports[0].snapshots > 0, "snapshots were written under fire");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_on_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    nothing_is_lost_on(&Location::directory(directory.path())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_on_a_durable_s3_server() {
    let server = BucketServer::versitygw().await.expect("versitygw");
    nothing_is_lost_on(&server.location()).await;
}
