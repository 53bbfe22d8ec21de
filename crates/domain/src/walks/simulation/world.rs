//! Units, their outputs and runs, people, agents and servers, around the rules of walks.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use taco_words::graph::{ConsumedBy, Freshness, Grade, WalkKind, WalkNodeState, WalkState};

use super::promises::{Broken, Promise};
use super::sabotage::Sabotage;
use crate::OrganizationState;
use crate::author::Author;
use crate::graph::dependency::{Consumed, ConsumedOutput, Dependency, Observation, Producer};
use crate::graph::output_commit::{
    CurrentOutput, OutputSource, StateOutputs, UsedOutputs, WorkspaceOutputs, next_output_commit,
};
use crate::graph::token::ValueTokens;
use crate::id::{ProjectId, RunId, StateVersionId, WorkspaceId};
use crate::output::{CommittedOutput, CommittedOutputs, OutputDigest};
use crate::run::tests::given_run;
use crate::run::{Run, RunOptions};
use crate::run_status::{RunEvent, RunStatus};
use crate::walks::facts::{UnitFacts, UseFacts, WalkFacts, difference, moved_since};
use crate::walks::plan::{Selection, WalkEdge, WalkRequest, WalkUnit, plan_walk};
use crate::walks::steps::{Advanced, RunCommand, advance};
use crate::walks::walk::{
    Decision, OnFail, SeenCommit, SeenCommits, Walk, WalkApproval, WalkId, WalkNode, WalkPolicy, seen_commit,
};
use crate::workspace::Workspace;

const OUTPUTS: [&str; 3] = ["one", "two", "three"];

/// Chance with a seed.
pub(super) struct Chance(Cell<u64>);

impl Chance {
    pub(super) fn below(&self, most: u64) -> u64 {
        let mut x = self.0.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.set(x);
        x.wrapping_mul(0x2545_F491_4F6C_DD1D) % most
    }

    pub(super) fn one_in(&self, most: u64) -> bool {
        self.below(most) == 0
    }
}

pub(super) type Inputs = BTreeMap<(WorkspaceId, String), Option<OutputDigest>>;

/// One unit of the world: what it is made from, and what it made.
pub(super) struct Unit {
    name: String,
    code: u64,
    pub(super) applied_code: Option<u64>,
    /// What its deployed resources were made from.
    pub(super) applied_inputs: Inputs,
    pub(super) outputs: Option<WorkspaceOutputs>,
    /// Uses of others.
    pub(super) uses: Vec<Dependency>,
}

pub(super) struct World {
    pub(super) chance: Chance,
    pub(super) now: Timestamp,
    pub(super) units: BTreeMap<WorkspaceId, Unit>,
    /// Workspaces and outputs, as the rules see them.
    state: OrganizationState,
    pub(super) runs: BTreeMap<RunId, Run>,
    /// What the plan of each run was made from.
    planned: BTreeMap<RunId, (u64, Inputs)>,
    pub(super) applied: BTreeMap<RunId, u32>,
    pub(super) walk: Walk,
    pub(super) nodes: BTreeMap<WorkspaceId, WalkNode>,
    /// Somebody tries again what failed.
    resumes: bool,
    /// Nothing goes wrong and nobody interferes any more.
    pub(super) is_calm: bool,
    sabotage: Sabotage,
    pub(super) broken: Broken,
}

fn unit_id(number: u64) -> WorkspaceId {
    WorkspaceId::from_random([u8::try_from(number + 1).expect("few units"); 16])
}

fn value(parts: &[u64]) -> OutputDigest {
    OutputDigest::of_bytes(&[7; 32], "value", format!("{parts:?}").as_bytes())
}

