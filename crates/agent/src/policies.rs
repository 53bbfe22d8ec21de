//! Evaluates the policies of a plan with the real `opa`, in the plan's own phase and confinement, and says in the log what
//! came of it. Whatever goes wrong is told as an error of the policy: a missing or broken `opa` never looks like a pass.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use taco_agent_protocol::{
    PolicyBundle, PolicyGroup, PolicyQuery, PolicyResult, PolicyResultStatus, PolicySetJob, PolicySetResult,
    PolicyTiming,
};
use taco_opa::{RegoSyntax, Verdict, cut_capabilities, eval_arguments, verdict, write_input};
use tokio::time::Instant;

use crate::environment::Environment;
use crate::execute::{Invocation, Stopped};
use crate::mask::Mask;
use crate::opa_program::InstalledOpa;
use crate::phase::{PhaseError, failed};
use crate::running::Running;
use crate::workdir::give;

/// Time that one policy may take.
const POLICY_TIMEOUT: Duration = Duration::from_secs(60);
/// Memory that `opa` may use for one policy.
const POLICY_MEMORY_BYTES: u64 = 1 << 30;
/// Where its garbage collector begins to work harder.
const SOFT_MEMORY_LIMIT: &str = "768MiB";
/// Maximum size of an answer of `opa`.
const MAX_ANSWER_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum length of what is told of a policy, in characters.
const MAX_OUTPUT: usize = 20_000;
/// Maximum number of findings of a policy in the log.
const MAX_FINDINGS: usize = 50;

/// Evaluates what applies to a plan; the plan as JSON lies in `plan`.
pub(crate) async fn evaluate(
    running: &Running<'_>,
    plan: &Path,
    has_changes: bool,
) -> Result<Vec<PolicySetResult>, PhaseError> {
    match running.job.policies {
        PolicyTiming::Never => return Ok(Vec::new()),
        PolicyTiming::WithChanges if !has_changes => return Ok(Vec::new()),
        PolicyTiming::WithChanges | PolicyTiming::Always => {}
    }
    let file = running.workdir.file("policies.json");
    if !running.requests.fetch("policies", &file, &mut running.control.clone()).await? {
        return Err(PhaseError::Failed("the server does not have the policies of this run".to_owned()));
    }
    let bundle: PolicyBundle = {
        let bytes = tokio::fs::read(&file).await.map_err(failed)?;
        serde_json::from_slice(&bytes)
            .map_err(|error| PhaseError::Failed(format!("the policies are not JSON: {error}")))?
    };
    fs::remove_file(&file).map_err(failed)?;
    running.log.say("\nPolicies:").map_err(failed)?;
    let mut results = Vec::new();
    for (index, set) in bundle.sets.iter().enumerate() {
        let evaluation = Evaluation { running, plan, run: &bundle.run, set, index };
        let result = evaluation.result().await?;
        evaluation.tell(&result).map_err(failed)?;
        results.push(result);
    }
    Ok(results)
}

/// One set and one plan.
struct Evaluation<'a> {
    running: &'a Running<'a>,
    plan: &'a Path,
    run: &'a Value,
    set: &'a PolicySetJob,
    index: usize,
}

