//! What a run's page leads with: failures first, outputs at the end, the runs beside it, and another try.

use axum::http::StatusCode;
use bytes::Bytes;
use harness::browser::{Browser, Page};
use serde_json::{Value, json};
use taco_control_plane::{PhaseCaller, PhaseOutcome};

use crate::run_scene::{RunScene, applied, errored, planned};

const RUNS: &str = "/app/acme/workspaces/web/runs";

fn retry_form(run: &str) -> String {
    format!("{}/retry", RunScene::address(run))
}

/// A line of the engine's log with an error or a warning.
fn diagnostic(severity: &str, summary: &str, detail: &str) -> String {
    let line = json!({
        "@level": severity, "@message": summary, "type": "diagnostic",
        "diagnostic": { "severity": severity, "summary": summary, "detail": detail },
    });
    format!("{line}\n")
}

fn hook(kind: &str, address: &str, action: &str) -> String {
    let line = json!({
        "@level": "info", "@message": "x", "type": kind,
        "hook": { "resource": { "addr": address }, "action": action, "elapsed_seconds": 1 },
    });
    format!("{line}\n")
}

fn change(address: &str, actions: &[&str]) -> Value {
    json!({ "address": address, "mode": "managed", "change": { "actions": actions, "before": null, "after": null } })
}

/// Lets the plan of the newest run find these changes, and confirms it.
async fn given_apply(scene: &RunScene, run: &str, changes: &[Value]) -> PhaseCaller {
    let phase = scene.take().await;
    scene.plan(&phase, &json!({ "resource_changes": changes })).await;
    scene.finish(&phase, planned()).await;
    let confirm = scene.look(run).await.form(&format!("{}/decisions/confirm", RunScene::address(run)));
    assert_eq!(scene.admin.send(&confirm, &[("typed_name", "web")]).await.status, StatusCode::SEE_OTHER);
    scene.take().await
}

/// Sends a state as the agent of an apply does, and tells its id.
async fn send_state(scene: &RunScene, apply: &PhaseCaller, outputs: &Value) -> String {
    let state = json!({ "version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "L", "resources": [],
        "outputs": outputs });
    let body = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from(state.to_string()))]);
    let written = scene.server.api.control_plane.write_phase_state(apply, body).await;
    written.unwrap_or_else(|error| panic!("{error}")).version.id.to_string()
}

async fn retry(browser: &Browser, page: &Page, run: &str) -> Page {
    browser.send(&page.form(&retry_form(run)), &[]).await
}

fn id_at(address: &str) -> String {
    address.split("/runs/").nth(1).and_then(|rest| rest.split('?').next()).expect("a run").to_owned()
}

#[tokio::test]
async fn a_failed_run_tells_what_went_wrong_first_and_once() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({})).await;
    let phase = scene.take().await;
    let log = [
        "\u{2}Initializing...\n".to_owned(),
        diagnostic("warn", "Value for undeclared variable", "No variable named \"size\"."),
        diagnostic("error", "Invalid reference", "Nothing is called so."),
        "\u{3}".to_owned(),
    ];
    scene.log(&phase, 0, log.concat()).await;
    scene.finish(&phase, errored("Error: Invalid reference")).await;
    let page = scene.look(&run).await;
    let place = |text: &str| page.text.find(text).unwrap_or_else(|| panic!("no {text}: {}", page.text));
    assert!(
        place("Plan failed") < place("Nothing is called so.") && place("Nothing is called so.") < place("id=\"plan\"")
    );
    assert_eq!(page.text.matches("</strong> Invalid reference</summary>").count(), 1, "{}", page.text);
    assert!(
        !page.text.contains("<p class=\"error\">Error: Invalid reference"),
        "the diagnostic says it: {}",
        page.text
    );
    assert!(page.text.contains("<span class=\"message\">No variable named &#34;size&#34;.</span>"), "{}", page.text);

    let other = scene.given_run(json!({})).await;
    let phase = scene.take().await;
    scene.log(&phase, 0, "\u{2}plain text\n\u{3}").await;
    scene.finish(&phase, errored("the plan took longer than an hour")).await;
    assert!(scene.look(&other).await.text.contains("<p class=\"error\">the plan took longer than an hour</p>"));
}

