//! Requests of agents: take a phase, fetch what it needs, and report how it ended. Uploads during a phase are in
//! `phase_uploads`; the phases of an agent that went silent are handled in `phase_losses`.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use taco_boxed::boxed;
use taco_domain::global_queue::{AgentScope, QueuePick, next_phase};
use taco_domain::graph::own_inputs::own_inputs;
use taco_domain::id::{AgentId, TokenId};
use taco_domain::permission::Actor;
use taco_domain::phase::{Executor, PhaseKind};
use taco_domain::phase_attempt::PhaseAttempt;
use taco_domain::phase_loss::{after_incomplete_apply, after_late_outcome};
use taco_domain::phase_outcome::PhaseOutcome;
use taco_domain::run::{Run, RunSource, RunVariable};
use taco_domain::variable_precedence::JobVariable;
use taco_domain::workspace::Workspace;
use taco_domain::{Author, OrganizationState};
use taco_ledger::bucket::Download;

use crate::agents::check_agent;
use crate::bound_values::{BoundValues, NotGiven, ReadOutputs, UnreadOutputs, with_bound};
use crate::caller::{Caller, PrefetchedOrganization, RequestInfo};
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::find::find;
use crate::log_id::log_id;
use crate::phase_tokens::attempt_over_error;
use crate::privileged::Privileged;
use crate::run_flow::{put_run_and_follow_up, put_run_and_follow_up_in};

const WHAT: &str = "phase";

/// A client that follows a plan has looked at its run again by then.
const LOOKS_AGAIN_WITHIN: SignedDuration = SignedDuration::from_secs(5);

/// A phase that an agent has from now on, and all that it needs to know.
#[derive(Clone)]
pub struct TakenPhase {
    pub attempt: PhaseAttempt,
    pub run: Run,
    pub workspace: Workspace,
    pub organization: String,
    /// The agent's.
    pub token: String,
    /// The run's own, for what runs in the phase.
    pub run_token: String,
    pub timeout: SignedDuration,
    pub has_state: bool,
    pub variables: Vec<JobVariable>,
    pub ssh_key: Option<String>,
}

/// An agent that wants a phase.
#[derive(Clone)]
pub struct PhaseRequest {
    pub reach: AgentScope,
    pub executor: Executor,
    /// The token of its pool with which it came; `None` for one within a server.
    pub token: Option<TokenId>,
    pub turn: QueuePick,
}

impl PhaseRequest {
    /// An agent within a server.
    pub fn within(agent: AgentId, name: &str) -> Self {
        let executor = Executor { agent, agent_name: name.to_owned(), pool: None };
        Self { reach: AgentScope::WithinServer, executor, token: None, turn: QueuePick::Head }
    }
}

/// Someone who comes with a phase's token: the attempt is theirs.
#[derive(Clone)]
pub struct PhaseCaller {
    pub attempt: PhaseAttempt,
    pub(crate) org: OrganizationSnapshot,
    pub(crate) caller: Caller,
}

impl PhaseCaller {
    fn run(&self) -> Result<&Run, Error> {
        find(&*self.org.state, &self.attempt.run, WHAT)
    }

    /// The run, if its attempt is still in progress: no agent begins with one that was given up.
    pub(crate) fn run_under_way(&self) -> Result<&Run, Error> {
        let (attempt, run) = (self.attempt, self.run()?);
        match run.is_current_attempt(attempt) {
            true => Ok(run),
            false => Err(is_over(attempt)),
        }
    }

    pub(crate) fn check_under_way(&self) -> Result<(), Error> {
        self.run_under_way().map(|_| ())
    }

    /// The run, if its attempt is under way or is an apply that was given up: of that, every upload is accepted. What
    /// has ended stays as it ended.
    pub(crate) fn run_not_ended(&self) -> Result<&Run, Error> {
        let (attempt, run) = (self.attempt, self.run()?);
        match run.is_current_attempt(attempt) || is_lost_apply(run, attempt) {
            true => Ok(run),
            false => Err(is_over(attempt)),
        }
    }

    /// Checks that its log can still grow: a late outcome ends it as any other does.
    pub(crate) fn check_log_is_open(&self) -> Result<(), Error> {
        let run = self.run_not_ended()?;
        if run.phase(self.attempt.phase).late_outcome.is_some() { Err(is_over(self.attempt)) } else { Ok(()) }
    }

