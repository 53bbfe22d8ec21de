use taco_agent_protocol::{Engine, Outcome, PhaseKind};

use crate::plans::TWO;
use crate::scenario::{Run, Scenario};

#[tokio::test]
async fn an_apply_sends_its_state_before_its_outcome() {
    let scenario = Scenario::begin().await;
    for engine in Engine::ALL {
        for structured_output in [false, true] {
            scenario.server.seen().state = None;
            let run = Run::of(engine, &[("main.tf", TWO)]).with(|run| run.structured_output = structured_output);
            let (phase, counts) = scenario.apply(&run).await;
            assert_eq!(counts.additions, 2);
            assert_eq!(scenario.server.state()["resources"].as_array().map(Vec::len), Some(2));
            let arrivals: Vec<_> =
                scenario.server.seen().arrivals.iter().filter(|(of, _)| *of == phase).cloned().collect();
            let state = arrivals.iter().rposition(|(_, word)| word == "state").expect("a state");
            let outcome = arrivals.iter().rposition(|(_, word)| word == "outcome").expect("an outcome");
            assert!(state < outcome && outcome == arrivals.len() - 1, "{arrivals:?}");
            let log = scenario.server.log(&phase);
            assert!(log.lines().nth(2).is_some_and(|line| line.contains("Initializing")), "{log}");
            assert!(log.contains("Apply complete!") && log.ends_with('\u{3}'), "{log}");
        }
    }
}

#[tokio::test]
async fn the_state_is_sent_while_the_apply_goes_on() {
    let scenario = Scenario::begin().await;
    let slow = r#"
        resource "terraform_data" "first" {}
        resource "terraform_data" "second" {
          depends_on = [terraform_data.first]
          provisioner "local-exec" { command = "sleep 600" }
        }
    "#;
    let run = Run::of(Engine::Terraform, &[("main.tf", slow)]);
    scenario.plan(&run).await;
    let phase = scenario.hand_out(&run, PhaseKind::Apply).await;
    crate::agent_process::eventually("a state comes", || scenario.server.seen().states > 0).await;
    assert!(scenario.server.state().to_string().contains("first"));
    assert!(!scenario.server.seen().outcomes.contains_key(&phase));
}

#[tokio::test]
async fn a_failed_apply_keeps_what_was_made() {
    let scenario = Scenario::begin().await;
    let failing = r#"
        resource "terraform_data" "first" {}
        resource "terraform_data" "second" {
          depends_on = [terraform_data.first]
          provisioner "local-exec" { command = "echo no way; exit 3" }
        }
    "#;
    for engine in Engine::ALL {
        scenario.server.seen().state = None;
        let run = Run::of(engine, &[("main.tf", failing)]);
        scenario.plan(&run).await;
        let phase = scenario.hand_out(&run, PhaseKind::Apply).await;
        let Outcome::Errored { message, .. } = scenario.server.outcome(&phase).await else { panic!("it fails") };
        assert!(message.contains("local-exec"), "{message}");
        assert!(scenario.server.state().to_string().contains("first"));
        assert!(scenario.server.log(&phase).contains("no way"));
    }
}
