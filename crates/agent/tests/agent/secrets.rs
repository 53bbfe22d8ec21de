//! What a run can see of its agent.

use std::process::Stdio;

use taco_agent_protocol::{Engine, VariableCategory};

use crate::agent_process::{AgentProcess, POOL_TOKEN, directory, tool};
use crate::stand_in::StandIn;
use crate::story::{Run, Story};

#[tokio::test]
async fn a_run_sees_no_secret_of_the_agent() {
    let server = StandIn::start().await;
    let (work_dir, found) = (directory(), directory());
    let agent = AgentProcess::start(&server.address, work_dir.path(), |command| {
        command.env("AWS_SECRET_ACCESS_KEY", "s3cr3t-of-the-host");
    });
    let story = Story { server, agent, work_dir };
    let file = found.path().join("found");
    let look = format!(
        r#"resource "terraform_data" "look" {{
          provisioner "local-exec" {{
            command = "p=$$; while [ $p -gt 1 ]; do cat /proc/$p/environ /proc/$p/cmdline >> {0}; [ $p = {1} ] && break; p=$(awk '/^PPid/ {{ print $2 }}' /proc/$p/status); done; grep -r -a s3cr3t.pool {2} >> {0} || true; tr '\\0' '\\n' < /proc/self/environ; cat $TF_CLI_CONFIG_FILE | tee -a {0}"
          }}
        }}"#,
        file.display(),
        story.agent.pid(),
        story.work_dir.path().display(),
    );
    let run = Run::of(Engine::Terraform, &[("main.tf", &look)])
        .variable("OWN", "s3cr3t-of-the-run", |variable| {
            variable.category = VariableCategory::Env;
            variable.sensitive = true;
        })
        .variable("PLAIN", "open", |variable| variable.category = VariableCategory::Env);
    let (phase, _) = story.apply(&run).await;
    let found = String::from_utf8_lossy(&std::fs::read(file).expect("it looked")).into_owned();
    assert!(found.contains("taco-agent"), "it looked as far as the agent");
    for own in ["s3cr3t-of-the-run", "s3cr3t-run-token"] {
        assert!(found.contains(own), "its own it may see");
    }
    for secret in [POOL_TOKEN, "s3cr3t-of-the-host", "s3cr3t-phase-token"] {
        assert!(!found.contains(secret), "{secret}");
    }
    let log = story.server.log(&phase);
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
    let server = StandIn::start().await;
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
    let story = Story { server, agent, work_dir };
    let look = format!(
        r#"resource "terraform_data" "look" {{
          provisioner "local-exec" {{
            command = "echo I am $(id -un); ls {work} || echo refused 1; ls {work}/journal || echo refused 2; cat /proc/{}/environ || echo refused 3; touch ../own"
          }}
        }}"#,
        story.agent.pid()
    );
    let run = Run::of(Engine::Terraform, &[("main.tf", &look)]).with(|run| run.version = "1.77.0".to_owned());
    let (phase, counts) = story.apply(&run).await;
    assert_eq!(counts.additions, 1);
    let log = story.server.log(&phase);
    for line in ["I am nobody", "refused 1", "refused 2", "refused 3"] {
        assert!(log.lines().any(|found| found.ends_with(line)), "{line} in {log}");
    }
}

#[tokio::test]
async fn a_wrong_token_ends_the_agent_with_one_line() {
    let server = StandIn::start().await;
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
        (vec!["--run-as", "nobody-like-this"], "is no user of this machine"),
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