    pub(crate) fn holds_workspace(&self, run: &Run) -> bool {
        let lock = self.org.state.workspaces.get(&run.workspace).and_then(|workspace| workspace.lock.as_ref());
        lock.is_some_and(|lock| lock.holder == Author::Run(run.id))
    }
}

/// Maps "not found" to the end of the attempt. A phase that just cannot be read goes on elsewhere.
fn gone(error: Error) -> Error {
    if matches!(error, Error::NotFound(_)) { attempt_over_error() } else { error }
}

#[boxed]
impl ControlPlane {
    fn phase_timeout(&self, kind: PhaseKind) -> SignedDuration {
        match kind {
            PhaseKind::Plan => self.shared.timeouts.plan,
            PhaseKind::Apply => self.shared.timeouts.apply,
        }
    }

    /// Actor behind a phase's token, for a run's requests to the API.
    pub(crate) async fn actor_of_phase(
        &self,
        site: &taco_ledger::View<taco_domain::Site>,
        attempt: PhaseAttempt,
    ) -> Result<Actor, Error> {
        let entry = site.organization_at(attempt.run.organization_prefix()).ok_or_else(attempt_over_error)?;
        let org = self.open_organization(site, entry.id).await?;
        let run = find::<Run, _>(&*org.state, &attempt.run, WHAT).map_err(gone)?;
        if !run.is_current_attempt(attempt) {
            return Err(attempt_over_error());
        }
        Ok(Actor::Run { organization: entry.id, run: run.id, workspace: run.workspace })
    }

    /// Recognises an agent's request about a phase. A late one about an apply that was given up is let in as well:
    /// nobody else has, or ever will have, that apply. So is one about a phase that ended with this attempt, whose agent
    /// may not have heard so.
    pub async fn phase_caller(&self, token: &str, request: RequestInfo) -> Result<PhaseCaller, Error> {
        let attempt = self.read_agents_token(token)?;
        let org = self.organization_unchecked(attempt.run.organization_prefix(), WHAT).await.map_err(gone)?;
        let run = find::<Run, _>(&*org.state, &attempt.run, WHAT).map_err(gone)?;
        if !run.is_current_attempt(attempt) && !is_lost_apply(run, attempt) && !ended_with(run, attempt) {
            return Err(Error::Conflict(format!(
                "{} {} of {} is over: the run is {} and its {} is at attempt {}",
                attempt.phase,
                attempt.epoch,
                run.id,
                run.status,
                attempt.phase,
                run.phase(attempt.phase).epoch
            )));
        }
        let actor = agent_of(&org, run, attempt.phase);
        let caller = Caller {
            actor,
            token: None,
            request,
            site: org.site().clone(),
            prefetched: PrefetchedOrganization::default(),
        };
        Ok(PhaseCaller { attempt, org, caller })
    }

    /// Recognises an agent's request to send a log, a plan or an outcome. Where this server last saw the attempt under
    /// way, it does not look again: what an attempt that was given up sends goes where it is never read, and an outcome
    /// is decided by its transaction.
    pub async fn phase_sender(&self, token: &str, request: RequestInfo) -> Result<PhaseCaller, Error> {
        let attempt = self.read_agents_token(token)?;
        if let Some(org) = self.organization_last_seen(attempt.run.organization_prefix())
            && let Some(run) = org.state.runs.get(&attempt.run).filter(|run| run.is_current_attempt(attempt))
        {
            let actor = agent_of(&org, run, attempt.phase);
            let caller = Caller {
                actor,
                token: None,
                request,
                site: org.site().clone(),
                prefetched: PrefetchedOrganization::default(),
            };
            return Ok(PhaseCaller { attempt, org, caller });
        }
        self.phase_caller(token, request).await
    }

    /// The configuration's archive.
    pub async fn phase_configuration(&self, caller: &PhaseCaller) -> Result<Download, Error> {
        let (state, run) = (&caller.org.state, caller.run_under_way()?);
        let version = state.configuration_versions.get(&run.configuration_version);
        let version = version.filter(|version| version.is_usable()).ok_or(Error::NotFound("configuration"))?;
        self.read_archive(&caller.org, version).await
    }

    /// The workspace's state.
    pub async fn phase_state(&self, caller: &PhaseCaller) -> Result<Download, Error> {
        let (state, run) = (&caller.org.state, caller.run_under_way()?);
        let workspace = state.workspaces.get(&run.workspace).ok_or(Error::NotFound(WHAT))?;
        let version = state.current_state_version(workspace).ok_or(Error::NotFound("state"))?;
        self.read_state_bytes(&caller.org, version).await
    }

