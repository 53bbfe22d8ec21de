//! One phase from its job to its outcome.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use taco_agent_protocol::{Engine, Job, Outcome, PhaseKind, Upload};
use tokio::task::JoinHandle;

use crate::context::Context;
use crate::control::{Control, Stop};
use crate::engine::Found;
use crate::engine_download::{architecture, platform};
use crate::environment::{self, Environment};
use crate::execute::{Executor, Exit, Invocation, Stopped};
use crate::journal::{Entry, Page};
use crate::log_file::LogFile;
use crate::mask::Mask;
use crate::phase_requests::{Content, PhaseRequests, RequestError};
use crate::workdir::Workdir;
use crate::{apply_result, archive, backend_override, cli_configuration, log_upload, plan_result, variables};

/// Why a phase has no good end.
#[derive(Debug)]
pub(crate) enum PhaseError {
    /// The text is one for people.
    Failed(String),
    Stopped(Stopped),
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

/// How the agent has to go on.
pub(crate) enum End {
    /// The server knows all about it.
    Reported,
    /// Something could not be sent: the journal has it.
    Unsent(Page),
}

/// A phase whose engine can be started.
pub(crate) struct Running<'a> {
    pub(crate) context: &'a Context,
    pub(crate) job: &'a Job,
    pub(crate) workdir: Workdir,
    pub(crate) found: Found,
    environment: Environment,
    pub(crate) log: LogFile,
    pub(crate) mask: Mask,
    pub(crate) control: Control,
    pub(crate) requests: PhaseRequests,
    executor: Executor,
    pub(crate) page: Page,
}

/// Executes a job and reports what came of it. Whatever goes wrong is reported too.
pub(crate) async fn run(context: Arc<Context>, job: Job, control: Control) -> End {
    let phase = job.phase;
    tracing::info!(%phase, workspace = job.workspace, "begun");
    let requests = PhaseRequests::new(&context.client, &context.dial, phase, &job.token);
    let prepared = prepare(&context, &job);
    let (workdir, log, page) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            // There is no journal for it, so this is the only chance.
            let outcome =
                Outcome::Errored { message: format!("the agent {}: {error}", context.options.name), engine: None };
            tracing::error!(%phase, %error, "cannot be begun");
            let _ = report(&requests, &outcome, control).await;
            return End::Reported;
        }
    };
    let uploading = {
        let (path, written) = (workdir.file("log"), log.watch());
        tokio::spawn(log_upload::upload(path, written, requests.clone(), control.clone()))
    };
    let executed = execute(&context, &job, &workdir, &log, &page, control.clone(), requests.clone()).await;
    let end = conclude(&context, &job, executed, &log, &page, uploading, control, &requests).await;
    if matches!(end, End::Reported) {
        if let Err(error) = page.remove().and_then(|()| workdir.remove()) {
            tracing::warn!(%phase, %error, "something was left on disk");
        }
        tracing::info!(%phase, "done");
    } else {
        tracing::warn!(%phase, "not everything could be sent");
    }
    end
}

fn prepare(context: &Context, job: &Job) -> io::Result<(Workdir, LogFile, Page)> {
    let workdir = Workdir::create(&context.runs, job.phase.run, &job.working_directory, &job.workspace)?;
    let log = LogFile::create(&workdir.file("log"), Mask::of(job))?;
    let page = context.journal.begin(Entry {
        phase: job.phase,
        token: job.token.clone(),
        directory: Workdir::root_of(&context.runs, job.phase.run),
        state: workdir.state(),
        errored_state: workdir.errored_state(),
        log: workdir.file("log"),
        sent_state: None,
        outcome: None,
        supervisor: None,
    })?;
    Ok((workdir, log, page))
}

