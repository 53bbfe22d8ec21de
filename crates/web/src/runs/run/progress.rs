//! Facts from a log of JSON lines besides its messages: the progress of each resource, and the errors.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

use crate::engine_line::{Diagnostic, EngineLine};
use crate::pictures::gantt::Gantt;
use crate::text::{plain, stopwatch};

/// More than anyone reads.
const MAX_DIAGNOSTICS: usize = 100;

#[derive(Default, Debug)]
pub(crate) struct Facts {
    pub(crate) resources: Vec<ResourceProgress>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    places: HashMap<String, usize>,
    /// When resources were worked on, by action and address.
    times: HashMap<(String, String), WorkTime>,
    rest: Vec<u8>,
}

/// When a resource was worked on, by the engine's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WorkTime {
    pub(crate) began: Timestamp,
    /// When the engine last told of it.
    pub(crate) latest: Timestamp,
}

/// Progress of one resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ResourceProgress {
    pub(crate) address: String,
    pub(crate) action: String,
    pub(crate) state: State,
    pub(crate) took: String,
    /// Seconds that the engine had told of, while it is worked on.
    pub(crate) elapsed: Option<i64>,
}

impl ResourceProgress {
    /// True once work on it has begun.
    pub(crate) fn has_begun(&self) -> bool {
        !matches!(self.state, State::Planned | State::NotStarted)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// It is going to happen.
    Planned,
    Running,
    Done,
    Failed,
    /// Something failed before its turn came.
    NotStarted,
}

impl State {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::NotStarted => "not started",
        }
    }

    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Planned => "○",
            Self::Running => "◑",
            Self::Done => "✓",
            Self::Failed => "✗",
            Self::NotStarted => "–",
        }
    }

    pub(crate) fn tone(self) -> &'static str {
        match self {
            Self::Planned | Self::NotStarted => "off",
            Self::Running => "busy",
            Self::Done => "good",
            Self::Failed => "bad",
        }
    }
}

impl Facts {
    /// Takes the next bytes of the log.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return };
        let rest = self.rest.split_off(end + 1);
        let whole = std::mem::replace(&mut self.rest, rest);
        for line in whole.split(|byte| *byte == b'\n').filter_map(EngineLine::parse) {
            self.learn(line);
        }
    }

    fn learn(&mut self, line: EngineLine) {
        if let Some(diagnostic) = line.diagnostic {
            if self.diagnostics.len() < MAX_DIAGNOSTICS && !self.diagnostics.contains(&diagnostic) {
                self.diagnostics.push(diagnostic);
            }
            return;
        }
        let Some(hook) = line.hook.or(line.change) else { return };
        let state = match line.kind.as_str() {
            "planned_change" => State::Planned,
            "apply_start" | "apply_progress" => State::Running,
            "apply_complete" => State::Done,
            "apply_errored" => State::Failed,
            _ => return,
        };
        let took = hook.elapsed_seconds.unwrap_or_default().clamp(0.0, 1e9) as i64;
        let progress = ResourceProgress {
            address: plain(&hook.resource.addr),
            action: action_word(&hook.action).to_owned(),
            state,
            took: stopwatch(SignedDuration::from_secs(took)),
            elapsed: (state == State::Running).then_some(took),
        };
        if let Some(at) = line.at.filter(|_| state != State::Planned) {
            let began = at.saturating_sub(SignedDuration::from_secs(took)).unwrap_or(at);
            let key = (progress.action.clone(), progress.address.clone());
            let time = self.times.entry(key).or_insert(WorkTime { began, latest: at });
            time.latest = at.max(time.latest);
        }
        // A resource that is replaced is destroyed and created: two things under one address.
        let planned = format!("planned {}", progress.address);
        let key =
            if state == State::Planned { planned.clone() } else { format!("{} {}", hook.action, progress.address) };
        let place = self.places.get(&key).copied().or_else(|| self.places.remove(&planned));
        let place = place.unwrap_or(self.resources.len());
        self.places.insert(key, place);
        match self.resources.get_mut(place) {
            Some(before) => *before = progress,
            None => self.resources.push(progress),
        }
    }

    /// When a resource was worked on, if the engine told.
    pub(crate) fn time_of(&self, resource: &ResourceProgress) -> Option<WorkTime> {
        self.times.get(&(resource.action.clone(), resource.address.clone())).copied()
    }

    /// The resources as bars over time.
    pub(crate) fn gantt(&self) -> Gantt<'_> {
        Gantt::of(self)
    }

    /// Summary of the progress of all resources.
    pub(crate) fn in_words(&self) -> String {
        let count = |state: State| format!("{} {}", self.count(state), state.word());
        if self.count(State::NotStarted) > 0 {
            return [State::Done, State::Failed, State::NotStarted].map(count).join(", ");
        }
        match self.count(State::Planned) {
            planned if planned == self.resources.len() => format!("{} so far", count(State::Planned)),
            0 => [State::Done, State::Running, State::Failed].map(count).join(", "),
            _ => [State::Done, State::Running, State::Failed, State::Planned].map(count).join(", "),
        }
    }

    /// Notes what a plan meant to do and the apply never began, because something failed before. Each is an address and an
    /// action.
    pub(crate) fn note_not_started<'a>(&mut self, planned: impl Iterator<Item = (&'a str, &'static str)>) {
        // Without structured output nothing is known of any resource.
        if self.resources.is_empty() {
            return;
        }
        let begun: HashSet<(String, String)> =
            self.resources.iter().map(|one| (one.address.clone(), one.action.clone())).collect();
        let missing =
            planned.filter(|(address, action)| !begun.contains(&((*address).to_owned(), (*action).to_owned())));
        let not_started = |(address, action): (&str, &str)| ResourceProgress {
            address: address.to_owned(),
            action: action.to_owned(),
            state: State::NotStarted,
            took: String::new(),
            elapsed: None,
        };
        self.resources.extend(missing.map(not_started));
    }

    /// Of what is over, nothing is still to come: a resource that only moves is never worked on.
    pub(crate) fn leave_out_planned(&mut self) {
        self.resources.retain(|resource| resource.state != State::Planned);
    }

    pub(crate) fn count(&self, state: State) -> usize {
        self.resources.iter().filter(|resource| resource.state == state).count()
    }

    /// Errors before warnings.
    pub(crate) fn sorted_diagnostics(&self) -> Vec<&Diagnostic> {
        let mut sorted: Vec<_> = self.diagnostics.iter().collect();
        sorted.sort_by_key(|diagnostic| !diagnostic.is_error());
        sorted
    }
}

