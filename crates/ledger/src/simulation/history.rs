//! One history: servers come and go, clients append, claim and read, and everything they were told is noted.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, State, indexes, tables};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::Sabotage;
use crate::beacon::Peers;
use crate::clock::SharedRng;
use crate::environment::Environment;
use crate::error::CommitError;
use crate::layout::LedgerName;
use crate::ledger::{Ledger, Options};
use crate::retry::Retrying;
use crate::seal::{MasterKey, MasterKeys};
use crate::simulated::{Line, World, WrongClock};
use crate::transaction::Intent;

/// A list that operations append their number to: so an operation that is lost, or happens twice, shows.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Shelf {
    pub(super) id: String,
    pub(super) operations: Vec<u64>,
}

impl Record for Shelf {
    const KIND: &'static str = "shelf";
    type Id = String;
    type Indexes = ShelfIndexes;

    fn id(&self) -> &String {
        &self.id
    }
}

indexes! {
    pub(super) struct ShelfIndexes for Shelf {
        pub(super) length: usize => |shelf| [shelf.operations.len()];
    }
}

/// A name that one operation may have.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Claim {
    pub(super) id: String,
    pub(super) holder: u64,
}

impl Record for Claim {
    const KIND: &'static str = "claim";
    type Id = String;
    type Indexes = ();

    fn id(&self) -> &String {
        &self.id
    }
}

tables! {
    pub(super) struct Everything {
        pub(super) shelves: Shelf;
        pub(super) claims: Claim;
    }
}

/// Answer to a client, and between which two moments. Moments are counted, not timed, so no two are the same.
pub(super) struct Answer {
    pub(super) asked: u64,
    pub(super) answered: u64,
    pub(super) said: Said,
}

pub(super) enum Said {
    /// The operation is on its shelf.
    Appended(u64),
    /// It may be there or not.
    Unknown(u64),
    Claimed {
        name: String,
        by: u64,
    },
    Taken {
        name: String,
        by: u64,
        holder: u64,
    },
    Read {
        seq: u64,
        state: String,
    },
}

pub(super) struct Told {
    pub(super) world: Arc<World>,
    pub(super) name: LedgerName,
    pub(super) answers: Vec<Answer>,
}

struct Stage {
    world: Arc<World>,
    rng: SharedRng,
    sabotage: Sabotage,
    moments: AtomicU64,
    operations: AtomicU64,
    answers: Mutex<Vec<Answer>>,
    begun: Instant,
    over: Instant,
}

impl Stage {
    fn moment(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::SeqCst)
    }

    fn note(&self, asked: u64, said: Said) {
        let answered = self.moment();
        self.answers.lock().expect("no panic").push(Answer { asked, answered, said });
    }

    fn below(&self, limit: u64) -> u64 {
        (self.rng.fraction() * limit as f64) as u64
    }
}

pub(super) fn name() -> LedgerName {
    "simulated".parse().expect("a legal name")
}

/// Lets three servers live through some 20 bad seconds, then checks that calm weather is enough to go on.
pub(super) async fn live(seed: u64, sabotage: Sabotage) -> Result<Told, String> {
    let rng = SharedRng::from_seed(seed);
    let world = World::new(seed, if seed.is_multiple_of(10) { 0.0 } else { 0.3 + rng.fraction() });
    let stage = Arc::new(Stage {
        world: Arc::clone(&world),
        rng,
        sabotage,
        moments: AtomicU64::new(0),
        operations: AtomicU64::new(0),
        answers: Mutex::default(),
        begun: Instant::now(),
        over: Instant::now() + Duration::from_secs(20),
    });
    let mut servers = JoinSet::new();
    for number in 0..3 {
        servers.spawn(lives_of_a_server(Arc::clone(&stage), number));
    }
    while servers.join_next().await.is_some() {}

    world.stop_faults();
    let ledger = open(&stage, "epilogue", 0).await.map_err(|error| format!("after the faults: {error}"))?.0;
    for shelf in 0..2 {
        append(&stage, &ledger, shelf).await;
    }
    read(&stage, &ledger).await;
    let answers = std::mem::take(&mut *stage.answers.lock().expect("no panic"));
    match answers.last() {
        Some(Answer { said: Said::Read { .. }, .. }) => Ok(Told { world, name: name(), answers }),
        _ => Err("after the faults were over, a read failed".to_owned()),
    }
}

