//! One phase on an agent, from its job to its outcome, and what is sent later when that could not be sent.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use taco_agent_protocol::{
    Engine as Program, EngineRequest, Job, Outcome, PhaseAttempt, PhaseKind, PlanSummary, ResourceCounts,
};
use taco_domain::id::WorkspaceId;
use taco_ledger::SharedRng;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::agent::{Journal, agent_name};
use crate::faults;
use crate::outside::{Engine, Exit, Files, Orders};
use crate::requests::{Control, PhaseRequests, RequestError, Stop};
use crate::sabotage::Sabotage;
use crate::signal::Signal;
use crate::stage::Stage;

/// A phase that was begun and not reported, as it stands on disk.
#[derive(Clone)]
pub(crate) struct Entry {
    phase: PhaseAttempt,
    workspace: WorkspaceId,
    token: String,
    files: Arc<Files>,
    outcome: Option<Outcome>,
}

impl Entry {
    pub(crate) fn new(job: &Job, token: String) -> Self {
        let files = Files::new();
        Self { phase: job.phase, workspace: job.workspace_id, token, files, outcome: None }
    }
}

pub(crate) enum End {
    Reported,
    /// Something could not be sent.
    Unsent(Entry),
}

enum Failure {
    Request(RequestError),
    Canceled,
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}

struct Phase {
    stage: Arc<Stage>,
    agent: usize,
    journal: Journal,
    entry: Entry,
    requests: PhaseRequests,
    control: Control,
}

pub(crate) async fn run(
    stage: Arc<Stage>,
    agent: usize,
    journal: Journal,
    job: Job,
    entry: Entry,
    control: Control,
) -> End {
    let requests = requests(&stage, agent, &entry);
    stage.notes.told().files.insert(job.phase, Arc::clone(&entry.files));
    let mut phase = Phase { stage, agent, journal, entry, requests, control };
    let executed = phase.execute(&job).await;
    phase.stage.awake(agent).await;
    phase.conclude(executed).await
}

fn requests(stage: &Arc<Stage>, agent: usize, entry: &Entry) -> PhaseRequests {
    let (stage, token) = (Arc::clone(stage), entry.token.clone());
    PhaseRequests { stage, agent, phase: entry.phase, workspace: entry.workspace, token }
}

impl Phase {
    fn kind(&self) -> PhaseKind {
        self.entry.phase.phase
    }

    async fn execute(&mut self, job: &Job) -> Result<Outcome, Failure> {
        let mut control = self.control.clone();
        self.requests.fetch("configuration", &mut control).await?;
        let state = match job.has_state {
            true => self.requests.fetch("state", &mut control).await?,
            false => None,
        };
        if self.kind() == PhaseKind::Apply {
            self.requests.fetch("plan", &mut control).await?;
        }
        if self.control.stop() > Stop::Run {
            return Err(Failure::Canceled);
        }
        *self.entry.files.sent_state.lock().expect("no panic") = state.clone();
        let (orders, watched) = watch::channel(self.orders());
        let mut engine = self.engine(state, watched).start();
        let mut changes = self.control.clone();
        let exit = loop {
            let follow = async {
                sleep(Duration::from_secs(1)).await;
                self.send_progress().await
            };
            tokio::select! {
                biased;
                exit = &mut engine => break exit.expect("an engine ends"),
                () = changes.changed() => {}
                _ = follow => {}
            }
            // A paused agent gives no orders, but the engine keeps those it has.
            self.stage.awake(self.agent).await;
            orders.send_replace(self.orders());
        };
        self.stage.awake(self.agent).await;
        self.finish(exit).await
    }

    fn engine(&self, state: Option<Bytes>, orders: watch::Receiver<Orders>) -> Engine {
        let stage = &self.stage;
        let serial = state
            .and_then(|state| serde_json::from_slice::<serde_json::Value>(&state).ok())
            .and_then(|state| state["serial"].as_u64())
            .unwrap_or_default();
        let is_early = Instant::now() < stage.begun + (stage.over - stage.begun) / 2;
        let is_long = self.kind() == PhaseKind::Apply && is_early && !stage.is_calm && stage.rng.fraction() < 0.4;
        if is_long && stage.chance(0.3) {
            // It is not heard of for much longer than a lease.
            tokio::spawn(faults::hold_back(Arc::clone(stage), self.agent));
        }
        let (steps, pace) = match is_long {
            true => (12 + stage.below(20) as u32, Duration::from_secs(5)),
            false => (1 + stage.below(4) as u32, Duration::from_secs(1)),
        };
        Engine {
            outside: Arc::clone(&stage.outside),
            files: Arc::clone(&self.entry.files),
            orders,
            rng: SharedRng::from_seed(stage.below(1 << 30) as u64),
            phase: self.entry.phase,
            workspace: self.entry.workspace,
            agent: self.agent,
            steps,
            pace,
            serial,
        }
    }

    /// Orders to the engine: its lease, and whether someone wants it to stop.
    fn orders(&self) -> Orders {
        let now = Some(Instant::now());
        let lease = self.control.lease.get();
        let lease = lease.filter(|_| self.stage.sabotage != Sabotage::NoSelfKill);
        let lease = Orders {
            interrupt_at: lease.map(|deadline| deadline.interrupt_at),
            kill_at: lease.map(|deadline| deadline.kill_at),
        };
        match self.control.stop() {
            Stop::Run => lease,
            Stop::Cancel => Orders { interrupt_at: now, ..lease },
            Stop::Kill | Stop::Lost => Orders { interrupt_at: now, kill_at: now },
        }
    }

