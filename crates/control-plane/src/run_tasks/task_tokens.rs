//! The tokens that tasks get with a request: they name the result and are signed, so nothing is stored. One opens what its
//! task has to see (the run's plan and configuration) until it has answered, and its own result for an hour at most.
//!
//! ```text
//! taco_task_<result>_<end>_<signature>
//! ```

use jiff::Timestamp;
use subtle::ConstantTimeEq;
use taco_domain::Site;
use taco_domain::permission::Actor;
use taco_domain::task_result::{TASK_TIMEOUT, TaskResultId};
use taco_ledger::View;

use crate::control_plane::ControlPlane;
use crate::error::Error;

const PREFIX: &str = "taco_task_";
const PURPOSE: &str = "task-token";

impl ControlPlane {
    /// For the request that asks for this result.
    pub(crate) fn issue_task_token(&self, result: TaskResultId, begun: Timestamp) -> String {
        let end = begun.checked_add(TASK_TIMEOUT).unwrap_or(Timestamp::MAX);
        let body = format!("{}_{}", result.characters(), end.as_second());
        format!("{PREFIX}{body}_{}", self.sign_task_token(&body))
    }

    /// The result that a text speaks for; `None` if it is no such token. Whether it is still asked for, the ledger knows.
    pub(crate) fn read_task_token(&self, text: &str) -> Option<Result<TaskResultId, Error>> {
        let (body, signature) = text.strip_prefix(PREFIX)?.rsplit_once('_')?;
        let genuine: bool = self.sign_task_token(body).as_bytes().ct_eq(signature.as_bytes()).into();
        let parse = || {
            let (characters, end) = body.split_once('_')?;
            let end: i64 = end.parse().ok()?;
            TaskResultId::from_characters(characters).ok().filter(|_| end > self.now().as_second())
        };
        Some(genuine.then(parse).flatten().ok_or_else(not_asked_error))
    }

    fn sign_task_token(&self, body: &str) -> String {
        self.hash_key().hash(PURPOSE, body).to_string()
    }

    /// Actor behind a task's token.
    pub(crate) async fn actor_of_task(&self, site: &View<Site>, result: TaskResultId) -> Result<Actor, Error> {
        let entry = site.organization_at(result.organization_prefix()).ok_or_else(not_asked_error)?;
        let org = self.open_organization(site, entry.id).await?;
        let place = org.state.place_of_result(result).ok_or_else(not_asked_error)?;
        let run = org.state.runs.get(&place.run).ok_or_else(not_asked_error)?;
        let is_asked = place.result(run).is_some_and(|result| result.begun_at.is_some());
        match is_asked {
            true => Ok(Actor::RunTask { organization: entry.id, run: run.id, workspace: run.workspace, result }),
            false => Err(not_asked_error()),
        }
    }
}

pub(crate) fn not_asked_error() -> Error {
    Error::Unauthorized("the task's token is not valid: nobody waits for its result any more".to_owned())
}
