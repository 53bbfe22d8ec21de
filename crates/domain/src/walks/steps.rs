//! Steps of a walk: what happens next to each of its nodes, from what is known at one moment. Any server may take them, in
//! the transaction that stores them; taken twice they change nothing more.

use std::collections::BTreeMap;

use taco_words::graph::{WalkKind, WalkNodeState, WalkResult, WalkState};

use crate::author::Author;
use crate::id::{RunId, WorkspaceId};
use crate::run::Run;
use crate::run_status::RunStatus;
use crate::walks::facts::{MAX_EXAMINER_WAIT, UnitFacts, UseFacts, WalkFacts, announced, list};
use crate::walks::walk::{OnFail, Walk, WalkApproval, WalkNode};

/// Maximum number of plans of a unit in a row that are outdated before they can be applied.
pub const MAX_OUTDATED_PLANS: u32 = 5;

/// Something that a step wants done to a run, in the same transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunCommand {
    Start {
        run: RunId,
        workspace: WorkspaceId,
        /// What its plan sees of other plans, which makes it one that is never applied.
        preview: Option<String>,
    },
    Confirm {
        run: RunId,
        by: Author,
    },
    /// Its plan will not be applied.
    Discard {
        run: RunId,
        by: Author,
    },
    Cancel {
        run: RunId,
        by: Author,
    },
}

/// A walk after its next steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advanced {
    /// `None` if the walk itself stays as it is.
    pub walk: Option<Walk>,
    /// Those that changed.
    pub nodes: Vec<WalkNode>,
    pub commands: Vec<RunCommand>,
}

impl Advanced {
    /// Nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.walk.is_none() && self.nodes.is_empty() && self.commands.is_empty()
    }
}

/// The next steps of a walk. `nodes` are all of its nodes, in order.
pub fn advance(walk: &Walk, nodes: &[&WalkNode], facts: &impl WalkFacts) -> Advanced {
    if !walk.is_open() {
        return Advanced { walk: None, nodes: Vec::new(), commands: Vec::new() };
    }
    let mut steps =
        Steps { walk, facts, nodes: BTreeMap::new(), commands: Vec::new(), has_failed: false, in_flight: 0 };
    let mut after: Vec<WalkNode> = nodes.iter().map(|node| (*node).clone()).collect();
    after.sort_by_key(|node| node.position);
    for node in &mut after {
        steps.follow_run(node);
    }
    steps.has_failed = after.iter().any(|node| matches!(node.state, WalkNodeState::Failed | WalkNodeState::Canceled));
    let is_in_flight = |node: &&WalkNode| matches!(node.state, WalkNodeState::Planning | WalkNodeState::Applying);
    steps.in_flight = after.iter().filter(is_in_flight).count();
    for node in &mut after {
        steps.confirm(node);
    }
    for node in &mut after {
        steps.begin(node);
        steps.nodes.insert(node.workspace, node.clone());
    }
    let state = state_of(walk, &after);
    let is_over = after.iter().all(WalkNode::has_ended);
    let ended_at = is_over.then(|| facts.now());
    let changed_walk = (state != walk.state || is_over).then(|| Walk { state, ended_at, ..walk.clone() });
    let commands = steps.commands;
    let before: BTreeMap<WorkspaceId, &WalkNode> = nodes.iter().map(|node| (node.workspace, *node)).collect();
    after.retain(|node| before.get(&node.workspace).is_none_or(|before| *before != node));
    Advanced { walk: changed_walk, nodes: after, commands }
}

/// State of a walk whose nodes are these.
fn state_of(walk: &Walk, nodes: &[WalkNode]) -> WalkState {
    use WalkNodeState as S;
    if nodes.iter().all(WalkNode::has_ended) {
        return match () {
            () if nodes.iter().all(WalkNode::lets_others_begin) => WalkState::Done,
            () if walk.canceled.is_some() => WalkState::Canceled,
            () => WalkState::Failed,
        };
    }
    let goes_on = nodes.iter().any(|node| matches!(node.state, S::Ready | S::Planning | S::Applying | S::Outdated));
    let waits = nodes.iter().any(|node| node.state == S::NeedsApproval);
    if waits && !goes_on { WalkState::NeedsApproval } else { WalkState::Running }
}

