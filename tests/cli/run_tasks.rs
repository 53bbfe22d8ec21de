//! What `taco run watch` tells of run tasks.

use harness::api_client::ApiClient;
use harness::task_program::{TaskProgram, TaskSays};
use serde_json::json;

use crate::person::{Person, TOKEN};
use crate::runs::person_with_configuration;

const KEY: &str = "a key that both know";

/// A task that is asked about all plans, and says no to the second one.
async fn given_task(person: &Person) -> TaskProgram {
    let client = reqwest::Client::new();
    let verdict = |request: &serde_json::Value, _: Option<&serde_json::Value>| match request["run_message"].as_str() {
        Some("forbidden") => TaskSays::failed("not on a Friday"),
        _ => TaskSays::passed("looks fine"),
    };
    let program = TaskProgram::start(KEY, client.clone(), Box::new(verdict)).await;
    let origin = format!("http://{}", person.server.address);
    let api = ApiClient { origin, client, token: TOKEN.to_owned() };
    let global = json!({ "enabled": true, "stages": ["post_plan"], "enforcement-level": "mandatory" });
    let task = json!({ "name": "scan", "url": program.url(), "category": "task", "hmac-key": KEY,
        "global-configuration": global });
    api.post("/api/v2/organizations/acme/tasks", json!({ "data": { "attributes": task } })).await;
    program
}

#[tokio::test(flavor = "multi_thread")]
async fn who_watches_a_run_hears_what_its_tasks_say() {
    let person = tokio::task::block_in_place(person_with_configuration);
    let program = given_task(&person).await;
    let start = |message: &'static str| {
        let words = ["run", "start", "app", "--ws", "acme/network", "--message", message, "--watch"];
        tokio::task::block_in_place(|| person.does(&words))
    };
    let fine = start("fine");
    assert_eq!(fine.code, 2, "{fine:?}");
    assert!(fine.stdout.contains("Task scan (post-plan, mandatory) passed: looks fine\n"), "{fine:?}");
    assert!(fine.stdout.contains("needs approval"), "{fine:?}");
    let row = tokio::task::block_in_place(|| person.succeeds(&["run", "ls", "--ws", "acme/network"]));
    let run = row.rows()[0][0].to_owned();
    tokio::task::block_in_place(|| person.succeeds(&["run", "discard", &run]));
    let stopped = start("forbidden");
    assert_eq!(stopped.code, 1, "{stopped:?}");
    assert!(stopped.stdout.contains("Task scan (post-plan, mandatory) failed: not on a Friday\n"), "{stopped:?}");
    let why = "The run was stopped: the mandatory task scan failed in the Post-plan stage";
    assert!(stopped.stderr.contains(why), "{stopped:?}");
    assert_eq!(program.asked().len(), 2);
}
