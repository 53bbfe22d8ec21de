//! Runs that wait for each other, for a lock, or are stopped, and runs that fail.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::AsyncWriteExt as _;

use crate::remote_scene::{ended, told_on_an_agent};
use crate::scene::{Scene, says, until};

told_on_an_agent!(
    an_interrupted_apply_is_canceled(Cloud),
    a_lock_is_waited_for(Cloud),
    runs_wait_for_each_other(Cloud),
    failures_are_shown(Cloud),
    failures_are_shown_as_text(Remote),
);

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

async fn an_interrupted_apply_is_canceled(scene: Scene) {
    let begun = scene.user.home().join("begun");
    let here = scene.initialized(&making(&format!("touch {}; exec sleep 600", begun.display()))).await;
    let apply = here.begins("apply -auto-approve");
    until(async || begun.exists()).await;
    let id = apply.child.id().expect("it runs").try_into().expect("process ids are small");
    kill(Pid::from_raw(id), Signal::SIGINT).expect("it runs");
    // Both end with 0 if they were interrupted.
    says(&apply.ends().await.said(), "The remote operation was successfully cancelled.");
    scene.until_newest(1, "canceled").await;
    until(async || !scene.is_locked().await).await;
    // What it had begun is on record.
    says(&here.runs("state list").await, "terraform_data.web");
}

async fn a_lock_is_waited_for(scene: Scene) {
    let here = scene.initialized(r#"resource "terraform_data" "web" {}"#).await;
    let workspace = scene.workspace().await;
    scene.admin.act(&workspace, "lock").await;
    says(&here.runs("plan").await, "Plan: 1 to add");
    // Between two looks, which come after 1 and 2.2 s: in the middle of a request they would end without a cancel.
    let gave_up = here.does("apply -auto-approve -lock-timeout=1800ms", "").await.said();
    says(&gave_up, "Lock timeout exceeded, sending interrupt to cancel the remote operation.");
    assert_eq!(scene.newest("status").await, "canceled", "{gave_up}");

    let apply = here.begins("apply -auto-approve -lock-timeout=60s");
    scene.until_newest(3, "pending").await;
    scene.admin.act(&workspace, "unlock").await;
    says(&ended(&apply.ends().await, 0), "1 added");
}

async fn runs_wait_for_each_other(scene: Scene) {
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
    let second = there.begins("apply -auto-approve -var=greeting=second");
    scene.until_newest(2, "pending").await;
    says(&here.runs("plan").await, "Plan: 1 to add");
    first.stdin.take().expect("it is piped").write_all(b"yes\n").await.expect("it listens");
    let first = first.wait_with_output().await.expect("it ends");
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    says(&String::from_utf8(first.stdout).expect("text"), "1 added, 0 changed");
    let second = ended(&second.ends().await, 0);
    says(&second, "Waiting for 1 run(s) to finish before being queued");
    says(&second, "0 added, 1 changed");
    assert_eq!(here.runs("output -raw greeting").await, "second");
    assert!(!scene.is_locked().await);
}

async fn failures_are_shown(scene: Scene) {
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

async fn failures_are_shown_as_text(scene: Scene) {
    failures_are_shown(scene).await;
}
