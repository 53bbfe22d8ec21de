//! Sends what a phase could not: after its lease ended, or after the agent was killed and started again.
//!
//! Nothing runs any more, so there is nothing to stop. The server decides by the phase's token and epoch what it still
//! takes; a state that comes too late it keeps as a copy.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use taco_agent_protocol::{Outcome, PhaseKind};
use tokio::sync::watch;

use crate::context::Context;
use crate::control::{Control, Stop};
use crate::journal::{Entry, JournalRecord};
use crate::log_file::{ETX, STX};
use crate::phase::{MAY_BE_INCOMPLETE, report};
use crate::phase_requests::{PhaseRequests, RequestError};
use crate::state_upload::{StateFiles, StateUpload};
use crate::{log_upload, workdir};

/// Timeout for engines of a dead agent; their supervisor ends them sooner.
const SUPERVISOR_TIMEOUT: Duration = Duration::from_secs(15);
const NO_TIMEOUT: Duration = Duration::from_secs(86_400);

/// Returns when the server has everything, or has said that it wants nothing.
pub(crate) async fn resend(context: Arc<Context>, record: JournalRecord) {
    let entry = record.entry();
    let phase = entry.phase;
    let (_stop, stop) = watch::channel(Stop::Run);
    let (_lease, lease) = watch::channel(None);
    let control = Control::new(stop, lease, NO_TIMEOUT);
    match send(&context, &entry, control).await {
        Ok(()) => tracing::info!(%phase, "what was left of it has been sent"),
        Err(RequestError::Lost) => {
            tracing::warn!(event = "phase_abandoned", %phase, "the server wants nothing more of it");
        }
        Err(RequestError::Refused(reason)) => {
            tracing::error!(event = "resend_rejected", %phase, reason, "what was left of it was not taken");
        }
    }
    let cleaned = record.remove().and_then(|()| workdir::remove(&entry.directory));
    if let Err(error) = cleaned {
        tracing::warn!(event = "cleanup_failed", %phase, %error, "something was left on disk");
    }
}

async fn send(context: &Context, entry: &Entry, control: Control) -> Result<(), RequestError> {
    let requests = PhaseRequests::new(&context.client, &context.dial, entry.phase, &entry.token);
    let outcome = match (entry.phase.phase, &entry.outcome) {
        (_, Some(outcome)) => outcome.clone(),
        // A plan that is not reported is retried by itself.
        (PhaseKind::Plan, None) => return Ok(()),
        (PhaseKind::Apply, None) => {
            let name = &context.options.name;
            let (message, incomplete) = match entry.may_have_applied {
                true => (format!("the agent {name} was killed while it applied: {MAY_BE_INCOMPLETE}"), true),
                false => (format!("the agent {name} was killed before it applied anything"), false),
            };
            Outcome::Errored { message, engine: None, incomplete }
        }
    };
    if entry.phase.phase == PhaseKind::Apply {
        let mut upload = StateUpload::new(state_files(entry), requests.clone(), control.clone());
        upload.sent = entry.sent_state;
        if let Err(error) = upload.send().await {
            keep_state(context, entry);
            return Err(error);
        }
    }
    if let Err(error) = end_log(&entry.log, &outcome) {
        tracing::warn!(event = "log_end_failed", phase = %entry.phase, %error, "the log cannot be ended");
    }
    send_log(&entry.log, &requests, control.clone()).await?;
    report(&requests, &outcome, control).await
}

fn state_files(entry: &Entry) -> StateFiles {
    StateFiles::new(&entry.directory, &entry.state, &entry.errored_state)
}

fn keep_state(context: &Context, entry: &Entry) {
    let Some(state) = state_files(entry).newest() else { return };
    match context.keep_state(entry.phase.run, &state) {
        Ok(path) => {
            tracing::warn!(
                event = "rejected_state_saved", phase = %entry.phase, path = %path.display(),
                "a state that was not taken is kept"
            );
        }
        Err(error) => {
            tracing::error!(
                event = "rejected_state_lost", phase = %entry.phase, %error,
                "a state that was not taken cannot be kept"
            );
        }
    }
}

/// A log that was cut off says why, and ends as every log does.
fn end_log(path: &Path, outcome: &Outcome) -> io::Result<()> {
    if std::fs::read(path)?.last() == Some(&ETX) {
        return Ok(());
    }
    let mut file = OpenOptions::new().append(true).open(path)?;
    if file.metadata()?.len() == 0 {
        file.write_all(&[STX])?;
    }
    if let Outcome::Errored { message, .. } = outcome {
        writeln!(file, "\nError: {message}")?;
    }
    file.write_all(&[ETX])
}

async fn send_log(path: &Path, requests: &PhaseRequests, mut control: Control) -> Result<(), RequestError> {
    let Ok(end) = std::fs::metadata(path).map(|file| file.len()) else { return Ok(()) };
    // Where the server is, it says when the last byte does not follow.
    let mut offset = requests.send_log(end.saturating_sub(1), Bytes::from_static(&[ETX]), &mut control).await?;
    while offset < end {
        offset = log_upload::send_part(path, offset, end, requests, &mut control).await?;
    }
    Ok(())
}

/// Waits until nothing of a phase runs any more that an earlier agent began.
pub(crate) async fn wait_for_supervisor(entry: &Entry) {
    let Some(process) = entry.supervisor else { return };
    let directory = entry.directory.to_string_lossy().into_owned();
    let lives = || match std::fs::read(format!("/proc/{process}/cmdline")) {
        Ok(arguments) => String::from_utf8_lossy(&arguments).contains(&directory),
        // Another process may have its number by now: it is waited for in vain, and not for long.
        Err(_) if !cfg!(target_os = "linux") => {
            i32::try_from(process).is_ok_and(|process| kill(Pid::from_raw(process), None).is_ok())
        }
        Err(_) => false,
    };
    let waiting = async {
        while lives() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    if tokio::time::timeout(SUPERVISOR_TIMEOUT, waiting).await.is_err() {
        tracing::warn!(
            event = "engine_kill_failed", phase = %entry.phase, process,
            "an engine of an earlier agent does not end"
        );
    }
}
