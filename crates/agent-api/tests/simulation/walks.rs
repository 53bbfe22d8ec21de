//! Walks: the workspaces use outputs of each other, people walk over all of them now and then, and whichever server lives
//! takes the next steps. What was really read and made is noted outside, and compared with the log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use sha2::{Digest, Sha256};
use taco_agent_protocol::{PhaseAttempt, PhaseKind};
use taco_control_plane::{Error, NewDependency, NewWalk, Privileged, WorkspaceRef};
use taco_domain::id::{RunId, WorkspaceId};
use taco_domain::run::Run;
use taco_domain::run_status::RunStatus;
use taco_domain::walks::walk::{Walk, WalkId, WalkNode, WalkNodeId};
use taco_domain::walks::words::{WalkNodeState, WalkState};
use tokio::time::{Instant, sleep};

use crate::promise::{Broken, Promise};
use crate::stage::Stage;

/// Consumers and their producers, as places among the workspaces.
pub(crate) const USES: [(usize, usize); 3] = [(1, 0), (2, 0), (2, 1)];
/// Message of a walk's runs begins so: the walk decides about them.
pub(crate) const WALK_MESSAGE: &str = "Walk ";

/// What engines have really read and made.
#[derive(Clone, Default)]
pub(crate) struct Made {
    /// The value in each state, by the state's SHA-256.
    values: BTreeMap<String, String>,
    /// Values of producers that each plan was made from.
    reads: BTreeMap<(RunId, u64), BTreeMap<WorkspaceId, String>>,
}

impl Made {
    pub(crate) fn note_state(&mut self, state: &[u8], value: String) {
        let digest: String = Sha256::digest(state).iter().map(|byte| format!("{byte:02x}")).collect();
        self.values.insert(digest, value);
    }

    /// The value in the state of this digest.
    pub(crate) fn value(&self, sha256: &str) -> Option<&String> {
        self.values.get(sha256)
    }
}

/// Says who uses what, before anything goes wrong.
pub(crate) async fn declare(plane: &Privileged, caller: &taco_control_plane::Caller, workspaces: &[WorkspaceId]) {
    for (consumer, producer) in USES {
        let outputs = Some(BTreeSet::from(["by".to_owned()]));
        let new = NewDependency { producer: workspaces[producer].to_string(), outputs, place: None };
        let consumer = WorkspaceRef::Id(workspaces[consumer]);
        plane.declare_dependency(caller, &consumer, new).await.expect("a dependency");
    }
}

impl Stage {
    pub(crate) fn producers(&self, consumer: WorkspaceId) -> impl Iterator<Item = WorkspaceId> {
        let place = self.workspaces.iter().position(|workspace| *workspace == consumer);
        USES.iter().filter(move |(user, _)| Some(*user) == place).map(|(_, producer)| self.workspaces[*producer])
    }

    /// The plan of a run as `show -json` has it. It reads what its producers are now.
    pub(crate) async fn json_plan(&self, phase: PhaseAttempt, consumer: WorkspaceId) -> Option<Bytes> {
        let truth = self.observer.read().await.ok()?;
        let (mut reads, mut blocks, mut read, mut references) = (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new());
        for producer in self.producers(consumer) {
            let owner = truth.workspaces.get(&producer)?;
            let address = format!("data.terraform_remote_state.{}", owner.name.to_string().replace('-', "_"));
            let block = json!({ "address": address, "mode": "data", "type": "terraform_remote_state" });
            blocks.push(block.clone());
            references.extend([format!("{address}.outputs.by"), format!("{address}.outputs"), address]);
            let Some(version) = owner.current_state_version.and_then(|id| truth.state_versions.get(&id)) else {
                continue;
            };
            let Some(value) = self.outside.made().value(&version.sha256).cloned() else { continue };
            let config = json!({ "hostname": "localterraform.com", "organization": "acme", "workspaces": { "name": owner.name } });
            let mut block = block;
            block["values"] = json!({ "backend": "remote", "workspace": null, "defaults": null, "config": config, "outputs": { "by": value } });
            read.push(block);
            reads.insert(producer, value);
        }
        self.outside.made().reads.insert((phase.run, phase.epoch), reads);
        let main = json!({ "address": "terraform_data.main", "mode": "managed", "type": "terraform_data",
            "expressions": { "input": { "references": references } } });
        blocks.push(main);
        let plan = json!({ "format_version": "1.2", "resource_changes": [], "output_changes": {},
            "prior_state": { "values": { "root_module": { "resources": read } } },
            "configuration": { "root_module": { "resources": blocks } } });
        Some(plan.to_string().into())
    }
}

