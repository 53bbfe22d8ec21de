//! Task results: what one run task answers in one stage of one run. It is also what is to be sent: the request and its
//! attempts are noted here.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use taco_words::id_kinds;

use crate::attribute::{InvalidAttribute, as_plain_text, is_plain_text, shown};
use crate::id::{self, RunId};
use crate::organization_state::OrganizationState;
use crate::run::Run;
use crate::run_tasks::run_task::{RunTaskId, TaskEnforcement};
use crate::run_tasks::task_stage::{StageKind, TaskStageStatus};
use crate::run_tasks::workspace_run_task::WorkspaceRunTaskId;
use crate::run_word::RunWord;
use crate::small_map::SmallMap;

/// Attempts to ask one task.
pub const MAX_REQUESTS: u32 = 6;

/// A task that says nothing for so long is given up.
pub const SILENCE_TIMEOUT: SignedDuration = SignedDuration::from_mins(10);

/// A task has so long in all, whatever it says meanwhile.
pub const TASK_TIMEOUT: SignedDuration = SignedDuration::from_mins(60);

/// Maximum number of tasks that are asked in one stage.
pub const MAX_TASKS_OF_STAGE: usize = 50;

const FIRST_RETRY_DELAY: SignedDuration = SignedDuration::from_secs(2);

const LONGEST_MESSAGE: usize = 4096;
const LONGEST_URL: usize = 2048;

id_kinds! {
    /// What one task answers in one stage of one run. It is made from the run's, which it leads back to.
    TaskResultId = "taskrs";
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum TaskResultStatus {
    /// It was not asked yet, or did not confirm that it was.
    Pending,
    /// It works on its answer.
    Running,
    Passed,
    Failed,
    /// There is no answer: it was not reached, or said nothing in time.
    Errored,
    Canceled,
    /// The run was over before it was asked.
    Unreachable,
}

impl TaskResultStatus {
    pub const ALL: [Self; 7] =
        [Self::Pending, Self::Running, Self::Passed, Self::Failed, Self::Errored, Self::Canceled, Self::Unreachable];

    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Errored => "errored",
            Self::Canceled => "canceled",
            Self::Unreachable => "unreachable",
        }
    }

    pub fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

impl fmt::Display for TaskResultStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The outcomes that a task sent, which are in a blob.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct StoredOutcomes {
    /// Name of the blob.
    pub blob: String,
    /// Hexadecimal.
    pub sha256: String,
    pub size: u64,
    pub count: u32,
}

/// What one task answers in one stage of one run.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct TaskResult {
    pub task: RunTaskId,
    /// `None` for a task that is asked in all workspaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_task: Option<WorkspaceRunTaskId>,
    /// Name and address when the run began.
    pub task_name: String,
    pub task_url: String,
    pub enforcement: TaskEnforcement,
    pub status: TaskResultStatus,
    /// What the task says, or why it says nothing.
    #[serde(default)]
    pub message: String,
    /// Where the task says more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default)]
    pub timestamps: SmallMap<RunWord, Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Since when it is being asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_at: Option<Timestamp>,
    /// The last word from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<Timestamp>,
    /// Requests that failed.
    #[serde(default)]
    pub attempts: u32,
    /// Time before which nobody asks again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<StoredOutcomes>,
}

/// What came of a request to a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestOutcome {
    /// It was answered with 200: the task works on it.
    Accepted,
    /// Trying again may help.
    Failed(String),
    /// Trying again is of no use.
    Refused(String),
}

/// The answer of a task, as it is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskAnswer {
    pub status: TaskResultStatus,
    pub message: Option<String>,
    pub url: Option<String>,
}

/// Reason why an answer does not count.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("the result is {0} already: an answer counts once")]
pub struct AnswerRefused(pub TaskResultStatus);

