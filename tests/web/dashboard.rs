//! Dashboard of an organization, and its queue.

use axum::http::StatusCode;
use jiff::SignedDuration;
use serde_json::json;

use crate::run_scene::{NASTY, RunScene, errored, is_harmless};

#[tokio::test]
async fn what_needs_a_decision_comes_first() {
    let scene = RunScene::start().await;
    let failed = scene.given_run(json!({ "message": "Bigger cache" })).await;
    let phase = scene.take().await;
    scene.finish(&phase, errored("no")).await;
    let waiting = scene.given_planned_run(json!({ "message": NASTY })).await;
    let other = scene.server.api.given_workspace("acme", "other").await;
    scene.given_configuration(&other).await;
    let under_way = scene.given_run_in(&other, json!({ "message": "Goes on" })).await;
    let _phase = scene.take().await;
    let locked = scene.server.api.given_workspace("acme", "held").await;
    let lock = format!("/api/v2/workspaces/{locked}/actions/lock");
    scene.server.api.admin().post(&lock, &json!({ "reason": "Careful <b>" })).await.expect(StatusCode::OK);

    let page = scene.admin.get("/app/acme").await;
    assert_eq!(page.status, StatusCode::OK);
    let place = |text: &str| page.text.find(text).unwrap_or_else(|| panic!("no {text}: {}", page.text));
    assert!(place(&waiting) < place(&under_way) && place(&under_way) < place(&failed));
    assert!(page.text.contains("Careful &#60;b&#62;") && page.text.contains(">held</a>"));
    is_harmless(&page);

    let waiting = |text: &str| {
        let figure = text.split("</strong> queued").next().and_then(|before| before.rsplit("<strong>").next());
        figure.expect("how many wait").to_owned()
    };
    scene.given_run_in(&other, json!({ "message": "Behind" })).await;
    assert_eq!(waiting(&scene.admin.get("/app/acme").await.text), "1");

    let reader = scene.server.member("reader", "acme", &scene.workspace, "read").await;
    assert!(reader.get("/app/acme").await.text.contains(&failed), "what failed lately is there for every reader");
    scene.server.api.pass(SignedDuration::from_hours(25));
    // The session of yesterday is over, too.
    let reader = scene.server.member("late-reader", "acme", &scene.workspace, "read").await;
    let page = reader.get("/app/acme").await;
    assert!(!page.text.contains(&failed), "that was yesterday");
    assert_eq!(waiting(&page.text), "0", "what they may not see is not counted");
    assert!(page.text.contains("1 plan awaits approval by others") && !page.text.contains(&under_way), "{}", page.text);
    assert_eq!(scene.server.stranger("stranger").await.get("/app/acme").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_queue_says_what_waits_and_why() {
    let scene = RunScene::start().await;
    assert!(scene.admin.get("/app/acme/queue").await.text.contains("The queue is empty"));
    let first = scene.given_run(json!({ "message": "First" })).await;
    let second = scene.given_run(json!({ "message": "Second" })).await;
    let page = scene.admin.get("/app/acme/queue").await;
    assert!(page.text.find(&first) < page.text.find(&second));
    for part in ["No built-in agent is running", "Waiting for 1 earlier run"] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    let _phase = scene.take().await;
    assert!(scene.admin.get("/app/acme/queue").await.text.contains("on within"));
    assert_eq!(scene.server.stranger("stranger").await.get("/app/acme/queue").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_live_part_is_sent_again_only_when_something_has_changed() {
    let scene = RunScene::start().await;
    for path in [
        "/app/acme",
        "/app/acme/queue",
        "/app/acme/workspaces",
        "/app/acme/runs",
        "/app/acme/workspaces/web",
        "/app/acme/workspaces/web/runs",
    ] {
        let whole = scene.admin.get(path).await;
        let version = whole.header("etag").to_owned();
        assert!(whole.text.contains("data-live=") && !version.is_empty(), "{path}: {}", whole.text);
        scene.server.api.pass(SignedDuration::from_secs(60));
        let same = scene.admin.get_newer(path, &version).await;
        assert_eq!(same.status, StatusCode::NOT_MODIFIED, "{path}: time alone changes nothing");
        assert!(same.text.is_empty() && same.header("etag") == version, "{path}");

        let run = scene.given_run(json!({ "message": "Something new" })).await;
        let newer = scene.admin.get_newer(path, &version).await;
        assert_eq!(newer.status, StatusCode::OK, "{path}");
        assert!(newer.text.contains("data-version=") && !newer.text.contains("<html"), "{path}: a part of the page");
        assert_ne!(newer.header("etag"), version, "{path}");
        if path == "/app/acme/queue" {
            assert!(newer.text.contains(&run), "{}", newer.text);
        }
        let other = scene.server.member(&format!("reader-{}", path.len()), "acme", &scene.workspace, "read").await;
        let theirs = other.get_newer(path, newer.header("etag")).await;
        assert_eq!(theirs.status, StatusCode::OK, "{path}: a version is of one visitor alone");
    }
    let stranger = scene.server.stranger("stranger").await;
    let version = scene.admin.get("/app/acme").await.header("etag").to_owned();
    assert_eq!(stranger.get_newer("/app/acme", &version).await.status, StatusCode::NOT_FOUND);
}
