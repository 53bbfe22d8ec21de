//! Triggers: what happens that somebody may want to hear of.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::author::Author;
use crate::notifications::notification_configuration::Subscriber;
use crate::run::{Run, RunHistoryEntry};
use crate::run_status::RunStatus;

/// Something that happens and that a notification tells of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Debug)]
pub enum Trigger {
    #[serde(rename = "run:created")]
    RunCreated,
    #[serde(rename = "run:planning")]
    RunPlanning,
    #[serde(rename = "run:needs_attention")]
    RunNeedsAttention,
    #[serde(rename = "run:applying")]
    RunApplying,
    #[serde(rename = "run:completed")]
    RunCompleted,
    #[serde(rename = "run:errored")]
    RunErrored,
    #[serde(rename = "assessment:drifted")]
    AssessmentDrifted,
    #[serde(rename = "assessment:check_failure")]
    AssessmentCheckFailure,
    #[serde(rename = "assessment:failed")]
    AssessmentFailed,
    #[serde(rename = "workspace:auto_destroy_reminder")]
    AutoDestroyReminder,
    #[serde(rename = "workspace:auto_destroy_run_results")]
    AutoDestroyRunResults,
    #[serde(rename = "change_request:created")]
    ChangeRequestCreated,
}

impl Trigger {
    pub const ALL: [Self; 12] = [
        Self::RunCreated,
        Self::RunPlanning,
        Self::RunNeedsAttention,
        Self::RunApplying,
        Self::RunCompleted,
        Self::RunErrored,
        Self::AssessmentDrifted,
        Self::AssessmentCheckFailure,
        Self::AssessmentFailed,
        Self::AutoDestroyReminder,
        Self::AutoDestroyRunResults,
        Self::ChangeRequestCreated,
    ];

    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunCreated => "run:created",
            Self::RunPlanning => "run:planning",
            Self::RunNeedsAttention => "run:needs_attention",
            Self::RunApplying => "run:applying",
            Self::RunCompleted => "run:completed",
            Self::RunErrored => "run:errored",
            Self::AssessmentDrifted => "assessment:drifted",
            Self::AssessmentCheckFailure => "assessment:check_failure",
            Self::AssessmentFailed => "assessment:failed",
            Self::AutoDestroyReminder => "workspace:auto_destroy_reminder",
            Self::AutoDestroyRunResults => "workspace:auto_destroy_run_results",
            Self::ChangeRequestCreated => "change_request:created",
        }
    }

    /// What it is, for people.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::RunCreated => "A run was created",
            Self::RunPlanning => "A run starts planning",
            Self::RunNeedsAttention => "A run needs approval",
            Self::RunApplying => "A run starts applying",
            Self::RunCompleted => "A run completed",
            Self::RunErrored => "A run failed or was canceled",
            Self::AssessmentDrifted => "Drift was detected",
            Self::AssessmentCheckFailure => "A health check failed",
            Self::AssessmentFailed => "A health assessment failed",
            Self::AutoDestroyReminder => "A workspace will be destroyed soon",
            Self::AutoDestroyRunResults => "A workspace was destroyed by its schedule",
            Self::ChangeRequestCreated => "A change request was created",
        }
    }

    /// True for what happens to runs. The others are stored for clients that set them; nothing here does them yet.
    pub fn is_of_runs(self) -> bool {
        self.as_str().starts_with("run:")
    }

    /// True if it can happen to what the subscriber is.
    pub fn fits(self, subscriber: Subscriber) -> bool {
        matches!(subscriber, Subscriber::Team(_)) == (self == Self::ChangeRequestCreated)
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A text that is no trigger.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("is not one of {}", Trigger::ALL.map(Trigger::as_str).join(", "))]
pub struct UnknownTrigger;

impl FromStr for Trigger {
    type Err = UnknownTrigger;

    fn from_str(text: &str) -> Result<Self, UnknownTrigger> {
        Self::ALL.into_iter().find(|trigger| trigger.as_str() == text).ok_or(UnknownTrigger)
    }
}

/// Something that happened to a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunEventToTell {
    pub trigger: Trigger,
    /// Its place in the run's history: the same event is never told twice.
    pub index: usize,
    /// The status that the run had then, as the API spells it.
    pub status: &'static str,
    pub at: Timestamp,
    pub by: Author,
}

/// What happened to a run that there is something to tell of, between two of its records. Each step stands in the run's
/// history, so that several steps in one change are told as several.
pub fn events_to_tell(before: Option<&Run>, after: &Run) -> Vec<RunEventToTell> {
    // One that was over when it appeared has come back from history.
    if before.is_none() && after.status.is_final() {
        return Vec::new();
    }
    let known = before.map_or(0, |before| before.history.len());
    let new = after.history.iter().enumerate().skip(known);
    new.filter_map(|(index, entry)| event_of(after, index, entry)).collect()
}

