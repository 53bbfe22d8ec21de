//! Visibility of an agent's secrets to its runs.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
use taco_agent_protocol::{Engine, Outcome, PhaseKind, VariableCategory};

use crate::agent_process::{AgentProcess, POOL_TOKEN, directory, tool};
use crate::fake_server::FakeServer;
use crate::scenario::{Run, Scenario};
use crate::scripted_engine;

#[tokio::test]
async fn a_run_sees_no_secret_of_the_agent() {
    let server = FakeServer::start().await;
    let (work_dir, found) = (directory(), directory());
    let agent = AgentProcess::start(&server.address, work_dir.path(), |command| {
        command.env("AWS_SECRET_ACCESS_KEY", "s3cr3t-of-the-host");
        // Not every kernel keeps runs from looking.
        command.arg("--unconfined");
    });
    let scenario = Scenario { server, agent, work_dir };
    let file = found.path().join("found");
    let look = format!(
        r#"resource "terraform_data" "look" {{
          provisioner "local-exec" {{
            command = "p=$$; while [ $p -gt 1 ]; do cat /proc/$p/environ /proc/$p/cmdline >> {0}; echo process $p >> {0}; p=$(awk '/^PPid/ {{ print $2 }}' /proc/$p/status); done; grep -r -a s3cr3t.pool {1} >> {0} || true; tr '\\0' '\\n' < /proc/self/environ; cat $TF_CLI_CONFIG_FILE | tee -a {0}"
          }}
        }}"#,
        file.display(),
        scenario.work_dir.path().display(),
    );
    let run = Run::of(Engine::Terraform, &[("main.tf", &look)])
        .variable("OWN", "s3cr3t-of-the-run", |variable| {
            variable.category = VariableCategory::Env;
            variable.sensitive = true;
        })
        .variable("PLAIN", "open", |variable| variable.category = VariableCategory::Env);
    let (phase, _) = scenario.apply(&run).await;
    let found = String::from_utf8_lossy(&std::fs::read(file).expect("it looked")).into_owned();
    assert!(found.contains(&format!("process {}\n", std::process::id())), "it looked as far as this test");
    for own in ["s3cr3t-of-the-run", "s3cr3t-run-token"] {
        assert!(found.contains(own), "its own it may see");
    }
    for secret in [POOL_TOKEN, "s3cr3t-of-the-host", "s3cr3t-phase-token"] {
        assert!(!found.contains(secret), "{secret}");
    }
    let log = scenario.server.log(&phase);
    assert!(!log.contains("s3cr3t-"), "nothing of it is in the log: {log}");
    for line in [
        "PLAIN=open",
        "TFC_WORKSPACE_SLUG=acme/prod",
        "TF_WORKSPACE=prod",
        "OWN=(sensitive)",
        "token = \\\"(sensitive)",
    ] {
        assert!(log.contains(line) || log.contains(&line.replace("\\\"", "\"")), "{line} in {log}");
    }
}

/// Only root can start programs as someone else.
#[tokio::test]
async fn engines_run_as_another_user_that_cannot_read_what_is_the_agents() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let server = FakeServer::start().await;
    let work_dir = directory();
    std::fs::set_permissions(work_dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    // Wherever the engine is installed, the other user may not come there.
    let store = work_dir.path().join("work/engines/terraform/1.77.0");
    std::fs::create_dir_all(&store).expect("a directory");
    std::fs::copy(tool("TACO_TEST_TERRAFORM"), store.join("terraform")).expect("a program");
    let agent = AgentProcess::start(&server.address, &work_dir.path().join("work"), |command| {
        command.args(["--run-as", "nobody"]);
    });
    let work = work_dir.path().join("work").display().to_string();
    let scenario = Scenario { server, agent, work_dir };
    let look = format!(
        r#"resource "terraform_data" "look" {{
          provisioner "local-exec" {{
            command = "echo I am $(id -un); ls {work} || echo refused 1; ls {work}/journal || echo refused 2; cat /proc/{}/environ || echo refused 3; touch ../own || echo refused 4; rm -f ../log || echo refused 5; cat ../log || echo refused 6; ls .. || echo refused 7; touch own $HOME/own $TMPDIR/own"
          }}
        }}"#,
        scenario.agent.pid()
    );
    let run = Run::of(Engine::Terraform, &[("main.tf", &look)]).with(|run| run.version = "1.77.0".to_owned());
    let (phase, counts) = scenario.apply(&run).await;
    assert_eq!(counts.additions, 1);
    let log = scenario.server.log(&phase);
    for line in
        ["I am nobody", "refused 1", "refused 2", "refused 3", "refused 4", "refused 5", "refused 6", "refused 7"]
    {
        assert!(log.lines().any(|found| found.ends_with(line)), "{line} in {log}");
    }
}

