//! Pages of run tasks: those of the organization, those of a workspace, and what they say about a run.

use harness::page_server::PageServer;
use harness::webhook_receiver::WebhookReceiver;
use reqwest::StatusCode;
use serde_json::json;

use crate::form_scene::exactly;
use crate::run_scene::RunScene;

const LIST: &str = "/app/acme/settings/run-tasks";
const OWN: &str = "/app/acme/workspaces/web/settings/run-tasks";

#[tokio::test]
async fn a_task_is_made_edited_used_by_a_workspace_and_deleted() {
    let (server, receiver) = (PageServer::start().await, WebhookReceiver::start().await);
    server.api.given_organization("acme").await;
    server.api.given_workspace("acme", "web").await;
    let admin = server.admin().await;
    let empty = admin.get(LIST).await;
    assert!(empty.text.contains("No run tasks yet."), "{}", empty.text);
    let form = exactly(&admin.get(&format!("{LIST}/new")).await, LIST);
    let url = receiver.url();
    let fields = |url| {
        [
            ("name", "Scan"),
            ("url", url),
            ("key", "s3cr3t"),
            ("enabled", "on"),
            ("stage", "post_plan"),
            ("level", "advisory"),
        ]
    };
    let inside = admin.send(&form, &fields("https://169.254.169.254/")).await;
    assert_eq!(inside.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(inside.text.contains("id=\"error-url\"") && !inside.text.contains("s3cr3t"), "{}", inside.text);
    receiver.answers_with([500]);
    let silent = admin.send(&form, &fields(&url)).await;
    assert!(silent.text.contains("answered the test request with 500; expected 200"), "{}", silent.text);
    let made = admin.send(&form, &fields(&url)).await;
    assert_eq!(made.done(), format!("{LIST}: Run task Scan created."), "{}", made.text);
    assert!(receiver.received().iter().all(|one| one.is_task_signed_with("s3cr3t")));

    let listed = admin.get(LIST).await;
    let id = listed.text.split(&format!("href=\"{LIST}/task-")).nth(1).and_then(|rest| rest.split('"').next());
    let address = format!("{LIST}/task-{}", id.expect("a link"));
    let page = admin.get(&address).await;
    assert!(page.text.contains(&url) && !page.text.contains("s3cr3t"), "{}", page.text);
    let everywhere = [
        ("name", "Scanner"),
        ("url", url.as_str()),
        ("enabled", "on"),
        ("global", "on"),
        ("stage", "pre_plan"),
        ("level", "mandatory"),
    ];
    let saved = admin.send(&exactly(&page, &address), &everywhere).await;
    assert_eq!(saved.done(), format!("{LIST}: Run task Scanner saved."), "{}", saved.text);
    assert!(admin.get(LIST).await.text.contains("Pre-plan, mandatory"));

    let own = admin.get(OWN).await;
    assert!(own.text.contains("Asked in all workspaces: <strong>Scanner</strong>"), "{}", own.text);
    let task = format!("task-{}", id.expect("a link"));
    let form = exactly(&own, OWN);
    let none = admin.send(&form, &[("task", &task), ("level", "advisory")]).await;
    assert!(none.text.contains("name at least one"), "{}", none.text);
    let added = [("task", task.as_str()), ("level", "advisory"), ("stage", "post_plan"), ("stage", "pre_apply")];
    assert_eq!(admin.send(&form, &added).await.done(), format!("{OWN}: Run task Scanner added."));
    let own = admin.get(OWN).await;
    let row = own.text.split(&format!("action=\"{OWN}/wstask-")).nth(1).and_then(|rest| rest.split('"').next());
    let row = format!("{OWN}/wstask-{}", row.expect("a form"));
    let changed = admin.send(&own.form(&row), &[("level", "mandatory"), ("stage", "post_apply")]).await;
    assert_eq!(changed.done(), format!("{OWN}: Run task Scanner saved."));
    assert_eq!(
        admin.send(&own.form(&format!("{row}/remove")), &[]).await.done(),
        format!("{OWN}: Run task Scanner removed.")
    );
    let delete = admin.get(&address).await.form(&format!("{address}/delete"));
    assert_eq!(admin.send(&delete, &[]).await.done(), format!("{LIST}: Run task Scanner deleted."));
    assert_eq!(admin.get(&address).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_page_of_a_run_says_what_its_tasks_say() {
    let (scene, receiver) = (RunScene::start().await, WebhookReceiver::start().await);
    let api = scene.server.api.admin();
    let task = json!({ "data": { "attributes": { "name": "scan", "url": receiver.url(), "category": "task" } } });
    let task = api.post("/api/v2/organizations/acme/tasks", &task).await.id();
    let attached = json!({ "data": { "attributes": { "enforcement-level": "mandatory", "stages": ["pre_plan"] },
        "relationships": { "task": { "data": { "type": "tasks", "id": task } } } } });
    api.post(&format!("/api/v2/workspaces/{}/tasks", scene.workspace), &attached).await.expect(StatusCode::CREATED);
    let run = scene.given_run(json!({})).await;
    let address = format!("/app/acme/workspaces/web/runs/{run}");
    let page = scene.admin.get(&address).await;
    for part in ["Pre-plan tasks", "Waiting for the pre-plan task scan.", "mandatory"] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    let plane = &scene.server.api.control_plane;
    let org = plane.all_organizations().await.expect("organizations").remove(0);
    for due in plane.due_tasks(&org) {
        plane.attend_task(&org, due).await.expect("a bucket");
    }
    let asked = receiver.received().pop().expect("a request").json();
    let callback = asked["task_result_callback_url"].as_str().expect("an address");
    let outcome = json!({ "type": "task-result-outcomes", "attributes": { "outcome-id": "CVE-1",
        "description": "An <old> library", "body": "<script>alert(1)</script>",
        "tags": { "Severity": [{ "label": "High", "level": "error" }] } } });
    let body = json!({ "data": { "attributes": { "status": "failed", "message": "1 finding", "url": "https://scan.test/1" },
        "relationships": { "outcomes": { "data": [outcome] } } } });
    let own = scene.server.api.with_token(asked["access_token"].as_str().expect("a token"));
    own.patch(&callback[callback.find("/api/").expect("a path")..], &body).await.expect(StatusCode::OK);
    let page = scene.admin.get(&address).await;
    for part in [
        "1 finding",
        "href=\"https://scan.test/1\"",
        "CVE-1",
        "An &#60;old&#62; library",
        "&#60;script&#62;alert(1)&#60;/script&#62;",
        "Severity: High",
        "The run was stopped: the mandatory task scan failed in the Pre-plan stage",
    ] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    assert!(!page.text.contains("<script>alert"), "{}", page.text);
}
