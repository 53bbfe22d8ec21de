//! One works, others wait, and a lock that was left behind is broken.

use std::process::ExitStatus;

use harness::engine::{Directory, Engine};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Child;

use crate::scene::{Backend, Scene, says, told_with_every_backend, until};

told_with_every_backend!(who_waits_for_a_lock_gets_it, a_lock_that_was_left_behind_is_broken_by_force);

const RESOURCES: &str = r#"resource "terraform_data" "web" { input = "hello" }"#;

/// Someone who is asked whether to apply, and thinks about it.
async fn hesitates(scene: &Scene, here: &Directory<'_>) -> Child {
    let child = here.command("apply").spawn().expect("it starts");
    until(async || scene.is_locked().await).await;
    child
}

async fn decides(mut child: Child) -> ExitStatus {
    child.stdin.take().expect("it is piped").write_all(b"yes\n").await.expect("it listens");
    child.wait().await.expect("it ends")
}

/// Number of clients that tried to take the lock.
fn tries(scene: &Scene) -> usize {
    match scene.backend {
        Backend::Cloud | Backend::Remote => scene.proxy().saw("/actions/lock"),
        Backend::Http => scene.proxy().saw("LOCK /api/http-backend/") - scene.proxy().saw("UNLOCK /api/http-backend/"),
    }
}

async fn who_waits_for_a_lock_gets_it(scene: Scene) {
    let here = scene.initialized(RESOURCES).await;
    let there = scene.directory("there", RESOURCES);
    there.runs("init").await;
    let first = hesitates(&scene, &here).await;

    let refused = there.fails("plan").await;
    says(&refused, "Error acquiring the state lock");
    match (scene.backend, scene.user.engine) {
        (Backend::Cloud | Backend::Remote, _) => says(&refused, r#"already locked (lock ID: "acme/web")"#),
        // It tells about its own lock, and from ours only the id.
        (Backend::Http, Engine::Terraform) => says(&refused, "HTTP remote state already locked: ID="),
        (Backend::Http, Engine::Tofu) => says(&refused, "Operation: OperationTypeApply"),
    }
    says(&there.fails("plan -lock-timeout=1s").await, "Error acquiring the state lock");
    says(&there.runs("plan -lock=false").await, "Plan: 1 to add");

    let before = tries(&scene);
    let second = there.begins("apply -auto-approve -lock-timeout=60s");
    until(async || tries(&scene) >= before + 2).await;
    assert!(decides(first).await.success());
    let second = second.ends().await;
    assert!(second.success, "{second:?}");
    says(&second.stdout, "No changes.");
    assert!(!scene.is_locked().await);
}

async fn a_lock_that_was_left_behind_is_broken_by_force(scene: Scene) {
    let here = scene.initialized(RESOURCES).await;
    let mut killed = hesitates(&scene, &here).await;
    killed.kill().await.expect("it runs");

    let refused = here.fails("apply -auto-approve").await;
    let id = match scene.backend {
        Backend::Cloud | Backend::Remote => "acme/web".to_owned(),
        Backend::Http => {
            let word = if scene.user.engine == Engine::Terraform { "ID=" } else { "ID: " };
            let rest = refused.split(word).nth(1).unwrap_or_else(|| panic!("no id in {refused}"));
            rest.trim_start().split([' ', '"', ',']).next().expect("a first part").to_owned()
        }
    };
    if scene.backend != Backend::Http {
        says(&here.fails("force-unlock -force another/one").await, "does not match existing lock ID");
    } else if scene.user.engine == Engine::Tofu {
        says(&here.fails("force-unlock -force another").await, "Failed to unlock state");
    }
    assert!(scene.is_locked().await);
    here.runs(&format!("force-unlock -force {id}")).await;
    assert!(!scene.is_locked().await);
    says(&here.runs("apply -auto-approve").await, "1 added");
    here.fails(&format!("force-unlock -force {id}")).await;
}
