//! Statuses in words and colours. On the wire they have the names of Terraform Cloud.

use crate::colour::Colour;

/// A status as people say it.
pub(crate) fn in_words(status: &str) -> String {
    match status {
        "pending" | "plan_queued" | "apply_queued" | "confirmed" | "fetching" => "queued",
        "planned" => "needs approval",
        "planned_and_finished" => "planned",
        "planned_and_saved" => "plan saved",
        "policy_override" => "needs override",
        "errored" => "failed",
        "force_canceled" => "canceled",
        "unreachable" => "not started",
        "pre_plan_running" => "pre-plan tasks",
        "post_plan_running" => "post-plan tasks",
        "pre_apply_running" => "pre-apply tasks",
        other => return other.replace('_', " "),
    }
    .to_owned()
}

/// A status as the end of a sentence about a run.
pub(crate) fn sentence(status: &str) -> String {
    match status {
        "planned" => "needs approval".to_owned(),
        "planned_and_saved" => "has a saved plan".to_owned(),
        "policy_override" => "needs an override of its policies".to_owned(),
        "errored" => "failed".to_owned(),
        "applied" | "discarded" | "canceled" => format!("was {status}"),
        "force_canceled" => "was canceled".to_owned(),
        "confirmed" | "apply_queued" => "is queued to apply".to_owned(),
        "pre_plan_running" => "is waiting for its pre-plan tasks".to_owned(),
        "post_plan_running" => "is waiting for its post-plan tasks".to_owned(),
        "pre_apply_running" => "is waiting for its pre-apply tasks".to_owned(),
        other => format!("is {}", in_words(other)),
    }
}

pub(crate) fn colour(status: &str) -> Option<Colour> {
    Some(match status {
        "applied"
        | "done"
        | "planned_and_finished"
        | "finished"
        | "idle"
        | "active"
        | "passed"
        | "finalized"
        | "clean"
        | "fresh"
        | "ok" => Colour::Green,
        "errored" | "failed" | "unknown" | "broken" | "missing" | "retyped" | "diverged" => Colour::Red,
        "planned" | "planned_and_saved" | "policy_override" | "invited" | "warned" | "stale" | "needs_approval"
        | "blocked" | "outdated" | "drifted" => Colour::Yellow,
        "planning" | "applying" | "running" | "busy" | "apply_queued" | "confirmed" | "may_change"
        | "pre_plan_running" | "post_plan_running" | "pre_apply_running" => Colour::Cyan,
        "pending" | "plan_queued" | "queued" | "discarded" | "canceled" | "exited" | "skipped" | "never_applied"
        | "cut_off" | "waiting" => Colour::Dim,
        _ => return None,
    })
}

/// Statuses on the wire that a word means, for filters: both spellings count.
pub(crate) fn on_the_wire(word: &str) -> String {
    match word.to_lowercase().replace([' ', '-'], "_").as_str() {
        "failed" => "errored".to_owned(),
        "queued" => "pending,plan_queued,confirmed,apply_queued".to_owned(),
        "running" => "planning,applying,pre_plan_running,post_plan_running,pre_apply_running".to_owned(),
        "needs_approval" | "awaiting_approval" => "planned".to_owned(),
        other => other.to_owned(),
    }
}

/// Replaces statuses of the wire by words in what a server says.
pub(crate) fn without_names(text: &str) -> String {
    const NAMES: [&str; 5] = ["planned_and_finished", "planned_and_saved", "plan_queued", "apply_queued", "errored"];
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let mut shown = String::new();
    for piece in text.split_inclusive(|letter: char| !is_part(letter)) {
        let word = piece.trim_end_matches(|letter: char| !is_part(letter));
        let words = if NAMES.contains(&word) { in_words(word) } else { word.to_owned() };
        shown.push_str(&words);
        shown.push_str(&piece[word.len()..]);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_words() {
        assert_eq!(in_words("errored"), "failed");
        assert_eq!(in_words("some_new_one"), "some new one");
        assert_eq!(sentence("plan_queued"), "is queued");
        assert_eq!(sentence("errored"), "failed");
        assert_eq!(on_the_wire("failed"), "errored");
        assert_eq!(on_the_wire("needs approval"), "planned");
        assert_eq!(on_the_wire("planned_and_finished"), "planned_and_finished");
        let said = "the run is errored; needs one that is planned or planned_and_saved (run-errored)";
        assert_eq!(without_names(said), "the run is failed; needs one that is planned or plan saved (run-errored)");
    }
}
