//! How statuses look: one table of words, signs and tones. A sign and a word always stand together, so that colour
//! is never all there is.

use taco_domain::run_status::RunStatus;

/// What a template needs to show a status; see `parts.html`.
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
            RunStatus::PlanQueued => Self::new("Plan queued", "○", "calm"),
            RunStatus::Planning => Self::new("Planning", "◔", "busy"),
            RunStatus::Planned => Self::new("Needs confirmation", "!", "asks"),
            RunStatus::PlannedAndFinished => Self::new("Planned and finished", "✓", "good"),
            RunStatus::PlannedAndSaved => Self::new("Planned and saved", "▣", "asks"),
            RunStatus::Confirmed => Self::new("Confirmed", "○", "calm"),
            RunStatus::ApplyQueued => Self::new("Apply queued", "○", "calm"),
            RunStatus::Applying => Self::new("Applying", "◑", "busy"),
            RunStatus::Applied => Self::new("Applied", "✓", "good"),
            RunStatus::Discarded => Self::new("Discarded", "–", "off"),
            RunStatus::Canceled => Self::new("Canceled", "–", "off"),
            RunStatus::Errored => Self::new("Errored", "✗", "bad"),
        }
    }
}
