//! Output contracts on pages: the policy in settings, and what a plan breaks on its run's page.

use axum::http::StatusCode;
use harness::graph_states::{reading, state};
use serde_json::json;
use taco_control_plane::PlanForm;

use crate::run_scene::{RunScene, planned};

const OUTPUTS: [(&str, &str); 1] = [("vpc_id", "vpc-0123456789")];

/// `web` with an output that `app` uses, as its state shows; and the id of `app`.
async fn given_consumer(scene: &RunScene) -> String {
    let api = &scene.server.api;
    api.given_state(&scene.workspace, &state(1, &OUTPUTS)).await;
    let app = api.given_workspace("acme", "app").await;
    api.given_state(&app, &reading(state(1, &[]), "web", &OUTPUTS)).await;
    api.admin().get("/api/v2/organizations/acme/graph").await.expect(StatusCode::OK);
    app
}

/// A run whose plan removes the output.
async fn given_breaking_run(scene: &RunScene) -> String {
    let run = scene.given_run(json!({ "auto-apply": true })).await;
    let phase = scene.take().await;
    let change = json!({ "actions": ["delete"], "before": "x", "after": null, "after_unknown": false });
    let plan = json!({ "format_version": "1.2", "output_changes": { "vpc_id": change } });
    scene.plan_as(&phase, PlanForm::Json, &plan).await;
    scene.log(&phase, 0, "\u{2}planned\n\u{3}").await;
    scene.finish(&phase, planned()).await;
    run
}

#[tokio::test]
async fn a_policy_is_chosen_in_the_settings_of_each_level() {
    let scene = RunScene::start().await;
    let workspace = async || {
        let shown = scene.server.api.admin().get(&format!("/api/v2/workspaces/{}", scene.workspace)).await;
        shown.attribute("taco-effective-output-contract")
    };
    let shown = scene.server.api.admin().get(&format!("/api/v2/workspaces/{}", scene.workspace)).await;
    let project = shown.data()["relationships"]["project"]["data"]["id"].as_str().expect("an id").to_owned();
    let project = format!("/app/acme/projects/{project}");
    let general = [("name", "acme"), ("email", "a@acme.test"), ("mode", "remote"), ("user_tokens", "true")];
    let named = [("name", "Default Project"), ("description", "")];
    let execution = [("mode", ""), ("engine", "terraform"), ("version", "latest"), ("directory", "")];
    let execution_page = "/app/acme/workspaces/web/settings/execution";
    for (page, action, fields, policy, expected) in [
        ("/app/acme/settings", "/app/acme/settings", &general[..], "stop", "stop"),
        (project.as_str(), project.as_str(), &named[..], "off", "off"),
        (execution_page, execution_page, &execution[..], "warn", "warn"),
        (execution_page, execution_page, &execution[..], "", "off"),
        (project.as_str(), project.as_str(), &named[..], "", "stop"),
    ] {
        let form = scene.admin.get(page).await.form(action);
        let fields = [fields, &[("output_contract", policy)]].concat();
        let saved = scene.admin.sends_and_follows(&form, &fields).await;
        let chosen = format!("<option value=\"{policy}\" selected>");
        assert!(saved.text.contains(&chosen), "{page}: {}", saved.text);
        assert_eq!(workspace().await, expected, "{page} {policy:?}");
        // A form without the field leaves it as it is.
        let without: Vec<_> = fields.iter().copied().filter(|(name, _)| *name != "output_contract").collect();
        scene.admin.sends_and_follows(&form, &without).await;
        assert_eq!(workspace().await, expected, "{page} without the field");
        let wrong = [&without[..], &[("output_contract", "loudly")]].concat();
        let refused = scene.admin.send(&form, &wrong).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(refused.text.contains("error-taco-output-contract"), "{}", refused.text);
    }
    let page = scene.admin.get(execution_page).await.text;
    assert!(page.contains("Project default (Stop for approval)"), "{page}");
}

#[tokio::test]
async fn the_button_says_what_an_apply_breaks() {
    let scene = RunScene::start().await;
    let app = given_consumer(&scene).await;
    let settings = "/app/acme/workspaces/web/settings/execution";
    let form = scene.admin.get(settings).await.form(settings);
    let fields =
        [("mode", ""), ("engine", "terraform"), ("version", "latest"), ("directory", ""), ("output_contract", "stop")];
    scene.admin.sends_and_follows(&form, &fields).await;
    let run = given_breaking_run(&scene).await;
    assert_eq!(scene.status(&run).await, "planned");
    let page = scene.look(&run).await;
    for part in ["vpc_id is removed: app uses it", "Apply and break 1 workspace", "This run needs approval"] {
        assert!(page.text.contains(part), "{part} is missing:\n{}", page.text);
    }
    let raw = scene.admin.get(&format!("{}/log/plan", RunScene::address(&run))).await.text;
    assert!(raw.starts_with("planned\n") && raw.contains("vpc_id is removed: app uses it"), "{raw}");

    // Who may see neither `app` nor its name.
    let visitor = scene.server.member("jane", "acme", &scene.workspace, "write").await;
    let seen = visitor.get(&RunScene::address(&run)).await;
    assert!(seen.text.contains("vpc_id is removed: a unit you may not see uses it"), "{}", seen.text);
    assert!(!seen.text.contains(&app) && !seen.text.contains("app uses it"), "{}", seen.text);

    let confirm = format!("{}/decisions/confirm", RunScene::address(&run));
    let form = page.form(&confirm);
    let plain = harness::browser::PageForm {
        hidden: form.hidden.iter().filter(|(name, _)| name != "accept_output_changes").cloned().collect(),
        ..page.form(&confirm)
    };
    let refused = scene.admin.send(&plain, &[]).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    let done = scene.admin.send(&form, &[]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    assert_eq!(scene.status(&run).await, "apply_queued");
    let page = scene.look(&run).await;
    assert!(page.text.contains("Accepted by admin."), "{}", page.text);
}

#[tokio::test]
async fn a_proven_dependency_gets_a_run_trigger_with_one_click() {
    let scene = RunScene::start().await;
    given_consumer(&scene).await;
    let address = "/app/acme/workspaces/app/dependencies";
    let page = scene.admin.get(address).await;
    let forms = page.text.split("action=\"").skip(1).filter_map(|form| form.split('"').next());
    let trigger = forms.clone().find(|form| form.ends_with("/trigger")).expect("a form").to_owned();
    let done = scene.admin.send(&page.form(&trigger), &[]).await;
    assert_eq!(done.done(), format!("{address}: Applies of web that change outputs which app uses now start a run."));
    let page = scene.admin.get(address).await;
    assert!(!page.text.contains("/trigger\""), "{}", page.text);
    let settings = scene.admin.get("/app/acme/workspaces/app/settings/triggers").await.text;
    assert!(settings.contains("if used outputs changed"), "{settings}");
}
