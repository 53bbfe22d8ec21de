//! What follows a run: another try, outputs and resources, a destroy, a cancel, a lock.

use harness::api_seed::ApiSeed;
use serde_json::json;

use super::{Journey, told_with_and_without_scripts};

told_with_and_without_scripts!(a_failed_run_is_tried_again, an_apply_leads_to_what_it_made, a_cancel_is_asked_about);

const BROKEN: &str = "resource \"terraform_data\" \"a\" {\n  input = var.nothing\n}\n";

const SHOP: &str = r#"
    resource "terraform_data" "shop" { input = "open" }
    resource "terraform_data" "door" { input = terraform_data.shop.output }
    output "url" { value = "https://shop.acme.test" }
    output "password" {
      value     = "hunter2"
      sensitive = true
    }
"#;

const SLOW: &str = r#"
    resource "terraform_data" "slow" {
      provisioner "local-exec" { command = "sleep 300" }
    }
"#;

/// An organization with the workspace `web`, which has this configuration; and the workspace's id.
async fn given(journey: &Journey, main: &str) -> (ApiSeed, String) {
    let seed = ApiSeed::of_organization(journey.sample_site.installation.admin(), "acme", true).await;
    let attributes = json!({ "name": "web", "execution-mode": "remote", "taco-engine": "terraform" });
    let workspace = seed.create("workspaces", attributes, json!({})).await;
    seed.configuration(&workspace, &[("main.tf", main)]).await;
    (seed, workspace)
}

fn page_of(run: &str) -> String {
    format!("/app/acme/workspaces/web/runs/{run}")
}

async fn a_failed_run_is_tried_again(journey: Journey) {
    let (seed, workspace) = given(&journey, BROKEN).await;
    let run = seed.run(&workspace, json!({ "message": "Bigger cache" }), "errored").await;
    let admin = &journey.admin;
    admin.goes_to(&page_of(&run)).await;
    admin.reads("Plan failed").await;
    let text = admin.text().await;
    assert!(text.find("undeclared input variable") < text.find("Raw log"), "what went wrong comes first: {text}");
    admin.presses("Run again").await;
    admin.reads(&format!("Run again: {run}")).await;
    admin.reads("Plan failed").await;
    assert!(!admin.place().await.contains(&run), "it is a run of its own");
    admin.follows("‹ Earlier run").await;
    admin.reads("Bigger cache").await;
    journey.ends().await;
}

async fn an_apply_leads_to_what_it_made(journey: Journey) {
    let (seed, workspace) = given(&journey, SHOP).await;
    let run = seed.run(&workspace, json!({ "message": "Open the shop", "auto-apply": true }), "applied").await;
    let admin = &journey.admin;
    admin.goes_to(&page_of(&run)).await;
    admin.reads("https://shop.acme.test").await;
    assert!(!admin.text().await.contains("hunter2"), "what is sensitive is hidden");
    admin.clicks("form[action*='/outputs/'] button").await;
    admin.reads("hunter2").await;

    admin.goes_to(&page_of(&run)).await;
    admin.clicks(".facts a[href*='/states/']").await;
    admin.arrives_at("/app/acme/workspaces/web/states/sv-").await;
    admin.follows("terraform_data.door").await;
    admin.reads("Depends on").await;
    admin.follows("terraform_data.shop").await;
    admin.reads("\"open\"").await;
    admin.reads("Used by").await;

    let lock = format!("/api/v2/workspaces/{workspace}/actions/lock");
    seed.admin.post(&lock, json!({ "reason": "Moving house" })).await;
    admin.goes_to("/app/acme").await;
    admin.follows("Start run").await;
    admin.arrives_at("/app/acme/workspaces/web/runs/new").await;
    admin.reads("Moving house").await;
    admin.reads("will wait for this").await;
    seed.admin.post(&format!("/api/v2/workspaces/{workspace}/actions/unlock"), json!({})).await;

    let run = seed.run(&workspace, json!({ "is-destroy": true }), "planned").await;
    admin.goes_to(&page_of(&run)).await;
    admin.types("#typed-name", "web").await;
    admin.presses("Destroy 2 resources").await;
    admin.find(".run-head .badge.good").await;
    journey.ends().await;
}

async fn a_cancel_is_asked_about(journey: Journey) {
    let (seed, workspace) = given(&journey, SLOW).await;
    let run = seed.run(&workspace, json!({ "auto-apply": true }), "applying").await;
    let admin = &journey.admin;
    admin.goes_to(&page_of(&run)).await;
    admin.find("details#plan:not([open])").await;
    admin.presses("Cancel").await;
    admin.reads("Cancel this apply?").await;
    admin.presses("Keep running").await;
    assert!(admin.text().await.contains("Applying"), "nothing has happened yet");
    admin.presses("Cancel").await;
    admin.presses("Cancel run").await;
    admin.find(".run-head .badge.off").await;
    admin.reads("Run again").await;
    journey.ends().await;
}