#[tokio::test]
async fn what_an_apply_did_not_get_to_is_listed() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({})).await;
    let changes =
        [change("a.one", &["create"]), change("a.two", &["delete", "create"]), change("a.three", &["update"])];
    let apply = given_apply(&scene, &run, &changes).await;
    let applying = scene.look(&run).await.text;
    assert!(applying.contains("<details class=\"phase\" id=\"plan\">"), "the plan is folded: {applying}");
    assert!(applying.contains("ask:"), "a cancel is asked about: {applying}");
    let log = [hook("apply_complete", "a.two", "delete"), hook("apply_errored", "a.one", "create")].concat();
    scene.log(&apply, 0, format!("\u{2}Initializing...\n{log}\u{3}")).await;
    scene.finish(&apply, errored("no more room")).await;
    let page = scene.look(&run).await;
    assert!(page.text.contains("Apply failed") && page.text.contains("no more room"), "{}", page.text);
    assert!(page.text.contains("1 done, 1 failed, 2 not started"), "{}", page.text);
    for part in ["create <code>a.two</code>", "change <code>a.three</code>"] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    let whole = scene.admin.get(&format!("{}?view=plan", RunScene::address(&run))).await.text;
    assert!(whole.contains("<details class=\"phase\" id=\"plan\" open>"), "who asks for the plan sees it: {whole}");
}

#[tokio::test]
async fn outputs_are_on_the_page_after_an_apply_and_lead_to_their_state() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({})).await;
    let apply = given_apply(&scene, &run, &[]).await;
    let outputs = json!({
        "url": { "value": "https://<shop>", "type": "string" },
        "password": { "value": "hunter2", "type": "string", "sensitive": true },
    });
    let state = send_state(&scene, &apply, &outputs).await;
    assert!(!scene.look(&run).await.text.contains("https://"), "it goes on");
    scene.finish(&apply, applied()).await;
    let page = scene.look(&run).await;
    for part in ["https://&#60;shop&#62;", "sensitive: hidden", &format!("/states/{state}\">state 1</a>")] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    assert!(!page.text.contains("hunter2"), "{}", page.text);
    let reveal = page.form("/app/acme/workspaces/web/outputs/");
    assert!(scene.admin.send(&reveal, &[]).await.text.contains("hunter2"));
    let of_state = scene.admin.get(&format!("/app/acme/workspaces/web/states/{state}")).await.text;
    assert!(of_state.contains(&RunScene::address(&run)) && of_state.contains("<dd>admin</dd>"), "{of_state}");

    let planner = scene.server.member("pete", "acme", &scene.workspace, "plan").await;
    let seen = planner.get(&RunScene::address(&run)).await.text;
    assert!(!seen.contains("hunter2"), "{seen}");
}

#[tokio::test]
async fn runs_lead_to_the_ones_before_and_after_them() {
    let scene = RunScene::start().await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(scene.given_run(json!({ "plan-only": true })).await);
    }
    let link = |run: &str, rel: &str| format!("<a href=\"{}\" rel=\"{rel}\">", RunScene::address(run));
    let middle = scene.look(&runs[1]).await.text;
    assert!(middle.contains(&link(&runs[0], "prev")) && middle.contains(&link(&runs[2], "next")), "{middle}");
    assert!(!scene.look(&runs[0]).await.text.contains("rel=\"prev\""));
    assert!(!scene.look(&runs[2]).await.text.contains("rel=\"next\""));
}

#[tokio::test]
async fn a_run_that_failed_is_started_again_as_it_was() {
    let scene = RunScene::start().await;
    let sent = json!({
        "message": "Bigger cache", "is-destroy": true, "auto-apply": true, "target-addrs": ["a.b"],
        "variables": [{ "key": "region", "value": "\"north\"" }],
    });
    let run = scene.given_run(sent).await;
    let queued = scene.look(&run).await.text;
    assert!(!queued.contains(&retry_form(&run)), "it is not over: {queued}");
    let phase = scene.take().await;
    scene.finish(&phase, errored("no")).await;
    // The configuration that the run had, not the newest.
    scene.given_configuration(&scene.workspace).await;
    let page = scene.look(&run).await;
    assert!(page.text.contains("Run again</button>"), "{}", page.text);

    let reader = scene.server.member("reader", "acme", &scene.workspace, "read").await;
    let seen = reader.get(&RunScene::address(&run)).await;
    assert!(seen.text.contains("id=\"why-retry\">You may not plan in the workspace"), "{}", seen.text);
    assert_eq!(retry(&reader, &seen, &run).await.status, StatusCode::FORBIDDEN);

    let started = retry(&scene.admin, &page, &run).await;
    assert_eq!(started.status, StatusCode::SEE_OTHER, "{}", started.text);
    let again = id_at(started.location());
    assert_ne!(again, run);
    let api = scene.server.api.admin();
    let of = async |id: &str| api.get(&format!("/api/v2/runs/{id}")).await.expect(StatusCode::OK);
    let (old, new) = (of(&run).await, of(&again).await);
    assert_eq!(new.attribute("message"), format!("Run again: {run}"));
    for same in ["is-destroy", "plan-only", "refresh", "target-addrs", "replace-addrs", "variables"] {
        assert_eq!(new.attribute(same), old.attribute(same), "{same}");
    }
    assert_eq!(new.attribute("auto-apply"), false, "a destroy is confirmed each time");
    let configuration = |answer: &Value| answer["data"]["relationships"]["configuration-version"]["data"]["id"].clone();
    assert_eq!(configuration(&new.json()), configuration(&old.json()));
}

