//! What run tasks were asked about a run, and what they answered.

use taco_control_plane::{Error, OutcomeTag, RunView, TaskOutcome, TaskResultView, TaskStageView};

use crate::Web;
use crate::badge::Badge;
use crate::text::{Moment, plain};

/// Outcomes of one result that the page shows; the task's own page has all.
const MAX_OUTCOMES: usize = 50;

/// Characters of an outcome's body that the page shows.
const MAX_BODY_CHARS: usize = 10_000;

/// One stage.
pub(crate) struct TaskStageSection {
    pub(crate) name: &'static str,
    pub(crate) badge: Badge,
    pub(crate) results: Vec<TaskRow>,
}

/// The answer of one task.
pub(crate) struct TaskRow {
    pub(crate) name: String,
    pub(crate) badge: Badge,
    pub(crate) level: &'static str,
    pub(crate) message: String,
    /// Where the task says more.
    pub(crate) url: Option<String>,
    pub(crate) since: Option<Moment>,
    pub(crate) outcomes: Vec<OutcomeRow>,
    /// Number of outcomes that are not shown.
    pub(crate) more: usize,
}

/// A detail of an answer.
pub(crate) struct OutcomeRow {
    pub(crate) id: String,
    pub(crate) description: String,
    pub(crate) body: String,
    pub(crate) url: Option<String>,
    pub(crate) tags: Vec<TagRow>,
}

pub(crate) struct TagRow {
    pub(crate) text: String,
    pub(crate) tone: &'static str,
}

/// The stages of a run, in the order in which their turns come.
pub(crate) async fn task_stages(web: &Web, view: &RunView) -> Result<Vec<TaskStageSection>, Error> {
    let mut sections = Vec::new();
    for stage in view.task_stages() {
        sections.push(TaskStageSection::of(web, &stage).await?);
    }
    Ok(sections)
}

impl TaskStageSection {
    async fn of(web: &Web, view: &TaskStageView) -> Result<Self, Error> {
        let mut results = Vec::new();
        for result in view.results() {
            results.push(TaskRow::of(web, &result).await?);
        }
        let (name, badge) = (view.stage.stage.in_words(), Badge::of_task_stage(view.stage.status));
        Ok(Self { name, badge, results })
    }
}

impl TaskRow {
    async fn of(web: &Web, view: &TaskResultView) -> Result<Self, Error> {
        let result = view.result()?;
        let outcomes = web.control_plane.task_outcomes(view).await?;
        Ok(Self {
            name: plain(&result.task_name),
            badge: Badge::of_task_result(result.status),
            level: result.enforcement.as_str(),
            message: plain(&result.message),
            url: result.url.clone(),
            since: result.begun_at.map(Moment),
            more: outcomes.len().saturating_sub(MAX_OUTCOMES),
            outcomes: outcomes.iter().take(MAX_OUTCOMES).map(OutcomeRow::of).collect(),
        })
    }
}

impl OutcomeRow {
    fn of(outcome: &TaskOutcome) -> Self {
        let tag = |key: &str, tag: &OutcomeTag| TagRow {
            text: format!("{}: {}", plain(key), plain(&tag.label)),
            tone: match tag.level.as_str() {
                "error" => "bad",
                "warning" => "asks",
                "info" => "busy",
                _ => "calm",
            },
        };
        let tags = outcome.tags.iter().flat_map(|(key, tags)| tags.iter().map(move |one| tag(key, one)));
        Self {
            id: plain(&outcome.outcome_id),
            description: plain(&outcome.description),
            body: plain(&outcome.body).chars().take(MAX_BODY_CHARS).collect(),
            url: outcome.url.clone(),
            tags: tags.collect(),
        }
    }
}
