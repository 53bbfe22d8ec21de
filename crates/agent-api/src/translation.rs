//! Between what the control plane says and what the protocol says.

use taco_agent_protocol::{EngineRequest, Job, Operation, Outcome, Variable};
use taco_control_plane::{PhaseOutcome, TakenPhase};

pub(crate) fn job(taken: TakenPhase, server_url: &str) -> Job {
    let TakenPhase { attempt, run, workspace, organization, token, run_token, timeout, has_state, variables, ssh_key } =
        taken;
    let options = run.options;
    let variables = variables.into_iter().map(|variable| Variable {
        key: variable.key,
        value: variable.value,
        category: variable.category,
        hcl: variable.hcl,
        sensitive: variable.sensitive,
    });
    Job {
        phase: attempt,
        token,
        run_token: Some(run_token),
        organization,
        workspace: workspace.name.to_string(),
        workspace_id: workspace.id,
        engine: EngineRequest { engine: options.engine, version: options.terraform_version },
        working_directory: workspace.working_directory,
        operation: Operation {
            destroy: options.is_destroy,
            refresh: options.refresh,
            refresh_only: options.refresh_only,
            targets: options.target_addrs,
            replace: options.replace_addrs,
            generate_configuration: options.allow_config_generation,
        },
        structured_output: run.structured_output,
        variables: variables.collect(),
        ssh_key,
        has_state,
        timeout_seconds: timeout.as_secs().unsigned_abs(),
        server_url: server_url.to_owned(),
    }
}

pub(crate) fn outcome(outcome: Outcome) -> PhaseOutcome {
    let engine = |request: EngineRequest| (request.engine, request.version);
    match outcome {
        Outcome::Planned(summary) => PhaseOutcome::Planned {
            has_changes: summary.has_changes,
            counts: summary.counts,
            generated_configuration: summary.generated_configuration,
            engine: engine(summary.engine),
        },
        Outcome::Applied { counts, engine: request } => PhaseOutcome::Applied { counts, engine: engine(request) },
        Outcome::Errored { message, incomplete: true, .. } => PhaseOutcome::Incomplete { message, canceled: false },
        Outcome::Errored { message, engine: request, incomplete: false } => {
            PhaseOutcome::Errored { message, engine: request.map(engine) }
        }
        Outcome::Canceled { incomplete: true } => {
            PhaseOutcome::Incomplete { message: "it was stopped by force".to_owned(), canceled: true }
        }
        Outcome::Canceled { incomplete: false } => PhaseOutcome::Canceled,
    }
}
