//! `taco run start`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Runs, waits, watch};
use crate::api::{about, one};
use crate::browser;
use crate::commands::{done, given, workspaces};
use crate::failure::Failure;
use crate::resource::Resource;
use crate::session::WorkspaceName;
use crate::slug;
use crate::status;

/// Interval of asking whether an upload has arrived.
const UPLOAD_POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Message of runs that have none of their own.
const DEFAULT_MESSAGE: &str = "Started with taco CLI";

#[derive(Args, Debug)]
pub(super) struct Start {
    /// Directory to upload [default: use the latest configuration]
    pub(super) directory: Option<PathBuf>,
    /// Message, shown with the run
    #[arg(long, short, value_name = "TEXT")]
    pub(super) message: Option<String>,
    /// Destroy everything the workspace manages
    #[arg(long)]
    pub(super) destroy: bool,
    /// Limit the run to this resource or module; repeat for several
    #[arg(long, value_name = "ADDRESS")]
    pub(super) target: Vec<String>,
    /// Replace this resource; repeat for several
    #[arg(long, value_name = "ADDRESS")]
    pub(super) replace: Vec<String>,
    /// Variable of this run only; lists and maps as HCL. Repeat for several
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) var: Vec<String>,
    /// Refresh state only
    #[arg(long, conflicts_with = "destroy")]
    pub(super) refresh_only: bool,
    /// Plan only: the run is never applied
    #[arg(long, conflicts_with = "auto_apply")]
    pub(super) plan_only: bool,
    /// Apply without approval [default: the workspace's setting]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(super) auto_apply: Option<bool>,
    /// Watch the run, as `taco run watch` does
    #[arg(long, short)]
    pub(super) watch: bool,
    /// Open the run's page in the browser
    #[arg(long)]
    pub(super) web: bool,
    #[command(flatten)]
    pub(super) options: watch::Options,
}

impl Start {
    fn attributes(&self) -> Result<Value, Failure> {
        let flag = |set: bool| set.then_some(Value::from(true));
        let list = |list: &[String]| (!list.is_empty()).then(|| list.into());
        let variables = self.var.iter().map(|variable| run_variable(variable)).collect::<Result<Vec<_>, _>>()?;
        Ok(Value::from(given([
            ("message", Some(self.message.clone().unwrap_or_else(|| DEFAULT_MESSAGE.to_owned()).into())),
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
        return Err(Failure::usage(format!("{argument:?} is not KEY=VALUE")).hint("write it as --var KEY=VALUE"));
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
    start.attributes()?;
    let name = runs.session.target.workspace(None)?;
    let archive = start.directory.as_deref().map(slug::pack).transpose()?;
    let workspace = workspaces::find(runs.session, &name).await?.0;
    let created = begin(runs, start, &name, &workspace, archive).await?;
    tell(runs, &created, &name, start.watch || runs.session.is_local(), start.web, &start.options).await
}

/// Starts a run of a workspace with this configuration, or with the latest one.
pub(super) async fn begin(
    runs: &Runs<'_>,
    start: &Start,
    name: &WorkspaceName,
    workspace: &Resource,
    archive: Option<Vec<u8>>,
) -> Result<Resource, Failure> {
    if workspace.get("execution-mode") == "local" {
        return Err(Failure::usage(format!("{name} does not run on the server"))
            .because("its execution mode is local")
            .hint(format!("run terraform here, or `taco ws edit {name} --execution-mode remote`")));
    }
    let mut relationships = json!({ "workspace": { "data": { "type": "workspaces", "id": workspace.id() } } });
    if let Some(archive) = archive {
        let version = upload(runs, name, workspace, archive, start.plan_only).await?;
        relationships["configuration-version"] =
            json!({ "data": { "type": "configuration-versions", "id": version.id() } });
    }
    let body = about("runs", start.attributes()?, relationships);
    let subject = format!("run of {name}");
    let created = runs.session.api.send(&subject, Method::POST, &["runs"], &body).await.map_err(|failure| {
        let none = start.directory.is_none() && failure.says("onfiguration");
        if none {
            failure.hint("give the directory that has the configuration: taco run start DIRECTORY")
        } else {
            failure
        }
    })?;
    one(created)
}

/// Tells about a new run and where its page is, and watches it if that is wanted.
pub(super) async fn tell(
    runs: &Runs<'_>,
    run: &Resource,
    name: &WorkspaceName,
    watches: bool,
    web: bool,
    options: &watch::Options,
) -> Result<ExitCode, Failure> {
    let page = browser::run_page(&runs.session.target.host, name, run.id());
    if web {
        browser::open(&page);
    }
    if watches {
        return watch::watch(runs, run.id(), options).await;
    }
    let waits = Some(waits(run)).filter(|waits| !waits.is_empty()).map(|waits| format!(": {waits}"));
    let status = status::sentence(&run.text("status"));
    let sentence = format!("Run {} of {name} {status}{}.\n{page}", run.id(), waits.unwrap_or_default());
    done(runs.session, run, &sentence)?;
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
            "pending" | "fetching" => tokio::time::sleep(runs.session.poll_interval(UPLOAD_POLL_INTERVAL)).await,
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
