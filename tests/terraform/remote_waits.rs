//! Runs that wait for each other, for a lock, or are stopped, and runs that fail.

use harness::engine::Done;
use harness::run_site::text;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::remote_scene::ended;
use crate::scene::{Scene, says, until};

/// A resource whose making takes as long as this command.
fn making(command: &str) -> String {
    format!(
        r#"
        resource "terraform_data" "web" {{
          provisioner "local-exec" {{ command = "{command}" }}
        }}
        "#
    )
}

pub(crate) async fn an_interrupted_apply_is_canceled(scene: Scene) {
    let begun = scene.user.home().join("begun");
    let here = scene.initialized(&making(&format!("touch {}; exec sleep 600", begun.display()))).await;
    let canceled = canceled_by(&scene, async |_| {
        std::fs::remove_file(&begun).ok();
        let mut apply = here.talks("apply -auto-approve");
        until(async || begun.exists()).await;
        apply.says("Creating...").await;
        apply.running.interrupt();
        apply.ends().await
    });
    says(&canceled.await, "The remote operation was successfully cancelled.");
    until(async || !scene.is_locked().await).await;
    // What it had begun is on record.
    says(&here.runs("state list").await, "terraform_data.web");
}

/// Output of a client that was interrupted and canceled its run. Both end with 0 then. Where the interrupt comes in the
/// middle of a request, they end with 1 and leave the run as it is, so someone else cancels it, and the client has
/// another chance, and is told which one it is.
async fn canceled_by(scene: &Scene, interrupted: impl AsyncFn(usize) -> Done) -> String {
    for attempt in 0..5 {
        let before = scene.runs_of(&scene.name).await.len();
        let done = interrupted(attempt).await;
        let said = done.said();
        let runs = scene.runs_of(&scene.name).await;
        assert_eq!(runs.len(), before + 1, "{said}");
        if done.code == Some(1) {
            scene.admin.post(&format!("/api/v2/runs/{}/actions/cancel", text(&runs[0]["id"])), json!({})).await;
        }
        scene.until_newest(before + 1, "canceled").await;
        if done.code == Some(0) {
            return said;
        }
    }
    panic!("an interrupt meets a request each time");
}

