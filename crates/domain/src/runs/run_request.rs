//! Requests for a run, and how they are handled.

use serde::Deserialize;

use crate::attribute::{InvalidAttribute, is_plain_text, shown};
use crate::configuration_version::ConfigurationVersion;
use crate::id::{ConfigurationVersionId, WorkspaceId};
use crate::resource_address::{Addressed, check_address};
use crate::run::{Run, RunOptions};
use crate::run_status::RunStatus;
use crate::variable::check_run_variable;
use crate::workspace::Workspace;
use crate::workspace_settings::check_engine_version;

const LONGEST_MESSAGE: usize = 4096;
/// Each of them becomes an argument of the engine, and stays in the run's record.
const MOST_ADDRESSES: usize = 500;
const MOST_VARIABLES: usize = 500;

/// A variable as it is sent: its value is an expression.
#[derive(Clone, PartialEq, Eq, Deserialize, Debug)]
pub struct SentRunVariable {
    pub key: String,
    pub value: String,
}

/// The attributes of a request for a run, spelled as on the wire.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct RunRequest {
    pub message: Option<String>,
    pub plan_only: Option<bool>,
    pub save_plan: Option<bool>,
    pub auto_apply: Option<bool>,
    pub is_destroy: Option<bool>,
    pub refresh: Option<bool>,
    pub refresh_only: Option<bool>,
    pub allow_empty_apply: Option<bool>,
    pub allow_config_generation: Option<bool>,
    pub target_addrs: Option<Vec<String>>,
    pub replace_addrs: Option<Vec<String>>,
    pub variables: Option<Vec<SentRunVariable>>,
    pub terraform_version: Option<String>,
    /// On the wire this is a relationship, as is the next.
    #[serde(skip)]
    pub workspace: Option<WorkspaceId>,
    /// The newest that can be used, where none is named.
    #[serde(skip)]
    pub configuration_version: Option<ConfigurationVersionId>,
}

/// A run that is not over, or that has applied its plan, cannot be started again.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
pub enum RetryRefused {
    #[error("The run is not over yet")]
    NotOver,
    #[error("The run was applied: start a new one")]
    Applied,
}

/// Checks that a run in this status can be started again.
pub fn check_retry(status: RunStatus) -> Result<(), RetryRefused> {
    match status {
        RunStatus::Errored | RunStatus::Canceled | RunStatus::Discarded | RunStatus::PlannedAndFinished => Ok(()),
        RunStatus::Applied => Err(RetryRefused::Applied),
        _ => Err(RetryRefused::NotOver),
    }
}

impl RunRequest {
    /// The request for a run like `run`, with its variables. It applies by itself only if the other did and the new one's
    /// creator may apply, and never where everything is destroyed.
    pub fn retry_of(run: &Run, variables: Vec<SentRunVariable>, may_apply: bool) -> Self {
        let options = run.options.clone();
        Self {
            message: Some(format!("Run again: {}", run.id)),
            plan_only: Some(options.plan_only),
            save_plan: Some(options.save_plan),
            auto_apply: Some(options.auto_apply && may_apply && !options.is_destroy),
            is_destroy: Some(options.is_destroy),
            refresh: Some(options.refresh),
            refresh_only: Some(options.refresh_only),
            allow_empty_apply: Some(options.allow_empty_apply),
            allow_config_generation: Some(options.allow_config_generation),
            target_addrs: Some(options.target_addrs),
            replace_addrs: Some(options.replace_addrs),
            variables: Some(variables),
            // What is applied is applied with the workspace's version.
            terraform_version: options.plan_only.then_some(options.terraform_version),
            workspace: Some(run.workspace),
            configuration_version: Some(run.configuration_version),
        }
    }

    /// True if the run would auto-apply, as far as the request and the workspace say. A caller who may not apply needs
    /// someone to confirm.
    pub fn wants_auto_apply(&self, workspace: &Workspace, configuration: &ConfigurationVersion) -> bool {
        self.auto_apply.unwrap_or(workspace.auto_apply) && !self.is_plan_only(configuration)
    }

    fn is_plan_only(&self, configuration: &ConfigurationVersion) -> bool {
        self.plan_only.unwrap_or_default() || configuration.speculative
    }

