//! A server dies under a client, or something between them refuses a state.

use axum::http::{Method, StatusCode, Uri};
use nix::sys::signal::Signal;
use std::sync::Arc;

use crate::scene::{Backend, Scene, says, told_with_every_backend};

told_with_every_backend!(a_push_survives_the_death_of_its_server, a_state_that_could_not_be_sent_is_pushed_later);

const RESOURCES: &str = r#"
    resource "terraform_data" "web" { input = "hello" }
    output "greeting" { value = terraform_data.web.output }
"#;

/// True if this request carries a state's bytes.
fn brings_a_state(method: &Method, uri: &Uri) -> bool {
    (method == Method::PUT && uri.path().starts_with("/signed/state/"))
        || (method == Method::POST && uri.path() == "/api/http-backend/acme/web")
}

async fn a_push_survives_the_death_of_its_server(scene: Scene) {
    let here = scene.initialized(RESOURCES).await;
    let servers = scene.installation.servers.clone();
    let mut killed = false;
    scene.proxy().step_between(move |method, uri, turn| {
        if brings_a_state(method, uri) && !killed {
            Arc::clone(&servers[turn]).process.signal(Signal::SIGKILL);
            killed = true;
        }
        None
    });
    says(&here.runs("apply -auto-approve").await, "1 added");
    assert_eq!(here.runs("output -raw greeting").await, "hello");
    assert!(!scene.is_locked().await);
    assert_eq!(scene.versions().await.len(), 1);
}

async fn a_state_that_could_not_be_sent_is_pushed_later(scene: Scene) {
    let here = scene.initialized(RESOURCES).await;
    // What a proxy says that allows no large bodies.
    scene.proxy().step_between(|method, uri, _| brings_a_state(method, uri).then_some(StatusCode::PAYLOAD_TOO_LARGE));
    says(&here.fails("apply -auto-approve").await, "errored.tfstate");
    scene.proxy().step_aside();

    if scene.backend == Backend::Http {
        assert!(!scene.is_locked().await);
    } else {
        // On purpose: no one else shall work on a state that is older than what it describes.
        assert!(scene.is_locked().await);
        says(&here.fails("state push errored.tfstate").await, "already locked");
        here.runs("force-unlock -force acme/web").await;
    }
    here.runs("state push errored.tfstate").await;
    assert_eq!(here.runs("output -raw greeting").await, "hello");
    says(&here.runs("plan").await, "No changes.");
    assert!(!scene.is_locked().await);
}
