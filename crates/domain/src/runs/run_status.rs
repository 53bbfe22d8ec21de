//! The life of a run, in one `match`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Status of a run, with the names of Terraform Cloud.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Behind others in its workspace's queue, or behind a lock.
    Pending,
    /// Its tasks are asked before it is planned.
    PrePlanRunning,
    /// Its plan waits for an agent.
    PlanQueued,
    Planning,
    /// Its tasks are asked about the plan.
    PostPlanRunning,
    /// Waits for someone to confirm or discard it.
    Planned,
    /// There was nothing to apply, or nothing was to be applied.
    PlannedAndFinished,
    /// A mandatory policy stands against its plan, and waits for somebody who may override it.
    PolicyOverride,
    /// The plan is kept until someone applies it. It blocks no other run.
    PlannedAndSaved,
    /// A saved plan that someone wants applied, in its workspace's queue.
    Confirmed,
    /// Its tasks are asked before it is applied.
    PreApplyRunning,
    /// Its apply waits for an agent.
    ApplyQueued,
    Applying,
    Applied,
    Discarded,
    Canceled,
    Errored,
}

/// Event in the life of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunEvent {
    /// It is first in its workspace's queue, and the lock is free.
    ReachedFront,
    /// Something has to be answered before it goes on.
    StageBegan,
    /// All that was asked before a phase lets the run go on.
    StagePassed,
    PlanTaken,
    /// The agent that had the plan was given up; another may try.
    PlanLost,
    /// The plan awaits a decision.
    PlanAwaitsDecision,
    /// The plan is all there is to it.
    PlanWasAll,
    PlanSaved,
    /// A mandatory policy stands against the plan that may be overridden.
    PolicyOverridable,
    /// A mandatory policy stands against the plan.
    PolicyRefused,
    Confirmed,
    ApplyTaken,
    Applied,
    Discarded,
    Canceled,
    Failed,
}

/// An event that cannot happen in this status.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
#[error("the run is {status}; {} needs a run that is {}", event.words(), event.needs())]
pub struct IllegalTransition {
    pub status: RunStatus,
    pub event: RunEvent,
}

impl RunStatus {
    pub const ALL: [Self; 17] = [
        Self::Pending,
        Self::PrePlanRunning,
        Self::PlanQueued,
        Self::Planning,
        Self::PostPlanRunning,
        Self::Planned,
        Self::PlannedAndFinished,
        Self::PolicyOverride,
        Self::PlannedAndSaved,
        Self::Confirmed,
        Self::PreApplyRunning,
        Self::ApplyQueued,
        Self::Applying,
        Self::Applied,
        Self::Discarded,
        Self::Canceled,
        Self::Errored,
    ];

    /// The status after `event`, or why the event cannot happen now.
    pub fn after(self, event: RunEvent) -> Result<Self, IllegalTransition> {
        use RunEvent as E;
        let next = match self {
            Self::Pending => match event {
                E::ReachedFront => Some(Self::PlanQueued),
                E::Discarded => Some(Self::Discarded),
                E::Canceled => Some(Self::Canceled),
                E::Failed => Some(Self::Errored),
                _ => None,
            },
            Self::PrePlanRunning => match event {
                E::StagePassed => Some(Self::PlanQueued),
                E::Canceled => Some(Self::Canceled),
                E::Failed => Some(Self::Errored),
                _ => None,
            },
            Self::PlanQueued => match event {
                E::StageBegan => Some(Self::PrePlanRunning),
                E::PlanTaken => Some(Self::Planning),
                E::Canceled => Some(Self::Canceled),
                E::Failed => Some(Self::Errored),
                _ => None,
            },
            Self::Planning => match event {
                E::PlanLost => Some(Self::PlanQueued),
                E::StageBegan => Some(Self::PostPlanRunning),
                E::PlanAwaitsDecision => Some(Self::Planned),
                E::PlanWasAll => Some(Self::PlannedAndFinished),
                E::PlanSaved => Some(Self::PlannedAndSaved),
                E::PolicyOverridable => Some(Self::PolicyOverride),
                E::PolicyRefused => Some(Self::Errored),
                E::Canceled => Some(Self::Canceled),
                E::Failed => Some(Self::Errored),
                _ => None,
            },
            Self::PostPlanRunning => match event {
                E::PlanAwaitsDecision => Some(Self::Planned),
                E::PlanWasAll => Some(Self::PlannedAndFinished),
                E::PlanSaved => Some(Self::PlannedAndSaved),
                E::PolicyOverridable => Some(Self::PolicyOverride),
                E::PolicyRefused => Some(Self::Errored),
                E::Canceled => Some(Self::Canceled),
                E::Failed => Some(Self::Errored),
                _ => None,
            },
            Self::Planned => match event {
                E::Confirmed => Some(Self::ApplyQueued),
                E::Discarded => Some(Self::Discarded),
                _ => None,
            },
            Self::PolicyOverride => match event {
                E::PlanAwaitsDecision => Some(Self::Planned),
                E::PlanSaved => Some(Self::PlannedAndSaved),
                E::Discarded => Some(Self::Discarded),
                _ => None,
            },
            Self::PlannedAndSaved => match event {
                E::Confirmed => Some(Self::Confirmed),
                E::Discarded => Some(Self::Discarded),
                _ => None,
            },
            Self::Confirmed => match event {
                E::ReachedFront => Some(Self::ApplyQueued),
                E::Discarded => Some(Self::Discarded),
                E::Canceled => Some(Self::Canceled),
                E::Failed => Some(Self::Errored),
                _ => None,
            },
            Self::PreApplyRunning => match event {
                E::StagePassed => Some(Self::ApplyQueued),
                E::Canceled => Some(Self::Canceled),
                E::Failed => Some(Self::Errored),
                _ => None,
            },
            Self::ApplyQueued => match event {
                E::StageBegan => Some(Self::PreApplyRunning),
                E::ApplyTaken => Some(Self::Applying),
                E::Canceled => Some(Self::Canceled),
                E::Failed => Some(Self::Errored),
                _ => None,
            },
            Self::Applying => match event {
                E::Applied => Some(Self::Applied),
                E::Canceled => Some(Self::Canceled),
                E::Failed => Some(Self::Errored),
                _ => None,
            },
            Self::PlannedAndFinished | Self::Applied | Self::Discarded | Self::Canceled | Self::Errored => None,
        };
        next.ok_or(IllegalTransition { status: self, event })
    }

