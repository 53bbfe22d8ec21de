//! Requests to tasks: what is to be asked was put in the transaction that changed the run, and any server asks. The servers
//! agree on who does without asking each other; two that ask the same for a moment send the same result id, and the ledger
//! remembers one outcome.

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::payload::DELIVERY_HEADER;
use taco_domain::project::Project;
use taco_domain::run::Run;
use taco_domain::run_task::RunTask;
use taco_domain::task_request::{Capabilities, TASK_SIGNATURE_HEADER, TaskRequest, task_signature};
use taco_domain::task_result::{RequestOutcome, ResultPlace, TaskResult, TaskResultId};
use taco_domain::task_stage::StageKind;
use taco_domain::workspace::Workspace;
use taco_ledger::{Transaction, beacon};

use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::courier::{Reply, Webhook};
use crate::error::Error;
use crate::privileged::Privileged;
use crate::task_results::change_result;

/// Something to do about a task: to ask it, or to give it up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DueTask {
    pub id: TaskResultId,
    pub place: ResultPlace,
    /// Requests that failed.
    pub attempts: u32,
    /// Number of living servers whose turn comes before this one's.
    pub rank: usize,
}

/// What was done about a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttendedTask {
    /// It has heard, and works on its answer.
    Asked,
    /// It did not hear, and is asked again.
    Failed,
    /// It is given up.
    GivenUp,
    /// Somebody else was faster, or nobody waits for it any more.
    Superseded,
}

impl AttendedTask {
    fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Failed => "failed",
            Self::GivenUp => "given_up",
            Self::Superseded => "superseded",
        }
    }

    fn of(result: &TaskResult) -> Self {
        use taco_domain::task_result::TaskResultStatus as S;
        match result.status {
            S::Running => Self::Asked,
            S::Pending => Self::Failed,
            S::Errored => Self::GivenUp,
            S::Passed | S::Failed | S::Canceled | S::Unreachable => Self::Superseded,
        }
    }
}

/// Verbs without permission checks, for the server itself.
#[boxed]
impl Privileged {
    /// The tasks of an organization about which something is to be done now, as this server last saw the organization.
    pub fn due_tasks(&self, org: &OrganizationSnapshot) -> Vec<DueTask> {
        let state = org.last_seen();
        let due = |place: ResultPlace| {
            let run = state.runs.get(&place.run)?;
            let (id, attempts) = (run.result_id(place.stage, place.index), place.result(run)?.attempts);
            Some(DueTask { id, place, attempts, rank: self.rank_for_task(id, attempts) })
        };
        state.due_results(self.now()).into_iter().filter_map(due).collect()
    }

    /// As with notifications, the order of servers is another with each attempt.
    fn rank_for_task(&self, id: TaskResultId, attempts: u32) -> usize {
        let environment = &self.shared.environment;
        let weight = |server: &str| -> [u8; 32] { Sha256::digest(format!("{server} {id} {attempts}")).into() };
        let own = weight(&environment.server);
        let can = |features: &[String]| features.iter().any(|feature| feature == beacon::RUN_TASKS);
        let peers = environment.peers.list();
        peers.iter().filter(|peer| can(&peer.features) && weight(&peer.server) > own).count()
    }

    /// Asks a task that is to be asked, or gives one up that said nothing in time, and commits what came of it.
    pub async fn attend_task(&self, org: &OrganizationSnapshot, due: DueTask) -> Result<AttendedTask, Error> {
        let mut org = org.clone();
        org.state = org.last_seen();
        let now = self.now();
        let Some(run) = org.state.runs.get(&due.place.run).cloned() else { return Ok(AttendedTask::Superseded) };
        let Some(result) = due.place.result(&run) else { return Ok(AttendedTask::Superseded) };
        let outcome = match result.is_to_be_asked(now) {
            true => Some(self.ask(&org, &run, due, result).await?),
            false => None,
        };
        // An answer may have come meanwhile, and the clock has moved on.
        let now = self.now();
        let decide = move |tx: &mut Transaction<OrganizationState>| note(tx, due, outcome.as_ref(), now);
        let attended = org.commit(ControlPlane::own_intent("task.ask"), decide).await?;
        metrics::counter!("taco_task_requests_total", "outcome" => attended.as_str()).increment(1);
        if attended == AttendedTask::GivenUp {
            tracing::warn!(
                event = "run_task_given_up", run = %due.place.run, result = %due.id, stage = %due.place.stage,
                "a run task gave no answer and is given up; the page of the run says why"
            );
        }
        Ok(attended)
    }

