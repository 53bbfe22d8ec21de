//! Decisions about a walk: approve, resume, cancel. Servers take the steps that follow.

use taco_boxed::boxed;
use taco_domain::permission::Action;
use taco_domain::run::Run;
use taco_domain::walks::facts::list;
use taco_domain::walks::walk::{Decision, Walk, WalkApproval, WalkId, WalkNode, WalkStateRefused};
use taco_domain::walks::words::{WalkKind, WalkNodeState};
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::walks::{WalkView, nodes_of, require_in_all};

#[boxed]
impl ControlPlane {
    /// Lets plans of a walk be applied: those of the units that are named, or all that wait. Where one approval is enough
    /// for the whole walk, it is given for all.
    pub async fn approve_walk(&self, caller: &Caller, id: WalkId, units: Vec<String>) -> Result<WalkView, Error> {
        let now = self.now();
        self.decide_walk(caller, id, "walk.approve", move |tx, walk, nodes| {
            let waits = |node: &&WalkNode| node.state == WalkNodeState::NeedsApproval;
            let is_once = walk.policy.approval == WalkApproval::Once;
            let chosen: Vec<&WalkNode> = match units.is_empty() {
                true => nodes.iter().filter(waits).collect(),
                false => nodes.iter().filter(|node| units.contains(&node.name)).collect(),
            };
            let concerned: Vec<&WalkNode> =
                if is_once || chosen.is_empty() { nodes.iter().collect() } else { chosen.clone() };
            require_in_all(tx, concerned.iter().map(|node| node.workspace), Action::ApplyRun)?;
            if walk.kind == WalkKind::Plan {
                return Err(refused(WalkStateRefused::OnlyPlans));
            }
            if !walk.is_open() {
                return Err(refused(WalkStateRefused::Ended(walk.state)));
            }
            let decision = Decision { by: tx.caller().author(), at: now };
            let approve = |node: &&WalkNode| WalkNode { approved: node.approved.or(Some(decision)), ..(*node).clone() };
            if is_once {
                let approved = walk.approved.or(Some(decision));
                // An approval of the whole walk is none of what a plan breaks, unless it is known by then.
                let run = |node: &WalkNode| node.open_run().and_then(|run| tx.state().runs.get(&run));
                let breaks = |node: &&&WalkNode| waits(node) && run(node).is_some_and(Run::waits_for_contract);
                let known = chosen.iter().filter(breaks).map(approve).collect();
                return Ok((Walk { approved, ..walk }, known));
            }
            let is_waiting = |name: &String| chosen.iter().filter(|node| waits(node)).any(|node| node.name == *name);
            if let Some(names) = list(units.iter().filter(|name| !is_waiting(name)).map(String::as_str)) {
                return Err(refused(WalkStateRefused::NotWaiting(names)));
            }
            if chosen.is_empty() {
                return Err(refused(WalkStateRefused::NothingToApprove));
            }
            let approved = chosen.iter().map(approve).collect();
            Ok((walk, approved))
        })
        .await
    }

    /// Tries again what failed, was blocked or canceled, and nothing else.
    pub async fn resume_walk(&self, caller: &Caller, id: WalkId) -> Result<WalkView, Error> {
        self.decide_walk(caller, id, "walk.resume", move |tx, walk, nodes| {
            let all = nodes;
            let again: Vec<WalkNode> = all.iter().filter(|node| node.can_be_resumed()).cloned().collect();
            let applies = walk.kind != WalkKind::Plan && walk.policy.approval == WalkApproval::Auto;
            let action = if applies { Action::ApplyRun } else { Action::QueuePlan };
            let concerned = if again.is_empty() { &all } else { &again };
            require_in_all(tx, concerned.iter().map(|node| node.workspace), action)?;
            let before = walk.attempt;
            let walk = walk.resumed(tx.caller().author()).map_err(refused)?;
            // One that still runs has a new carrier, and nothing in it is tried again before it has ended.
            let begins_again = walk.attempt > before;
            let again = if begins_again { again } else { Vec::new() };
            Ok((walk, again.into_iter().map(WalkNode::resumed).collect()))
        })
        .await
    }

    /// Asks the runs of a walk to stop, and begins no more. Every unit's own status stays true.
    pub async fn cancel_walk(&self, caller: &Caller, id: WalkId) -> Result<WalkView, Error> {
        let now = self.now();
        self.decide_walk(caller, id, "walk.cancel", move |tx, walk, nodes| {
            let open: Vec<&WalkNode> = nodes.iter().filter(|node| !node.has_ended()).collect();
            let concerned = if open.is_empty() { nodes.iter().collect() } else { open };
            require_in_all(tx, concerned.iter().map(|node| node.workspace), Action::QueuePlan)?;
            let walk = walk.canceled(Decision { by: tx.caller().author(), at: now }).map_err(refused)?;
            Ok((walk, Vec::new()))
        })
        .await
    }

    /// Puts what `decide` makes of a walk and some of its nodes, and takes the steps that follow at once.
    async fn decide_walk(
        &self,
        caller: &Caller,
        id: WalkId,
        intent: &'static str,
        decide: impl Fn(&Tx<'_>, Walk, Vec<WalkNode>) -> Result<(Walk, Vec<WalkNode>), Error> + Send + 'static,
    ) -> Result<WalkView, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), Walk::NOUN).await?;
        let (now, stepper) = (self.now(), self.walk_stepper(&org));
        let change = org.change(caller, intent, now, move |tx| {
            tx.require::<Walk>(Action::ReadDirectory, tx.organization())?;
            let walk: Walk = tx.get(&id)?;
            let nodes: Vec<WalkNode> = nodes_of(tx.state(), id).cloned().collect();
            let (walk, nodes) = decide(tx, walk, nodes)?;
            tx.put(&walk);
            nodes.iter().for_each(|node| tx.put(node));
            stepper.advance(tx, id, now)?;
            tx.get::<Walk>(&id)
        });
        let walk = change.await?;
        Ok(WalkView { walk, org })
    }
}

fn refused(refusal: WalkStateRefused) -> Error {
    Error::Conflict(refusal.to_string())
}
