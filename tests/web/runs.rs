//! A run's page, what people decide there, lists of runs, and the form that starts one.

use std::sync::Arc;

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::api_server::ApiServer;
use harness::browser::PageForm;
use harness::configurations::packed;
use harness::page_server::PageServer;
use jiff::SignedDuration;
use md5::{Digest, Md5};
use serde_json::json;
use taco_ledger::{Bucket, Key, LedgerName, ObjectBucket, layout};

use crate::run_scene::{NASTY, RunScene, applied, errored, is_harmless, planned};

#[tokio::test]
async fn a_plan_is_looked_at_confirmed_and_followed_to_its_end() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({ "message": "Move to the north" })).await;
    let queued = scene.look(&run).await;
    assert_eq!(queued.status, StatusCode::OK);
    for part in ["Move to the north", "Plan queued", "No built-in agent is running", "http-equiv=\"refresh\"", &run] {
        assert!(queued.text.contains(part), "{part}: {}", queued.text);
    }
    let phase = scene.take().await;
    let planning = scene.look(&run).await;
    assert!(planning.text.contains("elapsed <span data-elapsed=\"") && planning.text.contains("&#60; 1 s"));
    assert!(planning.text.contains("<title>web · Planning · run-"), "{}", planning.text);
    scene.log(&phase, 0, "\u{2}\u{1b}[1mPlan: 3 to add\u{1b}[0m\n\u{3}").await;
    scene.finish(&phase, planned()).await;

    let page = scene.look(&run).await;
    for part in ["Needs approval", "3 to add, 1 to change, 2 to destroy", "<span class=\"bold\">Plan: 3 to add</span>"]
    {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    assert!(page.text.contains("aria-current=\"step\""), "{}", page.text);
    let confirm = page.form(&format!("{}/decisions/confirm", RunScene::address(&run)));
    let done = scene.admin.send(&confirm, &[]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER);
    assert_eq!(done.done(), format!("{}: Confirmed. The apply is queued.", RunScene::address(&run)));
    assert_eq!(scene.status(&run).await, "apply_queued");
    let again = scene.admin.send(&confirm, &[]).await;
    assert_eq!(again.status, StatusCode::CONFLICT, "it was confirmed already");

    let phase = scene.take().await;
    scene.log(&phase, 0, "\u{2}Apply complete!\n\u{3}").await;
    scene.finish(&phase, applied()).await;
    let over = scene.look(&run).await;
    for part in [
        "Applied",
        "confirmed by <strong>admin</strong>",
        "<strong>admin</strong> confirmed the plan",
        "Apply complete!",
    ] {
        assert!(over.text.contains(part), "{part}: {}", over.text);
    }
    assert!(!over.text.contains("http-equiv=\"refresh\"") && !over.text.contains("data-events"), "it is over");
    assert!(!over.text.contains("/decisions/"), "nothing is left to decide");
}

#[tokio::test]
async fn the_addresses_that_command_lines_print_lead_to_the_page() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({})).await;
    let printed = scene.admin.get(&format!("/app/acme/web/runs/{run}")).await;
    assert_eq!((printed.status, printed.location()), (StatusCode::SEE_OTHER, RunScene::address(&run).as_str()));
    let elsewhere = scene.admin.get(&format!("/app/acme/workspaces/other/runs/{run}")).await;
    assert_eq!(elsewhere.location(), RunScene::address(&run), "a workspace may have been renamed");
    for nonsense in ["run-0000000000000000", "nonsense", "..%2f"] {
        assert_eq!(scene.look(nonsense).await.status, StatusCode::NOT_FOUND, "{nonsense}");
    }
}

#[tokio::test]
async fn a_destroy_needs_the_name_of_the_workspace() {
    let scene = RunScene::start().await;
    let run = scene.given_planned_run(json!({ "is-destroy": true })).await;
    let page = scene.look(&run).await;
    let confirm = page.form(&format!("{}/decisions/confirm", RunScene::address(&run)));
    for typed in ["", "other"] {
        let refused = scene.admin.send(&confirm, &[("typed_name", typed)]).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(refused.text.contains("Type its name, web"), "{}", refused.text);
        assert_eq!(scene.status(&run).await, "planned");
    }
    assert_eq!(scene.admin.send(&confirm, &[("typed_name", "web")]).await.status, StatusCode::SEE_OTHER);
    assert_eq!(scene.status(&run).await, "apply_queued");
}

