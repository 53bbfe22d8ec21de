//! What agents do: take a phase, fetch what it needs, and say how it ended. What they send meanwhile is in
//! `phase_uploads`; what becomes of a silent one's phases in `phase_losses`.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use taco_domain::engine::Engine;
use taco_domain::global_queue::{Reach, ready_phases};
use taco_domain::id::{OrganizationId, RunId};
use taco_domain::permission::Actor;
use taco_domain::phase::{Executor, PhaseKind, ResourceCounts};
use taco_domain::run::{Run, RunSource};
use taco_domain::run_status::{RunEvent, RunStatus};
use taco_domain::variable_precedence::JobVariable;
use taco_domain::workspace::Workspace;
use taco_domain::{Author, OrganizationState};
use taco_ledger::bucket::Download;
use taco_ledger::{Key, layout};

use crate::caller::{Ahead, Caller, RequestInfo};
use crate::control_plane::{ControlPlane, OpenOrganization};
use crate::error::Error;
use crate::phase_tokens::{Attempt, over};
use crate::run_flow::settle;
use crate::state_blobs::blob_error;

const WHAT: &str = "phase";

/// A client that follows a plan has looked at its run again by then.
const LOOKS_AGAIN_WITHIN: SignedDuration = SignedDuration::from_secs(5);

/// A phase that an agent has from now on, and all that it needs to know.
#[derive(Clone)]
pub struct TakenPhase {
    pub attempt: Attempt,
    pub run: Run,
    pub workspace: Workspace,
    pub organization: String,
    pub token: String,
    pub timeout: SignedDuration,
    pub has_state: bool,
    pub variables: Vec<JobVariable>,
    pub ssh_key: Option<String>,
}

/// Someone who comes with a phase's token: the attempt is theirs.
#[derive(Clone)]
pub struct PhaseCaller {
    pub attempt: Attempt,
    pub(crate) open: OpenOrganization,
    pub(crate) caller: Caller,
}

impl PhaseCaller {
    /// The run, if its attempt is still under way: nobody begins with one that was given up.
    fn run_under_way(&self) -> Result<&Run, Error> {
        let attempt = self.attempt;
        let run = self.open.state.runs.get(&attempt.run).ok_or(Error::NotFound(WHAT))?;
        match attempt.is_current_in(run) {
            true => Ok(run),
            false => Err(Error::Conflict(format!("{} {} of {} is over", attempt.kind, attempt.epoch, run.id))),
        }
    }
}

/// How a phase ended, as its agent tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PhaseOutcome {
    Planned { has_changes: bool, counts: ResourceCounts, generated_configuration: bool, engine: (Engine, String) },
    Applied { counts: ResourceCounts, engine: (Engine, String) },
    Errored { message: String, engine: Option<(Engine, String)> },
    Canceled,
}

impl ControlPlane {
    /// The organizations that exist. Agents within servers work for all of them.
    pub async fn all_organizations(&self) -> Result<Vec<OpenOrganization>, Error> {
        let site = self.read_site().await?;
        let mut all = Vec::new();
        for entry in site.organizations.iter() {
            all.push(self.open_organization(&site, entry.id).await?);
        }
        Ok(all)
    }

    /// One organization, for whoever schedules.
    pub async fn organization_to_schedule(&self, id: OrganizationId) -> Result<OpenOrganization, Error> {
        self.organization_at(id.home(), "organization").await
    }