    fn write_journal(&self) {
        self.journal.lock().expect("no panic").insert(self.entry.phase, self.entry.clone());
    }

    /// Sends what is new of the log and, during an apply, of the state.
    async fn send_progress(&self) -> Result<(), RequestError> {
        let mut control = self.control.clone();
        send_log(&self.requests, &self.entry.files, &mut control).await?;
        if self.kind() == PhaseKind::Apply {
            send_state(&self.requests, &self.entry, &mut control).await?;
        }
        Ok(())
    }

    async fn finish(&mut self, exit: Exit) -> Result<Outcome, Failure> {
        let mut control = self.control.clone();
        if self.kind() == PhaseKind::Apply {
            send_state(&self.requests, &self.entry, &mut control).await?;
        }
        let engine = EngineRequest { engine: Program::Terraform, version: engine_version(self.entry.phase) };
        let counts = ResourceCounts::default();
        match (exit, self.kind()) {
            _ if matches!(self.control.stop(), Stop::Cancel | Stop::Kill) => Err(Failure::Canceled),
            (Exit::Interrupted | Exit::Killed, _) => Err(RequestError::Lost.into()),
            (Exit::Failed, _) => {
                Ok(Outcome::Errored { message: "the engine failed".to_owned(), engine: None, incomplete: false })
            }
            (Exit::Succeeded, PhaseKind::Plan) => {
                self.requests.send("plan", Bytes::from_static(b"a plan"), &mut control).await?;
                if let Some(shown) = self.stage.json_plan(self.entry.phase, self.entry.workspace).await {
                    self.requests.send("json-plan", shown, &mut control).await?;
                }
                let has_changes = self.stage.rng.fraction() < 0.85;
                Ok(Outcome::Planned(PlanSummary {
                    has_changes,
                    counts,
                    generated_configuration: false,
                    engine,
                    policies: Vec::new(),
                }))
            }
            (Exit::Succeeded, PhaseKind::Apply) => Ok(Outcome::Applied { counts, engine }),
        }
    }

    async fn conclude(&mut self, executed: Result<Outcome, Failure>) -> End {
        let is_apply = self.kind() == PhaseKind::Apply;
        let errored = |message: String, incomplete| Outcome::Errored { message, engine: None, incomplete };
        let outcome = match executed {
            Ok(outcome) => outcome,
            Err(Failure::Canceled) => Outcome::Canceled { incomplete: false },
            Err(Failure::Request(RequestError::Refused)) => errored("a request was refused".to_owned(), false),
            Err(Failure::Request(RequestError::Lost)) if !is_apply => return self.done(),
            Err(Failure::Request(RequestError::Lost)) => {
                self.entry.outcome = Some(errored(format!("{} lost its server", agent_name(self.agent)), true));
                self.write_journal();
                return End::Unsent(self.entry.clone());
            }
        };
        self.entry.outcome = Some(outcome);
        self.write_journal();
        match report(&self.requests, &self.entry, &mut self.control).await {
            Err(RequestError::Lost) if is_apply => End::Unsent(self.entry.clone()),
            _ => self.done(),
        }
    }

    fn done(&self) -> End {
        self.journal.lock().expect("no panic").remove(&self.entry.phase);
        End::Reported
    }
}

/// Every attempt says that it has another version, so that whose outcome was taken can be seen.
pub(crate) fn engine_version(phase: PhaseAttempt) -> String {
    format!("1.11.4-{}-{}", phase.phase, phase.epoch)
}

/// The rest of the log, then the outcome.
async fn report(requests: &PhaseRequests, entry: &Entry, control: &mut Control) -> Result<(), RequestError> {
    entry.files.end_log();
    send_log(requests, &entry.files, control).await?;
    let outcome = serde_json::to_vec(&entry.outcome).expect("an outcome is plain data");
    requests.send("outcome", outcome.into(), control).await
}

async fn send_log(requests: &PhaseRequests, files: &Files, control: &mut Control) -> Result<(), RequestError> {
    loop {
        let offset = *files.sent_log.lock().expect("no panic");
        let part = {
            let log = files.log();
            Bytes::copy_from_slice(&log[(offset as usize).min(log.len())..])
        };
        if part.is_empty() {
            return Ok(());
        }
        let next = requests.send_log(offset, part, control).await?;
        *files.sent_log.lock().expect("no panic") = next;
    }
}

async fn send_state(requests: &PhaseRequests, entry: &Entry, control: &mut Control) -> Result<(), RequestError> {
    match entry.files.state() {
        Some(state) if entry.files.sent_state.lock().expect("no panic").as_ref() != Some(&state) => {
            requests.send("state", state.clone(), control).await?;
            *entry.files.sent_state.lock().expect("no panic") = Some(state);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Sends what a phase could not: after its lease ended, or after the agent was killed and started again.
pub(crate) async fn resend(stage: Arc<Stage>, agent: usize, journal: Journal, mut entry: Entry) {
    stage.awake(agent).await;
    while entry.files.engine_lives() {
        sleep(Duration::from_millis(200)).await;
    }
    if entry.phase.phase == PhaseKind::Apply {
        if entry.outcome.is_none() {
            let message = format!("{} was killed while it applied", agent_name(agent));
            entry.outcome = Some(Outcome::Errored { message, engine: None, incomplete: true });
        }
        let mut control = Control { stop: Signal::new(Stop::Run), lease: Signal::new(None) };
        let requests = requests(&stage, agent, &entry);
        if send_state(&requests, &entry, &mut control).await.is_ok() {
            let _ = report(&requests, &entry, &mut control).await;
        }
    }
    journal.lock().expect("no panic").remove(&entry.phase);
}
