//! Mistakes that the simulation has to find; else it proves nothing. They are made here, around the product: it holds
//! no trace of them.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use taco_domain::graph::dependency::{Consumed, ConsumedOutput, Dependency};
use taco_domain::graph::token::ValueTokens;
use taco_domain::graph::words::EdgeStatus;
use taco_domain::output::CommittedOutput;
use taco_domain::phase::PhaseStatus;
use taco_domain::run_status::{RunEvent, RunStatus};
use taco_domain::walks::walk::WalkNode;
use taco_domain::walks::words::WalkNodeState;
use taco_domain::{Author, OrganizationState};
use taco_ledger::bucket::{ByteStream, Created, Download, Object};
use taco_ledger::{Bucket, BucketError, Intent, Key, Transaction};
use tokio::time::sleep;

use crate::promise::Promise;
use crate::stage::Stage;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sabotage {
    None,
    /// An apply whose agent was given up is queued again.
    RequeueLostApply,
    /// An earlier holder of a phase may still write for it.
    NoFence,
    /// Agents let engines run on when their lease ends.
    NoSelfKill,
    /// A run begins whether or not it is first in its workspace.
    NoFifoGuard,
    /// Nodes of a walk count as done before they are.
    WalkPastNodes,
    /// Uses count as taken in though no run did it.
    TakeInByItself,
    /// A commit with an unclear outcome is decided and written anew, without a look whether it is there.
    BlindRetry,
}

impl Sabotage {
    /// Each mistake, and the promise by which it has to be found: another one may break by chance.
    pub(crate) const PLANTED: [(Self, Promise); 7] = [
        (Self::RequeueLostApply, Promise::AnApplyBeginsOnce),
        (Self::NoFence, Promise::OthersCannotSpeakForAnAttempt),
        (Self::NoSelfKill, Promise::AppliesDoNotOverlap),
        (Self::NoFifoGuard, Promise::OneRunAtATime),
        (Self::WalkPastNodes, Promise::AWalkKeepsItsOrder),
        (Self::TakeInByItself, Promise::WhatIsCutOffIsUnchanged),
        (Self::BlindRetry, Promise::WishesAreGrantedOnce),
    ];
}

/// The action of a planted bug's own commits.
pub(crate) const PLANTED: &str = "run.break";

/// Does to runs what a bug in the rules would do.
pub(crate) async fn break_rules(stage: Arc<Stage>) {
    let sabotage = stage.sabotage;
    if matches!(sabotage, Sabotage::None | Sabotage::NoFence | Sabotage::NoSelfKill | Sabotage::BlindRetry) {
        return;
    }
    loop {
        sleep(Duration::from_millis(700)).await;
        let intent = Intent { actor: "saboteur".to_owned(), action: PLANTED, request: None };
        let broken = stage.observer.commit(intent, move |tx| {
            match sabotage {
                Sabotage::WalkPastNodes => walk_past_nodes(tx),
                Sabotage::TakeInByItself => take_in_by_itself(tx),
                _ => {}
            }
            let runs: Vec<_> = tx.state().runs.iter().cloned().collect();
            for run in runs {
                match sabotage {
                    Sabotage::RequeueLostApply if run.status == RunStatus::Errored && run.apply.losses == 1 => {
                        let mut again = run.clone();
                        again.status = RunStatus::ApplyQueued;
                        again.apply.status = PhaseStatus::Queued;
                        again.apply.losses += 1;
                        tx.put(&again);
                    }
                    Sabotage::NoFifoGuard if run.status == RunStatus::Pending => {
                        if let Ok(begun) = run.after(RunEvent::ReachedFront, run.created_at, Author::Taco) {
                            tx.put(&begun);
                        }
                    }
                    _ => {}
                }
            }
            Ok::<_, ()>(())
        });
        let _ = broken.await;
    }
}

fn walk_past_nodes(tx: &mut Transaction<OrganizationState>) {
    let nodes: Vec<WalkNode> = tx.state().walk_nodes.iter().cloned().collect();
    for node in nodes.into_iter().filter(|node| node.state == WalkNodeState::Planning) {
        tx.put(&WalkNode {
            state: WalkNodeState::Done,
            reason: Some("a bug".to_owned()),
            ended_at: node.started_at,
            ..node
        });
    }
}

fn take_in_by_itself(tx: &mut Transaction<OrganizationState>) {
    let edges: Vec<Dependency> = tx.state().dependencies.iter().cloned().collect();
    for edge in edges {
        let outputs = edge.producer.and_then(|producer| tx.state().workspace_outputs.get(&producer)).cloned();
        let (Some(outputs), Some(consumed)) = (outputs, edge.consumed.clone()) else { continue };
        let is_stale = tx.state().edge_state(&edge).status == EdgeStatus::Stale;
        if is_stale {
            let taken = outputs.outputs.into_iter().map(|(name, output)| {
                let CommittedOutput { digest, detailed_type, .. } = output.committed;
                (name, ConsumedOutput { digest, detailed_type, tokens: ValueTokens::default() })
            });
            let consumed = Consumed { outputs: taken.collect(), ..consumed };
            tx.put(&Dependency { consumed: Some(consumed), ..edge });
        }
    }
}

/// A way to the bucket that hides from a writer what it wrote itself when the answer was lost.
#[derive(Debug)]
pub(crate) struct Forgetful {
    pub(crate) bucket: Arc<dyn Bucket>,
    /// Key that a task has tried to write.
    pub(crate) unclear: Mutex<Option<(Key, tokio::task::Id)>>,
}

#[async_trait]
impl Bucket for Forgetful {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        let outcome = self.bucket.create(key, bytes).await;
        if !matches!(outcome, Ok(Created::Now)) && key.as_str().contains("/log/") {
            *self.unclear.lock().expect("no panic") = tokio::task::try_id().map(|task| (key.clone(), task));
        }
        outcome
    }

    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.bucket.put(key, bytes).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
        let found = self.bucket.get(key).await?;
        let asked = tokio::task::try_id().map(|task| (key.clone(), task));
        let mut unclear = self.unclear.lock().expect("no panic");
        match found {
            Some(object) if asked.is_some() && *unclear == asked => {
                *unclear = None;
                Ok(Some(Object { bytes: Bytes::from_static(br#"{"id":"somebody else's"}"#), ..object }))
            }
            found => Ok(found),
        }
    }

    async fn list(&self, folder: &Key, after: Option<&Key>) -> Result<Vec<Key>, BucketError> {
        self.bucket.list(folder, after).await
    }

    async fn folders(&self, folder: &Key) -> Result<Vec<String>, BucketError> {
        self.bucket.folders(folder).await
    }

    async fn delete(&self, key: &Key) -> Result<(), BucketError> {
        self.bucket.delete(key).await
    }

    async fn upload(&self, key: &Key, body: ByteStream) -> Result<u64, BucketError> {
        self.bucket.upload(key, body).await
    }

    async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
        self.bucket.download(key, range).await
    }
}
