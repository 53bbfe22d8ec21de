//! Events and comments of a run, as one list.

use taco_control_plane::{RunEventView, RunView};
use taco_domain::Author;

use crate::text::{Moment, plain};

/// One entry.
pub(crate) struct HistoryEntry {
    pub(crate) words: String,
    pub(crate) by: Option<String>,
    pub(crate) at: Moment,
    pub(crate) comment: Option<String>,
}

/// Oldest first.
pub(crate) fn history(view: &RunView) -> Vec<HistoryEntry> {
    view.events().into_iter().map(|event| HistoryEntry::of(view, event)).collect()
}

impl HistoryEntry {
    fn of(view: &RunView, event: RunEventView) -> Self {
        let by = &event.entry.by;
        Self {
            words: words(&event.entry.action, event.entry.description.as_deref()),
            by: (*by != Author::Taco).then(|| view.org.name_of(by)),
            at: Moment(event.entry.at),
            comment: event.comment.map(|comment| plain(&comment.body)),
        }
    }
}

/// Text after the name of the person who did it.
fn words(action: &str, description: Option<&str>) -> String {
    let words = match action {
        // Only the description says what happened.
        "agent_returned" | "state_rescued" => return plain(description.unwrap_or(action)),
        "created" => "started the run",
        "pre_plan_running" => "Pre-plan tasks started",
        "post_plan_running" => "Plan finished, post-plan tasks started",
        "pre_apply_running" => "Pre-apply tasks started",
        "plan_queued" => "Plan queued",
        "planning" => "Plan started",
        "plan_requeued" => "Agent lost; plan queued again",
        "planned" => "Plan finished, awaiting approval",
        "planned_and_finished" => "Plan finished, nothing to apply",
        "planned_and_saved" => "Plan finished and saved",
        "confirmed" => "confirmed the plan",
        "apply_queued" => "Apply queued",
        "applying" => "Apply started",
        "applied" => "Apply finished",
        "discarded" => "discarded the run",
        "cancel_requested" => "requested cancellation",
        "force_canceled" => "force-canceled the run",
        "canceled" => "canceled the run",
        "errored" if description.is_some() => return plain(description.unwrap_or_default()),
        "errored" => "Run failed",
        "force_executed" => "moved the run to the front of the queue",
        "commented" => "commented",
        other => other,
    };
    words.to_owned()
}
