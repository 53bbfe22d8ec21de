//! Configurations that were uploaded for runs.

use axum::http::StatusCode;
use harness::browser::Page;
use harness::configurations::packed;
use serde_json::json;

use crate::run_scene::{RunScene, is_harmless, planned};

const PATH: &str = "/app/acme/workspaces/web/configurations";

/// The row of a configuration, by its number.
fn row(page: &Page, number: usize) -> String {
    let begin = format!("<tr><th scope=\"row\" class=\"number\" data-label=\"Number\">{number} <code");
    let rest = page.text.split(&begin).nth(1).unwrap_or_else(|| panic!("no row {number}:\n{}", page.text));
    rest.split("</tr>").next().unwrap_or_default().to_owned()
}

/// The id that a row shows.
fn id(row: &str) -> String {
    let id = row.split("class=\"id\">").nth(1).and_then(|rest| rest.split('<').next());
    id.unwrap_or_else(|| panic!("no id: {row}")).to_owned()
}

/// Announces a configuration, and perhaps uploads something for it.
async fn announce(scene: &RunScene, attributes: serde_json::Value, body: Option<Vec<u8>>) -> StatusCode {
    let body_of = json!({ "data": { "type": "configuration-versions", "attributes": attributes } });
    let path = format!("/api/v2/workspaces/{}/configuration-versions", scene.workspace);
    let announced = scene.server.api.admin().post(&path, &body_of).await.expect(StatusCode::CREATED);
    let Some(body) = body else { return StatusCode::CREATED };
    let address = announced.attribute("upload-url");
    let path = address.as_str().and_then(|address| address.strip_prefix("http://taco.test")).expect("an address");
    scene.server.api.with_authorization(None).send("PUT", path, None, body).await.status
}

#[tokio::test]
async fn configurations_are_listed_with_what_became_of_them() {
    let scene = RunScene::start().await;
    scene.server.api.given_workspace("acme", "empty").await;
    let empty = scene.admin.get("/app/acme/workspaces/empty/configurations").await;
    assert!(empty.text.contains("No configurations yet"), "{}", empty.text);
    announce(&scene, json!({ "auto-queue-runs": false }), None).await;
    let speculative = json!({ "auto-queue-runs": false, "speculative": true });
    let sent = announce(&scene, speculative, Some(packed(&[("main.tf", "")]))).await;
    assert_eq!(sent, StatusCode::OK);
    let broken = announce(&scene, json!({ "auto-queue-runs": false }), Some(b"<b>no archive</b>".to_vec())).await;
    assert_eq!(broken, StatusCode::UNPROCESSABLE_ENTITY);

    let runs = scene.admin.get("/app/acme/workspaces/web/runs").await;
    assert!(runs.text.contains(&format!("<a class=\"button\" href=\"{PATH}\">Configurations</a>")), "{}", runs.text);
    let page = scene.admin.get(PATH).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    is_harmless(&page);
    for (number, parts) in [
        (1, vec!["Uploaded", "current", "Download", "The next run uses it", ">API</td>"]),
        (2, vec!["Awaiting upload"]),
        (3, vec!["Uploaded", "plan only", "Archive"]),
        (4, vec!["Failed", "<p class=\"error\">"]),
    ] {
        for part in parts {
            assert!(row(&page, number).contains(part), "{number}: {part} is missing:\n{}", row(&page, number));
        }
    }
    assert!(!row(&page, 2).contains("Archive") && !row(&page, 4).contains("Download"), "{}", page.text);
    let at = |number| page.text.find(&format!("Number\">{number} <code")).expect("a row");
    assert!(at(4) < at(1), "newest first");

    let stranger = scene.server.stranger("eve").await;
    assert_eq!(stranger.get(PATH).await.status, StatusCode::NOT_FOUND);
    let reader = scene.server.member("rita", "acme", &scene.workspace, "read").await;
    let page = reader.get(PATH).await;
    assert!(!page.text.contains("Download") && row(&page, 3).contains("disabled"), "{}", page.text);
}

#[tokio::test]
async fn an_archive_that_nothing_needs_is_given_up() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({})).await;
    scene.given_configuration(&scene.workspace).await;
    let page = scene.admin.get(PATH).await;
    let first = id(&row(&page, 1));
    let (archive, delete) = (format!("{PATH}/{first}/archive"), format!("{PATH}/{first}/delete"));
    assert!(row(&page, 1).contains(&format!("{run} uses it and is ")), "{}", row(&page, 1));
    assert!(!page.text.contains(&archive), "{}", page.text);
    // A client that sends the form all the same is told why not.
    let mut form = page.form("/logout");
    form.action = archive.clone();
    let refused = scene.admin.send(&form, &[]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("uses the configuration"), "{}", refused.text);

    let phase = scene.take().await;
    scene.finish(&phase, planned()).await;
    let discard = scene.look(&run).await.form(&format!("{}/decisions/discard", RunScene::address(&run)));
    scene.admin.send(&discard, &[]).await;
    let page = scene.admin.get(PATH).await;
    assert_eq!(scene.admin.send(&page.form(&delete), &[]).await.done(), format!("{PATH}: Configuration deleted."));
    let page = scene.admin.get(PATH).await;
    assert!(row(&page, 1).contains("Deleted, can be restored"), "{}", row(&page, 1));
    assert!(row(&page, 1).contains(&format!("{PATH}/{first}/delete-for-good")), "{}", row(&page, 1));
    let back = page.form(&format!("{PATH}/{first}/bring-back"));
    assert_eq!(scene.admin.send(&back, &[]).await.done(), format!("{PATH}: Configuration restored."));

    let page = scene.admin.get(PATH).await;
    let form = page.form(&archive);
    let planner = scene.server.member("paul", "acme", &scene.workspace, "plan").await;
    let mut foreign = planner.get(PATH).await.form("/logout");
    foreign.action = archive.clone();
    assert_eq!(planner.send(&foreign, &[]).await.status, StatusCode::FORBIDDEN);
    let elsewhere = archive.replace("/web/", "/other/");
    scene.server.api.given_workspace("acme", "other").await;
    let mut misplaced = form.clone();
    misplaced.action = elsewhere;
    assert_eq!(scene.admin.send(&misplaced, &[]).await.status, StatusCode::NOT_FOUND, "it is another workspace's");
    let download = format!("{PATH}/{first}");
    assert_eq!(scene.admin.get(&download).await.status, StatusCode::OK);
    assert_eq!(scene.admin.get(&download.replace("/web/", "/other/")).await.status, StatusCode::NOT_FOUND);
    let done = scene.admin.send(&form, &[]).await;
    assert_eq!(done.done(), format!("{PATH}: Configuration archived. Its files are gone."), "{}", done.text);
    let page = scene.admin.get(done.location()).await;
    assert!(page.text.contains("Configuration archived. Its files are gone."), "{}", page.text);
    assert!(row(&page, 1).contains("Archived") && !row(&page, 1).contains("Download"), "{}", row(&page, 1));
    assert_eq!(scene.admin.get(&format!("{PATH}/{first}")).await.status, StatusCode::NOT_FOUND);
}
