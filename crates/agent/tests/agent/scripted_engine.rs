//! An engine that is a script: it does what a test wants a run to try.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use taco_agent_protocol::Engine;

use crate::scenario::Run;

const VERSION: &str = "1.77.0";

/// Puts it into an agent's own store. `plan` knows the plan's path as `$out`, and `apply` the state's as `$state`; both
/// are lines of a shell.
pub(crate) fn install(work_dir: &Path, plan: &str, apply: &str) {
    let store = work_dir.join("engines/terraform").join(VERSION);
    fs::create_dir_all(&store).expect("a directory");
    let program = format!(
        r#"#!/bin/sh
case "$1" in
plan)
    for word in "$@"; do
        case "$word" in -out=*) out=${{word#-out=}} ;; esac
    done
    {plan}
    exit 2
    ;;
show) echo '{{"format_version":"1.2","terraform_version":"1.11.4","resource_changes":[],"output_changes":{{}}}}' ;;
apply)
    state=.terraform/taco/workspaces/$TF_WORKSPACE/terraform.tfstate
    {apply}
    ;;
esac
"#
    );
    fs::write(store.join("terraform"), program).expect("a program");
    fs::set_permissions(store.join("terraform"), Permissions::from_mode(0o755)).expect("a mode");
}

/// A run that uses it.
pub(crate) fn run() -> Run {
    Run::of(Engine::Terraform, &[("main.tf", "")]).with(|run| run.version = VERSION.to_owned())
}