    /// The run's options without its variables, which have to be sealed first.
    pub fn options(
        &self,
        workspace: &Workspace,
        configuration: &ConfigurationVersion,
        auto_apply: bool,
        default_message: &str,
    ) -> Result<RunOptions, InvalidAttribute> {
        let options = RunOptions {
            message: self.message.clone().unwrap_or_else(|| default_message.to_owned()),
            plan_only: self.is_plan_only(configuration),
            save_plan: self.save_plan.unwrap_or_default(),
            auto_apply,
            is_destroy: self.is_destroy.unwrap_or_default(),
            refresh: self.refresh.unwrap_or(true),
            refresh_only: self.refresh_only.unwrap_or_default(),
            allow_empty_apply: self.allow_empty_apply.unwrap_or_default(),
            allow_config_generation: self.allow_config_generation.unwrap_or_default(),
            target_addrs: self.target_addrs.clone().unwrap_or_default(),
            replace_addrs: self.replace_addrs.clone().unwrap_or_default(),
            variables: Vec::new(),
            engine: workspace.engine,
            terraform_version: self.version(workspace, configuration)?,
        };
        check(&options, workspace)?;
        check_number("variables", self.variables.as_ref().map_or(0, Vec::len), MOST_VARIABLES)?;
        for variable in self.variables.iter().flatten() {
            check_run_variable(&variable.key, &variable.value)?;
        }
        Ok(options)
    }

    fn version(&self, workspace: &Workspace, configuration: &ConfigurationVersion) -> Result<String, InvalidAttribute> {
        let Some(version) = self.terraform_version.as_ref().filter(|version| !version.is_empty()) else {
            return Ok(workspace.terraform_version.clone());
        };
        if !self.is_plan_only(configuration) && *version != workspace.terraform_version {
            let detail = "Terraform version can be given for runs that are plan-only: what is applied is applied with \
                          the workspace's version";
            return Err(InvalidAttribute::new("terraform-version", detail));
        }
        check_engine_version(version)?;
        Ok(version.clone())
    }
}

fn check_number(attribute: &'static str, number: usize, most: usize) -> Result<(), InvalidAttribute> {
    if number <= most {
        return Ok(());
    }
    Err(InvalidAttribute::new(attribute, format!("A run takes at most {most} of {attribute}; these are {number}")))
}

