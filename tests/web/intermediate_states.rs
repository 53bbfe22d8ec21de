//! States that an apply sends while it goes on: they are there, they say what they are, and lists for people begin with
//! what applies ended with.

use axum::http::StatusCode;
use bytes::Bytes;
use serde_json::{Value, json};
use taco_control_plane::PhaseCaller;

use crate::run_scene::{RunScene, applied};

const STATES: &str = "/app/acme/workspaces/web/states";

/// Sends a state as the agent of an apply does, and tells its id.
async fn send(scene: &RunScene, apply: &PhaseCaller, serial: u64, content: &str) -> String {
    let state = json!({ "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": "L", "resources": [],
        "outputs": { "greeting": { "value": content, "type": "string" } } });
    let body = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from(state.to_string()))]);
    let written = scene.server.api.control_plane.write_phase_state(apply, body).await;
    scene.server.api.pass(jiff::SignedDuration::from_secs(60));
    written.unwrap_or_else(|error| panic!("{error}")).version.id.to_string()
}

/// An apply that goes on.
async fn given_apply(scene: &RunScene) -> PhaseCaller {
    let run = scene.given_planned_run(json!({})).await;
    let confirm = format!("/api/v2/runs/{run}/actions/apply");
    scene.server.api.admin().post(&confirm, &json!({})).await.expect(StatusCode::ACCEPTED);
    scene.take().await
}

/// Serials and whether they are intermediate, as the API lists them, newest first.
async fn listed(scene: &RunScene) -> Vec<(u64, bool)> {
    let path = "/api/v2/state-versions?filter%5Borganization%5D%5Bname%5D=acme&filter%5Bworkspace%5D%5Bname%5D=web";
    let answer = scene.server.api.admin().get(path).await.expect(StatusCode::OK);
    let of = |one: &Value| {
        let attributes = &one["attributes"];
        (attributes["serial"].as_u64().expect("a serial"), attributes["intermediate"].as_bool().expect("a flag"))
    };
    answer.json()["data"].as_array().expect("a list").iter().map(of).collect()
}

#[tokio::test]
async fn what_an_apply_sends_on_its_way_is_folded_and_says_so() {
    let scene = RunScene::start().await;
    let first = given_apply(&scene).await;
    let early = send(&scene, &first, 1, "one").await;
    assert_eq!(listed(&scene).await, [(1, false)], "nothing came after it");
    send(&scene, &first, 2, "two").await;
    let hello = send(&scene, &first, 3, "hello").await;
    scene.finish(&first, applied()).await;
    let second = given_apply(&scene).await;
    send(&scene, &second, 4, "four").await;
    let goodbye = send(&scene, &second, 5, "goodbye").await;
    scene.finish(&second, applied()).await;
    assert_eq!(listed(&scene).await, [(5, false), (4, true), (3, false), (2, true), (1, true)], "the API lists all");

    let page = scene.admin.get(STATES).await.text;
    let shows = |page: &str, id: &str| page.contains(&format!("{STATES}/{id}\""));
    assert!(shows(&page, &hello) && shows(&page, &goodbye) && !shows(&page, &early), "{page}");
    assert!(page.contains(&format!("{STATES}?intermediate=1")), "{page}");
    let all = scene.admin.get(&format!("{STATES}?intermediate=1")).await.text;
    assert!(shows(&all, &early) && all.matches("</span> intermediate").count() == 3, "{all}");

    // What the second apply changed is told from where the first one ended.
    let difference = scene.admin.get(&format!("{STATES}/{goodbye}/diff")).await.text;
    assert!(difference.contains("hello") && difference.contains("goodbye"), "{difference}");
    assert!(!difference.contains("four"), "{difference}");
    let on_the_way = scene.admin.get(&format!("{STATES}/{early}")).await;
    assert_eq!(on_the_way.status, StatusCode::OK, "one can look at it all the same");
}

#[tokio::test]
async fn what_a_lost_apply_sent_last_stays_in_sight() {
    let scene = RunScene::start().await;
    let apply = given_apply(&scene).await;
    send(&scene, &apply, 1, "one").await;
    let last = send(&scene, &apply, 2, "two").await;
    let control_plane = &scene.server.api.control_plane;
    let open = control_plane.all_organizations().await.expect("organizations").remove(0);
    let lost = control_plane.lose_phase(&open, apply.attempt, "its agent was not heard".to_owned()).await;
    assert!(lost.expect("a bucket"), "it is given up");
    assert_eq!(listed(&scene).await, [(2, false), (1, true)]);
    let page = scene.admin.get(STATES).await.text;
    assert!(page.contains(&format!("{STATES}/{last}\"")), "{page}");
}
