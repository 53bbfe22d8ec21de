//! Notes in a phase's log that no agent wrote: why the phase waited before an agent had it, and how it ended if no
//! agent can tell. The notes are in the ledger; the texts are made from them, and come before and after what agents
//! write.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::phase::{Phase, PhaseKind};
use crate::run::Run;
use crate::wait_reason::WaitReason;

/// Maximum number of notes of a phase.
pub const MOST_NOTES: usize = 20;
/// A note's text has no more letters: people may lock a workspace with a long story.
const MAX_NOTE_CHARACTERS: usize = 400;

/// A log's first and last byte, for clients that wait for its end.
const BEGIN: char = '\u{2}';
const END: char = '\u{3}';

/// Terraform and tofu hide the first three lines of an apply's log, which say as a rule what the plan's said.
const HIDDEN_LINES: &str = "\nWhy this apply did not begin at once:\n\n";

/// Something that a phase waited for.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct WaitNote {
    /// Since when.
    pub at: Timestamp,
    /// Result of [`subject`] for the reasons: while it stays the same, nothing new is noted.
    pub subject: String,
    pub text: String,
}

/// Subject of the reasons, without what changes while a run waits for one and the same thing: how many are ahead, how
/// far they are, how many agents are busy.
pub fn subject(reasons: &[WaitReason]) -> String {
    let one = |reason: &WaitReason| match reason {
        WaitReason::RunAhead { run, .. } => format!("run-ahead {run}"),
        WaitReason::Locked { holder, .. } => format!("locked {holder}"),
        WaitReason::NoAgent { pool: Some(pool), .. } => format!("no-agent {pool}"),
        WaitReason::NoAgent { pool: None, .. } => "no-agent".to_owned(),
        WaitReason::PoolRefuses { pool, .. } => format!("pool-refuses {pool}"),
        WaitReason::AgentsBusy { .. } => "agents-busy".to_owned(),
        WaitReason::Approval => "approval".to_owned(),
        WaitReason::PolicyOverride => "policy-override".to_owned(),
        WaitReason::Tasks { stage, .. } => format!("tasks {stage}"),
    };
    reasons.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl Run {
    /// True if its log should say that it waits for this: not if it says so already, nor once an agent had the phase,
    /// because what readers have seen of a log stays where it is. A decision is not waited for in a queue.
    pub fn should_note(&self, kind: PhaseKind, subject: &str) -> bool {
        let phase = self.phase(kind);
        let is_new = phase.waits.last().is_none_or(|last| last.subject != subject);
        self.waiting_phase() == Some(kind) && phase.waits.len() < MOST_NOTES && is_new && !subject.is_empty()
    }

    /// The run with a note of what it waits for. `since` is when someone first saw that; a run that has no note of
    /// its status yet has waited since it came to it.
    pub fn noted(&self, kind: PhaseKind, reasons: &[WaitReason], since: Timestamp) -> Self {
        let mut run = self.clone();
        let last = self.phase(kind).waits.last().map(|note| note.at);
        let entered = self.entered_status_at();
        let at = if last.is_none_or(|last| last < entered) { entered } else { since };
        let words: Vec<String> = reasons.iter().map(WaitReason::in_words).collect();
        let text = one_line(&words.join("; "));
        run.phase_mut(kind).waits.push(WaitNote { at, subject: subject(reasons), text });
        run
    }
}

/// On one line and without control characters: it stands in a log whose lines and marks mean something.
fn one_line(words: &str) -> String {
    let mut letters = words.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let text: String = letters.by_ref().take(MAX_NOTE_CHARACTERS).collect();
    if letters.next().is_some() { format!("{text}…") } else { text }
}

/// Text at the beginning of a phase's log, if it waited. It only grows until an agent has the phase; if none ever will,
/// it is the whole log and ends like one.
pub fn waiting_text(phase: &Phase, kind: PhaseKind) -> String {
    let mut text = String::new();
    if !phase.waits.is_empty() {
        text.push(BEGIN);
        if kind == PhaseKind::Apply {
            text.push_str(HIDDEN_LINES);
        }
    }
    for note in &phase.waits {
        let _ = writeln!(text, "Waiting since {}: {}", note.at.strftime("%Y-%m-%d %H:%M:%S UTC"), note.text);
    }
    let never_begun = phase.epoch == 0 && phase.status.is_final();
    if never_begun && !(text.is_empty() && phase.error.is_none()) {
        text.push_str(&end(phase, kind, text.is_empty()));
    }
    text
}

/// Text at the end of the log of a phase whose agent was given up: clients wait for a log's last byte. `is_empty` if
/// nothing comes before it.
pub fn closing_text(phase: &Phase, kind: PhaseKind, is_empty: bool) -> String {
    if phase.is_lost_for_good() { end(phase, kind, is_empty) } else { String::new() }
}

fn end(phase: &Phase, kind: PhaseKind, is_empty: bool) -> String {
    let mut text = String::new();
    if is_empty {
        text.push(BEGIN);
        if kind == PhaseKind::Apply {
            text.push_str("\n\n\n");
        }
    }
    if let Some(error) = &phase.error {
        let _ = writeln!(text, "\nError: {}", one_line(error));
    }
    text.push(END);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::author::Author;
    use crate::id::{AgentPoolId, RunId};
    use crate::phase::{Executor, PhaseStatus};
    use crate::run::tests::given_run;
    use crate::run_status::{RunEvent, RunStatus};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn behind(number: u8, ahead: usize, status: RunStatus) -> Vec<WaitReason> {
        vec![WaitReason::RunAhead { run: RunId::from_random([number; 16]), status, ahead }]
    }

    fn locked(holder: &str, note: &str) -> WaitReason {
        WaitReason::Locked { holder: holder.to_owned(), since: at(0), note: Some(note.to_owned()) }
    }

    #[test]
    fn only_what_is_waited_for_makes_a_difference() {
        let pool = AgentPoolId::from_random([1; 16]);
        let nobody = |pool| vec![WaitReason::NoAgent { pool, pool_name: None }];
        let busy = |agents, ahead| vec![WaitReason::AgentsBusy { agents, ahead, shared: false }];
        let same = [
            (behind(1, 3, RunStatus::Planning), behind(1, 2, RunStatus::Planned)),
            (busy(1, 7), busy(2, 0)),
            (vec![locked("User jane", "one")], vec![locked("User jane", "two")]),
        ];
        for (one, other) in same {
            assert_eq!(subject(&one), subject(&other));
        }
        let different = [
            (behind(1, 1, RunStatus::Planned), behind(2, 1, RunStatus::Planned)),
            (nobody(Some(pool)), nobody(None)),
            (nobody(None), busy(1, 0)),
            (vec![locked("User jane", "")], vec![locked("User john", "")]),
            (
                behind(1, 1, RunStatus::Planned),
                [behind(1, 1, RunStatus::Planned), vec![locked("User jane", "")]].concat(),
            ),
        ];
        for (one, other) in different {
            assert_ne!(subject(&one), subject(&other));
        }
    }

    #[test]
    fn a_run_is_noted_when_it_waits_for_something_else_than_before() {
        let reasons = behind(1, 1, RunStatus::Planned);
        let run = Run { created_at: at(100), ..given_run(2) };
        assert!(run.should_note(PhaseKind::Plan, &subject(&reasons)));
        assert!(!run.should_note(PhaseKind::Apply, &subject(&reasons)), "its apply's turn has not come");
        assert!(!run.should_note(PhaseKind::Plan, ""), "it waits for nothing");
        let run = run.noted(PhaseKind::Plan, &reasons, at(102));
        assert_eq!(run.plan.waits[0].at, at(100), "it waits since it is there");
        assert!(!run.should_note(PhaseKind::Plan, &subject(&behind(1, 4, RunStatus::Applying))));
        let run = run.noted(PhaseKind::Plan, &behind(3, 1, RunStatus::Planned), at(110));
        assert_eq!(run.plan.waits[1].at, at(110), "it waits for this since then");
        let queued = run.after(RunEvent::ReachedFront, at(200), Author::Taco).expect("legal");
        let busy = [WaitReason::AgentsBusy { agents: 1, ahead: 0, shared: false }];
        assert_eq!(queued.noted(PhaseKind::Plan, &busy, at(205)).plan.waits[2].at, at(200));

        let executor =
            Executor { agent: crate::id::AgentId::from_random([1; 16]), agent_name: String::new(), pool: None };
        let (taken, _) = queued.taken(executor, at(210)).expect("legal");
        let lost = taken.after(RunEvent::PlanLost, at(300), Author::Taco).expect("legal");
        for begun in [taken, lost] {
            assert!(!begun.should_note(PhaseKind::Plan, "agents-busy"), "readers have seen what follows");
        }
        let mut full = given_run(1);
        for number in 0..MOST_NOTES {
            full = full.noted(PhaseKind::Plan, &behind(number as u8, 1, RunStatus::Planned), at(0));
        }
        assert!(!full.should_note(PhaseKind::Plan, "agents-busy"), "no log grows for ever");
    }

    #[test]
    fn notes_are_the_beginning_of_a_log() {
        let run = Run { created_at: at(3), ..given_run(1) };
        assert_eq!(waiting_text(&run.plan, PhaseKind::Plan), "", "it did not wait");
        let reasons = [WaitReason::NoAgent { pool: None, pool_name: Some("build".to_owned()) }];
        let mut run = run.noted(PhaseKind::Plan, &reasons, at(5));
        let line = "Waiting since 1970-01-01 00:00:03 UTC: no agents online in pool build: start one\n";
        assert_eq!(waiting_text(&run.plan, PhaseKind::Plan), format!("\u{2}{line}"));
        assert_eq!(
            waiting_text(&run.plan, PhaseKind::Apply),
            format!("\u{2}\nWhy this apply did not begin at once:\n\n{line}"),
            "what is hidden are three lines"
        );
        run.plan.status = PhaseStatus::Unreachable;
        assert_eq!(waiting_text(&run.plan, PhaseKind::Plan), format!("\u{2}{line}\u{3}"), "nothing follows");
        run.plan.epoch = 1;
        assert_eq!(waiting_text(&run.plan, PhaseKind::Plan), format!("\u{2}{line}"), "what follows ends it");
    }

    #[test]
    fn a_log_that_no_agent_can_end_has_an_end() {
        let error = Some("Apply outcome unknown: agent one was not heard for 45 s".to_owned());
        let lost = Phase { epoch: 1, losses: 1, status: PhaseStatus::Errored, error, ..Phase::default() };
        let text = "\nError: Apply outcome unknown: agent one was not heard for 45 s\n\u{3}";
        assert_eq!(closing_text(&lost, PhaseKind::Apply, false), text);
        assert_eq!(closing_text(&lost, PhaseKind::Plan, true), format!("\u{2}{text}"));
        assert_eq!(closing_text(&lost, PhaseKind::Apply, true), format!("\u{2}\n\n\n{text}"), "three lines are hidden");
        let canceled = Phase { status: PhaseStatus::Canceled, error: None, ..lost.clone() };
        assert_eq!(closing_text(&canceled, PhaseKind::Plan, false), "\u{3}");
        for open in [
            Phase { status: PhaseStatus::Queued, ..lost.clone() },
            Phase { epoch: 2, ..lost.clone() },
            Phase { losses: 0, ..lost.clone() },
            Phase { late_outcome: Some("it applied everything".to_owned()), ..lost.clone() },
        ] {
            assert_eq!(closing_text(&open, PhaseKind::Apply, false), "", "its agents end it: {open:?}");
        }
        let never_begun = Phase { epoch: 0, losses: 0, ..lost };
        assert_eq!(closing_text(&never_begun, PhaseKind::Apply, true), "");
        assert_eq!(waiting_text(&never_begun, PhaseKind::Plan), format!("\u{2}{text}"), "it failed before it began");
    }

    #[test]
    fn what_people_wrote_stays_on_its_line() {
        let long = format!("two\nlines\u{3}\u{1b}[2J{}", "x".repeat(500));
        let run = given_run(1).noted(PhaseKind::Plan, &[locked("User jane", &long)], at(0));
        let text = &run.plan.waits[0].text;
        assert!(text.contains("(two lines  [2Jx") && text.ends_with("x…"), "{text}");
        assert_eq!(text.chars().count(), MAX_NOTE_CHARACTERS + 1);
    }
}
