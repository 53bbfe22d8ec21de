//! One phase from its job to its outcome.

use std::io;
use std::sync::{Arc, OnceLock};

use taco_agent_protocol::{Job, Outcome, PhaseKind, Upload};
use tokio::task::JoinHandle;

use crate::context::Context;
use crate::control::{Control, Stop};
use crate::environment;
use crate::execute::{Executor, Stopped};
use crate::journal::{Entry, JournalRecord};
use crate::log_file::LogFile;
use crate::mask::Mask;
use crate::phase_requests::{Content, PhaseRequests, RequestError};
use crate::running::Running;
use crate::set_up::set_up;
use crate::users::TakenUser;
use crate::workdir::Workdir;
use crate::{apply_result, log_upload, plan_result};

/// Reason why a phase failed.
#[derive(Debug)]
pub(crate) enum PhaseError {
    /// The text is one for people.
    Failed(String),
    Stopped(Stopped),
    /// An apply's engine did not end by itself, so that not all that it did may be in its state. The text says what became of
    /// it.
    Killed {
        how: String,
        stopped: Option<Stopped>,
    },
    Lost,
}

pub(crate) fn failed(error: impl std::fmt::Display) -> PhaseError {
    PhaseError::Failed(error.to_string())
}

impl From<RequestError> for PhaseError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Lost => Self::Lost,
            RequestError::Refused(reason) => Self::Failed(reason),
        }
    }
}

/// Next step of the agent after a phase.
pub(crate) enum PhaseEnd {
    /// The server knows all about it.
    Reported,
    /// Something could not be sent: the journal has it.
    Unsent(JournalRecord),
}

/// Executes a job and reports the outcome, including every failure.
pub(crate) async fn run(context: Arc<Context>, job: Job, control: Control) -> PhaseEnd {
    let reference = job.phase;
    tracing::info!(phase = %reference, workspace = job.workspace, "begun");
    let requests = PhaseRequests::new(&context.client, &context.dial, reference, &job.token);
    let phase = match Phase::begin(context.clone(), job, control.clone(), requests.clone()) {
        Ok(phase) => phase,
        Err(error) => {
            tracing::error!(event = "phase_start_failed", phase = %reference, %error, "cannot be begun");
            let message = format!("the agent {}: {error}", context.options.name);
            // There is no journal for it, so this is the only chance.
            let _ = report(&requests, &Outcome::Errored { message, engine: None, incomplete: false }, control).await;
            return PhaseEnd::Reported;
        }
    };
    let uploading = {
        let (path, written) = (phase.workdir.file("log"), phase.log.watch());
        tokio::spawn(log_upload::upload(path, written, requests, control))
    };
    let executed = phase.execute().await;
    let end = phase.conclude(executed, uploading).await;
    if matches!(end, PhaseEnd::Reported) {
        if let Err(error) = phase.record.remove().and_then(|()| phase.workdir.remove()) {
            tracing::warn!(event = "cleanup_failed", phase = %reference, %error, "something was left on disk");
        }
        tracing::info!(phase = %reference, "done");
    } else {
        tracing::warn!(event = "phase_upload_incomplete", phase = %reference, "not everything could be sent");
    }
    end
}

struct Phase {
    context: Arc<Context>,
    job: Job,
    workdir: Workdir,
    log: LogFile,
    record: JournalRecord,
    control: Control,
    requests: PhaseRequests,
    /// Whom the engine runs as. It is the run's until nothing of it is left.
    user: OnceLock<Option<TakenUser>>,
}

impl Phase {
    fn begin(context: Arc<Context>, job: Job, control: Control, requests: PhaseRequests) -> io::Result<Self> {
        let workdir = Workdir::create(&context.runs, job.phase.run, &job.working_directory, &job.workspace)?;
        let log = LogFile::create(&workdir.file("log"), Mask::of(&job))?;
        let record = context.journal.begin(Entry {
            phase: job.phase,
            token: job.token.clone(),
            directory: Workdir::root_of(&context.runs, job.phase.run),
            state: workdir.state(),
            errored_state: workdir.errored_state(),
            log: workdir.file("log"),
            sent_state: None,
            outcome: None,
            supervisor: None,
            may_have_applied: false,
        })?;
        Ok(Self { context, job, workdir, log, record, control, requests, user: OnceLock::new() })
    }