    /// The engine's plan file, for the apply.
    pub async fn phase_plan(&self, caller: &PhaseCaller) -> Result<Download, Error> {
        let run = caller.run_under_way()?;
        self.plan_to_apply(&caller.org, run).await
    }

    /// Delay before an outcome is applied. With `-auto-approve`, clients fetch the run once more after showing its
    /// plan, and if it has failed by then they exit without showing anything of its apply.
    pub fn wait_before_finish(&self, caller: &PhaseCaller, outcome: &PhaseOutcome) -> Duration {
        let run = caller.org.state.runs.get(&caller.attempt.run);
        let hurried = run.filter(|run| {
            let is_bad = matches!(outcome, PhaseOutcome::Errored { .. } | PhaseOutcome::Incomplete { .. });
            let fails = caller.attempt.phase == PhaseKind::Apply && is_bad;
            fails && run.options.auto_apply && matches!(run.source, RunSource::Cloud | RunSource::Terraform)
        });
        let Some(planned_at) = hurried.and_then(|run| run.plan.ended_at) else { return Duration::ZERO };
        let rest = LOOKS_AGAIN_WITHIN - self.now().duration_since(planned_at);
        Duration::try_from(rest.min(LOOKS_AGAIN_WITHIN)).unwrap_or_default()
    }

    /// Ends a phase, and starts all that follows from that. Repeating it is harmless.
    pub async fn finish_phase(&self, caller: &PhaseCaller, outcome: PhaseOutcome) -> Result<Run, Error> {
        let (attempt, now) = (caller.attempt, self.now());
        let outcome = outcome.kept(attempt.phase);
        let files = match &outcome {
            PhaseOutcome::Planned { .. } if caller.check_under_way().is_ok() => {
                Some(self.files_of_plan(&caller.org, attempt).await?)
            }
            _ => None,
        };
        let log = match caller.check_under_way() {
            Ok(_) => self.stored_log(&caller.org, attempt).await?,
            Err(_) => None,
        };
        let is_planned = matches!(outcome, PhaseOutcome::Planned { has_changes: true, .. });
        let mut fates = None;
        loop {
            let (outcome, forms, log) = (outcome.clone(), files.clone(), log.clone());
            let announced = fates.take();
            let ended = caller.org.commit(caller.caller.intent("phase.finish"), move |tx| {
                let run = tx.state().runs.get(&attempt.run).cloned().ok_or(Error::NotFound(WHAT))?;
                if is_planned && announced.is_none() && run.is_current_attempt(attempt) {
                    let workspace = tx.state().workspaces.get(&run.workspace).ok_or(Error::NotFound(WHAT))?;
                    if tx.state().has_output_contract(workspace) {
                        return Ok(None);
                    }
                }
                let ended = match () {
                    () if run.is_current_attempt(attempt)
                        && let PhaseOutcome::Incomplete { message, canceled } = &outcome =>
                    {
                        let workspace = tx.state().workspaces.get(&run.workspace).ok_or(Error::NotFound(WHAT))?;
                        let after = after_incomplete_apply(&run, workspace, *canceled, message, now);
                        let (run, workspace) = after.map_err(illegal)?;
                        put_run_and_follow_up_in(tx, run, workspace, now)
                    }
                    () if run.is_current_attempt(attempt) => {
                        let mut run = run;
                        if let Some(announced) = &announced {
                            run.output_contract = tx.state().broken_by(&run, announced);
                        }
                        let mut run = run.after_outcome(attempt.phase, &outcome, now).map_err(illegal)?;
                        if attempt.phase == PhaseKind::Plan {
                            run.plan.files.clone_from(&forms);
                        }
                        run.phase_mut(attempt.phase).log.clone_from(&log);
                        put_run_and_follow_up(tx, run, now)
                    }
                    // The answer to the first try was lost.
                    () if ended_with(&run, attempt) => Ok(run),
                    () if is_lost_apply(&run, attempt) && run.apply.late_outcome.is_some() => Ok(run),
                    () if is_lost_apply(&run, attempt) => {
                        let workspace = tx.state().workspaces.get(&run.workspace).ok_or(Error::NotFound(WHAT))?;
                        let (run, workspace) =
                            after_late_outcome(&run, workspace, outcome.late().map_err(illegal)?, now);
                        put_run_and_follow_up_in(tx, run, workspace, now)
                    }
                    () => Err(is_over(attempt)),
                };
                ended.map(Some)
            });
            let Some(run) = ended.await? else {
                // Others use its outputs, so what it does to them matters.
                fates = Some(self.fates_of_outputs(&caller.org, attempt, files.as_ref()).await?);
                continue;
            };
            // Readers wait for the end of the log.
            self.shared.log_signals.raise(&log_id(attempt.run, attempt.phase));
            return Ok(run);
        }
    }
}