#[expect(clippy::too_many_arguments, reason = "the parts of a phase that is not yet, or no longer, running")]
async fn conclude(
    context: &Context,
    job: &Job,
    executed: Result<Outcome, PhaseError>,
    log: &LogFile,
    page: &Page,
    uploading: JoinHandle<Result<(), RequestError>>,
    control: Control,
    requests: &PhaseRequests,
) -> End {
    let is_apply = job.phase.phase == PhaseKind::Apply;
    let errored = |message: String| Outcome::Errored { message, engine: None };
    let outcome = match executed {
        Ok(outcome) => outcome,
        Err(PhaseError::Failed(message)) => errored(message),
        Err(PhaseError::Stopped(Stopped::Canceled)) => Outcome::Canceled,
        Err(PhaseError::Stopped(Stopped::TimedOut)) => {
            errored(format!("the {} took longer than {} seconds", job.phase.phase, job.timeout_seconds))
        }
        // A plan that nobody reports is done by another agent. An apply is not.
        Err(PhaseError::Stopped(Stopped::AgentLeaves)) if !is_apply => return End::Reported,
        Err(PhaseError::Stopped(Stopped::AgentLeaves)) => {
            errored(format!("the agent {} was stopped while it applied", context.options.name))
        }
        Err(PhaseError::Lost | PhaseError::Stopped(Stopped::Lost)) if !is_apply => return End::Reported,
        Err(PhaseError::Lost | PhaseError::Stopped(Stopped::Lost)) => {
            let message = format!("the agent {} lost its server and stopped the apply", context.options.name);
            let noted = page.change(|entry| {
                entry.outcome.get_or_insert(errored(message));
            });
            if let Err(error) = noted {
                tracing::warn!(phase = %job.phase, %error, "the journal cannot be written");
            }
            return End::Unsent(page.clone());
        }
    };
    let finished = page.change(|entry| entry.outcome = Some(outcome.clone())).and_then(|()| finish_log(log, &outcome));
    if let Err(error) = finished {
        tracing::warn!(phase = %job.phase, %error, "the agent's disk does not take the end of the phase");
    }
    match uploading.await {
        Ok(Ok(())) => {}
        Ok(Err(RequestError::Refused(reason))) => tracing::warn!(phase = %job.phase, reason, "the log is not complete"),
        Ok(Err(RequestError::Lost)) | Err(_) => return unsent(is_apply, page),
    }
    match report(requests, &outcome, control).await {
        Ok(()) => End::Reported,
        Err(RequestError::Refused(reason)) => {
            tracing::error!(phase = %job.phase, reason, "the outcome was not taken");
            End::Reported
        }
        Err(RequestError::Lost) => unsent(is_apply, page),
    }
}

/// Whatever a plan could not report, another agent will find out.
fn unsent(is_apply: bool, page: &Page) -> End {
    match is_apply {
        true => End::Unsent(page.clone()),
        false => End::Reported,
    }
}