    async fn execute(&self) -> Result<Outcome, PhaseError> {
        let (context, job) = (&*self.context, &self.job);
        let preparing = async {
            let user = context.users.take().await;
            let user = self.user.get_or_init(|| user).as_deref().copied();
            let (engine, workdir) =
                set_up(context, job, &self.workdir, user, &self.requests, self.control.clone()).await?;
            Ok::<_, PhaseError>((engine, workdir, user))
        };
        let (engine, workdir, user) = tokio::select! {
            ready = preparing => ready?,
            stopped = stopped(self.control.clone()) => return Err(PhaseError::Stopped(stopped)),
        };
        tracing::debug!(phase = %job.phase, "everything is fetched and written");
        let noted = self.record.change(|entry| {
            (entry.state, entry.errored_state) = (workdir.state(), workdir.errored_state());
        });
        noted.map_err(failed)?;
        let (record, log, phase) = (self.record.clone(), self.log.clone(), job.phase);
        let executor = Executor {
            supervisor: context.options.supervisor.clone(),
            portable: context.options.portable || !cfg!(target_os = "linux"),
            root: workdir.root().to_owned(),
            confinement: context.confinement(&workdir),
            run_as: user,
            memory_limit: None,
            started: Arc::new(move |process| {
                if let Err(error) = record.change(|entry| entry.supervisor = Some(process)) {
                    tracing::warn!(event = "journal_write_failed", %error, "the journal cannot be written");
                }
            }),
            orphaned: Arc::new(move |what| {
                tracing::warn!(event = "orphaned_process", %phase, "{what}");
                if let Err(error) = log.say(&format!("\nWarning: {what}")) {
                    tracing::warn!(event = "log_write_failed", %phase, %error, "the log cannot be written");
                }
            }),
        };
        let mut running = Running {
            context,
            job,
            engine,
            environment: environment::of(
                job,
                &workdir,
                context.ca_bundle.as_deref(),
                &context.engine_memory,
                &context.options.environment,
                context.options.provider_cache.as_deref(),
            ),
            log: self.log.clone(),
            mask: Mask::of(job),
            control: self.control.clone(),
            requests: self.requests.clone(),
            executor,
            workdir,
            record: self.record.clone(),
        };
        running.init().await?;
        tracing::debug!(phase = %job.phase, "the engine is initialized");
        match job.phase.phase {
            PhaseKind::Plan => plan_result::run(&mut running).await,
            PhaseKind::Apply => apply_result::run(&mut running).await,
        }
    }

    /// Sends the end of the log, and last of all the outcome.
    async fn conclude(
        &self,
        executed: Result<Outcome, PhaseError>,
        uploading: JoinHandle<Result<(), RequestError>>,
    ) -> PhaseEnd {
        let phase = self.job.phase;
        let Some(outcome) = self.outcome(executed) else { return self.unsent() };
        let noted = self.record.change(|entry| entry.outcome = Some(outcome.clone()));
        if let Err(error) = noted.and_then(|()| finish_log(&self.log, &outcome)) {
            tracing::warn!(
                event = "phase_end_write_failed", %phase, %error,
                "the agent's disk does not take the end of the phase"
            );
        }
        match uploading.await {
            Ok(Ok(())) => {}
            Ok(Err(RequestError::Refused(reason))) => {
                tracing::warn!(event = "log_upload_rejected", %phase, reason, "the log is not complete");
            }
            Ok(Err(RequestError::Lost)) | Err(_) => return self.unsent(),
        }
        match report(&self.requests, &outcome, self.control.clone()).await {
            Ok(()) => PhaseEnd::Reported,
            Err(RequestError::Refused(reason)) => {
                tracing::error!(event = "outcome_rejected", %phase, reason, "the outcome was not taken");
                PhaseEnd::Reported
            }
            Err(RequestError::Lost) => self.unsent(),
        }
    }