/// Rejects options that cannot be combined, or not in this workspace.
fn check(options: &RunOptions, workspace: &Workspace) -> Result<(), InvalidAttribute> {
    let refuse = |attribute, detail: &str| Err(InvalidAttribute::new(attribute, detail));
    let RunOptions { message, is_destroy, refresh, refresh_only, .. } = options;
    if message.chars().count() > LONGEST_MESSAGE || !is_plain_text(message) {
        let detail = format!("Message may have at most {LONGEST_MESSAGE} visible characters; it is {}", shown(message));
        return refuse("message", &detail);
    }
    if *is_destroy && *refresh_only {
        return refuse(
            "refresh-only",
            "A run either destroys or only refreshes: send is-destroy or refresh-only, not both",
        );
    }
    if *refresh_only && !*refresh {
        return refuse("refresh", "A run that only refreshes has to refresh: leave refresh out, or send true");
    }
    if *refresh_only && !options.replace_addrs.is_empty() {
        return refuse("replace-addrs", "A run that only refreshes replaces nothing: leave replace-addrs out");
    }
    if *is_destroy && !workspace.allow_destroy_plan {
        let detail = "This workspace does not allow destroy plans: its setting allow-destroy-plan is off";
        return refuse("is-destroy", detail);
    }
    if options.save_plan && options.plan_only {
        return refuse(
            "save-plan",
            "A plan that is never applied cannot be saved: send plan-only or save-plan, not both",
        );
    }
    check_number("target-addrs", options.target_addrs.len(), MOST_ADDRESSES)?;
    check_number("replace-addrs", options.replace_addrs.len(), MOST_ADDRESSES)?;
    for address in &options.target_addrs {
        check_address("target-addrs", address, Addressed::Target)?;
    }
    for address in &options.replace_addrs {
        check_address("replace-addrs", address, Addressed::Replace)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::configuration_version::tests::given_configuration;
    use crate::id::ProjectId;

    fn workspace() -> Workspace {
        let name = "web".parse().expect("legal");
        Workspace::new(WorkspaceId::from_random([1; 16]), name, ProjectId::from_random([1; 16]), Timestamp::UNIX_EPOCH)
    }

    fn options(json: &str, workspace: &Workspace, speculative: bool) -> Result<RunOptions, InvalidAttribute> {
        let request: RunRequest = serde_json::from_str(json).expect("JSON");
        let configuration = ConfigurationVersion { speculative, ..given_configuration(1) };
        let auto_apply = request.wants_auto_apply(workspace, &configuration);
        request.options(workspace, &configuration, auto_apply, "by default")
    }

    #[test]
    fn what_is_left_out_follows_from_workspace_and_configuration() {
        let plain = options("{}", &workspace(), false).expect("legal");
        assert_eq!((plain.message.as_str(), plain.refresh, plain.plan_only), ("by default", true, false));
        let auto = Workspace { auto_apply: true, terraform_version: "1.2.3".to_owned(), ..workspace() };
        let defaults = options("{}", &auto, false).expect("legal");
        assert_eq!((defaults.auto_apply, defaults.terraform_version.as_str()), (true, "1.2.3"));
        let manual = options(r#"{"auto-apply":false}"#, &auto, false).expect("legal");
        assert!(!manual.auto_apply);
        let speculative = options(r#"{"auto-apply":true}"#, &workspace(), true).expect("legal");
        assert!(speculative.plan_only && !speculative.auto_apply);
    }

    #[test]
    fn a_retry_asks_for_the_same_again() {
        let options = RunOptions {
            is_destroy: true,
            auto_apply: true,
            refresh: false,
            target_addrs: vec!["a.b".to_owned()],
            terraform_version: "1.2.3".to_owned(),
            ..RunOptions::default()
        };
        let run = Run { options, ..crate::run::tests::given_run(1) };
        let variables = vec![SentRunVariable { key: "a".to_owned(), value: "1".to_owned() }];
        let request = RunRequest::retry_of(&run, variables.clone(), true);
        assert_eq!(request.message, Some(format!("Run again: {}", run.id)));
        assert_eq!((request.is_destroy, request.refresh, request.plan_only), (Some(true), Some(false), Some(false)));
        assert_eq!(request.auto_apply, Some(false), "a destroy is confirmed each time");
        assert_eq!((request.variables, request.terraform_version), (Some(variables), None));
        assert_eq!(request.target_addrs, Some(vec!["a.b".to_owned()]));
        let options = RunOptions { auto_apply: true, ..RunOptions::default() };
        let automatic = Run { options, ..crate::run::tests::given_run(1) };
        for may_apply in [true, false] {
            let request = RunRequest::retry_of(&automatic, Vec::new(), may_apply);
            assert_eq!(request.auto_apply, Some(may_apply));
        }
        for status in RunStatus::ALL {
            let can_be_retried = status.is_final() && status != RunStatus::Applied;
            assert_eq!(check_retry(status).is_ok(), can_be_retried, "{status}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_where_it_stands() {
        let strict = Workspace { allow_destroy_plan: false, ..workspace() };
        for (json, workspace, attribute) in [
            (r#"{"is-destroy":true,"refresh-only":true}"#, workspace(), "refresh-only"),
            (r#"{"refresh":false,"refresh-only":true}"#, workspace(), "refresh"),
            (r#"{"is-destroy":true}"#, strict, "is-destroy"),
            (r#"{"save-plan":true,"plan-only":true}"#, workspace(), "save-plan"),
            (r#"{"target-addrs":["a.b","web"]}"#, workspace(), "target-addrs"),
            (r#"{"replace-addrs":["module.a"]}"#, workspace(), "replace-addrs"),
            (r#"{"terraform-version":"1.0.0"}"#, workspace(), "terraform-version"),
            (r#"{"terraform-version":"1.0.0; rm","plan-only":true}"#, workspace(), "terraform-version"),
            (r#"{"variables":[{"key":"a b","value":"1"}]}"#, workspace(), "variables"),
            (r#"{"variables":[{"key":"a","value":"[1,"}]}"#, workspace(), "variables"),
            (r#"{"message":"\u202e"}"#, workspace(), "message"),
        ] {
            assert_eq!(options(json, &workspace, false).expect_err(json).attribute, attribute);
        }
        for json in [
            r#"{"terraform-version":"1.0.0","plan-only":true}"#,
            r#"{"variables":[{"key":"a","value":"\"x\""},{"key":"b","value":"Hello, World!"}]}"#,
            r#"{"target-addrs":[],"variables":[]}"#,
        ] {
            options(json, &workspace(), false).expect(json);
        }
    }
}