fn action_word(action: &str) -> &str {
    match action {
        "create" => "create",
        "update" => "change",
        "delete" => "destroy",
        "replace" => "replace",
        "read" => "read",
        "move" => "move",
        "import" => "import",
        "remove" => "forget",
        _ => "work on",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(kind: &str, address: &str, action: &str, seconds: u32) -> String {
        format!(
            r#"{{"@level":"info","@message":"x","type":"{kind}","hook":{{"resource":{{"addr":"{address}"}},"action":"{action}","elapsed_seconds":{seconds}}}}}"#
        ) + "\n"
    }

    #[test]
    fn each_resource_is_as_far_as_its_last_line_says() {
        let mut facts = Facts::default();
        let log = [
            "Initializing the backend...\n".to_owned(),
            hook("apply_start", "a.b", "delete", 0),
            hook("apply_complete", "a.b", "delete", 1),
            hook("apply_start", "a.b", "create", 0),
            hook("apply_start", "a.c", "create", 0),
            hook("apply_progress", "a.b", "create", 70),
            hook("apply_errored", "a.c", "create", 2),
        ];
        let log = log.concat();
        let (first, second) = log.split_at(150);
        facts.push(first.as_bytes());
        facts.push(second.as_bytes());
        let told: Vec<_> = facts
            .resources
            .iter()
            .map(|one| format!("{} {} {} {}", one.address, one.action, one.state.word(), one.took))
            .collect();
        assert_eq!(told, ["a.b destroy done 0:01", "a.b create running 1:10", "a.c create failed 0:02"]);
        assert_eq!((facts.count(State::Done), facts.count(State::Running), facts.count(State::Failed)), (1, 1, 1));
    }

    #[test]
    fn what_is_planned_is_told_as_it_is_found() {
        let mut facts = Facts::default();
        let change =
            |address: &str, action: &str| hook("planned_change", address, action, 0).replace("\"hook\"", "\"change\"");
        facts.push([change("a.b", "create"), change("a.c", "delete")].concat().as_bytes());
        let told: Vec<_> = facts.resources.iter().map(|one| format!("{} {}", one.action, one.address)).collect();
        assert_eq!(told, ["create a.b", "destroy a.c"]);
        assert_eq!(facts.in_words(), "2 planned so far");
        facts.push([hook("apply_complete", "a.b", "create", 1), change("a.d", "move")].concat().as_bytes());
        assert_eq!(facts.in_words(), "1 done, 0 running, 0 failed, 2 planned");
        assert_eq!(facts.resources.len(), 3, "what was planned is what is done");
        facts.leave_out_planned();
        assert_eq!(facts.in_words(), "1 done, 0 running, 0 failed");
    }

    #[test]
    fn what_was_never_begun_is_told_after_a_failure() {
        let mut facts = Facts::default();
        let planned = [("a.b", "destroy"), ("a.b", "create"), ("a.c", "create"), ("a.d", "change")];
        facts.note_not_started(planned.into_iter());
        assert_eq!(facts.resources, [], "of a log that is plain text nothing is known");
        let log = [hook("apply_complete", "a.b", "delete", 1), hook("apply_errored", "a.c", "create", 1)];
        facts.push(log.concat().as_bytes());
        facts.note_not_started(planned.into_iter());
        let told: Vec<_> =
            facts.resources.iter().map(|one| format!("{} {} {}", one.address, one.action, one.state.word())).collect();
        let expected = ["a.b destroy done", "a.c create failed", "a.b create not started", "a.d change not started"];
        assert_eq!(told, expected);
        assert_eq!(facts.in_words(), "1 done, 1 failed, 2 not started");
    }

    #[test]
    fn errors_come_before_warnings() {
        let line = |severity: &str| {
            format!(
                r#"{{"@level":"x","@message":"x","type":"diagnostic","diagnostic":{{"severity":"{severity}","summary":"s"}}}}"#
            ) + "\n"
        };
        let mut facts = Facts::default();
        facts.push([line("warning"), line("error"), line("error")].concat().as_bytes());
        let severities: Vec<_> = facts.sorted_diagnostics().iter().map(|one| one.severity.as_str()).collect();
        assert_eq!(severities, ["error", "warning"], "the same twice is told once");
    }
}