#[tokio::test]
async fn the_process_between_agent_and_engine_has_none_of_the_runs_variables() {
    let (server, work_dir, found) = (FakeServer::start().await, directory(), directory());
    let found = found.path().join("found");
    let look =
        format!("tr '\\0' '\\n' < /proc/$PPID/environ > {0}; echo looked >> {0}; echo plan > $out", found.display());
    scripted_engine::install(work_dir.path(), &look, "");
    let agent = AgentProcess::start(&server.address, work_dir.path(), |_| {});
    let scenario = Scenario { server, agent, work_dir };
    let env = |variable: &mut taco_agent_protocol::Variable| variable.category = VariableCategory::Env;
    let run = scripted_engine::run().variable("LD_PRELOAD", "/no/such/library.so", env).variable("OWN", "marker", env);
    scenario.plan(&run).await;
    let found = std::fs::read_to_string(found).expect("it looked");
    assert_eq!(found, "looked\n");
}

/// The agent may read more than its runs: with another user, and where the kernel keeps runs from its files.
#[tokio::test]
async fn a_run_cannot_let_its_agent_send_something_else_by_a_link() {
    let (server, work_dir) = (FakeServer::start().await, directory());
    let work = work_dir.path().display().to_string();
    for directory in ["", "elsewhere/prod"] {
        let directory = work_dir.path().join(directory);
        std::fs::create_dir_all(&directory).expect("a directory");
        let state = r#"{ "serial": 7, "lineage": "s3cr3t-of-the-agent" }"#;
        std::fs::write(directory.join("terraform.tfstate"), state).expect("a file");
    }
    let plan = format!("[ -n \"$LINKS\" ] && ln -s {work}/terraform.tfstate $out || echo plan > $out");
    let apply = format!(
        "case $LINKS in file) ln -sf {work}/terraform.tfstate $state ;; \
         directory) rm -r .terraform/taco/workspaces; ln -s {work}/elsewhere .terraform/taco/workspaces ;; \
         errored) ln -s {work}/terraform.tfstate errored.tfstate ;; pipe) mkfifo errored.tfstate ;; esac"
    );
    scripted_engine::install(work_dir.path(), &plan, &apply);
    let agent = AgentProcess::start(&server.address, work_dir.path(), |_| {});
    let scenario = Scenario { server, agent, work_dir };
    let linking =
        |how: &str| scripted_engine::run().variable("LINKS", how, |variable| variable.category = VariableCategory::Env);
    let message = scenario.failure(&linking("plan"), PhaseKind::Plan).await;
    assert!(message.contains("the plan on the agent's disk cannot be sent"), "{message}");
    for how in ["file", "directory", "errored", "pipe"] {
        let run = scripted_engine::run();
        scenario.plan(&run).await;
        let variables = linking(how).variables;
        let phase = scenario.hand_out(&run.with(|run| run.variables = variables), PhaseKind::Apply).await;
        let outcome = scenario.server.outcome(&phase).await;
        assert!(matches!(outcome, Outcome::Applied { .. }), "{how}: {outcome:?}");
    }
    let seen = scenario.server.seen();
    assert!(seen.state.is_none(), "{:?}", seen.state);
    for ((phase, word), blob) in &seen.blobs {
        assert!(!String::from_utf8_lossy(blob).contains("s3cr3t-of-the-agent"), "{phase} {word}");
    }
}

fn kernel_can_confine() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.handle_access(AccessFs::from_all(ABI::V2)).and_then(Ruleset::create).is_ok()
}

/// Reads all it can of another run, of the agent, and of everything else that runs here.
fn reads_everything(victim: &Run, work: &Path, token: &Path, found: &Path) -> String {
    let run = work.join("runs").join(victim.id.to_string());
    let (run, work, token, found) = (run.display(), work.display(), token.display(), found.display());
    format!(
        "{{ for p in /proc/[0-9]*; do cat $p/environ; cat $p/cwd/*; done; cat {run}/engine/cli.tfrc {run}/log; \
         cat {run}/configuration/~taco.auto.tfvars; cat {token}; find {work} {work}/* {run} -type f -exec cat {{}} +; \
         ls -R {work}; ls -R {run}; ln {token} token; mv {run}/log log; cat token log; cat $TF_CLI_CONFIG_FILE; \
         }} > {found} 2> /dev/null; echo looked >> {found}; \
         touch {run}/configuration/touched {work}/engines/touched || echo kept out >> {found}"
    )
}

#[tokio::test]
async fn a_run_reads_nothing_of_another_run_or_of_its_agent() {
    if !kernel_can_confine() {
        println!("this kernel cannot keep runs apart: nothing was tried");
        return;
    }
    // Root can look into every process, unless it has given that up.
    keeps_runs_apart(Users::AllAreThis).await;
    match nix::unistd::User::from_name("nobody").expect("a list of users") {
        Some(nobody) if nix::unistd::geteuid().is_root() => {
            keeps_runs_apart(Users::AllAre(nobody.clone())).await;
            keeps_runs_apart(Users::RunsAre(nobody)).await;
        }
        _ => {}
    }
}

