//! Task stages of runs, for those who may see the runs.

use taco_boxed::boxed;
use taco_domain::permission::Actor;
use taco_domain::run::Run;
use taco_domain::task_stage::TaskStageId;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::runs::RunView;
use crate::stage_views::{TaskStageView, not_found};
use crate::task_tokens::not_asked_error;

const WHAT: &str = "task stage";

#[boxed]
impl ControlPlane {
    pub async fn task_stage(&self, caller: &Caller, id: TaskStageId) -> Result<TaskStageView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        let org = self.with_history(org, id).await?;
        let (run, kind) =
            org.state.run_with_stage(id).map(|(run, stage)| (run.id, stage.stage)).ok_or(Error::NotFound(WHAT))?;
        let view = self.run(caller, run).await.map_err(|error| not_found(error, WHAT))?;
        view.task_stage(kind).ok_or(Error::NotFound(WHAT))
    }

    /// The organization in which a task is asked, for that task: it may know of nothing else there.
    pub(crate) async fn organization_of_task(
        &self,
        caller: &Caller,
        what: &'static str,
    ) -> Result<OrganizationSnapshot, Error> {
        match caller.actor {
            Actor::RunTask { organization, .. } => self.open_organization(&caller.site, organization).await,
            _ => Err(Error::NotFound(what)),
        }
    }

    /// The run that a task is asked about, for that task. Once it has answered, there is nothing to look at any more.
    pub(crate) async fn run_asked_about(&self, caller: &Caller) -> Result<RunView, Error> {
        const WHAT: &str = "run";
        let org = self.organization_of_task(caller, WHAT).await?;
        let Actor::RunTask { run, result, .. } = caller.actor else { return Err(Error::NotFound(WHAT)) };
        let found = org.get::<Run>(&run).map_err(|error| not_found(error, WHAT))?.clone();
        let place = org.state.place_of_result(result);
        let is_open = place.and_then(|place| place.result(&found)).is_some_and(|result| !result.status.is_final());
        if is_open { RunView::of(org, found) } else { Err(not_asked_error()) }
    }
}