    /// Nothing can happen any more.
    pub fn is_final(self) -> bool {
        match self {
            Self::PlannedAndFinished | Self::Applied | Self::Discarded | Self::Canceled | Self::Errored => true,
            Self::Pending
            | Self::PrePlanRunning
            | Self::PlanQueued
            | Self::Planning
            | Self::PostPlanRunning
            | Self::Planned
            | Self::PolicyOverride
            | Self::PlannedAndSaved
            | Self::Confirmed
            | Self::PreApplyRunning
            | Self::ApplyQueued
            | Self::Applying => false,
        }
    }

    pub fn is_confirmable(self) -> bool {
        self.after(RunEvent::Confirmed).is_ok()
    }

    pub fn is_discardable(self) -> bool {
        self.after(RunEvent::Discarded).is_ok()
    }

    pub fn is_cancelable(self) -> bool {
        self.after(RunEvent::Canceled).is_ok()
    }

    /// An agent is at work.
    pub fn is_executing(self) -> bool {
        matches!(self, Self::Planning | Self::Applying)
    }
}

/// Spelling on the wire.
impl RunStatus {
    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::PrePlanRunning => "pre_plan_running",
            Self::PlanQueued => "plan_queued",
            Self::Planning => "planning",
            Self::PostPlanRunning => "post_plan_running",
            Self::Planned => "planned",
            Self::PlannedAndFinished => "planned_and_finished",
            Self::PolicyOverride => "policy_override",
            Self::PlannedAndSaved => "planned_and_saved",
            Self::Confirmed => "confirmed",
            Self::PreApplyRunning => "pre_apply_running",
            Self::ApplyQueued => "apply_queued",
            Self::Applying => "applying",
            Self::Applied => "applied",
            Self::Discarded => "discarded",
            Self::Canceled => "canceled",
            Self::Errored => "errored",
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl RunEvent {
    pub const ALL: [Self; 16] = [
        Self::ReachedFront,
        Self::StageBegan,
        Self::StagePassed,
        Self::PlanTaken,
        Self::PlanLost,
        Self::PlanAwaitsDecision,
        Self::PlanWasAll,
        Self::PlanSaved,
        Self::PolicyOverridable,
        Self::PolicyRefused,
        Self::Confirmed,
        Self::ApplyTaken,
        Self::Applied,
        Self::Discarded,
        Self::Canceled,
        Self::Failed,
    ];

    /// Name of the event, for people who request it.
    fn words(self) -> &'static str {
        match self {
            Self::ReachedFront => "starting",
            Self::StageBegan => "asking its tasks",
            Self::StagePassed => "ending its tasks",
            Self::PlanTaken => "planning",
            Self::PlanLost => "planning again",
            Self::PlanAwaitsDecision
            | Self::PlanWasAll
            | Self::PlanSaved
            | Self::PolicyOverridable
            | Self::PolicyRefused => "ending the plan",
            Self::Confirmed => "apply",
            Self::ApplyTaken => "applying",
            Self::Applied => "ending the apply",
            Self::Discarded => "discard",
            Self::Canceled => "cancel",
            Self::Failed => "failing",
        }
    }

