//! Another run like one that is over: the same configuration, options and variables.

use taco_boxed::boxed;
use taco_domain::id::RunId;
use taco_domain::permission::Action;
use taco_domain::run::{RunSource, RunVariable};
use taco_domain::run_request::{RunRequest, SentRunVariable, check_retry};

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::run_flow::runs_refused;
use crate::runs::{RunView, configuration_for};

#[boxed]
impl ControlPlane {
    /// Starts a run like another one that is over. It takes what starting any run takes.
    pub async fn retry_run(&self, caller: &Caller, id: RunId) -> Result<RunView, Error> {
        let view = self.run(caller, id).await?;
        caller.require(Action::QueuePlan, view.resource(), "run")?;
        check_retry(view.run.status).map_err(|refusal| Error::Conflict(refusal.to_string()))?;
        let variables = view.run.options.variables.iter().map(|variable| {
            let value = self.unseal(&RunVariable::seal_name(id, &variable.key), &variable.sealed)?;
            Ok(SentRunVariable { key: variable.key.clone(), value })
        });
        let variables = variables.collect::<Result<Vec<_>, Error>>()?;
        let may_apply = caller.may(Action::ApplyRun, view.resource()).allowed;
        let request = RunRequest::retry_of(&view.run, variables, may_apply);
        self.create_run(caller, request, RunSource::Page).await
    }

    /// Reason why the caller cannot start such a run; `None` if they can.
    pub fn retry_refusal(&self, caller: &Caller, view: &RunView) -> Option<String> {
        let right = caller.may(Action::QueuePlan, view.resource());
        if !right.allowed {
            return Some(right.reason.into_owned());
        }
        if let Err(refusal) = check_retry(view.run.status) {
            return Some(refusal.to_string());
        }
        let (state, workspace) = (&view.org.state, &view.workspace);
        let checked = state.check_runs_start(workspace).map_err(runs_refused);
        let usable = || configuration_for(state, workspace, Some(view.run.configuration_version)).map(|_| ());
        checked.and_then(|()| usable()).err().map(|why| why.to_string())
    }
}
