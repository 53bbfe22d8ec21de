//! Outcomes: the details that a task sends with its result. They may be large, so they lie in a blob.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use taco_domain::attribute::as_plain_text;
use taco_domain::task_result::{StoredOutcomes, TaskAnswer, TaskResultId};
use taco_ledger::{Key, LedgerName, layout};

use crate::blob_error::blob_error;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;

/// Most bytes of an answer with its outcomes.
pub const LARGEST_OUTCOMES: usize = 5 * 1024 * 1024;

/// Maximum number of outcomes of one result.
const MAX_OUTCOMES: usize = 500;
const MAX_TAGS: usize = 20;
const LONGEST_LABEL: usize = 100;
const LONGEST_DESCRIPTION: usize = 1024;

/// A detail of a result.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct TaskOutcome {
    pub outcome_id: String,
    pub description: String,
    /// Markdown, which is shown as text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Labels by what they are about, such as a severity.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, Vec<OutcomeTag>>,
}

/// A label with a colour.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(default)]
pub struct OutcomeTag {
    pub label: String,
    /// One of none, info, warning, error.
    pub level: String,
}

impl TaskOutcome {
    /// The outcome as it is kept: what is too long is cut, what misleads is left out.
    fn checked(mut self, index: usize) -> Result<Self, Error> {
        let invalid = |detail: String| {
            let pointer = format!("/data/relationships/outcomes/data/{index}/attributes");
            Err(Error::Invalid { pointer, detail })
        };
        if self.outcome_id.is_empty() || self.description.is_empty() {
            return invalid("An outcome must have an outcome-id and a description".to_owned());
        }
        self.outcome_id = as_plain_text(&self.outcome_id, LONGEST_LABEL);
        self.description = as_plain_text(&self.description, LONGEST_DESCRIPTION);
        self.body = as_plain_text(&self.body, usize::MAX);
        let url = self.url.take().filter(|url| !url.is_empty());
        self.url = TaskAnswer::checked(Some("passed"), None, url)?.url;
        if self.tags.len() > MAX_TAGS || self.tags.values().any(|tags| tags.len() > MAX_TAGS) {
            return invalid(format!("An outcome has at most {MAX_TAGS} tags, and a tag as many labels"));
        }
        let label = |text: &str| as_plain_text(text, LONGEST_LABEL);
        let tag = |tag: &OutcomeTag| {
            let known = ["info", "warning", "error"].into_iter().find(|level| *level == tag.level).unwrap_or("none");
            OutcomeTag { label: label(&tag.label), level: known.to_owned() }
        };
        self.tags = self.tags.iter().map(|(key, tags)| (label(key), tags.iter().map(tag).collect())).collect();
        Ok(self)
    }
}

/// Outcomes of a task in the bucket.
pub(crate) fn outcomes_key(ledger: &LedgerName, blob: &str) -> Key {
    layout::blob(ledger, "task-outcomes", blob)
}

/// The outcomes as they are stored. The same ones have the same name, so that a repeated answer stores nothing new.
pub(crate) fn stored_outcomes(id: TaskResultId, sent: &[TaskOutcome]) -> Result<(StoredOutcomes, Bytes), Error> {
    if sent.len() > MAX_OUTCOMES {
        let detail = format!("{} outcomes are too many (maximum is {MAX_OUTCOMES})", sent.len());
        return Err(Error::Invalid { pointer: "/data/relationships/outcomes/data".to_owned(), detail });
    }
    let checked = sent.iter().enumerate().map(|(index, outcome)| outcome.clone().checked(index));
    let outcomes: Vec<TaskOutcome> = checked.collect::<Result<_, _>>()?;
    let bytes = serde_json::to_vec(&outcomes).map_err(|error| Error::invalid("outcomes", error.to_string()))?;
    let sha256 = hex::encode(Sha256::digest(&bytes));
    let stored = StoredOutcomes {
        blob: format!("{}-{}", id.characters(), &sha256[..16]),
        size: bytes.len() as u64,
        count: u32::try_from(outcomes.len()).unwrap_or(u32::MAX),
        sha256,
    };
    Ok((stored, bytes.into()))
}

pub(crate) async fn read_outcomes(
    control_plane: &ControlPlane,
    org: &OrganizationSnapshot,
    stored: &StoredOutcomes,
) -> Result<Vec<TaskOutcome>, Error> {
    let key = outcomes_key(org.ledger.name(), &stored.blob);
    // What was left out and escaped makes it larger or smaller than it came.
    let found = control_plane.blobs().read_bytes(&key, 2 * LARGEST_OUTCOMES).await.map_err(blob_error)?;
    let bytes = found.ok_or(Error::NotFound("object"))?;
    serde_json::from_slice(&bytes).map_err(|_| Error::NotFound("object"))
}