    /// Statuses in which it can happen.
    fn needs(self) -> String {
        let statuses = RunStatus::ALL.into_iter().filter(|status| status.after(self).is_ok());
        statuses.map(|status| status.to_string()).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::{RunEvent as E, RunStatus as S};

    const LEGAL: &[(S, E, S)] = &[
        (S::Pending, E::ReachedFront, S::PlanQueued),
        (S::Pending, E::Discarded, S::Discarded),
        (S::Pending, E::Canceled, S::Canceled),
        (S::Pending, E::Failed, S::Errored),
        (S::PrePlanRunning, E::StagePassed, S::PlanQueued),
        (S::PrePlanRunning, E::Canceled, S::Canceled),
        (S::PrePlanRunning, E::Failed, S::Errored),
        (S::PlanQueued, E::StageBegan, S::PrePlanRunning),
        (S::PlanQueued, E::PlanTaken, S::Planning),
        (S::PlanQueued, E::Canceled, S::Canceled),
        (S::PlanQueued, E::Failed, S::Errored),
        (S::Planning, E::PlanLost, S::PlanQueued),
        (S::Planning, E::StageBegan, S::PostPlanRunning),
        (S::Planning, E::PlanAwaitsDecision, S::Planned),
        (S::Planning, E::PlanWasAll, S::PlannedAndFinished),
        (S::Planning, E::PlanSaved, S::PlannedAndSaved),
        (S::Planning, E::PolicyOverridable, S::PolicyOverride),
        (S::Planning, E::PolicyRefused, S::Errored),
        (S::PolicyOverride, E::PlanAwaitsDecision, S::Planned),
        (S::PolicyOverride, E::PlanSaved, S::PlannedAndSaved),
        (S::PolicyOverride, E::Discarded, S::Discarded),
        (S::Planning, E::Canceled, S::Canceled),
        (S::Planning, E::Failed, S::Errored),
        (S::PostPlanRunning, E::PlanAwaitsDecision, S::Planned),
        (S::PostPlanRunning, E::PlanWasAll, S::PlannedAndFinished),
        (S::PostPlanRunning, E::PlanSaved, S::PlannedAndSaved),
        (S::PostPlanRunning, E::PolicyOverridable, S::PolicyOverride),
        (S::PostPlanRunning, E::PolicyRefused, S::Errored),
        (S::PostPlanRunning, E::Canceled, S::Canceled),
        (S::PostPlanRunning, E::Failed, S::Errored),
        (S::Planned, E::Confirmed, S::ApplyQueued),
        (S::Planned, E::Discarded, S::Discarded),
        (S::PlannedAndSaved, E::Confirmed, S::Confirmed),
        (S::PlannedAndSaved, E::Discarded, S::Discarded),
        (S::Confirmed, E::ReachedFront, S::ApplyQueued),
        (S::Confirmed, E::Discarded, S::Discarded),
        (S::Confirmed, E::Canceled, S::Canceled),
        (S::Confirmed, E::Failed, S::Errored),
        (S::PreApplyRunning, E::StagePassed, S::ApplyQueued),
        (S::PreApplyRunning, E::Canceled, S::Canceled),
        (S::PreApplyRunning, E::Failed, S::Errored),
        (S::ApplyQueued, E::StageBegan, S::PreApplyRunning),
        (S::ApplyQueued, E::ApplyTaken, S::Applying),
        (S::ApplyQueued, E::Canceled, S::Canceled),
        (S::ApplyQueued, E::Failed, S::Errored),
        (S::Applying, E::Applied, S::Applied),
        (S::Applying, E::Canceled, S::Canceled),
        (S::Applying, E::Failed, S::Errored),
    ];

    #[test]
    fn what_is_not_in_the_table_cannot_happen() {
        for status in S::ALL {
            for event in E::ALL {
                let expected = LEGAL.iter().find(|row| row.0 == status && row.1 == event).map(|row| row.2);
                assert_eq!(status.after(event).ok(), expected, "{status:?} then {event:?}");
            }
        }
    }

    #[test]
    fn an_apply_never_begins_twice() {
        // No way leads from `applying` back to where an agent can take the apply.
        let mut reachable = vec![S::Applying];
        let mut seen = Vec::new();
        while let Some(status) = reachable.pop() {
            seen.push(status);
            let next = E::ALL.into_iter().filter_map(|event| status.after(event).ok());
            reachable.extend(next.filter(|next| !seen.contains(next)).collect::<Vec<_>>());
        }
        assert!(!seen.contains(&S::ApplyQueued), "{seen:?}");
    }

    #[test]
    fn a_refusal_says_what_would_be_needed() {
        let refusal = S::PlannedAndFinished.after(E::Confirmed).expect_err("refused");
        let words = "the run is planned_and_finished; apply needs a run that is planned, planned_and_saved";
        assert_eq!(refusal.to_string(), words);
    }

    #[test]
    fn statuses_are_stored_as_they_are_shown() {
        for status in S::ALL {
            assert_eq!(serde_json::to_value(status).expect("JSON"), status.to_string());
        }
    }
}