impl TaskAnswer {
    /// Checks an answer as it was sent.
    pub fn checked(
        status: Option<&str>,
        message: Option<String>,
        url: Option<String>,
    ) -> Result<Self, InvalidAttribute> {
        let status = match status.unwrap_or_default() {
            "running" => TaskResultStatus::Running,
            "passed" => TaskResultStatus::Passed,
            "failed" => TaskResultStatus::Failed,
            "" => {
                return Err(InvalidAttribute::new(
                    "status",
                    "Status can't be blank: it is one of running, passed, failed",
                ));
            }
            other => {
                let detail = format!("Status must be one of running, passed, failed; it is {}", shown(other));
                return Err(InvalidAttribute::new("status", detail));
            }
        };
        let url = url.filter(|url| !url.is_empty());
        if let Some(url) = &url {
            check_link("url", url)?;
        }
        Ok(Self { status, message: message.map(|text| as_plain_text(&text, LONGEST_MESSAGE)), url })
    }
}

/// Checks an address that people will be shown as a link.
pub(crate) fn check_link(attribute: &'static str, url: &str) -> Result<(), InvalidAttribute> {
    let is_web = ["https://", "http://"].iter().any(|scheme| url.starts_with(scheme));
    if !is_web || url.len() > LONGEST_URL || !is_plain_text(url) || url.chars().any(char::is_whitespace) {
        let detail = format!(
            "Url must begin with https:// or http:// and have at most {LONGEST_URL} bytes; it is {}",
            shown(url)
        );
        return Err(InvalidAttribute::new(attribute, detail));
    }
    Ok(())
}

impl TaskResult {
    pub fn is_mandatory(&self) -> bool {
        self.enforcement == TaskEnforcement::Mandatory
    }

    pub(crate) fn enter(&mut self, status: TaskResultStatus, now: Timestamp) {
        if self.status != status {
            self.timestamps.insert(format!("{status}-at").as_str().into(), now);
        }
        self.status = status;
        self.updated_at = now;
        if status.is_final() {
            self.next_attempt_at = None;
        }
    }

    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.begun_at = Some(now);
        self.updated_at = now;
    }

    /// The time at which a server has to look at it: to ask, or to give it up. `None` if it is not being asked.
    pub fn due_at(&self) -> Option<Timestamp> {
        let begun = self.begun_at.filter(|_| !self.status.is_final())?;
        if self.status == TaskResultStatus::Pending {
            return Some(self.next_attempt_at.unwrap_or(begun));
        }
        Some(self.gives_up_at(begun))
    }

    fn gives_up_at(&self, begun: Timestamp) -> Timestamp {
        let later = |since: Timestamp, by| since.checked_add(by).unwrap_or(Timestamp::MAX);
        later(self.heard_at.unwrap_or(begun), SILENCE_TIMEOUT).min(later(begun, TASK_TIMEOUT))
    }

    /// True if it is to be asked now.
    pub fn is_to_be_asked(&self, now: Timestamp) -> bool {
        self.status == TaskResultStatus::Pending && self.due_at().is_some_and(|due| due <= now)
    }

    /// Notes what came of a request.
    pub fn note_request(&mut self, outcome: &RequestOutcome, now: Timestamp) {
        if self.status != TaskResultStatus::Pending || self.begun_at.is_none() {
            return;
        }
        match outcome {
            RequestOutcome::Accepted => {
                self.heard_at = Some(now);
                self.next_attempt_at = None;
                self.enter(TaskResultStatus::Running, now);
            }
            RequestOutcome::Failed(why) if self.attempts + 1 < MAX_REQUESTS => {
                self.attempts += 1;
                let delay = FIRST_RETRY_DELAY * 2_i32.saturating_pow(self.attempts - 1);
                self.next_attempt_at = Some(now.checked_add(delay).unwrap_or(Timestamp::MAX));
                self.message = as_plain_text(why, LONGEST_MESSAGE);
                self.updated_at = now;
            }
            RequestOutcome::Failed(why) | RequestOutcome::Refused(why) => {
                self.attempts += 1;
                self.message = as_plain_text(why, LONGEST_MESSAGE);
                self.enter(TaskResultStatus::Errored, now);
            }
        }
    }

    /// Gives the task up, if it said nothing for too long.
    pub fn note_silence(&mut self, now: Timestamp) {
        let Some(begun) = self.begun_at.filter(|_| self.status == TaskResultStatus::Running) else { return };
        if now < self.gives_up_at(begun) {
            return;
        }
        let in_all = now.duration_since(begun) >= TASK_TIMEOUT;
        self.message = match in_all {
            true => format!("The task did not end within {} minutes", TASK_TIMEOUT.as_mins()),
            false => format!("The task said nothing for {} minutes", SILENCE_TIMEOUT.as_mins()),
        };
        self.enter(TaskResultStatus::Errored, now);
    }

    /// Takes an answer in. The same answer again changes nothing; another one after the last is refused.
    pub fn answer(
        &mut self,
        answer: &TaskAnswer,
        outcomes: Option<StoredOutcomes>,
        now: Timestamp,
    ) -> Result<(), AnswerRefused> {
        if self.status.is_final() {
            return if self.status == answer.status { Ok(()) } else { Err(AnswerRefused(self.status)) };
        }
        if self.begun_at.is_none() {
            return Err(AnswerRefused(self.status));
        }
        self.heard_at = Some(now);
        if let Some(message) = &answer.message {
            self.message.clone_from(message);
        }
        if answer.url.is_some() {
            self.url.clone_from(&answer.url);
        }
        if outcomes.is_some() {
            self.outcomes = outcomes;
        }
        self.next_attempt_at = None;
        self.enter(answer.status, now);
        Ok(())
    }
}

