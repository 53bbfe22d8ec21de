//! Applies a plan, and sends the state while it changes and when it is done.

use taco_agent_protocol::{Outcome, ResourceCounts};

use crate::phase::{PhaseError, failed};
use crate::phase_requests::RequestError;
use crate::redacted_plan::ShownPlan;
use crate::running::Running;
use crate::state_upload::StateUpload;

pub(crate) async fn run(running: &mut Running<'_>) -> Result<Outcome, PhaseError> {
    let plan = running.workdir.for_engine("plan.tfplan");
    let mut arguments = vec!["apply".into(), "-input=false".into()];
    if running.job.structured_output {
        arguments.push("-json".into());
    }
    arguments.push(plan.clone().into());
    let files = running.workdir.state_files();
    let mut upload = StateUpload::new(files, running.requests.clone(), running.control.clone());
    // A crash before the first change must not send the server's own state back to it.
    let before = upload.sent;
    let noted = running.record.change(|entry| {
        (entry.sent_state, entry.may_have_applied) = (before, true);
    });
    noted.map_err(failed)?;
    let record = running.record.clone();
    let note = |digest| {
        if let Err(error) = record.change(|entry| entry.sent_state = Some(digest)) {
            tracing::warn!(event = "journal_write_failed", %error, "the journal cannot be written");
        }
    };
    let planned = planned_counts(running);
    let (exit, planned) = {
        let following = upload.follow(note);
        let applying = async { tokio::join!(running.run_engine(arguments, true), planned) };
        tokio::pin!(following, applying);
        tokio::select! {
            done = &mut applying => done,
            // What cannot be sent now is tried once more at the end.
            refused = &mut following => {
                if let Err(error) = refused {
                    tracing::warn!(
                        event = "state_upload_rejected", phase = %running.job.phase, %error,
                        "a state was not taken"
                    );
                }
                applying.await
            }
        }
    };
    let exit = exit?;
    let result = match (exit.code, exit.killed()) {
        (0, _) => {
            let counts = running.log.observed().applied.or(planned).unwrap_or_default();
            Ok(Outcome::Applied { counts, engine: running.engine.request() })
        }
        (_, Some(how)) => {
            Err(PhaseError::Killed { how: format!("{} {how}", running.engine.engine), stopped: exit.stopped })
        }
        (_, None) => Err(running.engine_failed("apply", exit)),
    };
    match upload.send().await {
        Ok(Some(digest)) => note(digest),
        Ok(None) => {}
        Err(RequestError::Refused(reason)) => return Err(running.state_refused(&reason)),
        Err(RequestError::Lost) => {
            // A later reader of the state has to know that nothing went wrong.
            if let Ok(outcome) = result {
                running.record.change(|entry| entry.outcome = Some(outcome)).map_err(failed)?;
            }
            return Err(PhaseError::Lost);
        }
    }
    result
}

/// Counts from the plan. An apply that logs text reports its own counts for people only, and if it succeeds it did what
/// the plan said.
async fn planned_counts(running: &Running<'_>) -> Option<ResourceCounts> {
    if running.job.structured_output {
        return None;
    }
    let shown = running.workdir.file("plan.json");
    let plan = running.workdir.for_engine("plan.tfplan");
    running.output(["show".into(), "-json".into(), plan.into()], &shown).await.ok()?;
    let shown: ShownPlan = serde_json::from_slice(&std::fs::read(shown).ok()?).ok()?;
    Some(shown.counts())
}
