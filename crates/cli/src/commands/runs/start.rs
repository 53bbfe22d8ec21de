//! `taco run start`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Runs, waits, watch};
use crate::api::{about, one};
use crate::commands::{done, given, text, workspaces};
use crate::failure::Failure;
use crate::resource::Resource;
use crate::session::WorkspaceName;
use crate::slug;

/// Interval of asking whether an upload has arrived.
const UPLOAD_POLL_INTERVAL: Duration = Duration::from_millis(300);

#[derive(Args, Debug)]
pub(super) struct Start {
    /// Directory to upload, without what its .terraformignore names [default: the newest configuration]
    directory: Option<PathBuf>,
    /// What it is for
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
    /// Destroy everything that the workspace manages
    #[arg(long)]
    destroy: bool,
    /// Only this resource or module, and what it needs; repeat it for several
    #[arg(long, value_name = "ADDRESS")]
    target: Vec<String>,
    /// Make this resource anew; repeat it for several
    #[arg(long, value_name = "ADDRESS")]
    replace: Vec<String>,
    /// Value for a variable, in this run alone; lists and maps as terraform writes them. Repeat it for several
    #[arg(long, value_name = "KEY=VALUE")]
    var: Vec<String>,
    /// Only note in the state what was changed elsewhere
    #[arg(long, conflicts_with = "destroy")]
    refresh_only: bool,
    /// Only plan: the run waits for nobody, and is never applied
    #[arg(long, conflicts_with = "auto_apply")]
    plan_only: bool,
    /// Apply without asking [default: as the workspace says]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    auto_apply: Option<bool>,
    /// Then show what it does, as `taco run watch`
    #[arg(long, short)]
    watch: bool,
    #[command(flatten)]
    options: watch::Options,
}

impl Start {
    fn attributes(&self) -> Result<Value, Failure> {
        let flag = |set: bool| set.then_some(Value::from(true));
        let list = |list: &[String]| (!list.is_empty()).then(|| list.into());
        let variables = self.var.iter().map(|variable| run_variable(variable)).collect::<Result<Vec<_>, _>>()?;
        Ok(Value::from(given([
            ("message", text(&self.message)),
            ("is-destroy", flag(self.destroy)),
            ("refresh-only", flag(self.refresh_only)),
            ("plan-only", flag(self.plan_only)),
            ("auto-apply", self.auto_apply.map(Value::from)),
            ("target-addrs", list(&self.target)),
            ("replace-addrs", list(&self.replace)),
            ("variables", Some(variables).filter(|variables| !variables.is_empty()).map(Value::from)),
        ])))
    }
}

/// A variable of a run: on the wire its value is an expression.
fn run_variable(argument: &str) -> Result<Value, Failure> {
    let Some((key, value)) = argument.split_once('=') else {
        return Err(Failure::usage(format!("{argument:?} is no variable")).hint("write it as --var KEY=VALUE"));
    };
    // Terraform makes a number or a bool of a text that looks like one, where it needs one.
    let expression = if value.starts_with(['[', '{']) {
        value.to_owned()
    } else {
        json!(value).to_string().replace("${", "$${").replace("%{", "%%{")
    };
    Ok(json!({ "key": key, "value": expression }))
}

pub(super) async fn start(runs: &Runs<'_>, start: &Start) -> Result<ExitCode, Failure> {
    // Before anything is asked of the server: what is wrong here is wrong anyway.
    watch::check(start.watch, &start.options)?;
    let attributes = start.attributes()?;
    let name = runs.session.target.workspace(None)?;
    let archive = start.directory.as_deref().map(slug::pack).transpose()?;
    let workspace = workspaces::find(runs.session, &name).await?.0;
    if workspace.get("execution-mode") == "local" {
        return Err(Failure::usage(format!("runs of {name} do not happen on the server"))
            .because("its execution mode is local")
            .hint(format!("run terraform here, or `taco ws edit {name} --execution-mode remote`")));
    }
    let mut relationships = json!({ "workspace": { "data": { "type": "workspaces", "id": workspace.id() } } });
    if let Some(archive) = archive {
        let version = upload(runs, &name, &workspace, archive, start.plan_only).await?;
        relationships["configuration-version"] =
            json!({ "data": { "type": "configuration-versions", "id": version.id() } });
    }
    let body = about("runs", attributes, relationships);
    let subject = format!("run of {name}");
    let created = runs.session.api.send(&subject, Method::POST, &["runs"], &body).await.map_err(|failure| {
        let none = start.directory.is_none() && failure.says("onfiguration");
        if none {
            failure.hint("give the directory that has the configuration: taco run start DIRECTORY")
        } else {
            failure
        }
    })?;
    let run = one(created)?;
    if start.watch {
        return watch::watch(runs, run.id(), &start.options).await;
    }
    let waits = Some(waits(&run)).filter(|waits| !waits.is_empty()).map(|waits| format!(": {waits}"));
    let status = run.text("status");
    let sentence = format!("Run {} of {name} is {status}{}.", run.id(), waits.unwrap_or_default());
    done(runs.session, &run, &sentence)?;
    Ok(ExitCode::SUCCESS)
}

/// Stores an archive as the workspace's newest configuration.
async fn upload(
    runs: &Runs<'_>,
    name: &WorkspaceName,
    workspace: &Resource,
    archive: Vec<u8>,
    speculative: bool,
) -> Result<Resource, Failure> {
    let api = &runs.session.api;
    let subject = format!("configuration of {name}");
    let attributes = json!({ "auto-queue-runs": false, "speculative": speculative });
    let body = about("configuration-versions", attributes, json!({}));
    let path = ["workspaces", workspace.id(), "configuration-versions"];
    let announced = one(api.send(&subject, Method::POST, &path, &body).await?)?;
    api.upload(&subject, &announced.text("upload-url"), archive).await?;
    loop {
        let version = one(api.get(&subject, &["configuration-versions", announced.id()], &[]).await?)?;
        match version.text("status").as_str() {
            "uploaded" => return Ok(version),
            "pending" | "fetching" => tokio::time::sleep(UPLOAD_POLL_INTERVAL).await,
            status => {
                return Err(Failure::error(format!("{subject} is {status}")).because(version.text("error-message")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_becomes_an_expression() {
        for (argument, value) in [
            ("a=eu", "\"eu\""),
            ("a=3", "\"3\""),
            ("a=b=\"c\"", "\"b=\\\"c\\\"\""),
            ("a=${x}", "\"$${x}\""),
            ("a=[1, 2]", "[1, 2]"),
            ("a={ b = 1 }", "{ b = 1 }"),
            ("a=", "\"\""),
        ] {
            assert_eq!(run_variable(argument).expect("it is one")["value"], value, "{argument}");
        }
        assert!(run_variable("a").is_err());
    }
}