/// The place of a result among all of its run's: it says in which stage it is.
fn place(stage: StageKind, index: usize) -> usize {
    stage as usize * MAX_TASKS_OF_STAGE + index
}

impl Run {
    /// The id of a result: the run's own characters, a little changed.
    pub fn result_id(&self, stage: StageKind, index: usize) -> TaskResultId {
        TaskResultId::from_characters(&id::turned(self.id.to_bytes(), place(stage, index) + 1))
            .expect("turned characters are legal")
    }
}

/// Where a result is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ResultPlace {
    pub run: RunId,
    pub stage: StageKind,
    pub index: usize,
}

impl ResultPlace {
    pub fn result(self, run: &Run) -> Option<&TaskResult> {
        run.stage(self.stage)?.results.get(self.index)
    }
}

impl OrganizationState {
    /// The place of a result, if its run is there.
    pub fn place_of_result(&self, id: TaskResultId) -> Option<ResultPlace> {
        let places = StageKind::ALL.into_iter().flat_map(|stage| (0..MAX_TASKS_OF_STAGE).map(move |at| (stage, at)));
        places.into_iter().find_map(|(stage, index)| {
            let characters = id::turned(id.to_bytes(), id::MAX_TURNS - (place(stage, index) + 1));
            let run = self.runs.get(&RunId::from_characters(&characters).ok()?)?;
            let found = ResultPlace { run: run.id, stage, index };
            found.result(run).map(|_| found)
        })
    }