#[tokio::test]
async fn a_run_is_discarded_canceled_and_stopped_by_force() {
    let scene = RunScene::start().await;
    let run = scene.given_planned_run(json!({})).await;
    let discard = scene.look(&run).await.form(&format!("{}/decisions/discard", RunScene::address(&run)));
    scene.admin.send(&discard, &[("comment", "Not today")]).await;
    let page = scene.look(&run).await;
    assert!(page.text.contains("Discarded") && page.text.contains("Not today"), "{}", page.text);

    let run = scene.given_run(json!({})).await;
    let phase = scene.take().await;
    let cancel = scene.look(&run).await.form(&format!("{}/decisions/cancel", RunScene::address(&run)));
    assert_eq!(scene.admin.send(&cancel, &[]).await.status, StatusCode::SEE_OTHER);
    let page = scene.look(&run).await;
    assert!(page.text.contains("was asked to stop already") && page.text.contains("Possible from"), "{}", page.text);
    let force = page.form(&format!("{}/decisions/force-cancel", RunScene::address(&run)));
    assert_eq!(scene.admin.send(&force, &[]).await.status, StatusCode::CONFLICT);
    scene.server.api.pass(SignedDuration::from_secs(61));
    assert_eq!(scene.admin.send(&force, &[]).await.status, StatusCode::SEE_OTHER);
    scene.finish(&phase, taco_control_plane::PhaseOutcome::Canceled).await;
    assert_eq!(scene.status(&run).await, "canceled");
    let nonsense = PageForm { action: format!("{}/decisions/nonsense", RunScene::address(&run)), ..force };
    assert_eq!(scene.admin.send(&nonsense, &[]).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn whoever_may_not_decide_is_told_why_and_is_refused() {
    let scene = RunScene::start().await;
    let run = scene.given_planned_run(json!({})).await;
    let address = RunScene::address(&run);
    let reader = scene.server.member("reader", "acme", &scene.workspace, "read").await;
    let page = reader.get(&address).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("You may not apply, discard or cancel runs"), "{}", page.text);
    assert!(page.text.contains("You may not plan in the workspace"), "no comments either: {}", page.text);
    let confirm = page.form(&format!("{address}/decisions/confirm"));
    assert_eq!(reader.send(&confirm, &[]).await.status, StatusCode::FORBIDDEN);
    let comment = page.form(&format!("{address}/comments"));
    assert_eq!(reader.send(&comment, &[("body", "hello")]).await.status, StatusCode::FORBIDDEN);
    assert_eq!(scene.status(&run).await, "planned");

    let stranger = scene.server.stranger("stranger").await;
    for path in [&address, &format!("{address}/log/plan"), &format!("{address}/events")] {
        assert_eq!(stranger.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
        let anyone = scene.server.browser().get(path).await;
        assert_eq!(anyone.status, StatusCode::SEE_OTHER, "{path}: log in first");
    }
    let mut unproven = confirm;
    unproven.hidden.clear();
    assert_eq!(scene.admin.send(&unproven, &[]).await.status, StatusCode::FORBIDDEN, "another page has sent it");
}

#[tokio::test]
async fn comments_are_kept_as_they_were_typed() {
    let scene = RunScene::start().await;
    let run = scene.given_planned_run(json!({ "message": NASTY })).await;
    let comment = scene.look(&run).await.form(&format!("{}/comments", RunScene::address(&run)));
    let empty = scene.admin.send(&comment, &[("body", "  ")]).await;
    assert_eq!(empty.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(empty.text.contains("Body can&#39;t be blank"), "{}", empty.text);
    let long = "x".repeat(5000);
    let refused = scene.admin.send(&comment, &[("body", &long)]).await;
    assert!(refused.text.contains(&long) && refused.text.contains("4096 are allowed"));
    let done = scene.admin.send(&comment, &[("body", NASTY)]).await;
    assert_eq!(done.done(), format!("{}: Comment added.", RunScene::address(&run)));
    let page = scene.look(&run).await;
    assert!(page.text.contains("onerror=alert(1)&#62;&#38;lt;"), "{}", page.text);
    is_harmless(&page);
}

#[tokio::test]
async fn a_run_that_waits_leads_to_what_it_waits_for() {
    let scene = RunScene::start().await;
    let first = scene.given_planned_run(json!({})).await;
    let second = scene.given_run(json!({})).await;
    let page = scene.look(&second).await;
    assert!(page.text.contains("Waiting for 1 earlier run"), "{}", page.text);
    assert!(page.text.contains(&format!("href=\"{}\"", RunScene::address(&first))), "{}", page.text);
    let now = page.form(&format!("{}/decisions/force-execute", RunScene::address(&second)));
    assert_eq!(scene.admin.send(&now, &[]).await.status, StatusCode::SEE_OTHER);
    assert_eq!((scene.status(&first).await, scene.status(&second).await), ("discarded".into(), "plan_queued".into()));
}

#[tokio::test]
async fn a_plan_that_is_older_than_the_state_is_stale() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({ "save-plan": true })).await;
    let phase = scene.take().await;
    scene.finish(&phase, planned()).await;
    assert!(!scene.look(&run).await.text.contains("This plan is stale"));
    let api = scene.server.api.admin();
    api.act(&format!("/api/v2/workspaces/{}/actions/lock", scene.workspace)).await.expect(StatusCode::OK);
    let state = json!({ "version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "l", "resources": [] });
    let bytes = state.to_string();
    let attributes = json!({
        "serial": 1, "lineage": "l", "md5": hex::encode(Md5::digest(&bytes)), "state": STANDARD.encode(&bytes),
    });
    let body = json!({ "data": { "type": "state-versions", "attributes": attributes } });
    let path = format!("/api/v2/workspaces/{}/state-versions", scene.workspace);
    api.post(&path, &body).await.expect(StatusCode::CREATED);
    let page = scene.look(&run).await;
    assert!(page.text.contains("This plan is stale"), "{}", page.text);
}

#[tokio::test]
async fn a_plan_is_shown_as_a_tree_without_what_is_sensitive() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({})).await;
    let phase = scene.take().await;
    scene.log(&phase, 0, "\u{2}in the console\n\u{3}").await;
    let change = json!({
        "actions": ["update"], "before": { "size": "small", "key": "sensitive-1" },
        "after": { "size": NASTY, "key": "sensitive-2" }, "after_unknown": { "id": true },
        "before_sensitive": { "key": true }, "after_sensitive": { "key": true },
    });
    let resource = json!({
        "address": "module.a.web_server.one", "module_address": "module.a", "mode": "managed", "type": "web_server",
        "name": "one", "change": change,
    });
    let drift = json!({ "address": "web_server.drifted", "mode": "managed", "change": { "actions": ["update"] } });
    let output = json!({ "actions": ["create"], "before": null, "after": 7, "after_unknown": false });
    let plan = json!({
        "resource_changes": [resource], "resource_drift": [drift], "output_changes": { "port": output },
    });
    scene.plan(&phase, &plan).await;
    scene.finish(&phase, planned()).await;
    let page = scene.look(&run).await;
    for part in
        ["module.a", "web_server.one", "size", "(sensitive)", "(known after apply)", "web_server.drifted", "port"]
    {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    assert!(!page.text.contains("sensitive-1") && !page.text.contains("in the console"), "{}", page.text);
    is_harmless(&page);
    let console = scene.admin.get(&format!("{}?view=console", RunScene::address(&run))).await;
    assert!(console.text.contains("in the console") && !console.text.contains("web_server.one"), "{}", console.text);
}

#[tokio::test]
async fn lists_are_filtered_by_their_address() {
    let scene = RunScene::start().await;
    let failed = scene.given_run(json!({ "message": "Bigger cache" })).await;
    let phase = scene.take().await;
    scene.finish(&phase, errored("no provider")).await;
    let waiting = scene.given_planned_run(json!({ "message": NASTY })).await;
    for list in ["/app/acme/workspaces/web/runs", "/app/acme/runs"] {
        let look = async |query: &str| scene.admin.get(&format!("{list}?{query}")).await;
        let all = look("").await;
        assert!(all.text.contains(&failed) && all.text.contains(&waiting), "{}", all.text);
        is_harmless(&all);
        for (query, shown, hidden) in [
            ("status=errored", &failed, &waiting),
            ("status=waiting", &waiting, &failed),
            ("search=bigger", &failed, &waiting),
            ("source=tfe-api&search=alert", &waiting, &failed),
        ] {
            let page = look(query).await;
            assert!(page.text.contains(shown) && !page.text.contains(hidden), "{list} {query}");
        }
        for query in ["source=tfe-ui", "status=nonsense", "search=%3Cb%3E"] {
            let page = look(query).await;
            assert!(page.text.contains("No runs match"), "{query}: {}", page.text);
        }
        assert_eq!(look("page=999999999999999999999").await.status, StatusCode::OK);
    }
    let error = scene.look(&failed).await;
    assert!(error.text.contains("no provider"), "what went wrong comes first");
    let stranger = scene.server.stranger("stranger").await;
    for list in ["/app/acme/workspaces/web/runs", "/app/acme/runs", "/app/acme/workspaces/web/runs/new"] {
        assert_eq!(stranger.get(list).await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn a_run_is_started_by_a_form() {
    let scene = RunScene::start().await;
    let path = "/app/acme/workspaces/web/runs/new";
    let form = scene.admin.get(path).await.form(path);
    let mistake = [("kind", "plan-and-apply"), ("message", "why"), ("targets", "not an address")];
    let refused = scene.admin.send(&form, &mistake).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        refused.text.contains("not an address") && refused.text.contains("id=\"targets-error\""),
        "{}",
        refused.text
    );
    assert_eq!(scene.admin.send(&form, &[("kind", "nonsense")]).await.status, StatusCode::BAD_REQUEST);
    let made = scene
        .admin
        .send(&form, &[("kind", "plan-only"), ("message", "Looks good?"), ("targets", "a.b\r\nmodule.c\r\n")])
        .await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.text);
    let page = scene.admin.get(made.location()).await;
    for part in ["Run started.", "Looks good?", "plan only", "a.b", "module.c", "from the web"] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    let long = [("kind", "plan-and-apply"), ("message", "Bigger cache\r\n\r\nIt <b>grew</b>.\r\nTwice.")];
    let long = scene.admin.send(&form, &long).await;
    let page = scene.admin.get(long.location()).await;
    assert!(page.text.contains("<h1>Bigger cache</h1>"), "{}", page.text);
    assert!(page.text.contains("<p class=\"body\">It &#60;b&#62;grew&#60;/b&#62;.\nTwice.</p>"), "{}", page.text);
    for list in ["/app/acme/workspaces/web/runs", "/app/acme/workspaces/web", "/app/acme/runs"] {
        let page = scene.admin.get(list).await;
        assert!(page.text.contains(">Bigger cache</a>") && !page.text.contains("Twice"), "{list}: {}", page.text);
    }
    let destroy = scene.admin.send(&form, &[("kind", "destroy")]).await;
    assert!(scene.admin.get(destroy.location()).await.text.contains("<span class=\"badge bad\">destroy</span>"));

    let reader = scene.server.member("reader", "acme", &scene.workspace, "read").await;
    let page = reader.get(path).await;
    assert!(page.text.contains("You may not plan in the workspace"), "{}", page.text);
    assert!(reader.get("/app/acme/workspaces/web/runs").await.text.contains("<button disabled"));
    let empty = scene.server.api.given_workspace("acme", "empty").await;
    let page = scene.admin.get("/app/acme/workspaces/empty/runs/new").await;
    assert!(page.text.contains("has no configuration yet"), "{empty}: {}", page.text);
}

#[tokio::test]
async fn a_form_starts_a_run_with_all_that_the_api_takes() {
    let scene = RunScene::start().await;
    let path = "/app/acme/workspaces/web/runs/new";
    let form = scene.admin.get(path).await.form(path);
    for (fields, complaint) in [
        ([("kind", "plan-only"), ("variables", "nonsense")], "error-variables"),
        ([("kind", "plan-only"), ("variables", " = 2")], "error-variables"),
        ([("kind", "plan-and-apply"), ("version", "1.5.0")], "error-terraform-version"),
    ] {
        let refused = scene.admin.send(&form, &fields).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{fields:?}");
        assert!(refused.text.contains(&format!("id=\"{complaint}\"")), "{fields:?}: {}", refused.text);
    }
    let fields = [("kind", "plan-only"), ("version", "1.5.0"), ("no_refresh", "yes"), ("variables", "region = \"x\"")];
    let made = scene.admin.send(&form, &fields).await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.text);
    let page = scene.admin.get(made.location()).await;
    for part in ["terraform 1.5.0", "without refresh", "plan only"] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    let id = made.location().split("/runs/").nth(1).and_then(|rest| rest.split('?').next()).expect("an id");
    let run = scene.server.api.admin().get(&format!("/api/v2/runs/{id}")).await.expect(StatusCode::OK);
    assert_eq!(run.attribute("variables")[0]["key"], "region");
    let kept = scene.admin.send(&form, &[("kind", "save-plan")]).await;
    assert!(scene.admin.get(kept.location()).await.text.contains("saved plan"));
}

#[tokio::test]
async fn targets_and_replacements_are_chosen_from_the_state() {
    let scene = RunScene::start().await;
    let path = "/app/acme/workspaces/web/runs/new";
    assert!(!scene.admin.get(path).await.text.contains("<datalist"), "there is no state to choose from");
    let instance = |key: &str| json!({ "index_key": key, "attributes": {} });
    let state = json!({
        "version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "L", "outputs": {},
        "resources": [
            { "mode": "data", "type": "http", "name": "x", "provider": "p", "instances": [{}] },
            { "module": "module.shop", "mode": "managed", "type": "terraform_data", "name": "one", "provider": "p",
              "instances": [instance("<a>"), instance("b")] },
        ],
    });
    scene.server.api.given_state(&scene.workspace, &state).await;
    let page = scene.admin.get(path).await;
    for (address, times) in [
        ("<option value=\"module.shop\">", 1),
        ("<option value=\"module.shop.terraform_data.one[&#34;&#60;a&#62;&#34;]\">", 2),
        ("<option value=\"module.shop.terraform_data.one[&#34;b&#34;]\">", 2),
        ("<option value=\"data.http.x\">", 0),
    ] {
        assert_eq!(page.text.matches(address).count(), times, "{address}: {}", page.text);
    }
    let chosen = [
        ("kind", "plan-and-apply"),
        ("targets", "a.b"),
        ("one_target", "module.shop"),
        ("one_replacement", "module.shop.terraform_data.one[\"b\"]"),
    ];
    let made = scene.admin.send(&page.form(path), &chosen).await;
    let page = scene.admin.get(made.location()).await;
    for part in [
        "Targets: <code>a.b</code> <code>module.shop</code>",
        "Replaces: <code>module.shop.terraform_data.one[&#34;b&#34;]</code>",
    ] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
}

#[tokio::test]
async fn a_run_can_be_started_although_the_state_cannot_be_read() {
    let bucket = Arc::new(ObjectBucket::in_memory());
    let scene = RunScene::on(PageServer::with(ApiServer::start_on(bucket.clone()).await).await).await;
    let state = json!({
        "version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "L", "outputs": {}, "resources": [],
    });
    scene.server.api.given_state(&scene.workspace, &state).await;
    let commits = bucket.list(&layout::ledgers(), None).await.expect("keys");
    let ledger = commits.iter().filter_map(layout::ledger_of).find(|ledger| *ledger != LedgerName::site());
    let keys = bucket.list(&layout::blobs(&ledger.expect("acme's")), None).await.expect("keys");
    let states: Vec<&Key> = keys.iter().filter(|key| key.as_str().contains("/states/")).collect();
    assert_eq!(states.len(), 1, "{keys:?}");
    bucket.delete(states[0]).await.expect("deleted");
    let path = "/app/acme/workspaces/web/runs/new";
    let page = scene.admin.get(path).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    let made = scene.admin.send(&page.form(path), &[("kind", "plan-and-apply"), ("targets", "a.b")]).await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.text);
}

#[tokio::test]
async fn a_runs_configuration_is_downloaded_by_who_may_plan() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({})).await;
    let page = scene.look(&run).await;
    let link =
        page.text.split("/app/acme/workspaces/web/configurations/").nth(1).and_then(|rest| rest.split('"').next());
    let address = format!("/app/acme/workspaces/web/configurations/{}", link.expect("a link"));
    let archive = scene.admin.get(&address).await;
    assert_eq!((archive.status, archive.header("content-type")), (StatusCode::OK, "application/gzip"));
    assert!(
        archive.header("content-disposition").starts_with("attachment; "),
        "{:?}",
        archive.header("content-disposition")
    );
    assert_eq!(archive.header("content-length"), packed(&[("main.tf", "")]).len().to_string());
    let reader = scene.server.member("reader", "acme", &scene.workspace, "read").await;
    assert!(!reader.get(&RunScene::address(&run)).await.text.contains("/configurations/"));
    assert_eq!(reader.get(&address).await.status, StatusCode::FORBIDDEN);
    assert_eq!(scene.server.stranger("eve").await.get(&address).await.status, StatusCode::NOT_FOUND);
}