/// Users of the agent and its runs.
#[derive(Debug)]
enum Users {
    AllAreThis,
    AllAre(nix::unistd::User),
    /// The agent is root.
    RunsAre(nix::unistd::User),
}

async fn keeps_runs_apart(users: Users) {
    let (server, place, found) = (FakeServer::start().await, directory(), directory());
    for directory in [&place, &found] {
        // For another user, who also cannot come to where the engine is installed.
        std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777))
            .expect("a mode");
    }
    let work = place.path().join("work");
    let token = place.path().join("token");
    std::fs::write(&token, POOL_TOKEN).expect("a file");
    let with = |role: &str| {
        let run = scripted_engine::run().variable("ROLE", &format!("{role}-of-environment"), |variable| {
            variable.category = VariableCategory::Env;
        });
        run.variable("marker", &format!("{role}-of-variables"), |_| {})
    };
    let (victim, looker) = (with("victim"), with("looker"));
    let file = found.path().join("found");
    let plan = format!(
        "case $ROLE in victim*) echo victim-of-log; while [ ! -e {}/go ]; do sleep 0.1; done ;; looker*) {} ;; esac; \
         echo plan > $out",
        found.path().display(),
        reads_everything(&victim, &work, &token, &file),
    );
    scripted_engine::install(&work, &plan, "");
    let program = place.path().join("taco-agent");
    std::fs::copy(env!("CARGO_BIN_EXE_taco-agent"), &program).expect("a program");
    let agent = AgentProcess::start_program(&program, &server.address, &work, |command| {
        command.env_remove("TACO_AGENT_TOKEN").arg("--token-file").arg(&token);
        match &users {
            Users::AllAreThis => {}
            Users::RunsAre(user) => _ = command.args(["--run-as", &user.name]),
            Users::AllAre(user) => {
                std::os::unix::fs::chown(&work, Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("it is given");
                command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
            }
        }
    });
    let scenario = Scenario { server, agent, work_dir: place };
    let waiting = scenario.hand_out(&victim, PhaseKind::Plan).await;
    scenario.server.log_has(&waiting, "victim-of-log").await;
    scenario.plan(&looker).await;
    std::fs::write(found.path().join("go"), "").expect("a file");
    let outcome = scenario.server.outcome(&waiting).await;
    assert!(matches!(outcome, Outcome::Planned(_)), "{outcome:?}");
    let found = String::from_utf8_lossy(&std::fs::read(file).expect("it looked")).into_owned();
    assert!(
        found.contains("looker-of-environment") && found.contains(&format!("token-{}", looker.id)),
        "its own it may see"
    );
    assert!(found.ends_with("looked\nkept out\n"), "{found}");
    for secret in [POOL_TOKEN, "victim-of-environment", "victim-of-variables", "victim-of-log", "journal"] {
        assert!(!found.contains(secret), "{secret} for {users:?}");
    }
    assert!(!found.contains(&format!("token-{}", victim.id)), "for {users:?}");
}

#[tokio::test]
async fn a_wrong_token_ends_the_agent_with_one_line() {
    let server = FakeServer::start().await;
    let work_dir = directory();
    let mut agent = AgentProcess::start(&server.address, work_dir.path(), |command| {
        command.env("TACO_AGENT_TOKEN", "wrong").env("RUST_LOG", "error").stderr(Stdio::piped());
    });
    assert_eq!(agent.exit().await, Some(1));
    let said = agent.standard_error();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("does not take this token"), "{said}");
}

#[tokio::test]
async fn wrong_settings_are_usage_errors_of_one_line() {
    let work_dir = directory();
    let missing = work_dir.path().join("missing").display().to_string();
    for (arguments, expected) in [
        (vec!["--token-file", &missing], "missing: No such file"),
        (vec!["--provider-mirror", &missing], "there is no such directory"),
        (vec!["--engine-mirror", "nonsense"], "--engine-mirror nonsense"),
        (vec!["--engine-keys", &missing], "missing: No such file"),
        (vec!["--engine-keys", "/dev/null"], "has no RSA or Ed25519 key in it"),
        (vec!["--engine-checksums", "/etc/passwd"], "/etc/passwd:1: this is no checksum"),
        (vec!["--run-as", "nobody-like-this"], "is no user of this machine"),
        (vec!["--run-as", "nobody,root"], "has root among its users"),
        (vec!["--run-as", "9-1"], "a range such as 64000-64031"),
        (vec!["--ca-file", &missing], "missing"),
    ] {
        let mut agent = AgentProcess::start("https://localhost:1", work_dir.path(), |command| {
            command.env_remove("TACO_AGENT_TOKEN").stderr(Stdio::piped());
            if arguments[0] != "--token-file" {
                command.env("TACO_AGENT_TOKEN", "t");
            }
            command.args(&arguments);
        });
        assert_eq!(agent.exit().await, Some(2), "{arguments:?}");
        let said = agent.standard_error();
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}
