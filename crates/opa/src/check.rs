//! Compiles the modules of a set, in the syntax that they are written in.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::program::cut_capabilities;

/// Time that compiling may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_ANSWER_BYTES: u64 = 4 * 1024 * 1024;
/// Problems that are told.
const MAX_PROBLEMS: usize = 10;
/// Soft limit of the program's memory.
const MEMORY_LIMIT: &str = "1GiB";

/// Rego of before OPA 1.0 has no `if` and no `contains` in its rules.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum RegoSyntax {
    V0,
    V1,
}

impl RegoSyntax {
    /// The option that makes `opa` read it.
    pub fn option(self) -> &'static str {
        match self {
            Self::V0 => "--v0-compatible",
            Self::V1 => "--v1-compatible",
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::V0 => "v0",
            Self::V1 => "v1",
        }
    }
}

/// Something that does not compile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    pub file: String,
    pub row: u64,
    pub column: u64,
    pub message: String,
}

/// Reason why modules have no syntax.
#[derive(thiserror::Error, Debug)]
pub enum CheckError {
    /// The author has to mend it: each line has a file and a line.
    #[error("{}", lines(.0))]
    DoesNotCompile(Vec<Problem>),
    /// `opa` could not be asked.
    #[error("opa could not check the policies: {0}")]
    Failed(#[from] io::Error),
}

fn lines(problems: &[Problem]) -> String {
    let line = |problem: &Problem| {
        let Problem { file, row, column, message } = problem;
        if file.is_empty() { message.clone() } else { format!("{file}:{row}:{column}: {message}") }
    };
    problems.iter().map(line).collect::<Vec<_>>().join("; ")
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    errors: Vec<ToldError>,
}

#[derive(Deserialize)]
struct ToldError {
    message: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    location: Option<Location>,
}

#[derive(Deserialize)]
struct Location {
    #[serde(default)]
    file: String,
    #[serde(default)]
    row: u64,
    #[serde(default)]
    col: u64,
}

/// Compiles modules, by path, and says in which syntax they are. Rego of today is tried first; what is wrong is told for
/// the syntax in which more of it can be read. It blocks its thread.
pub fn check(program: &Path, modules: &BTreeMap<String, String>) -> Result<RegoSyntax, CheckError> {
    let place = tempfile::tempdir()?;
    let root = place.path().join("policies");
    for (path, text) in modules {
        let is_inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if !is_inside {
            return Err(CheckError::Failed(io::Error::other(format!("{path} leads out of the set"))));
        }
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap_or(&root))?;
        fs::write(file, text)?;
    }
    let capabilities = place.path().join("capabilities.json");
    let current = run(program, place.path(), &["capabilities", "--current"])?;
    fs::write(&capabilities, cut_capabilities(&current.0).map_err(io::Error::other)?)?;
    let today = compile(program, place.path(), RegoSyntax::V1)?;
    if today.is_empty() {
        return Ok(RegoSyntax::V1);
    }
    let before = compile(program, place.path(), RegoSyntax::V0)?;
    if before.is_empty() {
        return Ok(RegoSyntax::V0);
    }
    // What can be parsed, and fails later, is in the right syntax.
    let is_parsed = |errors: &[ToldError]| errors.iter().all(|error| error.code != "rego_parse_error");
    let told = if is_parsed(&before) && !is_parsed(&today) { before } else { today };
    Err(CheckError::DoesNotCompile(told.into_iter().take(MAX_PROBLEMS).map(problem).collect()))
}

fn problem(error: ToldError) -> Problem {
    let location = error.location.unwrap_or(Location { file: String::new(), row: 0, col: 0 });
    let file = location.file.strip_prefix("policies/").unwrap_or(&location.file).to_owned();
    Problem { file, row: location.row, column: location.col, message: error.message }
}

fn compile(program: &Path, place: &Path, syntax: RegoSyntax) -> io::Result<Vec<ToldError>> {
    let arguments = ["check", syntax.option(), "--format", "json", "--capabilities", "capabilities.json", "policies"];
    let (_, errors, succeeded) = run_any(program, place, &arguments)?;
    if succeeded {
        return Ok(Vec::new());
    }
    match serde_json::from_slice::<Answer>(&errors) {
        Ok(answer) if !answer.errors.is_empty() => Ok(answer.errors),
        _ => Err(io::Error::other(String::from_utf8_lossy(&errors).trim().to_owned())),
    }
}

fn run(program: &Path, directory: &Path, arguments: &[&str]) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let (output, errors, succeeded) = run_any(program, directory, arguments)?;
    if succeeded {
        return Ok((output, errors));
    }
    Err(io::Error::other(format!("opa {}: {}", arguments[0], String::from_utf8_lossy(&errors).trim())))
}

/// Output, errors and success of the program, which sees nothing of our environment.
fn run_any(program: &Path, directory: &Path, arguments: &[&str]) -> io::Result<(Vec<u8>, Vec<u8>, bool)> {
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("GOMEMLIMIT", MEMORY_LIMIT)
        .env("HOME", directory)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", program.display())))?;
    let reader = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                let _ = pipe.by_ref().take(MAX_ANSWER_BYTES).read_to_end(&mut bytes);
                // What nobody reads would keep the program from ending.
                let _ = io::copy(&mut pipe, &mut io::sink());
            }
            bytes
        })
    };
    let output = reader(child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let errors = reader(child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > CHECK_TIMEOUT {
            child.kill()?;
            child.wait()?;
            let detail = format!("it took longer than {} seconds", CHECK_TIMEOUT.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, detail));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let joined = |thread: std::thread::JoinHandle<Vec<u8>>| thread.join().unwrap_or_default();
    Ok((joined(output), joined(errors), status.success()))
}