    async fn ask(
        &self,
        org: &OrganizationSnapshot,
        run: &Run,
        due: DueTask,
        result: &TaskResult,
    ) -> Result<RequestOutcome, Error> {
        let Some(task) = org.state.run_tasks.get(&result.task) else {
            return Ok(RequestOutcome::Refused("The task was deleted before it was asked".to_owned()));
        };
        let Some(workspace) = org.state.workspaces.get(&run.workspace) else {
            return Ok(RequestOutcome::Refused("The workspace was deleted".to_owned()));
        };
        let body = self.task_request(org, run, workspace, due, result).into_body();
        let key = match self.task_key(task) {
            Ok(key) => key,
            Err(Error::Sealed(why)) => return Ok(RequestOutcome::Refused(why)),
            Err(other) => return Err(other),
        };
        let reply = self.post_to_task(task, key.as_deref(), body, due.id.to_string()).await;
        Ok(outcome_of(&reply))
    }

    fn task_request(
        &self,
        org: &OrganizationSnapshot,
        run: &Run,
        workspace: &Workspace,
        due: DueTask,
        result: &TaskResult,
    ) -> TaskRequest {
        let site = &self.shared.notifications.site_url;
        let organization = org.entry().name.to_string();
        let pages = format!("{site}/app/{organization}");
        let workspace_url = format!("{pages}/workspaces/{}", workspace.name);
        let project: Option<&Project> = org.state.projects.get(&workspace.project);
        let configuration = run.configuration_version;
        let directory = &workspace.working_directory;
        TaskRequest {
            payload_version: 1,
            stage: due.place.stage.as_str().to_owned(),
            access_token: self.issue_task_token(due.id, result.begun_at.unwrap_or_else(|| self.now())),
            capabilities: Capabilities::default(),
            configuration_version_download_url: Some(format!(
                "{site}/api/v2/configuration-versions/{configuration}/download"
            )),
            configuration_version_id: Some(configuration.to_string()),
            is_speculative: run.options.plan_only,
            plan_json_api_url: (due.place.stage != StageKind::PrePlan)
                .then(|| format!("{site}/api/v2/plans/{}/json-output", run.plan_id())),
            project_id: workspace.project.to_string(),
            project_name: project.map(|project| project.name.to_string()).unwrap_or_default(),
            project_app_url: format!("{pages}/projects/{}", workspace.project),
            run_app_url: format!("{workspace_url}/runs/{}", run.id),
            run_created_at: run.created_at.to_string(),
            run_created_by: org.name_of(&run.created_by),
            run_id: run.id.to_string(),
            run_message: run.options.message.clone(),
            task_result_callback_url: format!("{site}/api/v2/task-results/{}/callback", due.id),
            task_result_enforcement_level: result.enforcement.as_str().to_owned(),
            task_result_id: due.id.to_string(),
            vcs_branch: None,
            vcs_commit_url: None,
            vcs_pull_request_url: None,
            vcs_repo_url: None,
            workspace_app_url: workspace_url,
            workspace_id: workspace.id.to_string(),
            workspace_name: workspace.name.to_string(),
            workspace_working_directory: Some(directory.to_string()).filter(|directory| !directory.is_empty()),
            organization_name: organization,
        }
    }
}

#[boxed]
impl ControlPlane {
    /// Sends a body to a task, signed. `attempt` is the same whenever the same is sent again.
    pub(crate) async fn post_to_task(
        &self,
        task: &RunTask,
        key: Option<&str>,
        body: Vec<u8>,
        attempt: String,
    ) -> Reply {
        let site = &self.shared.notifications.site_url;
        let headers = vec![
            ("content-type", "application/json".to_owned()),
            ("user-agent", format!("TFC/1.0 (+{site}; TFC)")),
            (DELIVERY_HEADER, attempt),
            (TASK_SIGNATURE_HEADER, task_signature(key, &body)),
        ];
        self.shared.notifications.courier.post(Webhook { url: task.url.clone(), headers, body }).await
    }
}

/// What an answer to a request means: 200 is heard, trouble may pass, everything else will not.
fn outcome_of(reply: &Reply) -> RequestOutcome {
    match reply.code {
        Some(200) => RequestOutcome::Accepted,
        Some(code @ (408 | 425 | 429 | 500..=599)) => {
            RequestOutcome::Failed(format!("The task answered the request with {code}; expected 200"))
        }
        Some(code) => RequestOutcome::Refused(format!("The task answered the request with {code}; expected 200")),
        None => RequestOutcome::Failed(format!("The request did not get through: {}", reply.body)),
    }
}

/// Notes what came of an attempt, unless another was noted meanwhile.
fn note(
    tx: &mut Transaction<OrganizationState>,
    due: DueTask,
    outcome: Option<&RequestOutcome>,
    now: Timestamp,
) -> Result<AttendedTask, Error> {
    let before = tx.state().runs.get(&due.place.run).and_then(|run| due.place.result(run)).cloned();
    let Some(before) = before.filter(|result| result.attempts == due.attempts) else {
        return Ok(AttendedTask::Superseded);
    };
    change_result(tx, due.place, now, |result| {
        match outcome {
            Some(outcome) => result.note_request(outcome, now),
            None => result.note_silence(now),
        }
        Ok(())
    })?;
    let after = tx.state().runs.get(&due.place.run).and_then(|run| due.place.result(run));
    Ok(after.filter(|after| **after != before).map_or(AttendedTask::Superseded, AttendedTask::of))
}
