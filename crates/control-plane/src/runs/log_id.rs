//! Where a phase's log is in the bucket.

use taco_domain::id::{ApplyId, PlanId, RunId};
use taco_domain::phase::PhaseKind;

/// Id of a phase's log in the bucket.
pub(crate) fn log_id(run: RunId, kind: PhaseKind) -> String {
    let characters = run.characters();
    match kind {
        PhaseKind::Plan => PlanId::from_characters(characters).map(|id| id.to_string()),
        PhaseKind::Apply => ApplyId::from_characters(characters).map(|id| id.to_string()),
    }
    .expect("every id has these characters")
}