/// The agent that executes a phase, as who may do what knows it.
fn agent_of(org: &OrganizationSnapshot, run: &Run, phase: PhaseKind) -> Actor {
    Actor::Attempt { organization: org.id(), run: run.id, workspace: run.workspace, phase }
}

fn illegal(error: impl fmt::Display) -> Error {
    Error::Conflict(error.to_string())
}

fn is_over(attempt: PhaseAttempt) -> Error {
    Error::Conflict(format!("{} {} of {} is over", attempt.phase, attempt.epoch, attempt.run))
}

/// True if an agent may be given phases: its token may have been revoked since it connected.
fn may_still_take(state: &OrganizationState, reach: AgentScope, token: Option<TokenId>, now: Timestamp) -> bool {
    match (reach, token) {
        (AgentScope::Pool(pool), Some(token)) => check_agent(state, pool, token, now).is_ok(),
        _ => true,
    }
}

/// The apply was given up with this attempt.
fn is_lost_apply(run: &Run, attempt: PhaseAttempt) -> bool {
    attempt.phase == PhaseKind::Apply && run.apply.epoch == attempt.epoch && run.is_lost_attempt(attempt)
}

/// The phase ended with this attempt.
fn ended_with(run: &Run, attempt: PhaseAttempt) -> bool {
    let phase = run.phase(attempt.phase);
    phase.epoch == attempt.epoch && phase.status.is_final() && !phase.is_lost(attempt.epoch)
}

/// Inputs of a run besides its configuration.
struct Secrets {
    variables: Vec<JobVariable>,
    /// Variables that came with the run; their values are expressions.
    of_run: Vec<(String, String)>,
    ssh_key: Option<String>,
}

/// A phase that was taken, as the transaction leaves it.
struct Taken {
    run: Run,
    kind: PhaseKind,
    workspace: Workspace,
    has_state: bool,
    secrets: Secrets,
}

/// What came of looking for a phase.
enum Taking {
    Nothing,
    Taken(Box<Taken>),
    /// Nothing was taken: variables of the next phase are bound to outputs that nobody has read yet.
    Needs(UnreadOutputs),
}

#[boxed]
impl ControlPlane {
    /// Opened from what the ledger has; nothing else is asked. If one does not open, the text says which.
    fn secrets_of(&self, state: &OrganizationState, workspace: &Workspace, run: &Run) -> Result<Secrets, String> {
        let opened = || -> Result<Secrets, Error> {
            let of_run = self.variables_of_run(run)?;
            let variables = self.job_variables(state, workspace, &of_run)?;
            Ok(Secrets { variables, of_run, ssh_key: self.ssh_key_of(state, workspace)? })
        };
        opened().map_err(|error| match error {
            Error::Sealed(why) => why,
            other => other.to_string(),
        })
    }

    fn variables_of_run(&self, run: &Run) -> Result<Vec<(String, String)>, Error> {
        let own = run.options.variables.iter().map(|variable| {
            let value = self.unseal(&RunVariable::seal_name(run.id, &variable.key), &variable.sealed)?;
            Ok((variable.key.clone(), value))
        });
        own.collect()
    }

    fn ssh_key_of(&self, state: &OrganizationState, workspace: &Workspace) -> Result<Option<String>, Error> {
        let key = workspace.ssh_key.and_then(|id| state.ssh_keys.get(&id));
        key.map(|key| self.unseal(&key.id.to_string(), &key.sealed_value)).transpose()
    }
}

