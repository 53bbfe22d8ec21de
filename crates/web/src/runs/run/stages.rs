//! The stages of a run, with how long each took.

use jiff::Timestamp;
use taco_domain::run::Run;
use taco_domain::run_status::RunStatus;

use crate::badge::Badge;
use crate::text::{Moment, stopwatch};

/// One step of the timeline.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) sign: &'static str,
    /// `done`, `now`, `ahead` or `last`.
    pub(crate) state: &'static str,
    /// Tone for how the last one ended; see [`Badge`].
    pub(crate) tone: &'static str,
    pub(crate) began: Option<Moment>,
    pub(crate) took: Option<String>,
    /// Seconds since the current stage began.
    pub(crate) elapsed: Option<i64>,
}

impl Stage {
    pub(crate) fn is_current(&self) -> bool {
        matches!(self.state, "now" | "last")
    }
}

/// Statuses that a run goes through, each with the name of its stage.
const STEPS: [(RunStatus, &str); 10] = [
    (RunStatus::Pending, "Pending"),
    (RunStatus::PrePlanRunning, "Pre-plan tasks"),
    (RunStatus::PlanQueued, "Plan queued"),
    (RunStatus::Planning, "Planning"),
    (RunStatus::PostPlanRunning, "Post-plan tasks"),
    (RunStatus::PolicyOverride, "Needs override"),
    (RunStatus::Planned, "Needs approval"),
    (RunStatus::PreApplyRunning, "Pre-apply tasks"),
    (RunStatus::ApplyQueued, "Apply queued"),
    (RunStatus::Applying, "Applying"),
];

/// Past, current and future stages.
pub(crate) fn stages(run: &Run, now: Timestamp) -> Vec<Stage> {
    let mut steps: Vec<(RunStatus, &'static str, Timestamp)> = Vec::new();
    for (status, name) in STEPS {
        if let Some(began) = began(run, status) {
            steps.push((status, name, began));
        }
    }
    // A plan that was lost and began again has its times in another order.
    steps.sort_by_key(|(status, _, began)| (*began, *status));
    let end = run.status.is_final().then(|| began(run, run.status)).flatten();
    let mut stages: Vec<Stage> = Vec::new();
    for (index, (status, name, began)) in steps.iter().enumerate() {
        let is_last = index + 1 == steps.len();
        let ended = steps.get(index + 1).map(|(_, _, next)| *next).or(end);
        let took = stopwatch(ended.unwrap_or(now).duration_since(*began));
        let current = is_last && end.is_none();
        let badge = Badge::of_run(*status);
        stages.push(Stage {
            name,
            sign: if current { badge.sign } else { "✓" },
            state: if current { "now" } else { "done" },
            tone: if current { badge.tone } else { "" },
            began: Some(Moment(*began)),
            took: Some(took),
            elapsed: current.then(|| now.duration_since(*began).as_secs().max(0)),
        });
    }
    if run.status.is_final() {
        let badge = Badge::of_run(run.status);
        let (name, sign, tone) = (badge.word, badge.sign, badge.tone);
        stages.push(Stage { name, sign, state: "last", tone, began: end.map(Moment), took: None, elapsed: None });
    } else {
        let stage = |name: &&'static str| Stage {
            name,
            sign: "·",
            state: "ahead",
            tone: "",
            began: None,
            took: None,
            elapsed: None,
        };
        stages.extend(ahead(run).iter().map(stage));
    }
    stages
}

fn began(run: &Run, status: RunStatus) -> Option<Timestamp> {
    match status {
        RunStatus::Pending if run.is_beside_the_queue() && run.options.plan_only => None,
        RunStatus::Pending => Some(run.created_at),
        // Nobody is asked.
        RunStatus::Planned if run.options.auto_apply && run.status != RunStatus::Planned => None,
        RunStatus::Planned => {
            let at = |name: &str| run.timestamps.get(name).copied();
            at("planned-at").or_else(|| at("planned-and-saved-at"))
        }
        status => run.timestamps.get(format!("{}-at", status.to_string().replace('_', "-")).as_str()).copied(),
    }
}

fn ahead(run: &Run) -> &'static [&'static str] {
    let plan_only = run.options.plan_only;
    match run.status {
        RunStatus::Pending | RunStatus::PrePlanRunning | RunStatus::PlanQueued if plan_only => &["Planning", "Planned"],
        RunStatus::Planning | RunStatus::PostPlanRunning if plan_only => &["Planned"],
        RunStatus::Pending | RunStatus::PrePlanRunning | RunStatus::PlanQueued => &["Planning", "Applying", "Applied"],
        RunStatus::Planning
        | RunStatus::PostPlanRunning
        | RunStatus::PolicyOverride
        | RunStatus::Planned
        | RunStatus::PlannedAndSaved => &["Applying", "Applied"],
        RunStatus::Confirmed | RunStatus::PreApplyRunning | RunStatus::ApplyQueued => &["Applying", "Applied"],
        RunStatus::Applying => &["Applied"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use taco_domain::Author;
    use taco_domain::id::{ConfigurationVersionId, RunId, WorkspaceId};
    use taco_domain::run::{RunOptions, RunSource};

    use super::*;

    fn run(status: RunStatus, times: &[(&str, i64)]) -> Run {
        let times = times.iter().map(|(name, second)| ((*name).into(), at(*second)));
        Run {
            id: RunId::from_random([1; 16]),
            workspace: WorkspaceId::from_random([1; 16]),
            configuration_version: ConfigurationVersionId::from_random([1; 16]),
            number: 1,
            place: Some(1),
            status,
            options: RunOptions::default(),
            source: RunSource::Api,
            created_at: at(0),
            created_by: Author::Taco,
            confirmed_by: None,
            plan: Default::default(),
            apply: Default::default(),
            has_changes: None,
            generated_configuration: false,
            structured_output: false,
            cancel: None,
            timestamps: times.collect(),
            history: Vec::new(),
            planned_serial: None,
            estimates_costs: false,
            own_inputs: None,
            preview: None,
            output_contract: None,
            bound: Vec::new(),
            policies: None,
            stages: Vec::new(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    fn told(run: &Run, now: i64) -> Vec<String> {
        let stages = stages(run, at(now));
        let tell = |stage: &Stage| format!("{} {} {}", stage.name, stage.state, stage.took.as_deref().unwrap_or("-"));
        stages.iter().map(tell).collect()
    }

    #[test]
    fn each_stage_lasts_until_the_next_begins() {
        let planning = run(RunStatus::Planning, &[("plan-queued-at", 2), ("planning-at", 3)]);
        let expected =
            ["Pending done 0:02", "Plan queued done 0:01", "Planning now 0:07", "Applying ahead -", "Applied ahead -"];
        assert_eq!(told(&planning, 10), expected);
        let over = run(RunStatus::Errored, &[("plan-queued-at", 2), ("planning-at", 3), ("errored-at", 65)]);
        let expected = ["Pending done 0:02", "Plan queued done 0:01", "Planning done 1:02", "Failed last -"];
        assert_eq!(told(&over, 100), expected);
    }

    #[test]
    fn a_plan_that_waits_says_since_when() {
        let saved = run(RunStatus::PlannedAndSaved, &[("plan-queued-at", 0), ("planned-and-saved-at", 5)]);
        assert_eq!(told(&saved, 65)[2], "Needs approval now 1:00");
    }
}