    /// Gives the first phase of an organization's queue that is within `reach` to an agent; `None` if there is none.
    /// Of two agents that want it one gets it: taking it is a transaction.
    pub async fn take_phase(
        &self,
        open: &OpenOrganization,
        reach: Reach,
        executor: Executor,
    ) -> Result<Option<TakenPhase>, Error> {
        let now = self.now();
        let taken = open.commit(Self::own_intent("phase.take"), move |tx| {
            let state = tx.state();
            let Some((_, run)) = ready_phases(state, reach).next() else { return Ok(None) };
            let (mut run, kind) = run.taken(executor.clone(), now).map_err(illegal)?;
            let workspace = state.workspaces.get(&run.workspace).cloned().ok_or(Error::NotFound(WHAT))?;
            let current = state.current_state_version(&workspace);
            if kind == PhaseKind::Plan {
                run.planned_serial = current.map(|version| version.serial);
            }
            let has_state = current.is_some();
            tx.put(&run);
            Ok(Some((run, kind, workspace, has_state)))
        });
        let Some((run, kind, workspace, has_state)) = taken.await? else { return Ok(None) };
        let attempt = Attempt { run: run.id, kind, epoch: run.phase(kind).epoch };
        let timeout = self.phase_timeout(kind);
        let state = open.ledger.last_seen();
        Ok(Some(TakenPhase {
            attempt,
            organization: open.entry().name.to_string(),
            token: self.issue_phase_token(attempt, timeout),
            timeout,
            has_state,
            variables: self.variables_of(&state, &workspace, &run)?,
            ssh_key: self.ssh_key_of(&state, &workspace)?,
            run,
            workspace,
        }))
    }

    fn phase_timeout(&self, kind: PhaseKind) -> SignedDuration {
        match kind {
            PhaseKind::Plan => self.shared.timeouts.plan,
            PhaseKind::Apply => self.shared.timeouts.apply,
        }
    }

    /// Who comes with a phase's token, for a run's requests to the API.
    pub(crate) async fn actor_of_phase(
        &self,
        site: &taco_ledger::View<taco_domain::Site>,
        attempt: Attempt,
    ) -> Result<Actor, Error> {
        let entry = site.organization_at(attempt.run.home()).ok_or_else(over)?;
        let open = self.open_organization(site, entry.id).await?;
        let run = open.state.runs.get(&attempt.run).filter(|run| attempt.is_current_in(run)).ok_or_else(over)?;
        Ok(Actor::Run { organization: entry.id, run: run.id, workspace: run.workspace })
    }

    /// Recognises an agent's request about a phase. A late one about an apply that was given up is let in as well,
    /// as long as its run still holds the workspace: nobody else has, or ever will have, that apply.
    pub async fn phase_caller(&self, token: &str, request: RequestInfo) -> Result<PhaseCaller, Error> {
        let attempt = self.read_phase_token(token).unwrap_or_else(|| Err(over()))?;
        let gone = |error| if matches!(error, Error::NotFound(_)) { over() } else { error };
        let open = self.organization_at(attempt.run.home(), WHAT).await.map_err(gone)?;
        let run = open.state.runs.get(&attempt.run).ok_or_else(over)?;
        if !attempt.is_current_in(run) && !is_late_apply(&open.state, run, attempt) && !was_the_last(run, attempt) {
            return Err(Error::Conflict(format!(
                "{} {} of {} is over: the run is {} and its {} is at attempt {}",
                attempt.kind,
                attempt.epoch,
                run.id,
                run.status,
                attempt.kind,
                run.phase(attempt.kind).epoch
            )));
        }
        let actor = Actor::Run { organization: open.id(), run: run.id, workspace: run.workspace };
        let caller = Caller { actor, request, site: open.site().clone(), ahead: Ahead::default() };
        Ok(PhaseCaller { attempt, open, caller })
    }

    /// Recognises an agent's request to send a log, a plan or an outcome. Where this server last saw the attempt under way,
    /// it does not look again: what an attempt that was given up sends goes where nobody reads, and an outcome is
    /// decided by its transaction.
    pub async fn phase_sender(&self, token: &str, request: RequestInfo) -> Result<PhaseCaller, Error> {
        let attempt = self.read_phase_token(token).unwrap_or_else(|| Err(over()))?;
        if let Some(open) = self.organization_last_seen(attempt.run.home())
            && let Some(run) = open.state.runs.get(&attempt.run).filter(|run| attempt.is_current_in(run))
        {
            let actor = Actor::Run { organization: open.id(), run: run.id, workspace: run.workspace };
            let caller = Caller { actor, request, site: open.site().clone(), ahead: Ahead::default() };
            return Ok(PhaseCaller { attempt, open, caller });
        }
        self.phase_caller(token, request).await
    }