impl Evaluation<'_> {
    async fn result(&self) -> Result<PolicySetResult, PhaseError> {
        let mut result =
            PolicySetResult { set: self.set.id.clone(), opa_version: None, error: None, policies: Vec::new() };
        if let Some(error) = &self.set.error {
            result.error = Some(error.clone());
            return Ok(result);
        }
        let opa = match self.running.context.opa.find(self.set.opa_version.as_deref()).await {
            Ok(opa) => opa,
            Err(error) => {
                tracing::warn!(event = "opa_unavailable", phase = %self.running.job.phase, error, "no opa for policies");
                result.error = Some(error);
                return Ok(result);
            }
        };
        result.opa_version = Some(opa.version.to_string());
        let mask = self.mask();
        match self.evaluate(&opa, &mask).await {
            Ok(policies) => result.policies = policies,
            Err(Trouble::Set(error)) => result.error = Some(mask.hide(&self.running.mask.hide(&error))),
            Err(Trouble::Phase(error)) => return Err(error),
        }
        Ok(result)
    }

    async fn evaluate(&self, opa: &InstalledOpa, mask: &Mask) -> Result<Vec<PolicyResult>, Trouble> {
        let place = self.running.workdir.file(&format!("policies-{}", self.index));
        private_directory(&place)?;
        let capabilities = place.join("capabilities.json");
        let current = place.join("capabilities");
        let arguments = vec!["capabilities".into(), "--current".into()];
        let current = match self.run(opa, &place, arguments, &current).await? {
            Answer::Said(current) => current,
            Answer::Silent(why) => return Err(Trouble::Set(why)),
        };
        fs::write(&capabilities, cut_capabilities(&current).map_err(io::Error::other)?)?;
        let input = place.join("input.json");
        let parameters: Map<String, Value> =
            self.set.parameters.iter().map(|it| (it.key.clone(), Value::String(it.value.clone()))).collect();
        let (path, plan, run) = (input.clone(), self.plan.to_owned(), self.run.clone());
        let writing = tokio::task::spawn_blocking(move || write_input(&path, &plan, &run, &Value::Object(parameters)));
        writing.await.map_err(io::Error::other)??;
        let mut results = Vec::new();
        for (index, group) in self.set.groups.iter().enumerate() {
            let modules = place.join(format!("group-{index}")).join("modules");
            write_modules(&modules, group)?;
            if let Some(user) = self.running.executor.run_as {
                give(&place, user)?;
            }
            let Some(syntax) = self.syntax(opa, &place, &capabilities, &modules, group).await? else {
                let why = "its code is no Rego, neither of before nor of after OPA 1.0";
                results.extend(group.policies.iter().map(|policy| errored(policy, why.to_owned())));
                continue;
            };
            for policy in &group.policies {
                let arguments = eval_arguments(syntax, &capabilities, &modules, &input, &policy.query);
                let said = match self.run(opa, &place, arguments, &place.join("answer")).await? {
                    Answer::Said(answer) => verdict(&answer),
                    Answer::Silent(why) => Verdict::Errored(why),
                };
                let mut result = result_of(policy, said);
                result.output = mask.hide(&self.running.mask.hide(&result.output));
                results.push(result);
            }
        }
        Ok(results)
    }

    /// The syntax of a group that the server could not compile.
    async fn syntax(
        &self,
        opa: &InstalledOpa,
        place: &Path,
        capabilities: &Path,
        modules: &Path,
        group: &PolicyGroup,
    ) -> Result<Option<RegoSyntax>, Trouble> {
        match group.syntax.as_deref() {
            Some("v0") => return Ok(Some(RegoSyntax::V0)),
            Some("v1") => return Ok(Some(RegoSyntax::V1)),
            _ => {}
        }
        for syntax in [RegoSyntax::V1, RegoSyntax::V0] {
            let mut arguments = vec!["check".into(), syntax.option().into(), "--capabilities".into()];
            arguments.extend([capabilities.into(), modules.into()]);
            if let Answer::Said(_) = self.run(opa, place, arguments, &place.join("checked")).await? {
                return Ok(Some(syntax));
            }
        }
        Ok(None)
    }

    /// Runs `opa` as the engine is run, with less time and memory. An answer comes with every exit code.
    async fn run(
        &self,
        opa: &InstalledOpa,
        place: &Path,
        arguments: Vec<std::ffi::OsString>,
        output: &Path,
    ) -> Result<Answer, Trouble> {
        let is_evaluation = arguments.first().is_some_and(|first| first == "eval");
        let mut executor = self.running.executor.clone();
        executor.memory_limit = Some(POLICY_MEMORY_BYTES);
        if let Some(confinement) = &mut executor.confinement {
            // It sees the policies, and nothing of the run's own directories.
            confinement.own = Vec::new();
            confinement.readable.push(place.into());
        }
        let environment: Environment = [
            ("GOMEMLIMIT", SOFT_MEMORY_LIMIT.into()),
            ("GOMAXPROCS", "2".into()),
            ("HOME", place.as_os_str().to_owned()),
        ]
        .map(|(name, value)| (name.into(), value))
        .into();
        let mut control = self.running.control.clone();
        let ends_at = Instant::now() + POLICY_TIMEOUT;
        let is_own_limit = ends_at < control.times_out_at;
        control.times_out_at = control.times_out_at.min(ends_at);
        let invocation = Invocation {
            program: &opa.program,
            arguments,
            directory: place,
            environment: &environment,
            graceful_cancel: false,
        };
        let (exit, errors) = executor.to_file(invocation, output, &mut control).await?;
        match exit.stopped {
            Some(Stopped::TimedOut) if is_own_limit => {
                let seconds = POLICY_TIMEOUT.as_secs();
                return Ok(Answer::Silent(format!("opa took longer than {seconds} seconds")));
            }
            Some(stopped) => return Err(Trouble::Phase(PhaseError::Stopped(stopped))),
            None => {}
        }
        if fs::metadata(output)?.len() > MAX_ANSWER_BYTES {
            return Ok(Answer::Silent(format!("opa answered with more than {MAX_ANSWER_BYTES} bytes")));
        }
        let said = fs::read(output)?;
        match exit.code {
            0 => Ok(Answer::Said(said)),
            // Errors of a policy are an answer, too.
            _ if is_evaluation && said.starts_with(b"{") => Ok(Answer::Said(said)),
            code => {
                let memory = "opa needed more than 1 GiB of memory";
                let why = match errors.trim().lines().find(|line| !line.is_empty()) {
                    Some(line) if line.contains("out of memory") || line.contains("cannot allocate") => {
                        memory.to_owned()
                    }
                    Some(line) => format!("opa ended with code {code}: {}", line.chars().take(300).collect::<String>()),
                    None if code == 137 => memory.to_owned(),
                    None => format!("opa ended with code {code}"),
                };
                Ok(Answer::Silent(why))
            }
        }
    }

    fn mask(&self) -> Mask {
        let secrets = self.set.parameters.iter().filter(|parameter| parameter.sensitive);
        Mask::of_values(&secrets.map(|parameter| parameter.value.as_str()).collect::<BTreeSet<_>>())
    }

    /// Says in the log what came of the set.
    fn tell(&self, result: &PolicySetResult) -> io::Result<()> {
        let log = &self.running.log;
        let version = result.opa_version.as_ref().map(|version| format!(" (OPA {version})")).unwrap_or_default();
        log.say(&format!("\n  Policy set {}{version}", self.set.name))?;
        if let Some(error) = &result.error {
            return log.say(&format!("    Could not be evaluated: {error}"));
        }
        let policies = self.set.groups.iter().flat_map(|group| &group.policies);
        for (policy, result) in policies.zip(&result.policies) {
            let word = match result.status {
                PolicyResultStatus::Passed => "passed ",
                PolicyResultStatus::Failed => "failed ",
                PolicyResultStatus::Errored => "errored",
            };
            let level = if policy.mandatory { "mandatory" } else { "advisory" };
            log.say(&format!("    {word}  {} ({level})", policy.name))?;
            match result.status {
                PolicyResultStatus::Passed => {}
                PolicyResultStatus::Errored => log.say(&format!("             {}", result.output))?,
                PolicyResultStatus::Failed => {
                    for line in findings(&result.output) {
                        log.say(&format!("             {line}"))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// What went wrong before a policy could be asked.
enum Trouble {
    /// With this set; the others are evaluated nonetheless.
    Set(String),
    Phase(PhaseError),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Set(error.to_string())
    }
}

/// Output of `opa`, or why there is none.
enum Answer {
    Said(Vec<u8>),
    Silent(String),
}

fn errored(policy: &PolicyQuery, why: String) -> PolicyResult {
    PolicyResult { name: policy.name.clone(), status: PolicyResultStatus::Errored, output: why }
}

fn result_of(policy: &PolicyQuery, verdict: Verdict) -> PolicyResult {
    let (status, output) = match verdict {
        Verdict::Passed => (PolicyResultStatus::Passed, String::new()),
        Verdict::Failed(found) => (PolicyResultStatus::Failed, shown(found)),
        Verdict::Errored(why) => (PolicyResultStatus::Errored, why),
    };
    PolicyResult { name: policy.name.clone(), status, output: output.chars().take(MAX_OUTPUT).collect() }
}

/// Findings as a JSON list that is short enough to be read again.
fn shown(mut found: Vec<Value>) -> String {
    loop {
        let text = Value::Array(found.clone()).to_string();
        if text.chars().count() <= MAX_OUTPUT || found.len() <= 1 {
            return text;
        }
        found.truncate(found.len() / 2);
    }
}

/// Findings, one to a line.
fn findings(output: &str) -> Vec<String> {
    let Ok(Value::Array(found)) = serde_json::from_str(output) else { return vec![output.to_owned()] };
    let total = found.len();
    let line = |value: &Value| match value {
        Value::String(text) => text.replace('\n', "\n             "),
        other => other.to_string(),
    };
    let mut lines: Vec<String> = found.iter().take(MAX_FINDINGS).map(line).collect();
    if total > MAX_FINDINGS {
        lines.push(format!("and {} more", total - MAX_FINDINGS));
    }
    lines
}

fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn write_modules(root: &Path, group: &PolicyGroup) -> io::Result<()> {
    private_directory(root)?;
    for (path, text) in &group.modules {
        let relative = PathBuf::from(path);
        if relative.components().any(|part| !matches!(part, Component::Normal(_))) {
            return Err(io::Error::other(format!("{path} leads out of the policy set")));
        }
        let file = root.join(relative);
        private_directory(file.parent().unwrap_or(root))?;
        fs::write(file, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn findings_are_told_line_by_line() {
        assert_eq!(findings(r#"["a", {"b": 1}]"#), ["a", r#"{"b":1}"#]);
        let many: Vec<Value> = (0..60).map(|number| json!(number)).collect();
        let told = findings(&shown(many));
        assert_eq!((told.len(), told[50].as_str()), (51, "and 10 more"));
        let long = shown(vec![json!("x".repeat(MAX_OUTPUT)), json!("y")]);
        assert!(serde_json::from_str::<Value>(&long).is_ok());
    }

    #[test]
    fn a_module_stays_in_its_set() {
        let place = tempfile::tempdir().expect("a directory");
        let group = |path: &str| PolicyGroup {
            syntax: None,
            modules: [(path.to_owned(), "package a".to_owned())].into(),
            policies: Vec::new(),
        };
        write_modules(place.path(), &group("deep/a.rego")).expect("inside");
        for outside in ["../a.rego", "/a.rego", "a/../../b.rego"] {
            write_modules(place.path(), &group(outside)).expect_err(outside);
        }
    }
}
