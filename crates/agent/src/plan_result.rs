//! Plans, and sends what came of it: the plan, what `show -json` says, and what the `cloud` block renders.

use std::ffi::OsString;

use bytes::Bytes;
use taco_agent_protocol::{Outcome, PlanSummary, Upload};

use crate::phase::{PhaseError, failed};
use crate::phase_requests::Content;
use crate::policies;
use crate::provider_schemas::SchemaStore;
use crate::redacted_plan::ShownPlan;
use crate::running::Running;

const CHANGES_EXIT_CODE: i32 = 2;

pub(crate) async fn run(running: &mut Running<'_>) -> Result<Outcome, PhaseError> {
    let plan = running.workdir.for_engine("plan.tfplan");
    let generated = running.workdir.for_engine("generated.tf");
    let arguments = arguments(running, &plan.display().to_string(), &generated.display().to_string());
    let exit = running.run_engine(arguments, false).await?;
    let has_changes = match exit.code {
        0 => false,
        CHANGES_EXIT_CODE => true,
        _ => return Err(running.engine_failed("plan", exit)),
    };
    if let Some(stopped) = exit.stopped {
        return Err(PhaseError::Stopped(stopped));
    }
    tracing::debug!(phase = %running.job.phase, "planned");
    let shown_path = running.workdir.file("plan.json");
    let mut control = running.control.clone();
    let sending = running.requests.send(Upload::Plan, Content::File(running.workdir.of_engine(&plan)), &mut control);
    let showing = running.output(["show".into(), "-json".into(), plan.clone().into()], &shown_path);
    let (sent, shown) = tokio::join!(sending, showing);
    sent?;
    shown?;
    tracing::debug!(phase = %running.job.phase, "shown");
    let shown: ShownPlan = {
        let path = shown_path.clone();
        let parsing = tokio::task::spawn_blocking(move || {
            serde_json::from_slice(&std::fs::read(path)?).map_err(std::io::Error::other)
        });
        parsing.await.map_err(failed)?.map_err(failed)?
    };
    let counts = shown.counts();
    let redacted = redact(running, shown).await?;
    tracing::debug!(phase = %running.job.phase, "redacted");
    let policies = policies::evaluate(running, &shown_path, has_changes).await?;
    running.log.complete().map_err(failed)?;
    let (mut first, mut second) = (running.control.clone(), running.control.clone());
    tokio::try_join!(
        running.requests.send(Upload::JsonPlan, Content::File(running.workdir.of_engine(&shown_path)), &mut first),
        running.requests.send(Upload::RedactedPlan, Content::Bytes(redacted), &mut second),
    )?;
    tracing::debug!(phase = %running.job.phase, "sent");
    let generated_configuration =
        std::fs::symlink_metadata(generated).is_ok_and(|file| file.is_file() && file.len() > 0);
    let engine = running.engine.request();
    Ok(Outcome::Planned(PlanSummary { has_changes, counts, generated_configuration, engine, policies }))
}

fn arguments(running: &Running<'_>, plan: &str, generated: &str) -> Vec<OsString> {
    let operation = &running.job.operation;
    let mut arguments: Vec<OsString> =
        vec!["plan".into(), "-input=false".into(), "-detailed-exitcode".into(), format!("-out={plan}").into()];
    let mut flag = |is_set: bool, flag: &str| {
        if is_set {
            arguments.push(flag.into());
        }
    };
    flag(running.job.structured_output, "-json");
    flag(operation.destroy, "-destroy");
    flag(operation.refresh_only, "-refresh-only");
    flag(!operation.refresh && !operation.refresh_only, "-refresh=false");
    flag(operation.generate_configuration, &format!("-generate-config-out={generated}"));
    arguments.extend(operation.targets.iter().map(|address| format!("-target={address}").into()));
    arguments.extend(operation.replace.iter().map(|address| format!("-replace={address}").into()));
    arguments
}

async fn redact(running: &mut Running<'_>, shown: ShownPlan) -> Result<Bytes, PhaseError> {
    let types = shown.types();
    let lock_file = running.workdir.working_directory().join(".terraform.lock.hcl");
    let lock = running.workdir.of_engine(&lock_file).read().unwrap_or_default();
    let store = SchemaStore::new(&running.context.schemas, &running.engine, &lock);
    if !store.has(&types) {
        let schemas = running.workdir.file("schemas.json");
        running.output(["providers".into(), "schema".into(), "-json".into()], &schemas).await?;
        store.put(&schemas).map_err(failed)?;
    }
    let redacted = shown.redact(store.get(&types), &running.mask, rand::random());
    serde_json::to_vec(&redacted).map(Bytes::from).map_err(failed)
}
