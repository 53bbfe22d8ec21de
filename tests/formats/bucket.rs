//! A whole bucket as a real server, its agent and its clients left it, with everything sealed by a key that is no secret.
//! Every later version serves it.

use std::path::PathBuf;

use harness::api_client::ApiClient;
use harness::formats::frozen::{FROZEN_BUCKET, FROZEN_BUCKET_KEY, copy_directory, formats};
use harness::home::{Home, ServerProcess};
use harness::run_site::{SITE_TOKEN, admin_of, text};
use serde_json::{Value, json};

fn frozen_buckets() -> Vec<PathBuf> {
    formats().into_iter().map(|format| format.join(FROZEN_BUCKET)).filter(|bucket| bucket.exists()).collect()
}

fn command_output(home: &Home, words: &[&str]) -> String {
    let output = home.taco(words).env("TACO_SECRET_KEY", FROZEN_BUCKET_KEY).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "taco {words:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_of_every_format_is_served() {
    let buckets = frozen_buckets();
    assert!(!buckets.is_empty(), "there is at least one");
    for bucket in buckets {
        let home = Home::default();
        copy_directory(&bucket, &home.bucket());
        let said = command_output(&home, &["doctor", "--deep", "--json"]);
        let findings: Value = serde_json::from_str(&said).expect("JSON");
        for check in ["ledgers", "records", "objects"] {
            let finding = findings.as_array().expect("a list").iter().find(|finding| finding["check"] == check);
            assert_eq!(finding.expect("a finding")["outcome"], "passed", "{}: {said}", bucket.display());
        }
        command_output(&home, &["audit", "verify"]);
        let mut command = home.taco(&["server"]);
        command
            .env("TACO_LISTEN", "127.0.0.1:0")
            .env("TACO_SITE_TOKEN", SITE_TOKEN)
            .env("TACO_SECRET_KEY", FROZEN_BUCKET_KEY);
        let server = ServerProcess::start(command.env("TACO_AGENT_CONCURRENCY", "0"));
        shows_what_was_stored(&admin_of(&server.address)).await;
        command_output(&home, &["audit", "verify"]);
    }
}

/// Reads and changes through the API what `tests/formats/freeze.rs` left.
async fn shows_what_was_stored(admin: &ApiClient) {
    let workspace = admin.workspace("acme", "web").await;
    assert_eq!(workspace["attributes"]["description"], "the site");
    let id = text(&workspace["id"]);
    let runs = admin.get(&format!("/api/v2/workspaces/{id}/runs")).await;
    let status = |run: &Value| text(&run["attributes"]["status"]);
    let runs = runs["data"].as_array().expect("a list").clone();
    assert_eq!(runs.iter().map(status).collect::<Vec<_>>(), ["planned", "applied"]);
    let applied = text(&runs[1]["id"]);
    assert_eq!(admin.work_in_state(&id).await, Some(format!("all of {applied}")), "the state can be unsealed");
    for phase in ["plan", "apply"] {
        assert!(admin.log_of(&applied, phase).await.len() > 10, "the log of the {phase} can be read");
    }
    let comments = admin.get(&format!("/api/v2/runs/{applied}/comments")).await;
    assert_eq!(comments["data"][0]["attributes"]["body"], "It looks good");
    let variables = admin.get(&format!("/api/v2/workspaces/{id}/vars")).await;
    let keys = variables["data"].as_array().expect("a list").iter().map(|one| text(&one["attributes"]["key"]));
    assert_eq!(keys.collect::<std::collections::BTreeSet<_>>(), ["PASSWORD".to_owned(), "region".to_owned()].into());
    let teams = admin.get("/api/v2/organizations/acme/teams").await;
    assert_eq!(teams["data"].as_array().expect("a list").len(), 2);
    let body = json!({ "data": { "type": "workspaces", "attributes": { "description": "changed" } } });
    admin.patch(&format!("/api/v2/workspaces/{id}"), body).await;
    admin.post(&format!("/api/v2/runs/{}/actions/discard", text(&runs[0]["id"])), json!({})).await;
}