#[tokio::test]
async fn runs_that_were_stopped_or_found_nothing_can_be_run_again_and_others_not() {
    let scene = RunScene::start().await;
    let discarded = scene.given_planned_run(json!({})).await;
    let waiting = scene.look(&discarded).await;
    let early = harness::browser::PageForm {
        action: retry_form(&discarded),
        ..waiting.form(&format!("{}/comments", RunScene::address(&discarded)))
    };
    assert_eq!(scene.admin.send(&early, &[]).await.status, StatusCode::CONFLICT, "it waits for approval");
    let discard = waiting.form(&format!("{}/decisions/discard", RunScene::address(&discarded)));
    scene.admin.send(&discard, &[]).await;
    let canceled = scene.given_run(json!({})).await;
    let phase = scene.take().await;
    scene.finish(&phase, PhaseOutcome::Canceled).await;
    let finished = scene.given_run(json!({ "plan-only": true })).await;
    let phase = scene.take().await;
    scene.finish(&phase, planned()).await;
    for run in [&discarded, &canceled, &finished] {
        let page = scene.look(run).await;
        assert!(page.text.contains("Run again</button>"), "{run}: {}", page.text);
        assert_eq!(retry(&scene.admin, &page, run).await.status, StatusCode::SEE_OTHER, "{run}");
    }
    let run = scene.given_run(json!({})).await;
    let list = scene.admin.get(RUNS).await;
    assert!(list.text.contains(&format!(">Run again: {finished}</a>")), "{}", list.text);
    assert!(list.text.contains("Plan only") && list.text.contains(&run), "{}", list.text);
}

#[tokio::test]
async fn a_destroy_says_how_much_it_destroys() {
    let scene = RunScene::start().await;
    let run = scene.given_planned_run(json!({ "is-destroy": true })).await;
    let page = scene.look(&run).await.text;
    assert!(page.contains("<button class=\"destroy\">Destroy 2 resources</button>"), "{page}");
    assert!(!page.contains("Confirm &#38; apply"), "{page}");
}

#[tokio::test]
async fn a_locked_workspace_says_before_a_run_is_started_that_it_will_wait() {
    let scene = RunScene::start().await;
    let form = "/app/acme/workspaces/web/runs/new";
    assert!(!scene.admin.get(form).await.text.contains("will wait for this"));
    let lock = format!("/api/v2/workspaces/{}/actions/lock", scene.workspace);
    scene.server.api.admin().post(&lock, &json!({ "reason": "Moving <house>" })).await.expect(StatusCode::OK);
    let page = scene.admin.get(form).await.text;
    for part in ["The workspace is locked by admin", "Moving &#60;house&#62;", "will wait for this"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[tokio::test]
async fn a_run_is_started_from_the_dashboard_by_choosing_a_workspace() {
    let scene = RunScene::start().await;
    let dashboard = scene.admin.get("/app/acme").await.text;
    assert!(dashboard.contains("href=\"/app/acme/runs/new\">Start run</a>"), "{dashboard}");
    let only = scene.admin.get("/app/acme/runs/new").await;
    assert_eq!(only.location(), format!("{RUNS}/new"), "there is one workspace to choose");
    scene.server.api.given_workspace("acme", "empty").await;
    let page = scene.admin.get("/app/acme/runs/new").await.text;
    assert!(page.contains(&format!("<a href=\"{RUNS}/new\">web</a>")), "{page}");
    assert!(page.contains("has no configuration yet") && !page.contains("/workspaces/empty/runs/new"), "{page}");
    let found = scene.admin.get("/app/acme/runs/new?search=we").await.text;
    assert!(found.contains(">web</a>") && !found.contains("empty"), "{found}");
    let none = scene.admin.get("/app/acme/runs/new?search=%3Cb%3E").await.text;
    assert!(none.contains("No workspaces match."), "{none}");
    assert_eq!(scene.server.stranger("eve").await.get("/app/acme/runs/new").await.status, StatusCode::NOT_FOUND);
    let overview = scene.admin.get("/app/acme/workspaces/web").await.text;
    assert!(overview.contains(&format!("href=\"{RUNS}/new\">Start run</a>")), "{overview}");
}
