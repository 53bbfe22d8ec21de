//! A phase whose engine can be started.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

use taco_agent_protocol::{Engine, Job};

use crate::context::Context;
use crate::control::Control;
use crate::engine::InstalledEngine;
use crate::engine_download::{architecture, platform};
use crate::environment::{self, Environment};
use crate::execute::{Executor, Exit, Invocation};
use crate::journal::JournalRecord;
use crate::log_file::LogFile;
use crate::mask::Mask;
use crate::phase::{PhaseError, failed, stopped};
use crate::phase_requests::PhaseRequests;
use crate::workdir::Workdir;

/// Interval of looking whether another run has left the cache of providers.
const PROVIDER_CACHE_POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) struct Running<'a> {
    pub(crate) context: &'a Context,
    pub(crate) job: &'a Job,
    pub(crate) workdir: Workdir,
    pub(crate) engine: InstalledEngine,
    pub(crate) environment: Environment,
    pub(crate) log: LogFile,
    pub(crate) mask: Mask,
    pub(crate) control: Control,
    pub(crate) requests: PhaseRequests,
    pub(crate) executor: Executor,
    pub(crate) record: JournalRecord,
}

impl Running<'_> {
    /// The first three lines of a log are skipped by the `cloud` block, so they say what everybody knows.
    pub(crate) async fn init(&mut self) -> Result<(), PhaseError> {
        let name = match self.engine.engine {
            Engine::Terraform => "Terraform",
            Engine::Tofu => "OpenTofu",
        };
        for line in [
            format!("{name} v{}", self.engine.version),
            format!("on {}_{}", platform(), architecture()),
            "Initializing plugins and modules...".to_owned(),
        ] {
            self.log.say(&line).map_err(failed)?;
        }
        let output = self.workdir.file("init");
        let arguments = vec!["init".into(), "-input=false".into()];
        let mut control = self.control.clone();
        let turn = self.turn_at_provider_cache().await?;
        let invocation = self.invocation(&self.environment, arguments, false);
        let (exit, errors) = self.executor.to_file(invocation, &output, &mut control).await.map_err(failed)?;
        drop(turn);
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

    /// Waits until no other run on this machine fills the cache of providers: engines do not expect each other there.
    async fn turn_at_provider_cache(&self) -> Result<Option<File>, PhaseError> {
        let Some(cache) = &self.context.options.provider_cache else { return Ok(None) };
        let lock = File::create(cache.join(".lock")).map_err(failed)?;
        let waiting = async {
            loop {
                match lock.try_lock() {
                    Ok(()) => return Ok(()),
                    Err(TryLockError::WouldBlock) => tokio::time::sleep(PROVIDER_CACHE_POLL_INTERVAL).await,
                    Err(TryLockError::Error(error)) => return Err(failed(error)),
                }
            }
        };
        tokio::select! {
            locked = waiting => locked?,
            stopped = stopped(self.control.clone()) => return Err(PhaseError::Stopped(stopped)),
        }
        Ok(Some(lock))
    }

    /// Runs the engine with its output in the log.
    pub(crate) async fn run_engine(&self, arguments: Vec<OsString>, graceful_cancel: bool) -> Result<Exit, PhaseError> {
        let invocation = self.invocation(&self.environment, arguments, graceful_cancel);
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
            (None, _) => Err(PhaseError::Failed(format!("{} {command} failed: {}", self.engine.engine, errors.trim()))),
        }
    }

    fn invocation<'a>(
        &'a self,
        environment: &'a Environment,
        arguments: Vec<OsString>,
        graceful_cancel: bool,
    ) -> Invocation<'a> {
        let (program, directory) = (self.engine.program.as_path(), self.workdir.working_directory());
        Invocation { program, arguments, directory, environment, graceful_cancel }
    }

    pub(crate) fn engine_failed(&self, command: &str, exit: Exit) -> PhaseError {
        if let Some(stopped) = exit.stopped {
            return PhaseError::Stopped(stopped);
        }
        match self.log.observed().error {
            Some(summary) => PhaseError::Failed(summary),
            None => PhaseError::Failed(format!("{} {command} ended with code {}", self.engine.engine, exit.code)),
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

    /// The state must not be lost, even if the server refuses it.
    pub(crate) fn state_refused(&self, reason: &str) -> PhaseError {
        let state = self.workdir.state_files().newest();
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