fn event_of(run: &Run, index: usize, entry: &RunHistoryEntry) -> Option<RunEventToTell> {
    let (trigger, status) = match entry.action.as_str() {
        "created" => (Trigger::RunCreated, RunStatus::Pending),
        "planning" => (Trigger::RunPlanning, RunStatus::Planning),
        // A plan that is applied by itself needs nobody.
        "planned" if run.status == RunStatus::Planned => (Trigger::RunNeedsAttention, RunStatus::Planned),
        "policy_override" => (Trigger::RunNeedsAttention, RunStatus::PolicyOverride),
        "policy_failed" => (Trigger::RunErrored, RunStatus::Errored),
        "planned_and_saved" => (Trigger::RunNeedsAttention, RunStatus::PlannedAndSaved),
        "applying" => (Trigger::RunApplying, RunStatus::Applying),
        "applied" => (Trigger::RunCompleted, RunStatus::Applied),
        "planned_and_finished" => (Trigger::RunCompleted, RunStatus::PlannedAndFinished),
        "errored" => (Trigger::RunErrored, RunStatus::Errored),
        "canceled" => (Trigger::RunErrored, RunStatus::Canceled),
        _ => return None,
    };
    Some(RunEventToTell { trigger, index, status: status.as_str(), at: entry.at, by: entry.by })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{AgentId, ProjectId, TeamId, WorkspaceId};
    use crate::phase::Executor;
    use crate::run::RunOptions;
    use crate::run::tests::given_run;
    use crate::run_status::RunEvent as E;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn told(before: Option<&Run>, after: &Run) -> Vec<(&'static str, &'static str)> {
        events_to_tell(before, after).iter().map(|event| (event.trigger.as_str(), event.status)).collect()
    }

    fn taken(run: &Run) -> Run {
        let executor = Executor { agent: AgentId::from_random([1; 16]), agent_name: "one".to_owned(), pool: None };
        run.taken(executor, NOW).expect("legal").0
    }

    #[test]
    fn each_step_of_a_run_is_told_once() {
        let created = given_run(1).created(NOW);
        assert_eq!(told(None, &created), [("run:created", "pending")]);
        assert_eq!(told(Some(&created), &created), []);
        let queued = created.after(E::ReachedFront, NOW, Author::Taco).expect("legal");
        assert_eq!(told(Some(&created), &queued), []);
        assert_eq!(told(None, &queued), [("run:created", "pending")], "it began in the same change");
        let planning = taken(&queued);
        assert_eq!(told(Some(&queued), &planning), [("run:planning", "planning")]);
        let planned = planning.after_plan(true, NOW).expect("legal");
        assert_eq!(told(Some(&planning), &planned), [("run:needs_attention", "planned")]);
        let confirmed = planned.after(E::Confirmed, NOW, Author::Taco).expect("legal");
        assert_eq!(told(Some(&planned), &confirmed), []);
        let applying = taken(&confirmed);
        assert_eq!(told(Some(&confirmed), &applying), [("run:applying", "applying")]);
        let applied = applying.after(E::Applied, NOW, Author::Taco).expect("legal");
        assert_eq!(told(Some(&applying), &applied), [("run:completed", "applied")]);
        let index = |event: &RunEventToTell| event.index;
        let all =
            [(None, &queued), (Some(&queued), &planning), (Some(&planning), &planned), (Some(&applying), &applied)];
        let indexes: Vec<_> = all.iter().flat_map(|(before, after)| events_to_tell(*before, after)).collect();
        assert_eq!(indexes.iter().map(index).collect::<Vec<_>>(), [0, 2, 3, 6]);
    }

    #[test]
    fn what_needs_nobody_asks_for_no_attention() {
        let auto = RunOptions { auto_apply: true, ..RunOptions::default() };
        let created = Run { options: auto, ..given_run(1) }.created(NOW);
        let planning = taken(&created.after(E::ReachedFront, NOW, Author::Taco).expect("legal"));
        assert_eq!(told(Some(&planning), &planning.after_plan(true, NOW).expect("legal")), []);
        let finished = planning.after_plan(false, NOW).expect("legal");
        assert_eq!(told(Some(&planning), &finished), [("run:completed", "planned_and_finished")]);
        let saving = RunOptions { save_plan: true, ..RunOptions::default() };
        let saving = Run { options: saving, ..planning };
        let saved = saving.after_plan(true, NOW).expect("legal");
        assert_eq!(told(Some(&saving), &saved), [("run:needs_attention", "planned_and_saved")]);
    }

    #[test]
    fn the_end_of_a_run_is_told_as_success_or_failure() {
        let created = given_run(1).created(NOW);
        let planning = taken(&created.after(E::ReachedFront, NOW, Author::Taco).expect("legal"));
        let asked = planning.canceled(Author::Taco, NOW).expect("legal");
        assert_eq!(told(Some(&planning), &asked), [], "its agent has not stopped");
        let canceled = asked.after(E::Canceled, NOW, Author::Taco).expect("legal");
        assert_eq!(told(Some(&asked), &canceled), [("run:errored", "canceled")]);
        let failed = planning.after(E::Failed, NOW, Author::Taco).expect("legal");
        assert_eq!(told(Some(&planning), &failed), [("run:errored", "errored")]);
        let planned = planning.after_plan(true, NOW).expect("legal");
        let discarded = planned.after(E::Discarded, NOW, Author::Taco).expect("legal");
        assert_eq!(told(Some(&planned), &discarded), [], "whoever decided it knows");
        assert_eq!(told(None, &failed), [], "it came back from history");
    }

    #[test]
    fn triggers_are_stored_as_they_are_spelled() {
        for trigger in Trigger::ALL {
            assert_eq!(serde_json::to_value(trigger).expect("JSON"), trigger.as_str());
            assert_eq!(trigger.as_str().parse(), Ok(trigger));
        }
        let unknown = "the beacons are lit".parse::<Trigger>().expect_err("none").to_string();
        assert!(unknown.starts_with("is not one of run:created, run:planning"), "{unknown}");
    }

    #[test]
    fn teams_hear_of_change_requests_and_of_nothing_else() {
        let team = Subscriber::Team(TeamId::from_random([1; 16]));
        let others = [
            Subscriber::Workspace(WorkspaceId::from_random([1; 16])),
            Subscriber::Project(ProjectId::from_random([1; 16])),
        ];
        for trigger in Trigger::ALL {
            let is_request = trigger == Trigger::ChangeRequestCreated;
            assert_eq!(trigger.fits(team), is_request, "{trigger}");
            assert!(others.iter().all(|other| trigger.fits(*other) != is_request), "{trigger}");
        }
    }
}