fn finish_log(log: &LogFile, outcome: &Outcome) -> io::Result<()> {
    if log.watch().borrow().complete {
        return Ok(());
    }
    match outcome {
        Outcome::Errored { message, .. } if log.observed().error.is_none() => {
            log.say(&format!("\nError: {message}"))?;
        }
        Outcome::Canceled => log.say("\nCanceled.")?,
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

async fn execute(
    context: &Context,
    job: &Job,
    workdir: &Workdir,
    log: &LogFile,
    page: &Page,
    control: Control,
    requests: PhaseRequests,
) -> Result<Outcome, PhaseError> {
    let setting_up = set_up(context, job, workdir, &requests, control.clone());
    let mut watching = control.clone();
    let found = tokio::select! {
        found = setting_up => found?,
        stopped = stopped(&mut watching) => return Err(PhaseError::Stopped(stopped)),
    };
    let environment = environment::of(job, workdir, context.ca_bundle.as_deref(), std::env::vars_os());
    let noted = page.clone();
    let executor = Executor {
        supervisor: context.options.supervisor.clone(),
        run_as: context.options.run_as,
        started: Arc::new(move |process| {
            if let Err(error) = noted.change(|entry| entry.supervisor = Some(process)) {
                tracing::warn!(%error, "the journal cannot be written");
            }
        }),
    };
    let (workdir, log, mask, page) = (workdir.clone(), log.clone(), Mask::of(job), page.clone());
    let mut running =
        Running { context, job, workdir, found, environment, log, mask, control, requests, executor, page };
    running.init().await?;
    match job.phase.phase {
        PhaseKind::Plan => plan_result::run(&mut running).await,
        PhaseKind::Apply => apply_result::run(&mut running).await,
    }
}

/// Returns when the phase is to stop, while nothing runs that could be interrupted.
async fn stopped(control: &mut Control) -> Stopped {
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

/// Fetches and writes everything that the engine needs.
async fn set_up(
    context: &Context,
    job: &Job,
    workdir: &Workdir,
    requests: &PhaseRequests,
    control: Control,
) -> Result<Found, PhaseError> {
    let configuration = async {
        let packed = workdir.file("configuration.tar.gz");
        fetch(requests, "configuration", &packed, control.clone()).await?;
        let root = workdir.configuration();
        let unpacking = tokio::task::spawn_blocking(move || archive::unpack(&packed, &root, archive::LIMITS));
        unpacking.await.map_err(failed)?.map_err(failed)
    };
    let state = async {
        match job.has_state {
            true => fetch(requests, "state", &workdir.file("state"), control.clone()).await,
            false => Ok(()),
        }
    };
    let plan = async {
        match job.phase.phase {
            PhaseKind::Plan => Ok(()),
            PhaseKind::Apply => fetch(requests, "plan", &workdir.file("plan.tfplan"), control.clone()).await,
        }
    };
    let engine = async { context.engines.find(&job.engine).await.map_err(PhaseError::Failed) };
    let services = async { Ok(context.services().await) };
    let ((), (), (), found, services) = tokio::try_join!(configuration, state, plan, engine, services)?;
    if !workdir.working_directory().is_dir() {
        return Err(PhaseError::Failed(format!("the configuration has no directory {}", job.working_directory)));
    }
    let write = || -> io::Result<()> {
        backend_override::write(workdir.working_directory(), &job.workspace)?;
        if job.has_state {
            std::fs::rename(workdir.file("state"), workdir.state())?;
        }
        variables::write(workdir.working_directory(), &job.variables)?;
        environment::write_ssh_key(job, workdir)?;
        let mirror = context.options.provider_mirror.as_ref();
        let text = cli_configuration::text(&job.server_url, &services, &job.token, mirror)?;
        cli_configuration::write(&workdir.file("cli.tfrc"), &text)?;
        context.options.run_as.map_or(Ok(()), |user| workdir.give_to(user))
    };
    write().map_err(failed)?;
    Ok(found)
}

async fn fetch(requests: &PhaseRequests, word: &str, file: &Path, mut control: Control) -> Result<(), PhaseError> {
    match requests.fetch(word, file, &mut control).await? {
        true => Ok(()),
        // Without a state that is there, an apply would make everything anew.
        false => Err(PhaseError::Failed(format!("the server does not have the {word} of this run"))),
    }
}

impl Running<'_> {
    /// The first three lines of a log are skipped by the `cloud` block, so they say what everybody knows.
    async fn init(&mut self) -> Result<(), PhaseError> {
        let name = match self.found.engine {
            Engine::Terraform => "Terraform",
            Engine::Tofu => "OpenTofu",
        };
        for line in [
            format!("{name} v{}", self.found.version),
            format!("on {}_{}", platform(), architecture()),
            "Initializing plugins and modules...".to_owned(),
        ] {
            self.log.say(&line).map_err(failed)?;
        }
        let output = self.workdir.file("init");
        let arguments = vec!["init".into(), "-input=false".into()];
        let mut control = self.control.clone();
        let invocation = self.invocation(&self.environment, arguments, false);
        let (exit, errors) = self.executor.to_file(invocation, &output, &mut control).await.map_err(failed)?;
        if let Some(stopped) = exit.stopped {
            return Err(PhaseError::Stopped(stopped));
        }
        if exit.code == 0 {
            return Ok(());
        }
        let said = std::fs::read(&output).unwrap_or_default();
        self.log.write(&said).and_then(|()| self.log.write(errors.as_bytes())).map_err(failed)?;
        Err(self.engine_failed("init", exit))
    }

    /// Runs the engine with its output in the log.
    pub(crate) async fn engine(&self, arguments: Vec<OsString>, patient: bool) -> Result<Exit, PhaseError> {
        let invocation = self.invocation(&self.environment, arguments, patient);
        let mut control = self.control.clone();
        self.executor.to_log(invocation, &self.log, &mut control).await.map_err(|error| self.disk_failed(&error))
    }

    /// Runs the engine for something that the agent reads.
    pub(crate) async fn output<const N: usize>(&self, arguments: [OsString; N], file: &Path) -> Result<(), PhaseError> {
        let environment = environment::for_reading(&self.environment);
        let command = arguments[0].to_string_lossy().into_owned();
        let invocation = self.invocation(&environment, arguments.into(), false);
        let mut control = self.control.clone();
        let (exit, errors) =
            self.executor.to_file(invocation, file, &mut control).await.map_err(|error| self.disk_failed(&error))?;
        match (exit.stopped, exit.code) {
            (Some(stopped), _) => Err(PhaseError::Stopped(stopped)),
            (None, 0) => Ok(()),
            (None, _) => Err(PhaseError::Failed(format!("{} {command} failed: {}", self.found.engine, errors.trim()))),
        }
    }

    fn invocation<'a>(
        &'a self,
        environment: &'a Environment,
        arguments: Vec<OsString>,
        patient: bool,
    ) -> Invocation<'a> {
        let (program, directory) = (self.found.program.as_path(), self.workdir.working_directory());
        Invocation { program, arguments, directory, environment, patient }
    }

    pub(crate) fn engine_failed(&self, command: &str, exit: Exit) -> PhaseError {
        if let Some(stopped) = exit.stopped {
            return PhaseError::Stopped(stopped);
        }
        match self.log.observed().error {
            Some(summary) => PhaseError::Failed(summary),
            None => PhaseError::Failed(format!("{} {command} ended with code {}", self.found.engine, exit.code)),
        }
    }

    fn disk_failed(&self, error: &io::Error) -> PhaseError {
        match error.kind() {
            io::ErrorKind::StorageFull => {
                PhaseError::Failed(format!("no space left on the agent {}", self.context.options.name))
            }
            _ => failed(error),
        }
    }

    /// The state must not be lost, even if nobody takes it.
    pub(crate) fn state_refused(&self, reason: &str) -> PhaseError {
        let state = crate::state_upload::newest(&self.workdir.errored_state(), &self.workdir.state());
        match self.context.keep_state(self.job.phase.run, &state.unwrap_or_default()) {
            Ok(kept) => PhaseError::Failed(format!(
                "the state was not taken: {reason}. The agent {} has kept it in {}",
                self.context.options.name,
                kept.display()
            )),
            Err(error) => {
                PhaseError::Failed(format!("the state was not taken: {reason}; it could not be kept: {error}"))
            }
        }
    }
}