    /// `None` if there is nothing to report now.
    fn outcome(&self, executed: Result<Outcome, PhaseError>) -> Option<Outcome> {
        let (kind, agent) = (self.job.phase.phase, &self.context.options.name);
        let (stopped, killed) = match executed {
            Ok(outcome) => return Some(outcome),
            Err(PhaseError::Failed(message)) => {
                return Some(Outcome::Errored { message, engine: None, incomplete: false });
            }
            Err(PhaseError::Killed { how, stopped: None }) => {
                let message = format!("{how} while it applied: {MAY_BE_INCOMPLETE}");
                return Some(Outcome::Errored { message, engine: None, incomplete: true });
            }
            Err(PhaseError::Killed { stopped: Some(stopped), .. }) => (stopped, true),
            Err(PhaseError::Stopped(stopped)) => (stopped, false),
            Err(PhaseError::Lost) => (Stopped::Lost, false),
        };
        let errored = |message: String, incomplete: bool| {
            let message = if incomplete { format!("{message}: {MAY_BE_INCOMPLETE}") } else { message };
            Outcome::Errored { message, engine: None, incomplete }
        };
        match (stopped, kind) {
            (Stopped::Canceled, _) => Some(Outcome::Canceled { incomplete: killed }),
            (Stopped::TimedOut, _) => {
                Some(errored(format!("the {kind} took longer than {}", in_words(self.job.timeout_seconds)), killed))
            }
            // A plan that is not reported is done by another agent. An apply is not.
            (Stopped::AgentLeaves | Stopped::Lost, PhaseKind::Plan) => None,
            (Stopped::AgentLeaves, PhaseKind::Apply) => {
                Some(errored(format!("the agent {agent} was stopped while it applied"), killed))
            }
            (Stopped::Lost, PhaseKind::Apply) => {
                let noted = self.record.change(|entry| {
                    let message = format!("the agent {agent} lost its server and stopped the apply");
                    let outcome = errored(message, entry.may_have_applied);
                    entry.outcome.get_or_insert(outcome);
                });
                if let Err(error) = noted {
                    tracing::warn!(
                        event = "journal_write_failed", phase = %self.job.phase, %error,
                        "the journal cannot be written"
                    );
                }
                None
            }
        }
    }

    /// A plan that could not be reported is left for another agent; an apply is reported later.
    fn unsent(&self) -> PhaseEnd {
        match self.job.phase.phase {
            PhaseKind::Plan => PhaseEnd::Reported,
            PhaseKind::Apply => PhaseEnd::Unsent(self.record.clone()),
        }
    }
}

/// Message to people about an apply that did not end by itself.
pub(crate) const MAY_BE_INCOMPLETE: &str = "not all that it did may be in the state";

fn finish_log(log: &LogFile, outcome: &Outcome) -> io::Result<()> {
    if log.watch().borrow().complete {
        return Ok(());
    }
    match outcome {
        // The engine has not said it.
        Outcome::Errored { message, incomplete, .. } if *incomplete || log.observed().error.is_none() => {
            log.say(&format!("\nError: {message}"))?;
        }
        Outcome::Canceled { incomplete: false } => log.say("\nCanceled.")?,
        Outcome::Canceled { incomplete: true } => log.say(&format!("\nForce-canceled: {MAY_BE_INCOMPLETE}."))?,
        _ => {}
    }
    log.complete()
}

pub(crate) async fn report(
    requests: &PhaseRequests,
    outcome: &Outcome,
    mut control: Control,
) -> Result<(), RequestError> {
    let body = serde_json::to_vec(outcome).expect("outcomes are JSON");
    requests.send(Upload::Outcome, Content::Bytes(body.into()), &mut control).await
}

/// Returns when the phase is to stop, while nothing runs that could be interrupted.
pub(crate) async fn stopped(mut control: Control) -> Stopped {
    let times_out_at = control.times_out_at;
    loop {
        match control.stop() {
            Stop::Run => tokio::select! {
                () = control.changed() => {}
                () = tokio::time::sleep_until(times_out_at) => return Stopped::TimedOut,
            },
            Stop::Cancel | Stop::Kill => return Stopped::Canceled,
            Stop::Leave => return Stopped::AgentLeaves,
            Stop::Lost => return Stopped::Lost,
        }
    }
}

/// Limits are set in minutes.
fn in_words(seconds: u64) -> String {
    match (seconds / 60, seconds % 60) {
        (1, 0) => "1 minute".to_owned(),
        (minutes @ 2.., 0) => format!("{minutes} minutes"),
        _ => format!("{seconds} seconds"),
    }
}
