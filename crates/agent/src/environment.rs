//! The environment of an engine, built from nothing: what the agent has in its own is not a run's business.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use taco_agent_protocol::{Job, VariableCategory};

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
    own: impl IntoIterator<Item = (OsString, OsString)>,
) -> Environment {
    let mut environment: Environment =
        own.into_iter().filter(|(name, _)| INHERITED_VARIABLES.iter().any(|passed_on| name == passed_on)).collect();
    let mut set = |name: &str, value: &OsStr| environment.insert(name.into(), value.into());
    if let Some(bundle) = ca_bundle {
        set("SSL_CERT_FILE", bundle.as_os_str());
    }
    for (name, value) in memory {
        set(name, value.as_ref());
    }
    set("HOME", workdir.home().as_os_str());
    set("TMPDIR", workdir.temporary().as_os_str());
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
