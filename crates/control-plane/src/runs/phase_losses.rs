//! Agents that went silent or left, and what becomes of their phases.

use taco_boxed::boxed;
use taco_domain::agent::Agent;
use taco_domain::id::AgentId;
use taco_domain::phase::PhaseKind;
use taco_domain::phase_attempt::PhaseAttempt;
use taco_domain::phase_loss::{after_loss, after_return};
use taco_domain::run::Run;
use taco_domain::workspace::Workspace;
use taco_tables::Record as _;

use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::find::find_if_there;
use crate::log_id::log_id;
use crate::privileged::Privileged;
use crate::run_flow::put_run_and_follow_up_in;

/// Reason why an agent does not go on with a phase.
#[derive(Clone, Copy)]
enum Fault {
    /// It went silent.
    Agents,
    /// It left, and said so.
    Nobodys,
}

#[boxed]
impl ControlPlane {
    async fn take_away(
        &self,
        org: &OrganizationSnapshot,
        attempt: PhaseAttempt,
        why: String,
        fault: Fault,
    ) -> Result<bool, Error> {
        let now = self.now();
        let logged = self.log_left_by(org, attempt).await?;
        let intent = match fault {
            Fault::Agents => "phase.lose",
            Fault::Nobodys => "phase.return",
        };
        let taken = org.commit(Self::own_intent(intent), move |tx| {
            let state = tx.state();
            let Some(run) = state.runs.get(&attempt.run).filter(|run| run.is_current_attempt(attempt)) else {
                return Ok(false);
            };
            let workspace = state.workspaces.get(&run.workspace).ok_or(Error::NotFound(Workspace::NOUN))?;
            let executor = run.phase(attempt.phase).executor.as_ref();
            let agent = executor.and_then(|executor| state.agents.get(&executor.agent)).cloned();
            let after = match fault {
                Fault::Agents => after_loss(run, workspace, attempt.phase, &why, now),
                Fault::Nobodys => after_return(run, workspace, &why, now),
            };
            let (mut run, workspace) = after.map_err(|error| Error::Conflict(error.to_string()))?;
            run.phase_mut(attempt.phase).earlier_logs.push(logged);
            put_run_and_follow_up_in(tx, run, workspace, now)?;
            // One within a server has no record.
            if let (Some(agent), Fault::Agents) = (agent, fault) {
                tx.put(&Agent { lost_at: Some(now), ..agent });
            }
            Ok(true)
        });
        let is_taken = taken.await?;
        if is_taken {
            // Perhaps it ends now.
            self.shared.log_signals.raise(&log_id(attempt.run, attempt.phase));
        }
        Ok(is_taken)
    }
}

/// Phases that agents still have when they reconnect.
#[boxed]
impl ControlPlane {
    /// True if an attempt is in progress and belongs to this agent.
    pub async fn is_executing(&self, agent: AgentId, attempt: PhaseAttempt) -> Result<bool, Error> {
        let site = self.read_site().await?;
        let Some(entry) = site.organization_at(attempt.run.organization_prefix()) else { return Ok(false) };
        let org = self.open_organization(&site, entry.id).await?;
        let run = find_if_there::<Run, _>(&*org.state, &attempt.run)?.filter(|run| run.is_current_attempt(attempt));
        let executor = run.and_then(|run| run.phase(attempt.phase).executor.as_ref());
        Ok(executor.is_some_and(|executor| executor.agent == agent))
    }

    /// Phases that an agent executes according to the ledger.
    async fn executed_by(
        &self,
        agent: AgentId,
        organization: Option<&OrganizationSnapshot>,
    ) -> Result<Vec<(OrganizationSnapshot, PhaseAttempt)>, Error> {
        let organizations = match organization {
            // As it is now: it was opened when the agent came.
            Some(org) => vec![self.organization_unchecked(org.id().organization_prefix(), "organization").await?],
            // What it has of one that cannot be read stays its own until that can be read again.
            None => self.survey_organizations().await?.readable,
        };
        let mut executed = Vec::new();
        for org in organizations {
            let runs = org.state.runs.by().executing.get(&agent);
            let attempts = runs.filter_map(|run| {
                let kind = run.executing_phase()?;
                Some(PhaseAttempt { run: run.id, phase: kind, epoch: run.phase(kind).epoch })
            });
            executed.extend(attempts.map(|attempt| (org.clone(), attempt)).collect::<Vec<_>>());
        }
        Ok(executed)
    }
}

/// Verbs without permission checks, for the server itself.
#[boxed]
impl Privileged {
    /// Takes a phase away from an agent that was not heard for too long. One that is over, or that another agent has
    /// by now, is left alone.
    pub async fn lose_phase(
        &self,
        org: &OrganizationSnapshot,
        attempt: PhaseAttempt,
        why: String,
    ) -> Result<bool, Error> {
        self.take_away(org, attempt, why, Fault::Agents).await
    }

    /// Puts the plans of an agent that has left back into the queue. Its applies are left alone: it may have sent what
    /// came of them to another server, or come back with it. `organization` is the only one that it worked for, if there
    /// is only one.
    pub async fn return_plans_of(
        &self,
        agent: AgentId,
        organization: Option<&OrganizationSnapshot>,
        why: &str,
    ) -> Result<(), Error> {
        for (org, attempt) in self.executed_by(agent, organization).await? {
            if attempt.phase == PhaseKind::Plan {
                self.take_away(&org, attempt, why.to_owned(), Fault::Nobodys).await?;
            }
        }
        Ok(())
    }

    /// Takes from an agent what the ledger says it executes and it does not. `organization` is the only one that it
    /// works for, if there is only one.
    pub async fn lose_phases_not_among(
        &self,
        agent: AgentId,
        running: &[PhaseAttempt],
        organization: Option<&OrganizationSnapshot>,
        why: &str,
    ) -> Result<(), Error> {
        for (org, attempt) in self.executed_by(agent, organization).await? {
            if !running.contains(&attempt) {
                self.lose_phase(&org, attempt, why.to_owned()).await?;
            }
        }
        Ok(())
    }
}
