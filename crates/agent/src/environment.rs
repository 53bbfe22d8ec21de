//! The environment of an engine, built from nothing: what the agent has in its own is not a run's business.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use taco_agent_protocol::{Job, VariableCategory};

use crate::options::RunEnvironment;
use crate::workdir::Workdir;

/// Environment variables that an engine inherits from the agent: to find programs, and to reach the network.
pub(crate) const INHERITED_VARIABLES: [&str; 14] = [
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
];
/// Configurations with `import` blocks are refused within a run of Terraform Cloud by agents older than 1.10.
const AGENT_VERSION: &str = "1.22.0";
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(crate) type Environment = BTreeMap<OsString, OsString>;

/// Everything that the engine of a job gets.
pub(crate) fn of(
    job: &Job,
    workdir: &Workdir,
    ca_bundle: Option<&Path>,
    memory: &[(&'static str, String)],
    begins_with: &RunEnvironment,
    provider_cache: Option<&Path>,
) -> Environment {
    let mut environment: Environment = match begins_with {
        RunEnvironment::Clean => {
            let is_passed_on = |name: &OsString| INHERITED_VARIABLES.iter().any(|passed_on| name == passed_on);
            std::env::vars_os().filter(|(name, _)| is_passed_on(name)).collect()
        }
        RunEnvironment::Inherit(all) => all.iter().filter(|(name, _)| !is_of_another_run(name)).cloned().collect(),
    };
    let has_home = matches!(begins_with, RunEnvironment::Inherit(_)) && environment.contains_key(OsStr::new("HOME"));
    let has_cache = environment.contains_key(OsStr::new("TF_PLUGIN_CACHE_DIR"));
    let mut set = |name: &str, value: &OsStr| environment.insert(name.into(), value.into());
    if let Some(bundle) = ca_bundle {
        set("SSL_CERT_FILE", bundle.as_os_str());
    }
    for (name, value) in memory {
        set(name, value.as_ref());
    }
    // An inherited environment keeps its directory of temporary files too: providers make sockets there, whose paths have
    // to be short, and those below a user's cache are not.
    if !has_home {
        set("HOME", workdir.home().as_os_str());
        set("TMPDIR", workdir.temporary().as_os_str());
    }
    if let Some(cache) = provider_cache {
        if !has_cache {
            set("TF_PLUGIN_CACHE_DIR", cache.as_os_str());
        }
        // The lock file of a run is a copy that goes away with it; the one that was uploaded is obeyed all the same.
        set("TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE", OsStr::new("1"));
    }
    for (name, value) in [("TF_IN_AUTOMATION", "1"), ("TF_INPUT", "0"), ("CHECKPOINT_DISABLE", "1")] {
        set(name, value.as_ref());
    }
    let run = job.phase.run.to_string();
    let slug = format!("{}/{}", job.organization, job.workspace);
    for (name, value) in [
        ("TFC_RUN_ID", run.as_str()),
        ("TFC_WORKSPACE_NAME", &job.workspace),
        ("TFC_WORKSPACE_SLUG", &slug),
        ("TFC_ORGANIZATION_NAME", &job.organization),
    ] {
        set(name, value.as_ref());
        // So that a configuration can declare a variable of this name.
        set(&format!("TF_VAR_{name}"), value.as_ref());
    }
    set("TFC_AGENT_VERSION", AGENT_VERSION.as_ref());
    if job.ssh_key.is_some() {
        set("GIT_SSH_COMMAND", ssh_command(workdir).as_ref());
    }
    for variable in job.variables.iter().filter(|variable| variable.category == VariableCategory::Env) {
        set(&variable.key, variable.value.as_ref());
    }
    // Variables of a workspace may not change these, because the phase would no longer be that of the workspace.
    for (name, value) in [
        ("TF_WORKSPACE", OsStr::new(&job.workspace)),
        ("TF_CLI_CONFIG_FILE", workdir.for_engine("cli.tfrc").as_os_str()),
        ("TF_DATA_DIR", OsStr::new(".terraform")),
    ] {
        set(name, value);
    }
    environment.entry("PATH".into()).or_insert_with(|| DEFAULT_PATH.into());
    environment
}

/// True for variables that belong to terraform or tofu as the user has called it, or to taco itself: they would change
/// which workspace a run is about, or what it is asked to do.
fn is_of_another_run(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    ["TACO_", "TF_CLI_ARGS", "TF_TOKEN_"].iter().any(|beginning| name.starts_with(beginning))
        || ["TF_WORKSPACE", "TF_DATA_DIR", "TF_CLI_CONFIG_FILE", "TF_INPUT", "TF_STATE_PERSIST_INTERVAL"]
            .contains(&name.as_ref())
}

/// Without what changes the output of commands whose output is read by the agent.
pub(crate) fn for_reading(environment: &Environment) -> Environment {
    let changes_output = |name: &OsStr| {
        let name = name.to_string_lossy();
        name.starts_with("TF_CLI_ARGS") || name.starts_with("TF_LOG")
    };
    environment.iter().filter(|(name, _)| !changes_output(name)).map(|(n, v)| (n.clone(), v.clone())).collect()
}

/// Puts the key with which git fetches modules where only the run finds it.
pub(crate) fn write_ssh_key(job: &Job, workdir: &Workdir) -> io::Result<()> {
    let Some(key) = &job.ssh_key else { return Ok(()) };
    let path = workdir.for_engine("ssh-key");
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, format!("{}\n", key.trim_end()).as_bytes())
}

fn ssh_command(workdir: &Workdir) -> String {
    format!(
        "ssh -i '{}' -o IdentitiesOnly=yes -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile='{}'",
        workdir.for_engine("ssh-key").display(),
        workdir.for_engine("known-hosts").display(),
    )
}
