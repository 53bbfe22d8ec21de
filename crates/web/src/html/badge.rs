//! Badges of statuses: one table of words, signs and tones. A sign and a word always appear together, so that meaning
//! never depends on colour alone.

use taco_domain::agent::AgentStatus;
use taco_domain::configuration_version::ConfigurationStatus;
use taco_domain::phase::PhaseStatus;
use taco_domain::run_status::RunStatus;
use taco_domain::task_result::TaskResultStatus;
use taco_domain::task_stage::TaskStageStatus;

/// Data that a template needs to show a status; see `parts.html`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Badge {
    pub(crate) word: &'static str,
    pub(crate) sign: &'static str,
    /// A class of the style sheet: `calm`, `busy`, `asks`, `good`, `bad` or `off`.
    pub(crate) tone: &'static str,
}

impl Badge {
    pub(crate) const fn new(word: &'static str, sign: &'static str, tone: &'static str) -> Self {
        Self { word, sign, tone }
    }

    pub(crate) fn of_run(status: RunStatus) -> Self {
        match status {
            RunStatus::Pending => Self::new("Pending", "○", "calm"),
            RunStatus::PrePlanRunning => Self::new("Pre-plan tasks", "◔", "busy"),
            RunStatus::PlanQueued => Self::new("Plan queued", "○", "calm"),
            RunStatus::Planning => Self::new("Planning", "◔", "busy"),
            RunStatus::PostPlanRunning => Self::new("Post-plan tasks", "◑", "busy"),
            RunStatus::Planned => Self::new("Needs approval", "!", "asks"),
            RunStatus::PolicyOverride => Self::new("Needs override", "!", "asks"),
            RunStatus::PlannedAndFinished => Self::new("Planned and finished", "✓", "good"),
            RunStatus::PlannedAndSaved => Self::new("Planned and saved", "▣", "asks"),
            RunStatus::Confirmed => Self::new("Confirmed", "○", "calm"),
            RunStatus::PreApplyRunning => Self::new("Pre-apply tasks", "◑", "busy"),
            RunStatus::ApplyQueued => Self::new("Apply queued", "○", "calm"),
            RunStatus::Applying => Self::new("Applying", "◑", "busy"),
            RunStatus::Applied => Self::new("Applied", "✓", "good"),
            RunStatus::Discarded => Self::new("Discarded", "–", "off"),
            RunStatus::Canceled => Self::new("Canceled", "–", "off"),
            RunStatus::Errored => Self::new("Failed", "✗", "bad"),
        }
    }

    pub(crate) fn of_phase(status: PhaseStatus) -> Self {
        match status {
            PhaseStatus::Pending => Self::new("Not started", "○", "calm"),
            PhaseStatus::Queued => Self::new("Queued", "○", "calm"),
            PhaseStatus::Running => Self::new("Running", "◑", "busy"),
            PhaseStatus::Finished => Self::new("Finished", "✓", "good"),
            PhaseStatus::Errored => Self::new("Failed", "✗", "bad"),
            PhaseStatus::Canceled => Self::new("Canceled", "–", "off"),
            PhaseStatus::Unreachable => Self::new("Skipped", "–", "off"),
        }
    }

    pub(crate) fn of_task_stage(status: TaskStageStatus) -> Self {
        match status {
            TaskStageStatus::Pending => Self::new("Not started", "○", "calm"),
            TaskStageStatus::Running => Self::new("Running", "◑", "busy"),
            TaskStageStatus::Passed => Self::new("Passed", "✓", "good"),
            TaskStageStatus::Failed => Self::new("Failed", "✗", "bad"),
            TaskStageStatus::Errored => Self::new("No answer", "✗", "bad"),
            TaskStageStatus::Canceled => Self::new("Canceled", "–", "off"),
            TaskStageStatus::Unreachable => Self::new("Skipped", "–", "off"),
        }
    }

    pub(crate) fn of_task_result(status: TaskResultStatus) -> Self {
        match status {
            TaskResultStatus::Pending => Self::new("Not started", "○", "calm"),
            TaskResultStatus::Running => Self::new("Running", "◑", "busy"),
            TaskResultStatus::Passed => Self::new("Passed", "✓", "good"),
            TaskResultStatus::Failed => Self::new("Failed", "✗", "bad"),
            TaskResultStatus::Errored => Self::new("No answer", "✗", "bad"),
            TaskResultStatus::Canceled => Self::new("Canceled", "–", "off"),
            TaskResultStatus::Unreachable => Self::new("Skipped", "–", "off"),
        }
    }

    pub(crate) fn of_configuration(status: ConfigurationStatus) -> Self {
        match status {
            ConfigurationStatus::Pending => Self::new("Awaiting upload", "○", "calm"),
            ConfigurationStatus::Uploaded => Self::new("Uploaded", "✓", "good"),
            ConfigurationStatus::Errored => Self::new("Failed", "✗", "bad"),
            ConfigurationStatus::Archived => Self::new("Archived", "–", "off"),
            ConfigurationStatus::BackingDataSoftDeleted => Self::new("Deleted, can be restored", "–", "off"),
            ConfigurationStatus::BackingDataPermanentlyDeleted => Self::new("Deleted permanently", "–", "off"),
        }
    }

    pub(crate) fn of_agent(status: AgentStatus) -> Self {
        match status {
            AgentStatus::Idle => Self::new("Idle", "○", "good"),
            AgentStatus::Busy => Self::new("Busy", "◑", "busy"),
            AgentStatus::Unknown => Self::new("Unresponsive", "?", "asks"),
            AgentStatus::Errored => Self::new("Lost", "✗", "bad"),
            AgentStatus::Exited => Self::new("Exited", "–", "off"),
        }
    }
}