/// Begins a walk over everything now and then.
pub(crate) async fn begin(stage: Arc<Stage>) {
    loop {
        sleep(stage.seconds(20.0, 70.0)).await;
        // The last ones have to come to an end.
        if Instant::now() + Duration::from_secs(20) > stage.over {
            return;
        }
        let text = |text: &str| Some(text.to_owned());
        let new = NewWalk {
            kind: text("apply"),
            all: true,
            approval: text(["auto", "each", "once"][stage.below(3)]),
            on_fail: text(["stop", "continue"][stage.below(2)]),
            parallel: Some(1 + stage.below(3) as u32),
            ..NewWalk::default()
        };
        let begun = stage.ask(stage.below(2), |plane, caller| async move {
            plane.create_walk(&caller, "acme", new).await.map(|view| view.walk.id)
        });
        match begun.await {
            Some(Ok(id)) => _ = stage.notes.told().walks.insert(id),
            Some(Err(Error::Unavailable(_))) | None => {}
            Some(Err(error)) => {
                stage.break_promise(Promise::WishesAreGrantedOnce, format!("a walk was refused: {error}"));
            }
        }
    }
}

/// Approves plans of walks, resumes walks that failed, and cancels some.
pub(crate) async fn decide(stage: Arc<Stage>) {
    let mut resumed = BTreeMap::new();
    loop {
        sleep(stage.seconds(1.0, 4.0)).await;
        let Ok(truth) = stage.observer.read().await else { continue };
        let walks: Vec<Walk> = truth.walks.iter().cloned().collect();
        drop(truth);
        for Walk { id, state, .. } in walks {
            let server = stage.below(2);
            // The answer does not matter: what a walk did in the meantime may make a wish come too late.
            match state {
                WalkState::NeedsApproval => {
                    stage
                        .ask(
                            server,
                            move |plane, caller| async move { plane.approve_walk(&caller, id, Vec::new()).await },
                        )
                        .await;
                }
                WalkState::Running if stage.chance(0.01) => {
                    stage.ask(server, move |plane, caller| async move { plane.cancel_walk(&caller, id).await }).await;
                }
                WalkState::Failed | WalkState::Canceled if stage.is_bad() && stage.rng.fraction() < 0.1 => {
                    let times = resumed.entry(id).or_insert(0);
                    *times += 1;
                    if *times <= 2 {
                        stage
                            .ask(server, move |plane, caller| async move { plane.resume_walk(&caller, id).await })
                            .await;
                    }
                }
                _ => {}
            }
        }
    }
}

/// Walks replayed from the log.
#[derive(Default)]
pub(crate) struct Walks {
    made: Made,
    walks: BTreeMap<WalkId, Walk>,
    nodes: BTreeMap<WalkNodeId, WalkNode>,
    /// The newest run of each workspace that took in all that its plan had read.
    effective: BTreeMap<WorkspaceId, Run>,
    /// Number of walks and nodes that were cut off, which says whether anything was tested.
    pub(crate) cut_off: u32,
}

type Breach = (Promise, String);

impl Walks {
    pub(crate) fn of(stage: &Stage) -> Self {
        Self { made: stage.outside.made().clone(), ..Self::default() }
    }

    pub(crate) fn follow_walk(&mut self, walk: Walk) {
        self.walks.insert(walk.id, walk);
    }

    /// Remembers what a run took in.
    pub(crate) fn follow_run(&mut self, run: &Run) {
        let is_unchanged = run.status == RunStatus::PlannedAndFinished && run.has_changes == Some(false);
        if run.status == RunStatus::Applied || is_unchanged {
            self.effective.insert(run.workspace, run.clone());
        }
    }

    /// Steps of nodes in one commit. `current` are the values that the workspaces have now.
    pub(crate) fn follow_nodes(
        &mut self,
        stage: &Stage,
        nodes: Vec<WalkNode>,
        runs: &BTreeMap<RunId, Run>,
        current: &BTreeMap<WorkspaceId, String>,
    ) -> Result<(), Breach> {
        let nodes = nodes.into_iter().map(|node| (self.nodes.insert(node.id, node.clone()), node));
        let nodes: Vec<(Option<WalkNode>, WalkNode)> = nodes.collect();
        nodes.into_iter().try_for_each(|(before, node)| self.check_node(stage, before, &node, runs, current))
    }

