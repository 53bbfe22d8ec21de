use serde_json::Value;
use taco_agent_protocol::{Engine, PhaseKind};

use crate::agent_process::eventually;
use crate::scenario::{Run, Scenario};

pub(crate) const ONE: &str = r#"resource "terraform_data" "one" { input = "first" }"#;
pub(crate) const TWO: &str = r#"
resource "terraform_data" "one" { input = "first" }
resource "terraform_data" "two" { input = terraform_data.one.output }
output "workspace" { value = terraform.workspace }
"#;

#[tokio::test]
async fn a_plan_is_published_whole_before_its_outcome() {
    let scenario = Scenario::begin().await;
    for engine in Engine::ALL {
        let (phase, summary) = scenario.plan(&Run::of(engine, &[("main.tf", TWO)])).await;
        assert!(summary.has_changes && !summary.generated_configuration);
        assert_eq!((summary.counts.additions, summary.counts.changes, summary.counts.destructions), (2, 0, 0));
        assert_eq!(summary.engine.engine, engine);
        let arrivals: Vec<_> = {
            let seen = scenario.server.seen();
            seen.arrivals.iter().filter(|(of, _)| *of == phase).map(|(_, word)| word.clone()).collect()
        };
        assert_eq!(arrivals.last().map(String::as_str), Some("outcome"), "{arrivals:?}");
        for word in ["plan", "json-plan", "redacted-plan", "log"] {
            assert!(arrivals.contains(&word.to_owned()), "{word} in {arrivals:?}");
        }
        assert_eq!(scenario.server.json(&phase, "json-plan")["resource_changes"].as_array().map(Vec::len), Some(2));
        let log = scenario.server.log(&phase);
        assert!(log.starts_with('\u{2}') && log.ends_with('\u{3}'), "{log:?}");
        assert!(log.contains("Plan:") && log.contains("2 to add"), "{log}");
        assert!(log.contains("\u{1b}["), "people see colours");
    }
}