impl World {
    pub(super) fn new(seed: u64, sabotage: Sabotage) -> Self {
        let chance = Chance(Cell::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1));
        let count = 2 + chance.below(9);
        let now = Timestamp::UNIX_EPOCH;
        let (mut units, mut state) = (BTreeMap::new(), OrganizationState::default());
        for number in 0..count {
            let mut uses = Vec::new();
            for producer in (0..number).filter(|_| chance.one_in(3)) {
                let mut dependency = Dependency::new(unit_id(number), &Producer::Unit(unit_id(producer)), now);
                let names = OUTPUTS.iter().filter(|_| chance.one_in(2)).map(|name| (*name).to_owned()).collect();
                let used = if chance.one_in(6) { UsedOutputs::All } else { UsedOutputs::Names(names) };
                let seen = Observation {
                    first: now,
                    last: now,
                    used,
                    maybe: BTreeSet::new(),
                    data: Vec::new(),
                    users: Vec::new(),
                    user_count: 0,
                    values: BTreeMap::new(),
                    tokens: BTreeMap::new(),
                    state_version: None,
                    run: None,
                };
                dependency.observed.insert(Grade::Plan, seen);
                uses.push(dependency);
            }
            let unit = Unit {
                name: format!("unit-{number}"),
                code: 1,
                applied_code: None,
                applied_inputs: Inputs::new(),
                outputs: None,
                uses,
            };
            let name = unit.name.parse().expect("legal");
            let project = ProjectId::from_random([1; 16]);
            state.workspaces.put(&Workspace::new(unit_id(number), name, project, now)).expect("put");
            units.insert(unit_id(number), unit);
        }
        let policy = WalkPolicy {
            approval: [WalkApproval::Auto, WalkApproval::Each, WalkApproval::Once][chance.below(3) as usize],
            on_fail: if chance.one_in(2) { OnFail::Stop } else { OnFail::Continue },
            parallel: 1 + chance.below(4) as u32,
        };
        let kind = [WalkKind::Apply, WalkKind::Apply, WalkKind::Plan, WalkKind::Destroy][chance.below(4) as usize];
        let walk = Walk {
            id: WalkId::from_random([9; 16]),
            kind,
            state: WalkState::Running,
            policy,
            selection: "all".to_owned(),
            created_at: now,
            created_by: Author::Taco,
            carried_by: None,
            attempt: 0,
            approved: None,
            canceled: None,
            ended_at: None,
        };
        let mut world = Self {
            resumes: chance.one_in(2),
            chance,
            now,
            units,
            state,
            runs: BTreeMap::new(),
            planned: BTreeMap::new(),
            applied: BTreeMap::new(),
            walk,
            nodes: BTreeMap::new(),
            is_calm: false,
            sabotage,
            broken: Broken::default(),
        };
        // All have been applied in order, and then some changed.
        for number in 0..count {
            if !world.chance.one_in(10) {
                let made_from = world.reads(unit_id(number));
                world.make(unit_id(number), made_from);
            }
        }
        for number in 0..count {
            if world.chance.one_in(4) {
                world.units.get_mut(&unit_id(number)).expect("there").code += 1;
            }
            if world.chance.one_in(8) {
                let made_from = world.reads(unit_id(number));
                world.make(unit_id(number), made_from);
            }
        }
        world.nodes = world.choose();
        world
    }

    /// The nodes of a walk over all units, or those from one on.
    pub(super) fn choose(&self) -> BTreeMap<WorkspaceId, WalkNode> {
        let units: Vec<WalkUnit> = self
            .units
            .iter()
            .map(|(id, unit)| WalkUnit { id: *id, name: unit.name.clone(), freshness: Freshness::Unknown })
            .collect();
        let edges: Vec<WalkEdge> = self
            .units
            .values()
            .flat_map(|unit| &unit.uses)
            .map(|used| WalkEdge { consumer: used.consumer, producer: used.producer.expect("a unit") })
            .collect();
        let selection = match self.chance.one_in(2) {
            true => Selection::All,
            false => Selection::From(vec![format!("unit-{}", self.chance.below(self.units.len() as u64))]),
        };
        let request = WalkRequest { kind: self.walk.kind, selection, to: Vec::new(), leaves_consumers: true };
        let planned = plan_walk(&units, &edges, &request).expect("no circle");
        let node = |(position, node): (usize, crate::walks::plan::PlannedNode)| {
            (node.unit, WalkNode::new(self.walk.id, node.unit, &node.name, position as u32, node.needs))
        };
        planned.into_iter().enumerate().map(node).collect()
    }

    /// What a unit's plan is made from now.
    pub(super) fn reads(&self, unit: WorkspaceId) -> (u64, Inputs) {
        let unit = &self.units[&unit];
        let mut inputs = Inputs::new();
        for used in &unit.uses {
            let producer = used.producer.expect("a unit");
            let outputs = self.units[&producer].outputs.as_ref().map(|outputs| &outputs.outputs);
            let digest = |name: &str| {
                let output: Option<&CurrentOutput> = outputs.and_then(|outputs| outputs.get(name));
                output.map(|output| output.committed.digest)
            };
            for name in OUTPUTS.iter().filter(|name| used.used().includes(name)) {
                inputs.insert((producer, (*name).to_owned()), digest(name));
            }
        }
        (unit.code, inputs)
    }

    /// Makes a unit from these inputs: its outputs, and what it has consumed.
    fn make(&mut self, id: WorkspaceId, (code, inputs): (u64, Inputs)) {
        let sum: u64 = inputs.values().flatten().map(|digest| digest.to_string().len() as u64).sum();
        let text: String = inputs.values().flatten().map(ToString::to_string).collect();
        let mixed = text.bytes().fold(sum, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        // One follows from everything, one from the code alone, one from nothing.
        let values = [value(&[code, mixed]), value(&[code]), value(&[])];
        let committed = |digest| CommittedOutput { digest, detailed_type: "\"string\"".to_owned(), sensitive: false };
        let outputs: CommittedOutputs =
            OUTPUTS.iter().zip(values).map(|(name, digest)| ((*name).to_owned(), committed(digest))).collect();
        let source = OutputSource {
            state_version: StateVersionId::from_random([1; 16]),
            at: self.now,
            by: Author::Taco,
            run: None,
        };
        let before = self.units[&id].outputs.clone();
        let next = next_output_commit(before.as_ref(), id, &StateOutputs::Readable(outputs), source);
        let unit = self.units.get_mut(&id).expect("there");
        let workspace = self.state.workspaces.get(&id).expect("there").clone();
        let current_state_version = Some(StateVersionId::from_random([1; 16]));
        self.state.workspaces.put(&Workspace { current_state_version, ..workspace }).expect("put");
        if let Some((_, outputs)) = next {
            self.state.workspace_outputs.put(&outputs).expect("put");
            unit.outputs = Some(outputs);
        }
        unit.applied_code = Some(code);
        for used in &mut unit.uses {
            let producer = used.producer.expect("a unit");
            let seen = inputs.iter().filter(|((from, _), _)| *from == producer);
            let outputs = seen.filter_map(|((_, name), digest)| {
                let digest = (*digest)?;
                Some((
                    name.clone(),
                    ConsumedOutput { digest, detailed_type: "\"string\"".to_owned(), tokens: ValueTokens::default() },
                ))
            });
            used.consumed = Some(Consumed {
                how: ConsumedBy::Applied,
                grade: Grade::Plan,
                assumed: false,
                commit: None,
                outputs: outputs.collect(),
                at: self.now,
                by: Author::Taco,
                run: None,
                state_version: None,
                reason: None,
            });
        }
        unit.applied_inputs = inputs;
    }

    /// One of the servers takes the next steps.
    pub(super) fn advance(&mut self) {
        for node in self.nodes.values_mut().filter(|node| node.state == WalkNodeState::Done) {
            node.is_plan_read |= self.is_calm || self.chance.one_in(2);
        }
        // A server that makes a mistake may make it for ever.
        for _ in 0..100 {
            let Advanced { walk, nodes, commands } = self.next_steps();
            if walk.is_none() && nodes.is_empty() && commands.is_empty() {
                return;
            }
            let is_lost = self.sabotage == Sabotage::LosesNodes && !commands.is_empty() && self.chance.one_in(4);
            if !is_lost {
                let before = self.nodes.clone();
                self.nodes.extend(nodes.iter().map(|node| (node.workspace, node.clone())));
                for node in &nodes {
                    self.check(&before[&node.workspace], node);
                }
                if let Some(walk) = walk {
                    self.walk = walk;
                }
            }
            for command in commands {
                self.execute(command);
            }
        }
    }

    /// What the rules say, or what they would say with a mistake in them.
    fn next_steps(&self) -> Advanced {
        let mut nodes: Vec<WalkNode> = self.nodes.values().cloned().collect();
        let mut walk = self.walk.clone();
        match self.sabotage {
            Sabotage::ForgetsNeeds => nodes.iter_mut().for_each(|node| node.needs.clear()),
            Sabotage::CountsNoRuns => walk.policy.parallel = u32::MAX,
            _ => {}
        }
        let mut advanced = advance(&walk, &nodes.iter().collect::<Vec<_>>(), self);
        for node in &mut advanced.nodes {
            node.needs.clone_from(&self.nodes[&node.workspace].needs);
            if self.sabotage == Sabotage::TellsNoReasons {
                node.reason = None;
            }
        }
        if let Some(walk) = &mut advanced.walk {
            walk.policy = self.walk.policy;
        }
        advanced
    }

    fn execute(&mut self, command: RunCommand) {
        match command {
            RunCommand::Start { run, workspace, preview } => {
                let is_preview = preview.is_some() && self.walk.kind != WalkKind::Plan;
                self.broken.keeps(Promise::PreviewsAreNotApplied, !is_preview, || format!("{run} is a preview"));
                let open = self.runs.values().find(|other| other.workspace == workspace && !other.status.is_final());
                let is_first = open.is_none() && !self.runs.contains_key(&run);
                self.broken.keeps(Promise::ARunStartsOnce, is_first, || format!("{run} starts beside {open:?}"));
                if !is_first {
                    return;
                }
                let options = RunOptions {
                    plan_only: self.walk.kind == WalkKind::Plan,
                    is_destroy: self.walk.kind == WalkKind::Destroy,
                    ..RunOptions::default()
                };
                let new = Run { id: run, workspace, status: RunStatus::PlanQueued, options, ..given_run(1) };
                self.runs.insert(run, new);
            }
            RunCommand::Confirm { run, by } => {
                let (code, inputs) = self.reads(self.runs[&run].workspace);
                let planned = &self.planned[&run];
                let is_current = inputs == planned.1 && code >= planned.0;
                self.broken.keeps(Promise::NoOutdatedPlanIsApplied, is_current, || format!("{run} is outdated"));
                self.change(run, |run, now| run.after(RunEvent::Confirmed, now, by).expect("legal"));
            }
            RunCommand::Discard { run, by } => {
                self.change(run, |run, now| run.after(RunEvent::Discarded, now, by).expect("legal"));
            }
            RunCommand::Cancel { run, by } => self.change(run, |run, now| run.canceled(by, now).expect("legal")),
        }
        let in_flight = self.runs.values().filter(|run| !run.status.is_final() && run.status != RunStatus::Planned);
        let (count, most) = (in_flight.count(), self.walk.policy.parallel as usize);
        self.broken.keeps(Promise::NotTooManyAtOnce, count <= most, || format!("{count} of {most}"));
    }

    fn change(&mut self, run: RunId, change: impl FnOnce(&Run, Timestamp) -> Run) {
        let changed = change(&self.runs[&run], self.now);
        self.runs.insert(run, changed);
    }

    /// An agent goes on with one of the runs.
    pub(super) fn agent(&mut self) {
        if self.sabotage == Sabotage::QueuesAppliesAgain && self.chance.one_in(8) {
            let applied = self.runs.values_mut().find(|run| run.status == RunStatus::Applied);
            applied.into_iter().for_each(|run| run.status = RunStatus::ApplyQueued);
        }
        let open: Vec<RunId> = self.runs.values().filter(|run| !run.status.is_final()).map(|run| run.id).collect();
        let Some(id) = open.get(self.chance.below(open.len().max(1) as u64) as usize).copied() else { return };
        let run = self.runs[&id].clone();
        let fails = !self.is_calm && self.chance.one_in(12);
        let event = match run.status {
            RunStatus::PlanQueued => {
                self.planned.insert(id, self.reads(run.workspace));
                RunEvent::PlanTaken
            }
            RunStatus::Planning | RunStatus::Applying if run.cancel.is_some() && self.chance.one_in(2) => {
                RunEvent::Canceled
            }
            RunStatus::Planning | RunStatus::Applying if fails => RunEvent::Failed,
            RunStatus::Planning => {
                let unit = &self.units[&run.workspace];
                let (code, inputs) = &self.planned[&id];
                let has_changes = unit.applied_code != Some(*code) || unit.applied_inputs != *inputs;
                let planned = Run { has_changes: Some(has_changes), ..run };
                let planned = planned.after_plan(has_changes, self.now).expect("legal");
                if planned.status == RunStatus::PlannedAndFinished && !planned.options.plan_only {
                    // A plan without changes proves what an apply proves.
                    let made_from = self.planned[&id].clone();
                    self.make(planned.workspace, made_from);
                }
                self.runs.insert(id, planned);
                return;
            }
            RunStatus::ApplyQueued => RunEvent::ApplyTaken,
            RunStatus::Applying => {
                let made_from = self.planned[&id].clone();
                self.make(run.workspace, made_from);
                *self.applied.entry(id).or_default() += 1;
                RunEvent::Applied
            }
            _ => return,
        };
        self.change(id, |run, now| run.after(event, now, Author::Taco).expect("legal"));
    }

    /// Somebody does something beside the walk.
    pub(super) fn person(&mut self) {
        let decision = Decision { by: Author::Taco, at: self.now };
        match self.chance.below(12) {
            0 if !self.is_calm => {
                let unit = unit_id(self.chance.below(self.units.len() as u64));
                let is_free = !self.runs.values().any(|run| run.workspace == unit && !run.status.is_final());
                if is_free {
                    self.units.get_mut(&unit).expect("there").code += 1;
                    let made_from = self.reads(unit);
                    self.make(unit, made_from);
                }
            }
            1 if !self.is_calm && self.chance.one_in(4) => {
                if let Ok(canceled) = self.walk.clone().canceled(decision) {
                    self.walk = canceled;
                }
            }
            2 if !self.is_calm && self.resumes => self.resume(),
            _ if self.sabotage == Sabotage::LosesDecisions => {}
            _ => {
                self.walk.approved = self.walk.approved.or(Some(decision));
                for node in self.nodes.values_mut().filter(|node| node.state == WalkNodeState::NeedsApproval) {
                    node.approved = Some(decision);
                }
            }
        }
    }

    fn resume(&mut self) {
        let Ok(walk) = self.walk.clone().resumed(Author::Taco) else { return };
        self.walk = walk;
        for node in self.nodes.values_mut() {
            let before = node.clone();
            *node = match self.sabotage {
                Sabotage::RetriesEverything => WalkNode {
                    state: WalkNodeState::Waiting,
                    result: None,
                    ended_at: None,
                    reason: None,
                    ..before.clone()
                },
                _ => node.clone().resumed(),
            };
            let is_kept = *node == before;
            self.broken.keeps(Promise::OnlyFailuresAreRetried, is_kept == before.lets_others_begin(), || {
                format!("{before:?} is resumed as {node:?}")
            });
        }
    }
}