    fn check_node(
        &mut self,
        stage: &Stage,
        before: Option<WalkNode>,
        node: &WalkNode,
        runs: &BTreeMap<RunId, Run>,
        current: &BTreeMap<WorkspaceId, String>,
    ) -> Result<(), Breach> {
        use Promise as P;
        let had_runs = before.as_ref().map_or(0, |before| before.runs.len());
        let was_cut_off = before.as_ref().is_some_and(|before| before.state == WalkNodeState::CutOff);
        let is_cut_off = node.state == WalkNodeState::CutOff && !was_cut_off;
        if node.runs.len() > had_runs || is_cut_off {
            for producer in stage.producers(node.workspace) {
                self.check_done(node, producer, runs).map_err(|how| (P::AWalkKeepsItsOrder, how))?;
            }
        }
        if node.runs.len() > had_runs + 1 {
            return Err((P::AWalkAppliesOnce, format!("{} has two runs at once", node.name)));
        }
        if is_cut_off {
            self.cut_off += 1;
            self.check_unchanged(stage, node, current).map_err(|how| (P::WhatIsCutOffIsUnchanged, how))?;
        }
        let applied = node.runs.iter().filter(|run| runs.get(run).is_some_and(|run| run.status == RunStatus::Applied));
        if applied.count() > 1 {
            return Err((P::AWalkAppliesOnce, format!("{} was applied twice in {}", node.name, node.walk)));
        }
        if node.has_ended() && (node.reason.is_none() || node.ended_at.is_none()) {
            return Err((P::EveryWalkComesToAnEnd, format!("{} of {} ends without a reason", node.name, node.walk)));
        }
        Ok(())
    }

    /// A producer's node is cut off, or its last run has ended well.
    fn check_done(&self, node: &WalkNode, producer: WorkspaceId, runs: &BTreeMap<RunId, Run>) -> Result<(), String> {
        let needed = self.nodes.get(&WalkNodeId::of(node.walk, producer)).ok_or("a producer is not in the walk")?;
        let last = needed.runs.last().and_then(|run| runs.get(run)).map(|run| run.status);
        let ended_well = matches!(last, Some(RunStatus::Applied | RunStatus::PlannedAndFinished));
        match needed.state == WalkNodeState::CutOff || ended_well {
            true => Ok(()),
            false => Err(format!("{} began in {} while {} was {last:?}", node.name, node.walk, needed.name)),
        }
    }

    /// What a unit would read now is what it took in last.
    fn check_unchanged(
        &self,
        stage: &Stage,
        node: &WalkNode,
        current: &BTreeMap<WorkspaceId, String>,
    ) -> Result<(), String> {
        let run = self.effective.get(&node.workspace).ok_or(format!("{} was never applied", node.name))?;
        let read = self.made.reads.get(&(run.id, run.phase(PhaseKind::Plan).epoch));
        for producer in stage.producers(node.workspace) {
            let (then, now) = (read.and_then(|read| read.get(&producer)), current.get(&producer));
            if then != now {
                return Err(format!("{} took in {then:?} with {}, and there is {now:?}", node.name, run.id));
            }
        }
        Ok(())
    }

    /// The value in a state.
    pub(crate) fn value(&self, sha256: &str) -> Option<&String> {
        self.made.value(sha256)
    }

    /// Walks of which someone was told are there.
    pub(crate) fn check_told(&self, told: &BTreeSet<WalkId>, broken: &mut Broken) {
        if let Some(walk) = told.iter().find(|walk| !self.walks.contains_key(walk)) {
            broken.note(Promise::WhatWasAcknowledgedStays, format!("{walk} was acknowledged and is lost"));
        }
    }

    /// After the faults every walk has ended, with each of its nodes; or it waits for a lock that a person has to free.
    pub(crate) fn check_liveness(&self, is_kept: impl Fn(WorkspaceId) -> bool, broken: &mut Broken) {
        for walk in self.walks.values() {
            let of_walk = self.nodes.values().filter(|node| node.walk == walk.id);
            let open: Vec<&WalkNode> = of_walk.filter(|node| !node.has_ended()).collect();
            let is_right = walk.is_open() != open.is_empty();
            if !is_right || (walk.is_open() && !open.iter().any(|node| is_kept(node.workspace))) {
                let nodes = open.iter().map(|node| format!("{} {} {:?}", node.name, node.state, node.reason));
                let how = format!("{} is {}: {}", walk.id, walk.state, nodes.collect::<Vec<_>>().join(", "));
                broken.note(Promise::EveryWalkComesToAnEnd, how);
            }
        }
    }
}