    /// The configuration's archive.
    pub async fn phase_configuration(&self, caller: &PhaseCaller) -> Result<Download, Error> {
        let (state, run) = (&caller.open.state, caller.run_under_way()?);
        let version = state.configuration_versions.get(&run.configuration_version);
        let version = version.filter(|version| version.is_usable()).ok_or(Error::NotFound("configuration"))?;
        let key = layout::blob(caller.open.ledger.name(), "configurations", &version.blob);
        self.download(&key).await
    }

    /// The workspace's state.
    pub async fn phase_state(&self, caller: &PhaseCaller) -> Result<Download, Error> {
        let (state, run) = (&caller.open.state, caller.run_under_way()?);
        let workspace = state.workspaces.get(&run.workspace).ok_or(Error::NotFound(WHAT))?;
        let version = state.current_state_version(workspace).ok_or(Error::NotFound("state"))?;
        self.read_state_bytes(&caller.open, version).await
    }

    /// The engine's plan file, for the apply.
    pub async fn phase_plan(&self, caller: &PhaseCaller) -> Result<Download, Error> {
        let run = caller.run_under_way()?;
        self.download(&plan_key(&caller.open, "plans", run.id, run.plan.epoch)).await
    }

    async fn download(&self, key: &Key) -> Result<Download, Error> {
        let found = self.blobs().read(key, None).await.map_err(|error| blob_error(error.into()))?;
        found.ok_or(Error::NotFound("object"))
    }

    /// How long an outcome should be kept back. With `-auto-approve` clients look at the run once more when they have
    /// shown its plan, and if it has failed by then they end without a word about its apply.
    pub fn wait_before_finish(&self, caller: &PhaseCaller, outcome: &PhaseOutcome) -> Duration {
        let run = caller.open.state.runs.get(&caller.attempt.run);
        let hurried = run.filter(|run| {
            let fails = caller.attempt.kind == PhaseKind::Apply && matches!(outcome, PhaseOutcome::Errored { .. });
            fails && run.options.auto_apply && matches!(run.source, RunSource::Cloud | RunSource::Terraform)
        });
        let Some(planned_at) = hurried.and_then(|run| run.plan.ended_at) else { return Duration::ZERO };
        let rest = LOOKS_AGAIN_WITHIN - self.now().duration_since(planned_at);
        Duration::try_from(rest.min(LOOKS_AGAIN_WITHIN)).unwrap_or_default()
    }

    /// Ends a phase, and starts whatever follows from that. Repeating it is harmless.
    pub async fn finish_phase(&self, caller: &PhaseCaller, outcome: PhaseOutcome) -> Result<Run, Error> {
        let (attempt, now) = (caller.attempt, self.now());
        let intent = caller.caller.intent("phase.finish");
        caller
            .open
            .commit(intent, move |tx| {
                let run = tx.state().runs.get(&attempt.run).cloned().ok_or(Error::NotFound(WHAT))?;
                if !attempt.is_current_in(&run) {
                    return match was_the_last(&run, attempt) {
                        // The answer to the first try was lost.
                        true => Ok(run),
                        false => Err(Error::Conflict(format!("{} of {} is over", attempt.kind, run.id))),
                    };
                }
                let run = with_outcome(run, attempt.kind, &outcome, now)?;
                let run = settle(tx, run, now)?;
                Ok(run)
            })
            .await
    }
}

/// Where what belongs to a plan lies in the bucket.
pub(crate) fn plan_key(open: &OpenOrganization, kind: &'static str, run: RunId, epoch: u64) -> Key {
    layout::blob(open.ledger.name(), kind, &format!("{}-{epoch}", run.characters()))
}

fn illegal(error: taco_domain::run_status::IllegalTransition) -> Error {
    Error::Conflict(error.to_string())
}

