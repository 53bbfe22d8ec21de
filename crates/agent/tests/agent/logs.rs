use taco_agent_protocol::{Engine, PhaseKind};

use crate::scenario::{Run, Scenario};

const SLOW: &str = r#"
resource "terraform_data" "slow" {
  provisioner "local-exec" { command = "echo begun; while [ ! -e ${path.module}/go ]; do sleep 0.05; done; echo ended" }
}
"#;

#[tokio::test]
async fn a_log_is_followed_while_it_grows_and_goes_on_where_the_server_is() {
    let scenario = Scenario::begin().await;
    let run = Run::of(Engine::Tofu, &[("main.tf", SLOW)]);
    scenario.plan(&run).await;
    let phase = scenario.hand_out(&run, PhaseKind::Apply).await;
    scenario.server.log_has(&phase, "begun").await;
    scenario.server.forget_log();
    let go = scenario.work_dir.path().join("runs").join(run.id.to_string()).join("configuration/go");
    std::fs::write(go, "").expect("a file");
    scenario.server.outcome(&phase).await;
    let log = scenario.server.log(&phase);
    for word in ["begun", "ended"] {
        assert_eq!(log.lines().filter(|line| line.ends_with(word)).count(), 1, "{word} in {log}");
    }
    assert!(log.starts_with("\u{2}OpenTofu v") && log.ends_with('\u{3}'), "{log}");
}

#[tokio::test]
async fn a_server_that_is_away_for_a_while_misses_nothing() {
    let scenario = Scenario::begin().await;
    let run = Run::of(Engine::Tofu, &[("main.tf", SLOW)]);
    scenario.plan(&run).await;
    let phase = scenario.hand_out(&run, PhaseKind::Apply).await;
    scenario.server.log_has(&phase, "begun").await;
    scenario.server.answer(false);
    let before = scenario.server.seen().hellos.len();
    scenario.server.cut();
    let go = scenario.work_dir.path().join("runs").join(run.id.to_string()).join("configuration/go");
    std::fs::write(go, "").expect("a file");
    crate::agent_process::eventually("the agent comes back", || scenario.server.seen().hellos.len() > before).await;
    {
        let seen = scenario.server.seen();
        let taco_agent_protocol::FromAgent::Hello { agent, running, .. } = &seen.hellos[before] else {
            panic!("a hello")
        };
        assert!(agent.is_some(), "it knows its name");
        assert_eq!(running, &[phase], "and what it does");
    }
    scenario.server.answer(true);
    assert!(matches!(scenario.server.outcome(&phase).await, taco_agent_protocol::Outcome::Applied { .. }));
    let log = scenario.server.log(&phase);
    assert!(log.lines().any(|line| line.ends_with("ended")), "{log}");
}