    /// The results that a server has to look at now.
    pub fn due_results(&self, now: Timestamp) -> Vec<ResultPlace> {
        let mut due = Vec::new();
        for run in self.runs.by().tasks_due.iter().take_while(|run| run.tasks_due_at().is_some_and(|at| at <= now)) {
            for stage in run.stages.iter().filter(|stage| stage.status == TaskStageStatus::Running) {
                let results = stage.results.iter().enumerate();
                let waiting = results.filter(|(_, result)| result.due_at().is_some_and(|at| at <= now));
                due.extend(waiting.map(|(index, _)| ResultPlace { run: run.id, stage: stage.stage, index }));
            }
        }
        due
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    pub(crate) fn given_result(number: u8, enforcement: TaskEnforcement) -> TaskResult {
        TaskResult {
            task: RunTaskId::from_random([number; 16]),
            workspace_task: None,
            task_name: format!("task-{number}"),
            task_url: "https://task.test/".to_owned(),
            enforcement,
            status: TaskResultStatus::Pending,
            message: String::new(),
            url: None,
            timestamps: SmallMap::default(),
            created_at: at(0),
            updated_at: at(0),
            begun_at: None,
            heard_at: None,
            attempts: 0,
            next_attempt_at: None,
            outcomes: None,
        }
    }

    fn begun() -> TaskResult {
        let mut result = given_result(1, TaskEnforcement::Mandatory);
        assert_eq!(result.due_at(), None, "its turn has not come");
        result.begin(at(0));
        result
    }

    fn answer(status: TaskResultStatus) -> TaskAnswer {
        TaskAnswer { status, message: Some("fine".to_owned()), url: None }
    }

    #[test]
    fn a_task_is_asked_again_until_it_hears_and_given_up_in_the_end() {
        let mut result = begun();
        assert!(result.is_to_be_asked(at(0)));
        let mut delays = Vec::new();
        let mut now = at(0);
        while result.status == TaskResultStatus::Pending {
            result.note_request(&RequestOutcome::Failed("no route".to_owned()), now);
            if let Some(next) = result.next_attempt_at {
                assert!(!result.is_to_be_asked(now) && result.is_to_be_asked(next));
                delays.push(next.duration_since(now).as_secs());
                now = next;
            }
        }
        assert_eq!(delays, [2, 4, 8, 16, 32]);
        assert_eq!((result.status, result.message.as_str()), (TaskResultStatus::Errored, "no route"));
        let mut refused = begun();
        refused.note_request(&RequestOutcome::Refused("404".to_owned()), at(0));
        assert_eq!(refused.status, TaskResultStatus::Errored, "asking again is of no use");
    }

    #[test]
    fn silence_ends_after_ten_minutes_and_everything_after_sixty() {
        let mut result = begun();
        result.note_request(&RequestOutcome::Accepted, at(5));
        assert_eq!((result.status, result.due_at()), (TaskResultStatus::Running, Some(at(605))));
        result.note_silence(at(604));
        assert_eq!(result.status, TaskResultStatus::Running);
        let mut silent = result.clone();
        silent.note_silence(at(605));
        assert_eq!(
            (silent.status, silent.message.as_str()),
            (TaskResultStatus::Errored, "The task said nothing for 10 minutes")
        );
        for minutes in (9..60).step_by(9) {
            result.answer(&answer(TaskResultStatus::Running), None, at(minutes * 60)).expect("in time");
            result.note_silence(at(minutes * 60 + 1));
            assert_eq!(result.status, TaskResultStatus::Running);
        }
        result.note_silence(at(60 * 60));
        assert_eq!(
            (result.status, result.message.as_str()),
            (TaskResultStatus::Errored, "The task did not end within 60 minutes")
        );
    }

    #[test]
    fn an_answer_counts_once() {
        let mut result = begun();
        result.answer(&answer(TaskResultStatus::Running), None, at(1)).expect("it may be faster than the note");
        result.note_request(&RequestOutcome::Failed("the answer got lost".to_owned()), at(2));
        assert_eq!((result.status, result.message.as_str()), (TaskResultStatus::Running, "fine"));
        result.answer(&answer(TaskResultStatus::Passed), None, at(3)).expect("in time");
        let passed = result.clone();
        result.answer(&answer(TaskResultStatus::Passed), None, at(4)).expect("it is so already");
        assert_eq!(result, passed);
        let refused = result.answer(&answer(TaskResultStatus::Failed), None, at(5));
        assert_eq!(refused, Err(AnswerRefused(TaskResultStatus::Passed)));
        assert_eq!(result.due_at(), None);
        let early = given_result(1, TaskEnforcement::Advisory).answer(&answer(TaskResultStatus::Passed), None, at(1));
        assert_eq!(early, Err(AnswerRefused(TaskResultStatus::Pending)), "nobody has asked it");
    }

    #[test]
    fn an_answer_says_what_a_task_can_say() {
        let checked = |status: Option<&str>, url: &str| {
            TaskAnswer::checked(status, Some("a\u{202e}b".to_owned()), Some(url.to_owned()))
                .map_err(|error| error.detail)
        };
        assert_eq!(checked(Some("passed"), "").expect("legal").message.as_deref(), Some("ab"));
        assert!(checked(Some("running"), "https://a.test/x").is_ok());
        for status in [None, Some("errored"), Some("pending"), Some("PASSED")] {
            assert!(checked(status, "").expect_err("refused").contains("one of running, passed, failed"), "{status:?}");
        }
        for url in ["javascript:alert(1)", "ftp://a", "https://a b", "//a.test"] {
            assert!(checked(Some("passed"), url).expect_err("refused").starts_with("Url must begin with"), "{url}");
        }
    }
}
