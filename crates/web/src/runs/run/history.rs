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
        "plan_queued" => "its plan is ready for an agent",
        "planning" => "an agent took the plan",
        "plan_requeued" => "the agent was lost; the plan goes to another",
        "planned" => "the plan is finished and waits for a decision",
        "planned_and_finished" => "the plan is finished, and nothing is to be applied",
        "planned_and_saved" => "the plan is finished and saved",
        "confirmed" => "confirmed the plan",
        "apply_queued" => "its apply is ready for an agent",
        "applying" => "an agent took the apply",
        "applied" => "the apply is finished",
        "discarded" => "discarded the run",
        "cancel_requested" => "asked the run to stop",
        "force_canceled" => "stopped the run by force",
        "canceled" => "canceled the run",
        "errored" => "the run failed",
        "force_executed" => "let the run begin before the others",
        "commented" => "commented",
        other => other,
    };
    words.to_owned()
}