pub(crate) async fn a_lock_is_waited_for(scene: Scene) {
    let here = scene.initialized(r#"resource "terraform_data" "web" {}"#).await;
    let workspace = scene.workspace().await;
    scene.admin.act(&workspace, "lock").await;
    says(&here.runs("plan").await, "Plan: 1 to add");
    // Between two looks, which come after 1, 2.2, 3.5, 5, 6.7 and 8.7 s; on a busy machine somewhat later.
    let gave_up = canceled_by(&scene, async |attempt| {
        let milliseconds = [1800, 2900, 4200, 6000, 8000][attempt];
        here.does(&format!("apply -auto-approve -lock-timeout={milliseconds}ms"), "").await
    });
    says(&gave_up.await, "Lock timeout exceeded, sending interrupt to cancel the remote operation.");

    let before = scene.runs_of(&scene.name).await.len();
    let apply = here.begins("apply -auto-approve -lock-timeout=60s");
    scene.until_newest(before + 1, "pending").await;
    scene.admin.act(&workspace, "unlock").await;
    says(&ended(&apply.ends().await, 0), "1 added");
}

pub(crate) async fn runs_wait_for_each_other(scene: Scene) {
    let resources = r#"
        variable "greeting" { default = "hello" }
        resource "terraform_data" "web" { input = var.greeting }
        output "greeting" { value = terraform_data.web.output }
    "#;
    let here = scene.initialized(resources).await;
    let there = scene.directory("there", resources);
    there.runs("init").await;
    let mut first = here.command("apply").spawn().expect("it starts");
    scene.until_newest(1, "planned").await;
    let words = scene.with_variables(&there, "apply -auto-approve", &[("greeting", "second")]);
    let second = there.begins(&words);
    scene.until_newest(2, "pending").await;
    says(&here.runs("plan").await, "Plan: 1 to add");
    // Newest first: the plan waits for nobody.
    let ids: Vec<String> = scene.runs_of(&scene.name).await.iter().map(|run| text(&run["id"])).collect();
    let (waits, ahead) = (&ids[1], &ids[2]);
    let log = scene.log_of(waits, "plan").await;
    let why = format!("UTC: waiting for 1 earlier run; {ahead} is planned");
    assert!(log.starts_with("\u{2}Waiting since ") && log.contains(&why), "{log}");
    first.stdin.take().expect("it is piped").write_all(b"yes\n").await.expect("it listens");
    let first = first.wait_with_output().await.expect("it ends");
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    says(&String::from_utf8(first.stdout).expect("text"), "1 added, 0 changed");
    let second = ended(&second.ends().await, 0);
    says(&second, "Waiting for 1 run(s) to finish before being queued");
    says(&second, &why);
    says(&second, "0 added, 1 changed");
    assert_eq!(here.runs("output -raw greeting").await, "second");
    assert!(!scene.is_locked().await);
}

pub(crate) async fn a_run_waits_for_an_agent(scene: Scene) {
    const WHY: &str = "no agents online in pool far: start one";
    let (pool, token) = scene.given_pool("far").await;
    scene.given_remote_workspace("far", json!({ "execution-mode": "agent", "agent-pool-id": pool })).await;
    let here = scene.initialized_in("far", r#"resource "terraform_data" "web" {}"#).await;

    // Nobody ever comes.
    let plan = here.begins("plan");
    until(async || scene.runs_of("far").await.len() == 1).await;
    let canceled = text(&scene.runs_of("far").await[0]["id"]);
    let log = scene.log_of(&canceled, "plan").await;
    assert!(log.starts_with("\u{2}Waiting since ") && log.ends_with(&format!(" UTC: {WHY}\n")), "{log}");
    scene.admin.post(&format!("/api/v2/runs/{canceled}/actions/cancel"), json!({})).await;
    says(&ended(&plan.ends().await, 1), WHY);
    assert_eq!(scene.log_of(&canceled, "plan").await, format!("{log}\u{3}"));

    // Someone comes after a while, goes, and comes again.
    // The answer comes when the agent has gone: a client that is answered at once may have it apply first.
    let mut apply = here.command("apply").spawn().expect("it starts");
    let mut answers = apply.stdin.take().expect("it is piped");
    let apply = apply.wait_with_output();
    let agents = async {
        until(async || scene.runs_of("far").await.len() == 2).await;
        let run = text(&scene.runs_of("far").await[0]["id"]);
        let status = async || text(&scene.runs_of("far").await[0]["attributes"]["status"]);
        let log = scene.log_of(&run, "plan").await;
        assert!(log.ends_with(&format!(" UTC: {WHY}\n")), "{log}");
        let agent = scene.installation.agent("one", &token);
        until(async || status().await == "planned").await;
        drop(agent);
        answers.write_all(b"yes\n").await.expect("it listens");
        drop(answers);
        until(async || status().await == "apply_queued").await;
        let log = scene.log_of(&run, "apply").await;
        assert!(log.ends_with(&format!(" UTC: {WHY}\n")), "{log}");
        let agent = scene.installation.agent("one", &token);
        until(async || status().await == "applied").await;
        agent
    };
    let (done, _agent) = tokio::join!(apply, agents);
    let done = done.expect("it ends");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let said = String::from_utf8(done.stdout).expect("text");
    says(&said, "Plan: 1 to add, 0 to change, 0 to destroy.");
    says(&said, "1 added, 0 changed, 0 destroyed.");
    assert_eq!(said.matches(WHY).count(), 2, "of the plan and of the apply:\n{said}");
    assert!(!said.contains(r#""@level""#), "nobody wants to read JSON:\n{said}");
}

pub(crate) async fn failures_are_shown(scene: Scene) {
    // It fails as soon as it begins, perhaps before anyone looks.
    let here = scene.initialized(&making("echo some words; exit 3")).await;
    let said = ended(&here.does("apply -auto-approve", "").await, 1);
    says(&said, "some words");
    says(&said, "exit status 3");
    assert_eq!(scene.newest("status").await, "errored");
    assert!(!scene.is_locked().await);
    // What it made is on record, and will be made again.
    says(&here.runs("plan").await, "Plan: 1 to add, 0 to change, 1 to destroy.");

    here.write("more.tf", r#"resource "terraform_data" "bad" { no_such_argument = 1 }"#);
    let said = ended(&here.does("apply -auto-approve", "").await, 1);
    says(&said, "Unsupported argument");
    says(&said, "no_such_argument");
}