/// A server that crashes and comes back until the bad time is over.
async fn lives_of_a_server(stage: Arc<Stage>, number: u64) {
    let mut life = 0;
    while Instant::now() < stage.over {
        life += 1;
        let Ok((ledger, line)) = open(&stage, &format!("server-{number}-{life}"), number).await else {
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let mut clients = JoinSet::new();
        for _ in 0..=stage.below(4) {
            clients.spawn(client(Arc::clone(&stage), ledger.clone()));
        }
        clients.spawn(packer(Arc::clone(&stage), ledger.clone()));
        let remaining = stage.over.saturating_duration_since(Instant::now());
        let lifetime = Duration::from_secs_f64(0.2 + stage.rng.fraction() * 12.0).min(remaining);
        sleep(lifetime).await;
        if Instant::now() < stage.over {
            // `kill -9`: no client hears of it, and what is under way in the bucket happens or not.
            line.cut();
            clients.abort_all();
        }
        let _ = timeout(Duration::from_secs(60), async { while clients.join_next().await.is_some() {} }).await;
    }
}

async fn open(
    stage: &Arc<Stage>,
    server: &str,
    number: u64,
) -> Result<(Ledger<Everything>, Line), crate::error::Error> {
    let line = Line::to(&stage.world);
    let rng = SharedRng::from_seed(stage.below(u64::from(u32::MAX)));
    let environment = Environment {
        bucket: Arc::new(Retrying::new(Arc::new(line.clone()), rng.clone())),
        clock: Arc::new(WrongClock::new(stage.begun, Duration::from_secs(100 * number))),
        rng: rng.clone(),
        server: server.to_owned(),
        peers: Peers::fixed(2),
    };
    let key = MasterKey::from_secret("the secret key of all simulated servers").expect("long enough");
    let keys = Some(Arc::new(MasterKeys::new(key, Vec::new(), rng.clone())));
    let options = Options {
        snapshot_every: 4 + stage.below(8),
        keys,
        pack_commits: 5,
        pack_after: SignedDuration::MIN,
        sabotage: stage.sabotage,
    };
    Ok((Ledger::open(environment, name(), options).await?, line))
}

/// Packs whatever is settled, now and then, while everybody else goes on.
async fn packer(stage: Arc<Stage>, ledger: Ledger<Everything>) {
    while Instant::now() < stage.over {
        sleep(Duration::from_secs_f64(stage.rng.fraction() * 2.0)).await;
        let _ = ledger.pack_settled().await;
    }
}

async fn client(stage: Arc<Stage>, ledger: Ledger<Everything>) {
    while Instant::now() < stage.over {
        match stage.below(10) {
            0..5 => append(&stage, &ledger, stage.below(3)).await,
            5..7 => claim(&stage, &ledger).await,
            _ => read(&stage, &ledger).await,
        }
        sleep(Duration::from_secs_f64(stage.rng.fraction() * 0.4)).await;
    }
}

fn intent(action: &'static str) -> Intent {
    Intent { actor: "client".into(), action, request: None }
}

async fn append(stage: &Stage, ledger: &Ledger<Everything>, shelf: u64) {
    let operation = stage.operations.fetch_add(1, Ordering::SeqCst);
    let asked = stage.moment();
    let id = format!("shelf-{shelf}");
    let outcome = ledger
        .commit(intent("shelf.append"), move |transaction| {
            let mut shelf = transaction.state().shelves.get(&id).cloned().unwrap_or_default();
            shelf.id.clone_from(&id);
            shelf.operations.push(operation);
            transaction.put(&shelf);
            Ok::<_, ()>(())
        })
        .await;
    stage.note(asked, if outcome.is_ok() { Said::Appended(operation) } else { Said::Unknown(operation) });
}

async fn claim(stage: &Stage, ledger: &Ledger<Everything>) {
    let by = stage.operations.fetch_add(1, Ordering::SeqCst);
    let asked = stage.moment();
    let name = format!("name-{}", stage.below(12));
    let id = name.clone();
    let outcome = ledger
        .commit(intent("name.claim"), move |transaction| match transaction.state().claims.get(&id) {
            Some(claim) if claim.holder != by => Err(claim.holder),
            _ => {
                transaction.put(&Claim { id: id.clone(), holder: by });
                Ok(())
            }
        })
        .await;
    match outcome {
        Ok(()) => stage.note(asked, Said::Claimed { name, by }),
        Err(CommitError::Decided(holder)) => stage.note(asked, Said::Taken { name, by, holder }),
        Err(CommitError::Ledger(_)) => {}
    }
}

async fn read(stage: &Stage, ledger: &Ledger<Everything>) {
    let asked = stage.moment();
    if let Ok(view) = ledger.read().await {
        let indexed: BTreeSet<&String> = view.shelves.by().length.iter().map(|shelf| &shelf.id).collect();
        assert_eq!(indexed.len(), view.shelves.len(), "the index has exactly the table's records");
        stage.note(asked, Said::Read { seq: view.seq(), state: text_of(&view) });
    }
}

/// A state as text: the same for the same records.
pub(super) fn text_of(state: &Everything) -> String {
    let mut text = String::new();
    state
        .for_each_json(&mut |kind, id, value| {
            text.push_str(&format!("{kind} {id} {}\n", value.get()));
        })
        .expect("records are plain data");
    text
}