#[tokio::test]
async fn structured_output_and_a_redacted_plan_are_for_the_cloud_block() {
    let scenario = Scenario::begin().await;
    let secret = r#"
        variable "password" { sensitive = true }
        resource "terraform_data" "secret" { input = { password = var.password, name = "open" } }
        output "secret" {
          value     = var.password
          sensitive = true
        }
    "#;
    for engine in Engine::ALL {
        let run = Run::of(engine, &[("main.tf", secret)]).with(|run| run.structured_output = true).variable(
            "password",
            "s3cr3t-value",
            |variable| variable.sensitive = true,
        );
        let (phase, _) = scenario.plan(&run).await;
        let log = scenario.server.log(&phase);
        let lines: Vec<_> = log.trim_matches(['\u{2}', '\u{3}']).lines().collect();
        let first: Value = serde_json::from_str(lines[3]).expect("JSON after three lines");
        assert_eq!(first["type"], "version");
        assert!(lines[3..].iter().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{log}");
        let redacted = scenario.server.json(&phase, "redacted-plan");
        assert!(!redacted.to_string().contains("s3cr3t-value"));
        assert!(redacted.to_string().contains("open"));
        for key in
            ["plan_format_version", "output_changes", "resource_changes", "resource_drift", "relevant_attributes"]
        {
            assert!(redacted.get(key).is_some(), "{key}");
        }
        let schemas = &redacted["provider_schemas"]["terraform.io/builtin/terraform"]["resource_schemas"];
        assert!(schemas["terraform_data"]["block"].is_object());
    }
}

#[tokio::test]
async fn plans_destroy_target_replace_and_only_refresh() {
    let scenario = Scenario::begin().await;
    for engine in Engine::ALL {
        scenario.server.seen().state = None;
        let run = Run::of(engine, &[("main.tf", TWO)]);
        let targeted = run.again().with(|run| run.operation.targets = vec!["terraform_data.one".to_owned()]);
        assert_eq!(scenario.plan(&targeted).await.1.counts.additions, 1, "target");
        scenario.apply(&run).await;
        assert!(!scenario.plan(&run.again()).await.1.has_changes, "all is done");
        let replaced = run.again().with(|run| run.operation.replace = vec!["terraform_data.two".to_owned()]);
        let counts = scenario.plan(&replaced).await.1.counts;
        assert_eq!((counts.additions, counts.destructions), (1, 1), "replace");
        let refreshed = run.again().with(|run| run.operation.refresh_only = true);
        assert!(!scenario.plan(&refreshed).await.1.has_changes, "refresh only");
        let unrefreshed = run.again().with(|run| run.operation.refresh = false);
        assert!(!scenario.plan(&unrefreshed).await.1.has_changes, "without refresh");
        let destroyed = run.again().with(|run| run.operation.destroy = true);
        assert_eq!(scenario.apply(&destroyed).await.1.destructions, 2, "destroy");
        let nothing = Run::of(engine, &[]).with(|run| run.operation.destroy = true);
        assert!(!scenario.plan(&nothing).await.1.has_changes, "a destroy needs no configuration");
    }
}

#[tokio::test]
async fn what_the_configuration_says_about_its_backend_is_overridden() {
    let scenario = Scenario::begin().await;
    for (engine, block) in Engine::ALL.into_iter().flat_map(|engine| {
        [
            (engine, r#"cloud { organization = "acme" }"#),
            (engine, r#"backend "remote" { organization = "acme" }"#),
            (engine, r#"backend "s3" { bucket = "none" }"#),
        ]
    }) {
        let stubborn = format!("terraform {{\n{block}\n}}\n");
        let run = Run::of(
            engine,
            &[
                ("deep/down/main.tf", TWO),
                ("deep/down/cloud.tf", &stubborn),
                ("deep/down/zzz_override.tf", "terraform {\n  backend \"gcs\" {}\n}\n"),
                ("deep/down/.terraform/terraform.tfstate", "not for us"),
                ("deep/down/errored.tfstate", "{\"serial\": 99}"),
            ],
        )
        .with(|run| run.working_directory = "deep/down".to_owned());
        scenario.server.seen().state = None;
        scenario.apply(&run).await;
        assert_eq!(scenario.server.state()["outputs"]["workspace"]["value"], "prod", "{engine} {block}");
    }
}

#[tokio::test]
async fn configuration_is_generated_for_what_is_imported() {
    let scenario = Scenario::begin().await;
    let import = "import {\n  to = terraform_data.imported\n  id = \"known\"\n}\n";
    for engine in Engine::ALL {
        let run = Run::of(engine, &[("main.tf", import)]).with(|run| {
            run.operation.generate_configuration = true;
            run.structured_output = true;
        });
        let (phase, summary) = scenario.plan(&run).await;
        assert!(summary.generated_configuration);
        assert_eq!(summary.counts.imports, 1);
        let change = &scenario.server.json(&phase, "redacted-plan")["resource_changes"][0]["change"];
        assert!(change["generated_config"].as_str().is_some_and(|text| text.contains("terraform_data")), "{change}");
    }
}

#[tokio::test]
async fn what_fails_says_why_in_outcome_and_log() {
    let scenario = Scenario::begin().await;
    for engine in Engine::ALL {
        for structured_output in [false, true] {
            let change = |run: &mut Run| run.structured_output = structured_output;
            let broken = Run::of(engine, &[("main.tf", "resource {}")]).with(change);
            let message = scenario.failure(&broken, PhaseKind::Plan).await;
            assert!(!message.is_empty() && !message.contains("ended with code"), "{message}");
            let wrong = r#"resource "terraform_data" "one" { input = file("missing") }"#;
            let wrong = Run::of(engine, &[("main.tf", wrong)]).with(change);
            let message = scenario.failure(&wrong, PhaseKind::Plan).await;
            assert!(message.contains("Invalid function argument") || message.contains("function call"), "{message}");
            let log = scenario.server.log(&taco_agent_protocol::PhaseAttempt {
                run: wrong.id,
                phase: PhaseKind::Plan,
                epoch: 1,
            });
            assert!(log.contains("missing") && log.ends_with('\u{3}'), "{log}");
        }
        let elsewhere = Run::of(engine, &[("main.tf", ONE)]).with(|run| run.working_directory = "other".to_owned());
        assert!(scenario.failure(&elsewhere, PhaseKind::Plan).await.contains("no directory other"));
        let old = Run::of(engine, &[("main.tf", ONE)]).with(|run| run.version = "0.1.2".to_owned());
        let message = scenario.failure(&old, PhaseKind::Plan).await;
        assert!(message.contains("0.1.2 is not on this agent (installed: 1."), "{message}");
    }
    let garbage = Run::of(Engine::Tofu, &[]).with(|run| run.archive = b"no archive".to_vec());
    assert!(scenario.failure(&garbage, PhaseKind::Plan).await.contains("is no tar.gz archive"));
    eventually("directories of runs go away", || {
        std::fs::read_dir(scenario.work_dir.path().join("runs")).expect("a directory").count() == 0
    })
    .await;
}
