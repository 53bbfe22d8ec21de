//! Between what the control plane says and what the protocol says.

use taco_agent_protocol::{
    EngineRequest, Job, Operation, Outcome, PhaseKind, PolicyBundle, PolicyGroup, PolicyParameter, PolicyQuery,
    PolicyResultStatus, PolicySetJob, PolicySetResult, PolicyTiming, Variable,
};
use taco_control_plane::{PhaseOutcome, PhasePolicies, PhasePolicyGroup, PhasePolicySet, TakenPhase};
use taco_domain::run_policies::{PolicyReport, PolicySetReport, PolicyStatus};

pub(crate) fn job(taken: TakenPhase, server_url: &str) -> Job {
    let TakenPhase { attempt, run, workspace, organization, token, run_token, timeout, has_state, variables, ssh_key } =
        taken;
    let policies = match (attempt.phase, &run.policies) {
        (PhaseKind::Plan, Some(policies)) if policies.has_opa() => match run.options.allow_empty_apply {
            true => PolicyTiming::Always,
            false => PolicyTiming::WithChanges,
        },
        _ => PolicyTiming::Never,
    };
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
        policies,
    }
}

/// The policies of a phase, as its agent gets them.
pub(crate) fn policy_bundle(policies: PhasePolicies) -> PolicyBundle {
    PolicyBundle { run: policies.run, sets: policies.sets.into_iter().map(policy_set).collect() }
}

fn policy_set(set: PhasePolicySet) -> PolicySetJob {
    let parameters = set.parameters.into_iter().map(|parameter| PolicyParameter {
        key: parameter.key,
        value: parameter.value,
        sensitive: parameter.sensitive,
    });
    PolicySetJob {
        id: set.id,
        name: set.name,
        opa_version: set.tool_version,
        parameters: parameters.collect(),
        groups: set.groups.into_iter().map(policy_group).collect(),
        error: set.error,
    }
}

fn policy_group(group: PhasePolicyGroup) -> PolicyGroup {
    let policies = group.policies.into_iter().map(|policy| PolicyQuery {
        name: policy.name,
        query: policy.query,
        mandatory: policy.level.is_mandatory(),
        description: policy.description,
    });
    PolicyGroup { syntax: group.syntax.map(str::to_owned), modules: group.modules, policies: policies.collect() }
}

fn report(result: PolicySetResult) -> PolicySetReport {
    let policies = result.policies.into_iter().map(|policy| PolicyReport {
        name: policy.name,
        status: match policy.status {
            PolicyResultStatus::Passed => PolicyStatus::Passed,
            PolicyResultStatus::Failed => PolicyStatus::Failed,
            PolicyResultStatus::Errored => PolicyStatus::Errored,
        },
        output: policy.output,
    });
    PolicySetReport {
        set: result.set,
        tool_version: result.opa_version,
        error: result.error,
        policies: policies.collect(),
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
            policies: summary.policies.into_iter().map(report).collect(),
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
