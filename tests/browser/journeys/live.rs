//! Pages that renew themselves while something happens elsewhere.

use harness::chromium::Scripts;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_dashboard_and_the_list_of_workspaces_change_without_a_reload() {
    let journey = super::begin(Scripts::Run).await;
    journey.makes_workspace("web").await;
    let (admin, api) = (&journey.admin, journey.sample_site.installation.admin());
    let workspace = api.workspace("acme", "web").await;
    let lock = format!("/api/v2/workspaces/{}/actions/lock", workspace["id"].as_str().expect("an id"));

    admin.goes_to("/app/acme").await;
    admin.evaluates("window.stayed = true").await;
    api.post(&lock, json!({ "reason": "Careful with this one" })).await;
    admin.reads("Careful with this one").await;
    assert_eq!(admin.evaluates("return window.stayed").await, true, "it changed without being loaded again");

    admin.goes_to("/app/acme/workspaces").await;
    admin.evaluates("window.stayed = true").await;
    admin.types("#search", "we").await;
    admin.find("#list .badge.lock").await;
    api.act(&workspace, "unlock").await;
    admin.find("#list:not(:has(.badge.lock))").await;
    assert_eq!(admin.evaluates("return window.stayed").await, true, "it changed without being loaded again");
    assert_eq!(admin.evaluates("return document.activeElement.value").await, "we", "nobody who types is interrupted");
    journey.ends().await;
}
