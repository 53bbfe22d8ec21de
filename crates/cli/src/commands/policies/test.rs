//! `taco policy test`: what a directory of policies says about a plan, with the `opa` of this computer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::Args;
use serde_json::{Map, Value, json};
use taco_opa::{
    PolicyDefinition, PolicyFiles, PolicyLevel, Verdict, check, cut_capabilities, eval_arguments, find_on_path,
    is_policy_file, verdict, write_input,
};

use crate::failure::Failure;
use crate::output;

/// Exit code of a test in which a mandatory policy failed.
const FAILED_EXIT_CODE: u8 = 1;
const MAX_DEPTH: usize = 16;

#[derive(Args, Debug)]
pub(super) struct Options {
    /// Directory with policies.hcl or policies.json, and *.rego
    directory: PathBuf,
    /// Plan as `terraform show -json` prints it
    #[arg(long, value_name = "FILE")]
    plan: PathBuf,
    /// JSON that policies see as input.run
    #[arg(long, value_name = "FILE")]
    run: Option<PathBuf>,
    /// Parameter that policies see in input.parameters; repeat for several
    #[arg(long = "parameter", value_name = "KEY=VALUE")]
    parameters: Vec<String>,
    /// The program opa [default: the one on PATH]
    #[arg(long, value_name = "FILE")]
    opa: Option<PathBuf>,
}

pub(super) fn run(options: &Options, wants_json: bool) -> Result<ExitCode, Failure> {
    let files = read(&options.directory)?;
    let set = PolicyFiles::read(&files).map_err(|error| Failure::error(error.to_string()))?;
    let opa = options.opa.clone().or_else(|| find_on_path(&std::env::var_os("PATH")?)).ok_or_else(|| {
        Failure::error("opa is not installed")
            .hint("put it on PATH, or name it with --opa; https://www.openpolicyagent.org/docs/#running-opa says how")
    })?;
    let syntax = check(&opa, &set.modules).map_err(|error| Failure::error("the policies").because(error))?;
    let place = tempfile::tempdir()?;
    let modules = place.path().join("modules");
    for (path, text) in &set.modules {
        let file = modules.join(path);
        fs::create_dir_all(file.parent().unwrap_or(&modules))?;
        fs::write(file, text)?;
    }
    let capabilities = place.path().join("capabilities.json");
    let current = Command::new(&opa).args(["capabilities", "--current"]).output()?;
    fs::write(&capabilities, cut_capabilities(&current.stdout).map_err(std::io::Error::other)?)?;
    let input = place.path().join("input.json");
    write_input(&input, &checked_plan(&options.plan)?, &run_document(options)?, &parameters(options)?)?;
    let mut told = Vec::new();
    let mut stops = false;
    for policy in &set.policies {
        let arguments = eval_arguments(syntax, &capabilities, &modules, &input, &policy.query);
        let answer = Command::new(&opa).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output()?;
        let said = verdict(&answer.stdout);
        stops |= said != Verdict::Passed && policy.level == PolicyLevel::Mandatory;
        if wants_json {
            told.push(as_json(policy, &said));
        } else {
            tell(policy, &said)?;
        }
    }
    if wants_json {
        output::json(&Value::Array(told))?;
    }
    Ok(if stops { ExitCode::from(FAILED_EXIT_CODE) } else { ExitCode::SUCCESS })
}

/// The files of the set, by their paths in it.
fn read(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
    let mut files = BTreeMap::new();
    collect(directory, "", 0, &mut files)
        .map_err(|error| Failure::error(format!("{} cannot be read", directory.display())).because(error))?;
    Ok(files)
}

fn collect(directory: &Path, above: &str, depth: usize, files: &mut BTreeMap<String, Vec<u8>>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if above.is_empty() { name.clone() } else { format!("{above}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < MAX_DEPTH && !name.starts_with('.') {
            collect(&entry.path(), &path, depth + 1, files)?;
        } else if kind.is_file() && is_policy_file(&path) {
            files.insert(path, fs::read(entry.path())?);
        }
    }
    Ok(())
}

/// The plan's path, if it looks like one: policies would find nothing in the engine's own file.
fn checked_plan(path: &Path) -> Result<PathBuf, Failure> {
    let bytes = fs::read(path).map_err(|error| Failure::error(format!("{}", path.display())).because(error))?;
    let plan: Value = serde_json::from_slice(&bytes).map_err(|_| {
        Failure::error(format!("{} is not JSON", path.display()))
            .hint("`terraform show -json plan.tfplan > plan.json` makes it; for a run, `taco run plan --format json`")
    })?;
    if !plan.is_object() {
        return Err(Failure::error(format!("{} is no plan", path.display())));
    }
    Ok(path.to_owned())
}

fn run_document(options: &Options) -> Result<Value, Failure> {
    let Some(path) = &options.run else {
        return Ok(json!({ "workspace": {}, "organization": {}, "project": {}, "variables": {} }));
    };
    let bytes = fs::read(path).map_err(|error| Failure::error(format!("{}", path.display())).because(error))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Failure::error(format!("{} is not JSON", path.display())).because(error))
}

fn parameters(options: &Options) -> Result<Value, Failure> {
    let parsed = options.parameters.iter().map(|text| match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), Value::from(value))),
        _ => Err(Failure::usage(format!("{text}: a parameter is KEY=VALUE"))),
    });
    Ok(Value::Object(parsed.collect::<Result<Map<_, _>, _>>()?))
}

fn words(verdict: &Verdict) -> (&'static str, Vec<String>) {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match verdict {
        Verdict::Passed => ("passed", Vec::new()),
        Verdict::Failed(found) => ("failed", found.iter().map(text).collect()),
        Verdict::Errored(why) => ("errored", vec![why.clone()]),
    }
}

fn level(policy: &PolicyDefinition) -> &'static str {
    match policy.level {
        PolicyLevel::Advisory => "advisory",
        PolicyLevel::Mandatory => "mandatory",
    }
}

fn as_json(policy: &PolicyDefinition, verdict: &Verdict) -> Value {
    let (status, output) = words(verdict);
    json!({ "name": policy.name, "level": level(policy), "status": status, "output": output })
}

fn tell(policy: &PolicyDefinition, verdict: &Verdict) -> Result<(), Failure> {
    let (status, output) = words(verdict);
    output::line(&format!("{status:<8} {} ({})", policy.name, level(policy)))?;
    output.iter().try_for_each(|finding| output::line(&format!("         {finding}")))
}
