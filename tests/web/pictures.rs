//! Pictures on pages, and that each shows no more than its page may.

use axum::http::StatusCode;
use jiff::SignedDuration;
use serde_json::{Value, json};
use taco_domain::agent::AgentPresence;
use taco_domain::id::AgentId;

use crate::run_scene::{NASTY, RunScene, applied, errored, is_harmless};

/// The picture with this id, as HTML.
fn picture<'a>(page: &'a str, id: &str) -> &'a str {
    let begins = page.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("no picture {id}: {page}"));
    let picture = &page[begins..];
    &picture[..picture.find("</figure>").expect("an end")]
}

fn has_picture(page: &str, id: &str) -> bool {
    page.contains(&format!("id=\"{id}\""))
}

#[tokio::test]
async fn the_dashboard_draws_the_runs_that_the_visitor_may_see() {
    let scene = RunScene::start().await;
    assert!(!has_picture(&scene.admin.get("/app/acme").await.text, "runs-per-day"), "there was no run yet");
    scene.given_run(json!({ "message": NASTY })).await;
    let phase = scene.take().await;
    scene.finish(&phase, errored("no")).await;
    scene.given_planned_run(json!({})).await;
    let secret = scene.server.api.given_workspace("acme", "secret").await;
    scene.given_configuration(&secret).await;
    scene.given_run_in(&secret, json!({})).await;

    let page = scene.admin.get("/app/acme").await;
    let drawn = picture(&page.text, "runs-per-day");
    assert!(drawn.contains("3 runs in the last 7 days") && drawn.contains("/app/acme/runs?day=2026-01-01"), "{drawn}");
    assert!(drawn.contains("3 runs (2 not finished, 1 failed)"), "{drawn}");
    is_harmless(&page);
    for (day, found) in [("2026-01-01", 3), ("2025-12-31", 0)] {
        let list = scene.admin.get(&format!("/app/acme/runs?day={day}")).await;
        assert_eq!(list.text.matches("<th scope=\"row\" class=\"subject\">").count(), found, "{}", list.text);
    }

    let reader = scene.server.member("reader", "acme", &scene.workspace, "read").await;
    let page = reader.get("/app/acme").await;
    assert!(picture(&page.text, "runs-per-day").contains("2 runs in the last 7 days"), "{}", page.text);
    scene.server.api.pass(SignedDuration::from_hours(24 * 31));
    let reader = scene.server.member("late", "acme", &scene.workspace, "read").await;
    assert!(!has_picture(&reader.get("/app/acme").await.text, "runs-per-day"), "that was last month");
}

#[tokio::test]
async fn load_is_sampled_once_a_minute_and_its_queue_is_for_those_who_see_all_runs() {
    let scene = RunScene::start().await;
    let control_plane = &scene.server.api.control_plane;
    let sample = async || {
        let organizations = control_plane.all_organizations().await.expect("organizations");
        control_plane.sample_load(&organizations);
        control_plane.sample_load(&organizations);
    };
    assert!(!has_picture(&scene.admin.get("/app/acme").await.text, "queue-depth"), "one point is no line");
    sample().await;
    scene.given_run(json!({})).await;
    scene.server.api.pass(SignedDuration::from_secs(61));
    sample().await;
    let page = scene.admin.get("/app/acme").await;
    let drawn = picture(&page.text, "queue-depth");
    assert!(drawn.contains("1 now, between 0 and 1") && drawn.contains("since this server started"), "{drawn}");
    assert!(has_picture(&page.text, "agent-use"));
    let reader = scene.server.member("reader", "acme", &scene.workspace, "read").await;
    let page = reader.get("/app/acme").await;
    assert!(!has_picture(&page.text, "queue-depth") && has_picture(&page.text, "agent-use"), "{}", page.text);
}

#[tokio::test]
async fn a_workspace_draws_its_runs_and_its_resources() {
    let scene = RunScene::start().await;
    let path = "/app/acme/workspaces/web";
    assert!(!has_picture(&scene.admin.get(path).await.text, "recent-runs"));
    let failed = scene.given_run(json!({ "message": NASTY })).await;
    let phase = scene.take().await;
    scene.server.api.pass(SignedDuration::from_secs(95));
    scene.finish(&phase, errored("no")).await;
    let page = scene.admin.get(path).await;
    let drawn = picture(&page.text, "recent-runs");
    assert!(drawn.contains("The only run so far") && drawn.contains("1:35"), "{drawn}");
    assert_eq!(drawn.matches(&format!("{path}/runs/{failed}\"")).count(), 2, "the bar and the table lead there");
    is_harmless(&page);

    for serial in 1..=3_u64 {
        let resources: Vec<_> = (0..serial).map(|index| resource(&format!("r{index}"), None, 1)).collect();
        push(&scene, serial, &resources).await;
    }
    let page = scene.admin.get(path).await;
    let types = picture(&page.text, "resource-types");
    assert!(types.contains("3 resources") && types.contains("null_resource"), "{types}");
    assert!(picture(&page.text, "resource-history").contains("3 now, between 1 and 3"));
}

/// Writes a state with these resources, and tells its id.
async fn push(scene: &RunScene, serial: u64, resources: &[Value]) -> String {
    let state = json!({
        "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": "one", "outputs": {},
        "resources": resources,
    });
    let id = scene.server.api.given_state(&scene.workspace, &state).await;
    scene.server.api.pass(SignedDuration::from_secs(60));
    id
}

