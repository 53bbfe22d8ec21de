//! Run tasks with real engines and a task that is a program of its own: clients wait for it, show what it says, and stop
//! where it says no.

use harness::engine::Engine;
use harness::installation::{Installation, Transport};
use harness::task_program::{TaskProgram, TaskSays, Verdict};
use serde_json::{Value, json};

use crate::remote_scene::ended;
use crate::scene::{Backend, Scene, says};

const KEY: &str = "a key that both know";

/// Says no to plans that make what is called `forbidden`, and counts for everything else.
fn verdict() -> Verdict {
    Box::new(|request: &Value, plan: Option<&Value>| {
        let changes = plan.and_then(|plan| plan["resource_changes"].as_array().cloned()).unwrap_or_default();
        let is_bad = changes.iter().any(|change| change["name"] == "forbidden");
        match (request["stage"].as_str(), is_bad) {
            (Some("post_plan"), true) => TaskSays::failed("forbidden is not allowed here"),
            (Some(stage), _) => TaskSays::passed(&format!("{stage} looked at {} changes", changes.len())),
            (None, _) => TaskSays { status: None, message: String::new() },
        }
    })
}

async fn scene_with_task(engine: Engine, transport: Transport, backend: Backend) -> (Scene, TaskProgram) {
    let scene = Scene::at(Installation::with_engines_and_tasks(transport), engine, backend).await;
    let workspace = scene.given_remote_workspace("web", json!({})).await;
    let program = TaskProgram::start(KEY, scene.admin.client.clone(), verdict()).await;
    let task = json!({ "name": "scan", "url": program.url(), "category": "task", "hmac-key": KEY });
    let task = json!({ "data": { "type": "tasks", "attributes": task } });
    let task = scene.admin.post("/api/v2/organizations/acme/tasks", task).await["data"]["id"].clone();
    let attached = json!({ "data": { "type": "workspace-tasks",
        "attributes": { "enforcement-level": "mandatory", "stages": ["pre_plan", "post_plan", "pre_apply", "post_apply"] },
        "relationships": { "task": { "data": { "type": "tasks", "id": task } } } } });
    scene.admin.post(&format!("/api/v2/workspaces/{workspace}/tasks"), attached).await;
    (scene, program)
}

async fn clients_wait_for_tasks_and_show_what_they_say(engine: Engine, transport: Transport) {
    let (scene, program) = scene_with_task(engine, transport, Backend::Cloud).await;
    let here = scene.initialized(r#"resource "terraform_data" "web" {}"#).await;
    let said = here.runs("plan").await;
    for words in ["Pre-plan Tasks", "pre_plan looked at 0 changes", "Post-plan Tasks", "post_plan looked at 1 changes"]
    {
        says(&said, words);
    }
    says(&said, "1 to add");
    let said = here.runs("apply -auto-approve").await;
    for words in ["Post-plan Tasks", "Pre-apply Tasks", "pre_apply looked at 1 changes", "1 added"] {
        says(&said, words);
    }
    let asked = program.until_asked(6).await;
    let stages: Vec<_> = asked.iter().map(|request| request["stage"].as_str().unwrap_or_default()).collect();
    assert_eq!(stages, ["pre_plan", "post_plan", "pre_plan", "post_plan", "pre_apply", "post_apply"]);
    assert_eq!((asked[0]["is_speculative"].clone(), asked[2]["is_speculative"].clone()), (json!(true), json!(false)));

    let block = scene.block_for("web");
    here.write("main.tf", &format!("{block}\nresource \"terraform_data\" \"forbidden\" {{}}"));
    let said = ended(&here.does("apply -auto-approve", "").await, 1);
    says(&said, "forbidden is not allowed here");
    assert_eq!(scene.newest("status").await, "errored");
}

/// The `remote` backend knows no stages: it waits for the run.
async fn a_client_that_knows_no_tasks_waits_for_the_run(engine: Engine, transport: Transport) {
    let (scene, program) = scene_with_task(engine, transport, Backend::Remote).await;
    let here = scene.initialized(r#"resource "terraform_data" "web" {}"#).await;
    let said = here.runs("apply -auto-approve").await;
    says(&said, "1 added");
    program.until_asked(4).await;
    assert_eq!(scene.newest("status").await, "applied");
}

macro_rules! told {
    ($($story:ident),* $(,)?) => { $(
        mod $story {
            use harness::engine::Engine::{Terraform, Tofu};
            use harness::installation::Transport::{Http, Https};

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn terraform_over_http() {
                super::$story(Terraform, Http).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn tofu_over_https() {
                super::$story(Tofu, Https).await;
            }
        }
    )* };
}

told!(clients_wait_for_tasks_and_show_what_they_say, a_client_that_knows_no_tasks_waits_for_the_run);
