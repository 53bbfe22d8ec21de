//! Fetches and writes everything that an engine needs.

use std::io;
use std::path::Path;

use taco_agent_protocol::{Job, PhaseKind};
use taco_configuration_archive::LIMITS;

use crate::context::Context;
use crate::control::Control;
use crate::engine::InstalledEngine;
use crate::phase::{PhaseError, failed};
use crate::phase_requests::PhaseRequests;
use crate::users::RunAs;
use crate::workdir::Workdir;
use crate::{archive, backend_override, cli_configuration, environment, variables};

/// Returns the engine that is to be started, and the directory with paths that have no links in them.
pub(crate) async fn set_up(
    context: &Context,
    job: &Job,
    workdir: &Workdir,
    user: Option<RunAs>,
    requests: &PhaseRequests,
    control: Control,
) -> Result<(InstalledEngine, Workdir), PhaseError> {
    let configuration = async {
        let packed = workdir.file("configuration.tar.gz");
        fetch(requests, "configuration", &packed, control.clone()).await?;
        let root = workdir.configuration();
        let unpacking = tokio::task::spawn_blocking(move || archive::unpack(&packed, &root, LIMITS));
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
            PhaseKind::Apply => fetch(requests, "plan", &workdir.for_engine("plan.tfplan"), control.clone()).await,
        }
    };
    let engine = async { context.engines.find(&job.engine).await.map_err(PhaseError::Failed) };
    let services = async { Ok(context.services().await) };
    let ((), (), (), found, services) = tokio::try_join!(configuration, state, plan, engine, services)?;
    if !workdir.working_directory().is_dir() {
        return Err(PhaseError::Failed(format!("the configuration has no directory {}", job.working_directory)));
    }
    let write = || -> io::Result<Workdir> {
        backend_override::write(workdir.working_directory(), &job.workspace)?;
        let workdir = workdir.without_links()?;
        if job.has_state {
            std::fs::rename(workdir.file("state"), workdir.state())?;
        }
        variables::write(workdir.working_directory(), &job.variables)?;
        environment::write_ssh_key(job, &workdir)?;
        let mirror = context.options.provider_mirror.as_ref();
        let text = cli_configuration::text(&job.server_url, &services, job.run_token(), mirror)?;
        cli_configuration::write(&workdir.for_engine("cli.tfrc"), &text)?;
        if let Some(user) = user {
            workdir.give_to(user)?;
        }
        Ok(workdir)
    };
    Ok((found, write().map_err(failed)?))
}

async fn fetch(requests: &PhaseRequests, word: &str, file: &Path, mut control: Control) -> Result<(), PhaseError> {
    match requests.fetch(word, file, &mut control).await? {
        true => Ok(()),
        // Without a state that is there, an apply would make everything anew.
        false => Err(PhaseError::Failed(format!("the server does not have the {word} of this run"))),
    }
}