fn resource(name: &str, module: Option<&str>, instances: usize) -> Value {
    let instance = |index: usize| match instances {
        1 => json!({ "attributes": {} }),
        _ => json!({ "index_key": index, "attributes": {} }),
    };
    let mut resource = json!({
        "mode": "managed", "type": "null_resource", "name": name,
        "provider": "provider[\"registry.terraform.io/hashicorp/null\"]",
        "instances": (0..instances).map(instance).collect::<Vec<_>>(),
    });
    if let Some(module) = module {
        resource["module"] = json!(module);
    }
    resource
}

#[tokio::test]
async fn a_state_is_a_map_whose_areas_lead_to_resources() {
    let scene = RunScene::start().await;
    let resources = [
        resource("one", None, 1),
        resource("two", Some("module.net.module.sub[\"a.b\"]"), 3),
        resource(NASTY, None, 1),
    ];
    let state = push(&scene, 1, &resources).await;
    let page = scene.admin.get(&format!("/app/acme/workspaces/web/states/{state}")).await;
    let map = picture(&page.text, "resource-map");
    let link = format!(
        "/app/acme/workspaces/web/states/{state}/resources?address=module.net.module.sub%5B%22a.b%22%5D.null_resource.two"
    );
    assert!(map.contains(&link), "{map}");
    assert!(map.contains("5 managed instances in 2 modules"), "{map}");
    is_harmless(&page);

    let many: Vec<_> = (0..3_000).map(|index| resource(&format!("r{index}"), None, 1)).collect();
    let state = push(&scene, 2, &many).await;
    let page = scene.admin.get(&format!("/app/acme/workspaces/web/states/{state}")).await;
    assert!(picture(&page.text, "resource-map").len() < 40_000);
}

#[tokio::test]
async fn a_run_draws_its_stages_and_when_its_resources_were_worked_on() {
    let scene = RunScene::start().await;
    let run = scene.given_planned_run(json!({})).await;
    scene.server.api.pass(SignedDuration::from_secs(600));
    let decision = format!("/api/v2/runs/{run}/actions/apply");
    scene.server.api.admin().post(&decision, &json!({})).await.expect(StatusCode::ACCEPTED);
    let phase = scene.take().await;
    let line = |kind: &str, address: &str, second: u32| {
        json!({
            "@level": "info", "@message": "x", "@timestamp": format!("2026-11-18T10:00:{second:02}.000000Z"), "type": kind,
            "hook": { "resource": { "addr": address }, "action": "create", "elapsed_seconds": 0 },
        })
        .to_string()
            + "\n"
    };
    let log = [
        line("apply_start", "a.one", 0),
        line("apply_start", &format!("a.two[\"{NASTY}\"]"), 10),
        line("apply_complete", "a.one", 20),
    ]
    .concat();
    scene.log(&phase, 0, log).await;
    let page = scene.look(&run).await;
    assert!(page.text.contains("stages-bar") && page.text.contains("10:00, "), "{}", page.text);
    let gantt = page.text.split("class=\"progress gantt\"").nth(1).expect("the resources");
    assert!(gantt.contains("<rect class=\"good\" x=\"0%\""), "{gantt}");
    assert!(gantt.contains("<rect class=\"running\" x=\"50%\" y=\"0\" width=\"50%\""), "{gantt}");
    is_harmless(&page);
    scene.finish(&phase, applied()).await;
    assert!(scene.look(&run).await.text.contains("progress gantt"), "also when it is over");
}

#[tokio::test]
async fn the_queue_and_the_agents_are_drawn_as_slots() {
    let scene = RunScene::start().await;
    assert!(!has_picture(&scene.admin.get("/app/acme/queue").await.text, "queue-lanes"), "nothing is there");
    let control_plane = &scene.server.api.control_plane;
    let now = control_plane.now();
    let agent = AgentPresence {
        agent: AgentId::from_random([7; 16]),
        name: NASTY.to_owned(),
        pool: None,
        heartbeat: 1,
        concurrency: 3,
        busy: 1,
        draining: false,
        engines: Vec::new(),
        version: "0.1.0".to_owned(),
        last_heard_at: Some(now),
    };
    control_plane.presence().set(vec![agent]);
    let other = scene.server.api.given_workspace("acme", "other").await;
    scene.given_configuration(&other).await;
    let first = scene.given_run(json!({ "message": NASTY })).await;
    let second = scene.given_run_in(&other, json!({})).await;
    let page = scene.admin.get("/app/acme/queue").await;
    let lanes = picture(&page.text, "queue-lanes");
    assert!(lanes.contains("1 of 3 slots in use, 2 waiting for a slot"), "{lanes}");
    for run in [&first, &second] {
        assert!(lanes.contains(&format!("/runs/{run}\"")), "{lanes}");
    }
    is_harmless(&page);
    let reader = scene.server.member("reader", "acme", &scene.workspace, "read").await;
    let page = reader.get("/app/acme/queue").await;
    let lanes = picture(&page.text, "queue-lanes");
    assert!(lanes.contains("1 waiting for a slot") && !lanes.contains(&second), "{lanes}");

    let page = scene.admin.get("/app/acme/agents").await;
    let slots = picture(&page.text, "agent-slots");
    assert!(slots.contains("1 of 3 busy, seen just now"), "{slots}");
    is_harmless(&page);
}