struct Steps<'a, F> {
    walk: &'a Walk,
    facts: &'a F,
    /// The nodes that had their turn.
    nodes: BTreeMap<WorkspaceId, WalkNode>,
    commands: Vec<RunCommand>,
    has_failed: bool,
    in_flight: usize,
}

impl<F: WalkFacts> Steps<'_, F> {
    fn end(&self, node: &mut WalkNode, state: WalkNodeState, result: Option<WalkResult>, reason: impl Into<String>) {
        node.state = state;
        node.result = result;
        node.reason = Some(reason.into());
        node.ended_at = Some(self.facts.now());
    }

    /// Takes in how the run of a node goes.
    fn follow_run(&mut self, node: &mut WalkNode) {
        use WalkNodeState as S;
        let Some(id) = node.open_run() else { return };
        let Some(run) = self.facts.run(id) else {
            return self.end(node, S::Failed, Some(WalkResult::Failed), format!("its run {id} is gone"));
        };
        match run.status {
            RunStatus::Pending
            | RunStatus::PrePlanRunning
            | RunStatus::PlanQueued
            | RunStatus::Planning
            | RunStatus::PostPlanRunning => {
                node.state = S::Planning;
                self.stop_if_canceled(run);
            }
            RunStatus::PolicyOverride => {
                node.state = S::Planning;
                node.reason = Some("policies stand against its plan: override them, or discard the run".into());
            }
            RunStatus::Planned | RunStatus::PlannedAndSaved => self.decide(node, run),
            RunStatus::Confirmed | RunStatus::PreApplyRunning | RunStatus::ApplyQueued | RunStatus::Applying => {
                node.state = S::Applying;
                node.reason = None;
                self.stop_if_canceled(run);
            }
            RunStatus::PlannedAndFinished if run.has_changes == Some(true) => {
                self.end(node, S::Done, Some(WalkResult::Changed), "its plan has changes");
            }
            RunStatus::PlannedAndFinished => {
                self.end(node, S::Done, Some(WalkResult::Unchanged), "its plan has no changes");
            }
            RunStatus::Applied if run.options.is_destroy => {
                self.end(node, S::Done, Some(WalkResult::Changed), "it was destroyed");
            }
            RunStatus::Applied => self.end(node, S::Done, Some(WalkResult::Changed), "its changes were applied"),
            RunStatus::Errored => {
                let error = run.apply.error.as_ref().or(run.plan.error.as_ref());
                let phase = if run.apply.started_at.is_some() { "apply" } else { "plan" };
                let reason = match error.and_then(|error| error.lines().find(|line| !line.trim().is_empty())) {
                    Some(error) => format!("its {phase} failed: {error}"),
                    None => format!("its {phase} failed"),
                };
                self.end(node, S::Failed, Some(WalkResult::Failed), reason);
            }
            RunStatus::Discarded if self.walk.canceled.is_some() => {
                self.end(node, S::Canceled, None, "the walk was canceled before its plan was applied");
            }
            RunStatus::Discarded => self.end(node, S::Canceled, None, "its plan was discarded"),
            RunStatus::Canceled if self.walk.canceled.is_some() => {
                self.end(node, S::Canceled, None, "the walk was canceled while it had a run");
            }
            RunStatus::Canceled => self.end(node, S::Canceled, None, "its run was canceled"),
        }
    }

    fn stop_if_canceled(&mut self, run: &Run) {
        if let Some(decision) = self.walk.canceled.filter(|_| run.cancel.is_none()) {
            self.commands.push(RunCommand::Cancel { run: run.id, by: decision.by });
        }
    }

    /// Decides what becomes of a plan that could be applied.
    fn decide(&mut self, node: &mut WalkNode, run: &Run) {
        use WalkNodeState as S;
        if let Some(decision) = self.walk.canceled {
            self.commands.push(RunCommand::Discard { run: run.id, by: decision.by });
            return self.end(node, S::Canceled, None, "the walk was canceled before its plan was applied");
        }
        if let Some(why) = self.facts.moved_since(node.workspace, &node.saw) {
            self.commands.push(RunCommand::Discard { run: run.id, by: Author::Taco });
            if node.outdated >= MAX_OUTDATED_PLANS {
                let reason = format!("its plan was outdated {} times in a row: {why}", node.outdated + 1);
                return self.end(node, S::Failed, Some(WalkResult::Failed), reason);
            }
            node.outdated += 1;
            node.approved = None;
            node.state = S::Outdated;
            node.reason = Some(format!("it is planned again: {why} after its plan"));
            return;
        }
        node.state = S::NeedsApproval;
        node.reason = Some(match run.output_contract.as_ref().filter(|contract| contract.waits_for_decision()) {
            Some(contract) => format!("its plan waits for approval: it {}", contract.in_short()),
            None => "its plan waits for approval".to_owned(),
        });
    }

    /// Lets a plan be applied that somebody approved.
    fn confirm(&mut self, node: &mut WalkNode) {
        if node.state != WalkNodeState::NeedsApproval {
            return;
        }
        let breaks_others = node.open_run().and_then(|run| self.facts.run(run)).is_some_and(Run::waits_for_contract);
        let approval = match self.walk.policy.approval {
            // Nobody knew of that when the whole walk was approved.
            _ if breaks_others => node.approved.map(|decision| decision.by),
            WalkApproval::Auto => Some(self.walk.carrier()),
            WalkApproval::Each => node.approved.map(|decision| decision.by),
            WalkApproval::Once => self.walk.approved.map(|decision| decision.by),
        };
        let (Some(by), Some(run)) = (approval, node.open_run()) else { return };
        if self.in_flight >= self.walk.policy.parallel as usize {
            node.reason = Some("its plan is approved, and waits for other workspaces of the walk".to_owned());
            return;
        }
        self.in_flight += 1;
        node.state = WalkNodeState::Applying;
        node.reason = None;
        self.commands.push(RunCommand::Confirm { run, by });
    }

    /// Begins with a node whose turn it is, or tells why there is nothing to do.
    fn begin(&mut self, node: &mut WalkNode) {
        use WalkNodeState as S;
        if node.has_ended() || node.open_run().is_some() {
            return;
        }
        if self.walk.canceled.is_some() {
            return self.end(node, S::Canceled, None, "the walk was canceled before its turn");
        }
        let needs: Vec<&WalkNode> = node.needs.iter().filter_map(|need| self.nodes.get(need)).collect();
        let bad: Vec<&WalkNode> = needs.iter().copied().filter(|need| need.can_be_resumed()).collect();
        if let Some(names) = list(bad.iter().map(|need| need.name.as_str())) {
            let verb = if bad.len() == 1 { "was" } else { "were" };
            return self.end(node, S::Blocked, None, format!("{names} {verb} not done, and it comes after that"));
        }
        if self.has_failed && self.walk.policy.on_fail == OnFail::Stop {
            return self.end(node, S::Blocked, None, "the walk stopped when another workspace failed");
        }
        if !needs.iter().all(|need| need.lets_others_begin()) {
            if node.state != S::Outdated {
                node.state = S::Waiting;
            }
            return;
        }
        if let Some(name) = self.unread_before(node) {
            node.state = S::Waiting;
            node.reason = Some(format!("what the plan of {name} announces is being read"));
            return;
        }
        let Some(unit) = self.facts.unit(node) else {
            self.has_failed = true;
            return self.end(node, S::Failed, Some(WalkResult::Failed), "the workspace was deleted");
        };
        match self.verdict(node, &unit) {
            Verdict::Wait(reason) => {
                node.state = S::Ready;
                node.reason = Some(reason);
                node.ready_at = node.ready_at.or(Some(self.facts.now()));
            }
            Verdict::CutOff(reason) => self.end(node, S::CutOff, Some(WalkResult::CutOff), reason),
            Verdict::Run { .. } if unit.refusal.is_some() => {
                self.end(node, S::Blocked, None, unit.refusal.unwrap_or_default());
            }
            Verdict::Run { .. } if self.in_flight >= self.walk.policy.parallel as usize => {
                node.state = S::Ready;
                node.reason = Some("it waits for other workspaces of the walk".to_owned());
            }
            Verdict::Run { reason, may_change, is_preview } => {
                let run = node.next_run_id();
                let preview = is_preview.then(|| reason.clone());
                self.commands.push(RunCommand::Start { run, workspace: node.workspace, preview });
                self.in_flight += 1;
                node.attempt += 1;
                node.runs.push(run);
                node.saw = unit.sees;
                node.state = S::Planning;
                node.reason = Some(reason);
                node.may_change = may_change;
                node.started_at = node.started_at.or(Some(self.facts.now()));
            }
        }
    }

    /// A unit before this one whose plan has changes that nobody has looked at yet.
    fn unread_before(&self, node: &WalkNode) -> Option<String> {
        let needs = node.needs.iter().filter_map(|need| self.nodes.get(need));
        let is_unread = |need: &&WalkNode| {
            let waited = need.ended_at.map(|ended| self.facts.now().duration_since(ended));
            need.result == Some(WalkResult::Changed)
                && !need.is_plan_read
                && waited.is_none_or(|waited| waited < MAX_EXAMINER_WAIT)
        };
        let mut unread = needs.filter(is_unread);
        (self.walk.kind == WalkKind::Plan).then(|| unread.next().map(|need| need.name.clone()))?
    }

    fn verdict(&self, node: &WalkNode, unit: &UnitFacts) -> Verdict {
        if self.walk.kind == WalkKind::Destroy {
            return match unit.has_something {
                true => Verdict::Run { reason: "it is destroyed".to_owned(), may_change: false, is_preview: false },
                false => Verdict::CutOff("it has nothing to destroy".to_owned()),
            };
        }
        let planned = match self.walk.kind {
            WalkKind::Plan => {
                let nodes: BTreeMap<_, _> = self.nodes.iter().map(|(id, node)| (*id, node)).collect();
                announced(&unit.uses, &nodes)
            }
            _ => None,
        };
        if let Some(planned) = planned {
            return Verdict::Run { reason: planned.reason, may_change: planned.has_unknown, is_preview: true };
        }
        if node.state == WalkNodeState::Outdated {
            // It has a change to apply, and only what it was made against moved.
            return Verdict::Run {
                reason: node.reason.clone().unwrap_or_default(),
                may_change: false,
                is_preview: false,
            };
        }
        if !unit.is_examined && !self.has_waited(node) {
            return Verdict::Wait("its last state is being examined".to_owned());
        }
        let differences: Vec<&str> = unit.uses.iter().filter_map(|one| one.difference.as_deref()).collect();
        match (differences.first(), &unit.own_change) {
            (Some(_), _) => Verdict::Run { reason: differences.join("; "), may_change: false, is_preview: false },
            (None, Some(own)) => Verdict::Run { reason: own.clone(), may_change: false, is_preview: false },
            (None, None) if !unit.is_examined => Verdict::Run {
                reason: "its last state could not be examined".to_owned(),
                may_change: false,
                is_preview: false,
            },
            (None, None) => Verdict::CutOff(unchanged(&unit.uses)),
        }
    }

    /// True if a node has waited long enough for the examiner.
    fn has_waited(&self, node: &WalkNode) -> bool {
        node.ready_at.is_some_and(|since| self.facts.now().duration_since(since) >= MAX_EXAMINER_WAIT)
    }
}

/// What is to be done with a node whose turn it is.
enum Verdict {
    Wait(String),
    CutOff(String),
    Run { reason: String, may_change: bool, is_preview: bool },
}

/// Reason why a unit needs no run.
fn unchanged(uses: &[UseFacts]) -> String {
    let producers = uses.iter().map(|one| one.producer_name.as_str());
    match list(producers) {
        Some(names) => format!("it has no change of its own, and what it uses of {names} is unchanged"),
        None => "it has no change of its own, and uses nothing of others".to_owned(),
    }
}