/// Verbs without permission checks, for the server itself.
#[boxed]
impl Privileged {
    /// Gives the phase of an organization whose turn it is to an agent within whose reach it is; `None` if there is
    /// none. Of two agents that want it one gets it: taking it is a transaction. A phase whose secrets cannot be opened,
    /// or whose bound variables have no value, fails before anyone has it: to give it out first would leave an apply that
    /// never began, and no record of that.
    pub async fn take_phase(
        &self,
        org: &OrganizationSnapshot,
        taker: PhaseRequest,
    ) -> Result<Option<TakenPhase>, Error> {
        let mut read = ReadOutputs::default();
        let taken = loop {
            match self.try_to_take(org, taker.clone(), read.clone()).await? {
                Taking::Nothing => return Ok(None),
                Taking::Taken(taken) => break *taken,
                Taking::Needs(unread) => read = self.control_plane().read_bound_outputs(org, unread, read).await?,
            }
        };
        let Taken { run, kind, workspace, has_state, secrets } = taken;
        self.control_plane().record_given_secrets(org, run.id, &run.bound).await;
        let attempt = PhaseAttempt { run: run.id, phase: kind, epoch: run.phase(kind).epoch };
        let timeout = self.phase_timeout(kind);
        Ok(Some(TakenPhase {
            attempt,
            organization: org.entry().name.to_string(),
            token: self.issue_phase_token(attempt, timeout),
            run_token: self.issue_run_token(attempt, timeout),
            timeout,
            has_state,
            variables: secrets.variables,
            ssh_key: secrets.ssh_key,
            run,
            workspace,
        }))
    }

    /// The same, as far as what was `read` beforehand suffices.
    async fn try_to_take(
        &self,
        org: &OrganizationSnapshot,
        taker: PhaseRequest,
        read: ReadOutputs,
    ) -> Result<Taking, Error> {
        let (now, plane, key) = (self.now(), self.control_plane(), self.output_key(org));
        let taken = org.commit(ControlPlane::own_intent("phase.take"), move |tx| {
            let PhaseRequest { reach, executor, token, turn } = &taker;
            let mut spoiled = Vec::new();
            if !may_still_take(tx.state(), *reach, *token, now) {
                return Ok((Taking::Nothing, spoiled));
            }
            loop {
                let state = tx.state();
                let Some(queued) = next_phase(state, *reach, *turn, now) else { return Ok((Taking::Nothing, spoiled)) };
                let workspace = state.workspaces.get(&queued.workspace).cloned().ok_or(Error::NotFound(WHAT))?;
                let (mut run, kind) = queued.taken(executor.clone(), now).map_err(illegal)?;
                let mut secrets = match plane.secrets_of(state, &workspace, queued) {
                    Ok(secrets) => secrets,
                    Err(why) => {
                        let failed = queued.failed_before(kind, &why, now).map_err(illegal)?;
                        spoiled.push((queued.id, why));
                        put_run_and_follow_up(tx, failed, now)?;
                        continue;
                    }
                };
                let values = BoundValues { state, workspace: &workspace, run: queued, key: &key, read: &read };
                match values.give(kind, &secrets.of_run) {
                    Ok(given) => {
                        secrets.variables = with_bound(secrets.variables, given.variables);
                        run.bound = given.bound;
                    }
                    Err(NotGiven::Unread(unread)) => return Ok((Taking::Needs(unread), spoiled)),
                    Err(NotGiven::Problem(why)) => {
                        let failed = queued.failed_before(kind, &why, now).map_err(illegal)?;
                        tracing::info!(run = %queued.id, why, "a run was not begun: a bound variable has no value");
                        put_run_and_follow_up(tx, failed, now)?;
                        continue;
                    }
                }
                let current = state.current_state_version(&workspace);
                if kind == PhaseKind::Plan {
                    run.policies = state.policies_for(&workspace).map(Box::new);
                    run.planned_serial = current.map(|version| version.serial);
                    let configuration = state.configuration_versions.get(&run.configuration_version);
                    let engine = (run.options.engine, run.options.terraform_version.as_str());
                    run.own_inputs = configuration.and_then(|configuration| {
                        own_inputs(&key, &workspace, configuration, &secrets.variables, engine)
                    });
                }
                let has_state = current.is_some();
                tx.put(&run);
                return Ok((Taking::Taken(Box::new(Taken { run, kind, workspace, has_state, secrets })), spoiled));
            }
        });
        let (taken, spoiled) = taken.await?;
        for (run, why) in spoiled {
            tracing::error!(event = "phase_dispatch_failed", %run, why, "a phase failed before an agent had it");
        }
        Ok(taken)
    }
}
