//! Phases of an agent that dies, sleeps, or loses its server.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use taco_agent_protocol::{Engine, Outcome, PhaseAttempt, PhaseKind};

use crate::agent_process::{AgentProcess, directory, eventually, lives, parent};
use crate::cancellations::{endless, pid};
use crate::fake_server::FakeServer;
use crate::plans::ONE;
use crate::scenario::{Run, Scenario};
use crate::scripted_engine;

async fn applying(scenario: &Scenario, engine: Engine) -> (PhaseAttempt, i32, tempfile::TempDir) {
    let directory = directory();
    let run = Run::of(engine, &[("main.tf", &endless(directory.path(), "sleep 600"))]);
    scenario.plan(&run).await;
    let phase = scenario.hand_out(&run, PhaseKind::Apply).await;
    let pid = pid(directory.path()).await;
    (phase, pid, directory)
}

fn message(outcome: Outcome) -> String {
    match outcome {
        Outcome::Errored { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_killed_agent_leaves_no_engine_behind_and_its_successor_reports() {
    for engine in Engine::ALL {
        let mut scenario = Scenario::begin().await;
        let (phase, pid, _directory) = applying(&scenario, engine).await;
        scenario.server.answer(false);
        scenario.agent.kill();
        eventually("the engine does not outlive its agent", || !lives(pid)).await;
        assert!(!scenario.server.seen().outcomes.contains_key(&phase));
        scenario.server.answer(true);
        scenario.agent = AgentProcess::start(&scenario.server.address, scenario.work_dir.path(), |_| {});
        let Outcome::Errored { message, incomplete, .. } = scenario.server.outcome(&phase).await else {
            panic!("killed")
        };
        assert!(incomplete && message.contains("was killed while it applied"), "{message}");
        assert!(scenario.server.state().to_string().contains("first"), "{engine}");
        let log = scenario.server.log(&phase);
        assert!(log.starts_with('\u{2}') && log.contains("was killed") && log.ends_with('\u{3}'), "{log}");
        eventually("the journal is empty", || {
            std::fs::read_dir(scenario.work_dir.path().join("journal")).expect("a directory").count() == 0
        })
        .await;
    }
}

/// As the kernel does it when memory runs out.
#[tokio::test]
async fn an_apply_whose_engine_is_killed_says_that_its_state_may_lack_something() {
    let scenario = Scenario::begin().await;
    for engine in Engine::ALL {
        scenario.server.seen().state = None;
        let (phase, shell, _directory) = applying(&scenario, engine).await;
        kill(Pid::from_raw(parent(shell)), Signal::SIGKILL).expect("the engine lives");
        let Outcome::Errored { message, incomplete, .. } = scenario.server.outcome(&phase).await else {
            panic!("killed")
        };
        assert!(incomplete && message.starts_with(&format!("{engine} was killed (signal 9")), "{message}");
        assert!(!lives(shell), "nothing of it is left");
        // OpenTofu writes its state every 20 seconds at most, and at its end.
        if engine == Engine::Terraform {
            assert!(scenario.server.state().to_string().contains("first"), "what it wrote is kept");
        }
        let log = scenario.server.log(&phase);
        assert!(log.contains("not all that it did may be in the state") && log.ends_with('\u{3}'), "{log}");
    }
}

#[tokio::test]
async fn a_plan_that_comes_again_is_not_disturbed_by_what_is_left_of_it() {
    let (server, work_dir, place) = (FakeServer::start().await, directory(), directory());
    let first = place.path().join("first");
    // The first hears no interrupt, so that it is there for a while after its agent.
    let plan = format!(
        "if [ ! -e {0} ]; then trap '' INT; touch {0}; sleep 600; fi; echo plan > $out; sleep 5; [ -e $out ] || exit 1",
        first.display()
    );
    scripted_engine::install(work_dir.path(), &plan, "");
    let agent = AgentProcess::start(&server.address, work_dir.path(), |_| {});
    let mut scenario = Scenario { server, agent, work_dir };
    let run = scripted_engine::run();
    scenario.hand_out(&run, PhaseKind::Plan).await;
    eventually("the engine plans", || first.exists()).await;
    let before = scenario.server.seen().hellos.len();
    scenario.agent.kill();
    scenario.agent = AgentProcess::start(&scenario.server.address, scenario.work_dir.path(), |_| {});
    eventually("it comes back", || scenario.server.seen().hellos.len() > before).await;
    let mut job = run.job(PhaseKind::Plan, false, &scenario.server.address);
    job.phase.epoch = 2;
    let phase = scenario.server.hand_out(job).await;
    let outcome = scenario.server.outcome(&phase).await;
    assert!(matches!(outcome, Outcome::Planned(_)), "{outcome:?}: {}", scenario.server.log(&phase));
    eventually("nothing is left of either", || {
        let count = |name: &str| std::fs::read_dir(scenario.work_dir.path().join(name)).expect("a directory").count();
        count("runs") + count("unsent") + count("journal") == 0
    })
    .await;
}

#[tokio::test]
async fn an_agent_whose_lease_ends_stops_its_engines_and_sends_the_state_later() {
    let server = FakeServer::start().await;
    server.lease(10_000);
    let work_dir = directory();
    let agent = AgentProcess::start(&server.address, work_dir.path(), |_| {});
    let scenario = Scenario { server, agent, work_dir };
    let (phase, pid, _directory) = applying(&scenario, Engine::Terraform).await;
    scenario.server.publish(false);
    eventually("the engine is stopped", || !lives(pid)).await;
    let message = message(scenario.server.outcome(&phase).await);
    assert!(message.contains("lost its server"), "{message}");
    assert!(scenario.server.state().to_string().contains("first"));
}

#[tokio::test]
async fn an_agent_that_sleeps_through_its_lease_has_no_engine_when_it_wakes() {
    let server = FakeServer::start().await;
    server.lease(10_000);
    let work_dir = directory();
    let agent = AgentProcess::start(&server.address, work_dir.path(), |_| {});
    let scenario = Scenario { server, agent, work_dir };
    let (phase, pid, _directory) = applying(&scenario, Engine::Terraform).await;
    scenario.agent.signal(Signal::SIGSTOP);
    eventually("the engine is stopped", || !lives(pid)).await;
    scenario.agent.signal(Signal::SIGCONT);
    let message = message(scenario.server.outcome(&phase).await);
    assert!(message.contains("lost its server"), "{message}");
}

#[tokio::test]
async fn a_lost_phase_is_killed_and_says_nothing_more() {
    let scenario = Scenario::begin().await;
    let (phase, pid, _directory) = applying(&scenario, Engine::Terraform).await;
    scenario.server.seen().jobs.remove(&phase);
    scenario.server.say(taco_agent_protocol::FromServer::Lost { phase });
    eventually("the engine is stopped", || !lives(pid)).await;
    let kept = scenario.work_dir.path().join("kept-states").join(format!("{}.tfstate", phase.run));
    eventually("nothing is left of it", || {
        let count = |name: &str| std::fs::read_dir(scenario.work_dir.path().join(name)).expect("a directory").count();
        count("runs") + count("unsent") == 0
    })
    .await;
    assert!(!scenario.server.seen().outcomes.contains_key(&phase));
    // The server may have taken the state before it took the phase away; what it has not, the agent keeps.
    let taken = scenario.server.seen().state.clone().unwrap_or_default();
    let at_server = String::from_utf8_lossy(&taken).contains("first");
    let kept = std::fs::read_to_string(kept).unwrap_or_default().contains("first");
    assert!(at_server || kept, "but its state");
}

#[tokio::test]
async fn an_agent_whose_id_is_another_s_comes_as_a_new_one() {
    let scenario = Scenario::begin().await;
    scenario.server.agent_is_connected().await;
    let before = scenario.server.seen().hellos.len();
    scenario.server.doubt_ids();
    scenario.server.cut();
    eventually("it comes twice more", || scenario.server.seen().hellos.len() >= before + 2).await;
    let seen = scenario.server.seen();
    let said = seen.hellos.iter().map(|hello| match hello {
        taco_agent_protocol::FromAgent::Hello { agent, instance, .. } => (agent.is_some(), instance.clone()),
        other => panic!("no hello: {other:?}"),
    });
    let said: Vec<_> = said.collect();
    let names_itself: Vec<_> = said.iter().map(|(names_itself, _)| *names_itself).collect();
    assert!(!names_itself[0], "it has no name yet: {said:?}");
    assert_eq!(names_itself[before..before + 2], [true, false]);
    assert!(said[0].1.as_ref().is_some_and(|instance| instance.len() == 32), "{said:?}");
    assert!(said.iter().all(|(_, instance)| *instance == said[0].1), "it is one process: {said:?}");
}

#[tokio::test]
async fn an_agent_for_one_phase_leaves_after_it() {
    let server = FakeServer::start().await;
    let work_dir = directory();
    let agent = AgentProcess::start(&server.address, work_dir.path(), |command| {
        command.arg("--once");
    });
    let mut scenario = Scenario { server, agent, work_dir };
    scenario.plan(&Run::of(Engine::Terraform, &[("main.tf", ONE)])).await;
    assert_eq!(scenario.agent.exit().await, Some(0));
    let seen = scenario.server.seen();
    let taco_agent_protocol::FromAgent::Hello { once, concurrency, engines, .. } = &seen.hellos[0] else {
        panic!("a hello")
    };
    assert!(*once && *concurrency == 1);
    assert_eq!(engines.len(), 2, "it tells what it has: {engines:?}");
}