/// The apply was given up, and its run still holds the workspace.
fn is_late_apply(state: &OrganizationState, run: &Run, attempt: Attempt) -> bool {
    let holds = state.workspaces.get(&run.workspace).and_then(|workspace| workspace.lock.as_ref());
    attempt.kind == PhaseKind::Apply
        && run.apply.epoch == attempt.epoch
        && run.apply.losses > 0
        && holds.is_some_and(|lock| lock.holder == Author::Run(run.id))
}

/// The phase ended with this attempt.
fn was_the_last(run: &Run, attempt: Attempt) -> bool {
    let phase = run.phase(attempt.kind);
    phase.epoch == attempt.epoch && phase.status.is_final() && !phase.is_lost(attempt.epoch)
}

/// The run after its phase has ended.
fn with_outcome(run: Run, kind: PhaseKind, outcome: &PhaseOutcome, now: Timestamp) -> Result<Run, Error> {
    let by = Author::Taco;
    let mut run = run;
    let engine = match outcome {
        PhaseOutcome::Planned { engine, .. } | PhaseOutcome::Applied { engine, .. } => Some(engine),
        PhaseOutcome::Errored { engine, .. } => engine.as_ref(),
        PhaseOutcome::Canceled => None,
    };
    if let Some((engine, version)) = engine {
        run.options.engine = *engine;
        run.options.terraform_version.clone_from(version);
    }
    match outcome {
        PhaseOutcome::Canceled => run.after(RunEvent::Canceled, now, run.cancel.as_ref().map_or(by, |it| it.by)),
        PhaseOutcome::Errored { message, .. } => {
            run.phase_mut(kind).error = Some(message.clone());
            run.after(RunEvent::Failed, now, by)
        }
        PhaseOutcome::Planned { .. } if kind == PhaseKind::Apply => {
            return Err(Error::Conflict("an apply does not end with a plan".to_owned()));
        }
        PhaseOutcome::Applied { .. } if kind == PhaseKind::Plan => {
            return Err(Error::Conflict("a plan does not end with an apply".to_owned()));
        }
        PhaseOutcome::Planned { has_changes, counts, generated_configuration, .. } => {
            run.has_changes = Some(*has_changes);
            run.generated_configuration = *generated_configuration;
            run.plan.counts = *counts;
            let decided = run.after(plan_event(&run, *has_changes), now, by).map_err(illegal)?;
            if decided.status == RunStatus::Planned && decided.options.auto_apply {
                let author = decided.created_by;
                decided.after(RunEvent::Confirmed, now, author)
            } else {
                Ok(decided)
            }
        }
        PhaseOutcome::Applied { counts, .. } => {
            run.apply.counts = *counts;
            run.after(RunEvent::Applied, now, by)
        }
    }
    .map_err(illegal)
}

/// What a plan that found `has_changes` means for its run.
fn plan_event(run: &Run, has_changes: bool) -> RunEvent {
    let options = &run.options;
    let applicable = has_changes || options.allow_empty_apply;
    match () {
        () if options.plan_only || !applicable => RunEvent::PlanWasAll,
        () if options.save_plan => RunEvent::PlanSaved,
        () => RunEvent::PlanAwaitsDecision,
    }
}

/// What a run gets besides its configuration.
impl ControlPlane {
    fn variables_of(
        &self,
        state: &OrganizationState,
        workspace: &Workspace,
        run: &Run,
    ) -> Result<Vec<JobVariable>, Error> {
        let own = run.options.variables.iter().map(|variable| {
            let value = self.unseal(&run_variable_name(run.id, &variable.key), &variable.sealed)?;
            Ok((variable.key.clone(), value))
        });
        let own = own.collect::<Result<Vec<_>, Error>>()?;
        self.job_variables(state, workspace, &own)
    }

    fn ssh_key_of(&self, state: &OrganizationState, workspace: &Workspace) -> Result<Option<String>, Error> {
        let key = workspace.ssh_key.and_then(|id| state.ssh_keys.get(&id));
        key.map(|key| self.unseal(&key.id.to_string(), &key.sealed_value)).transpose()
    }
}

/// The name under which a run's own variable is sealed.
pub(crate) fn run_variable_name(run: RunId, key: &str) -> String {
    format!("{run} {key}")
}
