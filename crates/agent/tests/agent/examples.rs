//! The examples, as they stand in the repository.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use taco_agent_protocol::PhaseKind;

use crate::agent_process::{POOL_TOKEN, directory, eventually};
use crate::fake_server::FakeServer;
use crate::scripted_engine;

/// A step of a job that runs something.
#[derive(Default, Debug)]
struct Step {
    name: String,
    script: String,
    variables: Vec<String>,
}

/// The steps of the only job. It is no reader of YAML: it reads what stands there.
fn steps(workflow: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut key = "";
    for line in workflow.lines().filter(|line| !line.trim_start().starts_with('#')) {
        if let Some(name) = line.strip_prefix("      - name: ") {
            steps.push(Step { name: name.to_owned(), ..Step::default() });
        }
        let Some(step) = steps.last_mut() else { continue };
        if let Some(more) = line.strip_prefix("          ") {
            match key {
                "run" => step.script.push_str(&format!("{more}\n")),
                _ => step.variables.extend(more.split_once(": ").map(|(name, _)| name.to_owned())),
            }
        } else if let Some((name, value)) = line.trim_start().split_once(':') {
            key = if name == "run" { "run" } else { "env" };
            if name == "run" && value.trim() != "|" {
                step.script = value.trim().to_owned();
            }
        }
    }
    steps
}

struct Shell(Child);

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(step: &Step, home: &Path, server: &str) -> Shell {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_taco-agent"));
    let programs = program.parent().expect("a directory").display();
    let mut command = Command::new("bash");
    command.args(["-e", "-c", &step.script]).current_dir(home).stdin(Stdio::null()).env_clear();
    command.env("PATH", format!("{programs}:/usr/bin:/bin")).env("HOME", home).env("RUNNER_TEMP", home);
    command.env("GITHUB_RUN_ID", "1").env("TACO_ENGINE_MIRROR", "none");
    // Not every runner's kernel keeps runs from looking.
    command.env("TACO_AGENT_UNCONFINED", "true");
    for name in &step.variables {
        let value = match name.as_str() {
            "TACO_AGENT_TOKEN" => POOL_TOKEN,
            "TACO_AGENT_SERVER" => server,
            other => panic!("{other} is unknown"),
        };
        command.env(name, value);
    }
    Shell(command.spawn().expect("bash starts"))
}

#[tokio::test]
async fn a_run_in_github_actions_finds_the_token_in_no_process_above_it() {
    // Asked for now: a target directory may have been filled from another checkout.
    let package = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    let workflow = Path::new(&package).join("../../examples/github-actions.yml");
    let steps = steps(&std::fs::read_to_string(workflow).expect("the example"));
    let [_install, before @ .., last] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!(last.name, "Take one phase");
    let (server, home, found) = (FakeServer::start().await, directory(), directory());
    let found = found.path().join("found");
    let look = format!(
        "p=$$; while [ $p -gt 1 ]; do tr '\\0' '\\n' < /proc/$p/environ; tr '\\0' ' ' < /proc/$p/cmdline; echo process $p; \
         p=$(awk '/^PPid/ {{ print $2 }}' /proc/$p/status); done > {0} 2> /dev/null; cat {1}/* >> {0}; echo looked >> {0}; \
         echo plan > \"$out\"",
        found.display(),
        home.path().display(),
    );
    scripted_engine::install(&home.path().join(".taco-agent"), &look, "");
    for step in before {
        let ended = start(step, home.path(), &server.address).0.wait().expect("it can be waited for");
        assert!(ended.success(), "{step:?}");
    }
    let mut agent = start(last, home.path(), &server.address);
    server.agent_is_connected().await;
    let run = scripted_engine::run();
    server.seen().configurations.insert(run.id, run.archive.clone().into());
    let phase = server.hand_out(run.job(PhaseKind::Plan, false, &server.address)).await;
    server.outcome(&phase).await;
    eventually("the job ends", || agent.0.try_wait().expect("it can be waited for").is_some()).await;
    assert!(agent.0.wait().expect("it has ended").success());
    let found = std::fs::read_to_string(found).expect("it looked");
    assert!(found.contains("timeout --preserve-status") && found.ends_with("looked\n"), "{found}");
    assert!(found.contains(&format!("process {}\n", std::process::id())), "as far as this test: {found}");
    assert!(!found.contains(POOL_TOKEN), "{found}");
}