impl WalkFacts for World {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn unit(&self, node: &WalkNode) -> Option<UnitFacts> {
        let unit = &self.units[&node.workspace];
        let producer = |used: &Dependency| &self.units[&used.producer.expect("a unit")];
        let uses = unit.uses.iter().map(|used| UseFacts {
            producer: used.producer,
            producer_name: producer(used).name.clone(),
            used: used.used(),
            difference: difference(&self.state.edge_state(used), &producer(used).name)
                .filter(|_| self.sabotage != Sabotage::SeesNoDifference),
        });
        let sees: SeenCommits = unit
            .uses
            .iter()
            .filter_map(|used| {
                let number = producer(used).outputs.as_ref()?.number;
                Some(SeenCommit { producer: used.producer?, number })
            })
            .collect();
        Some(UnitFacts {
            // The examiner is late now and then.
            is_examined: self.is_calm || node.ready_at.is_some() || !node.position.is_multiple_of(3),
            refusal: None,
            own_change: (unit.applied_code != Some(unit.code) && self.sabotage != Sabotage::SeesNoOwnChange)
                .then(|| "its own configuration changed".to_owned()),
            uses: uses.collect(),
            has_something: unit.outputs.is_some(),
            sees,
        })
    }

    fn moved_since(&self, unit: WorkspaceId, saw: &SeenCommits) -> Option<String> {
        if self.sabotage == Sabotage::AppliesOutdatedPlans {
            return None;
        }
        self.units[&unit].uses.iter().find_map(|used| {
            let producer = used.producer.expect("a unit");
            let name = &self.units[&producer].name;
            moved_since(used, name, seen_commit(saw, producer), self.units[&producer].outputs.as_ref())
        })
    }

    fn run(&self, run: RunId) -> Option<&Run> {
        self.runs.get(&run)
    }
}
