use nix::sys::signal::Signal;
use taco_agent_protocol::{Engine, FromServer, Outcome, PhaseAttempt, PhaseKind};

use crate::agent_process::{AgentProcess, eventually, lives};
use crate::fake_server::FakeServer;
use crate::scenario::{Run, Scenario};
use crate::scripted_engine;

/// A shell that does not hear interrupts, from before anyone knows of it.
const DEAF: (&str, &str) = ("trap '' INT TERM;", "while true; do sleep 0.1; done");
const HEARS: (&str, &str) = ("", "sleep 600");

/// Makes one resource, and then waits for ever.
pub(crate) fn endless(directory: &std::path::Path, command: &str) -> String {
    endless_after(directory, "", command)
}

fn endless_after(directory: &std::path::Path, before: &str, command: &str) -> String {
    format!(
        r#"
resource "terraform_data" "first" {{}}
resource "terraform_data" "endless" {{
  depends_on = [terraform_data.first]
  provisioner "local-exec" {{ command = "{before} echo $$ > {0}/pid.tmp; mv {0}/pid.tmp {0}/pid; {command}" }}
}}
"#,
        directory.display()
    )
}

/// The process of the shell, when it is there.
pub(crate) async fn pid(directory: &std::path::Path) -> i32 {
    let path = directory.join("pid");
    eventually("the shell starts", || path.exists()).await;
    std::fs::read_to_string(path).expect("a file").trim().parse().expect("a number")
}

async fn applying(
    scenario: &Scenario,
    engine: Engine,
    (before, command): (&str, &str),
) -> (PhaseAttempt, i32, tempfile::TempDir) {
    let directory = crate::agent_process::directory();
    let run = Run::of(engine, &[("main.tf", &endless_after(directory.path(), before, command))]);
    scenario.server.seen().state = None;
    scenario.plan(&run).await;
    let phase = scenario.hand_out(&run, PhaseKind::Apply).await;
    let pid = pid(directory.path()).await;
    (phase, pid, directory)
}

#[tokio::test]
async fn a_canceled_apply_is_interrupted_and_its_state_kept() {
    let scenario = Scenario::begin().await;
    for engine in Engine::ALL {
        let (phase, pid, _directory) = applying(&scenario, engine, HEARS).await;
        scenario.server.say(FromServer::Cancel { phase, force: false });
        assert_eq!(scenario.server.outcome(&phase).await, Outcome::Canceled { incomplete: false });
        eventually("the shell ends", || !lives(pid)).await;
        assert!(scenario.server.state().to_string().contains("first"), "{engine}");
        let log = scenario.server.log(&phase);
        assert!(log.contains("nterrupt") && log.ends_with('\u{3}'), "{log}");
    }
}

#[tokio::test]
async fn what_does_not_hear_an_interrupt_is_killed_by_force() {
    let scenario = Scenario::begin().await;
    let (phase, pid, _directory) = applying(&scenario, Engine::Terraform, DEAF).await;
    scenario.server.say(FromServer::Cancel { phase, force: true });
    assert_eq!(scenario.server.outcome(&phase).await, Outcome::Canceled { incomplete: true });
    eventually("the shell ends", || !lives(pid)).await;
    assert!(scenario.server.state().to_string().contains("first"));
    let log = scenario.server.log(&phase);
    assert!(log.contains("Force-canceled: not all that it did may be in the state."), "{log}");
}

#[tokio::test]
async fn a_phase_that_takes_too_long_is_stopped() {
    let scenario = Scenario::begin().await;
    let directory = crate::agent_process::directory();
    let run = Run::of(Engine::Terraform, &[("main.tf", &endless(directory.path(), "sleep 600"))]);
    scenario.plan(&run).await;
    let message = scenario.failure(&run.with(|run| run.timeout_seconds = 4), PhaseKind::Apply).await;
    assert_eq!(message, "the apply took longer than 4 seconds");
}

#[tokio::test]
async fn nothing_that_a_run_started_outlives_it() {
    let scenario = Scenario::begin().await;
    let directory = crate::agent_process::directory();
    let daemon = format!(
        r#"resource "terraform_data" "daemon" {{
          provisioner "local-exec" {{
            command = "setsid sh -c 'echo $$ > {0}/pid.tmp; mv {0}/pid.tmp {0}/pid; exec sleep 600' > /dev/null 2>&1 < /dev/null & while [ ! -e {0}/pid ]; do sleep 0.05; done"
          }}
        }}"#,
        directory.path().display()
    );
    scenario.apply(&Run::of(Engine::Terraform, &[("main.tf", &daemon)])).await;
    assert!(!lives(pid(directory.path()).await), "it was gone before the outcome came");
}

#[tokio::test]
async fn an_agent_drains_at_the_first_signal_and_stops_its_engines_at_the_second() {
    leaves_what_it_applies(HEARS).await;
}

#[tokio::test]
async fn what_does_not_hear_that_its_agent_leaves_is_ended_by_its_engine() {
    leaves_what_it_applies(DEAF).await;
}

/// It has half a minute.
#[tokio::test]
async fn an_engine_that_does_not_hear_that_its_agent_leaves_is_killed_in_the_end() {
    let (server, work_dir) = (FakeServer::start().await, crate::agent_process::directory());
    scripted_engine::install(
        work_dir.path(),
        "echo plan > $out",
        "trap '' INT TERM; echo applies; while true; do sleep 0.1; done",
    );
    let agent = AgentProcess::start(&server.address, work_dir.path(), |_| {});
    let mut scenario = Scenario { server, agent, work_dir };
    let run = scripted_engine::run();
    scenario.plan(&run).await;
    let phase = scenario.hand_out(&run, PhaseKind::Apply).await;
    scenario.server.log_has(&phase, "applies").await;
    scenario.agent.signal(Signal::SIGTERM);
    eventually("the server knows", || scenario.server.seen().drainings > 0).await;
    scenario.agent.signal(Signal::SIGTERM);
    assert_eq!(scenario.agent.exit().await, Some(0));
    let Outcome::Errored { message, incomplete: true, .. } = scenario.server.outcome(&phase).await else {
        panic!("it was killed")
    };
    let expected = "the agent test-agent was stopped while it applied: not all that it did may be in the state";
    assert_eq!(message, expected);
}

async fn leaves_what_it_applies(command: (&str, &str)) {
    let mut scenario = Scenario::begin().await;
    let (phase, pid, _directory) = applying(&scenario, Engine::Terraform, command).await;
    scenario.agent.signal(Signal::SIGTERM);
    eventually("the server knows", || scenario.server.seen().drainings > 0).await;
    assert!(lives(pid) && !scenario.server.seen().outcomes.contains_key(&phase));
    scenario.agent.signal(Signal::SIGTERM);
    assert_eq!(scenario.agent.exit().await, Some(0));
    assert!(!lives(pid));
    let Outcome::Errored { message, incomplete, .. } = scenario.server.outcome(&phase).await else {
        panic!("it did not end by itself")
    };
    assert_eq!((message.as_str(), incomplete), ("the agent test-agent was stopped while it applied", false));
    assert!(scenario.server.state().to_string().contains("first"));
    eventually("it says goodbye", || scenario.server.seen().goodbyes == 1).await;
}

#[tokio::test]
async fn an_idle_agent_leaves_at_once() {
    let mut scenario = Scenario::begin().await;
    scenario.agent.signal(Signal::SIGTERM);
    assert_eq!(scenario.agent.exit().await, Some(0));
    eventually("it says goodbye", || scenario.server.seen().goodbyes == 1).await;
}
