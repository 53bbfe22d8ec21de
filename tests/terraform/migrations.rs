//! States move in from a local file, and out again.

use std::fs;

use harness::engine::Directory;

use crate::scene::{Scene, says, told_by_both};

told_by_both!(
    a_state_moves_to_a_cloud_block_and_is_taken_back_by_hand(Cloud),
    workspaces_move_to_a_cloud_block(Cloud),
    a_state_moves_to_a_remote_backend_and_back(Remote),
    workspaces_move_out_of_a_remote_backend(Remote),
    a_state_moves_to_an_http_backend_and_back(Http),
);

const RESOURCES: &str = r#"resource "terraform_data" "web" { input = terraform.workspace }"#;

/// A directory with a state of its own.
async fn local<'a>(scene: &'a Scene) -> Directory<'a> {
    let here = scene.user.directory("web", RESOURCES);
    here.runs("init").await;
    here.runs("apply -auto-approve").await;
    here
}

/// It also has a state in `prod`, which stays selected.
async fn with_prod(here: &Directory<'_>) {
    here.runs("workspace new prod").await;
    here.runs("apply -auto-approve").await;
}

fn remove_local_states(here: &Directory<'_>) {
    for name in ["terraform.tfstate", "terraform.tfstate.backup"] {
        fs::remove_file(here.path.join(name)).ok();
    }
    fs::remove_dir_all(here.path.join("terraform.tfstate.d")).ok();
}

async fn a_state_moves_to_a_cloud_block_and_is_taken_back_by_hand(scene: Scene) {
    let here = local(&scene).await;
    here.write("backend.tf", &scene.block());
    here.runs_answered("init", &["yes"]).await;
    assert_eq!(scene.versions().await.len(), 1);
    remove_local_states(&here);
    says(&here.runs("plan").await, "terraform_data.web");

    // Neither program moves a state out of a cloud block.
    fs::remove_file(here.path.join("backend.tf")).expect("it is there");
    here.fails("init -migrate-state").await;
    here.write("backend.tf", &scene.block());
    let state = here.runs("state pull").await;
    fs::remove_file(here.path.join("backend.tf")).expect("it is there");
    fs::remove_dir_all(here.path.join(".terraform")).expect("it is there");
    here.runs("init").await;
    here.write("terraform.tfstate", &state);
    assert_eq!(here.runs("state list").await, "terraform_data.web\n");
}

async fn workspaces_move_to_a_cloud_block(scene: Scene) {
    let here = local(&scene).await;
    with_prod(&here).await;
    here.write("backend.tf", &scene.cloud(r#"tags = ["web"]"#));
    // A name for the default workspace; that all are to be renamed; and how.
    here.runs_answered("init", &["dev", "1", "web-*"]).await;
    remove_local_states(&here);
    for name in ["web-dev", "web-prod"] {
        here.runs(&format!("workspace select {name}")).await;
        assert_eq!(here.runs("state list").await, "terraform_data.web\n");
        assert_eq!(scene.admin.workspace("acme", name).await["attributes"]["tag-names"][0], "web");
    }
}

async fn a_state_moves_to_a_remote_backend_and_back(scene: Scene) {
    moves_and_returns(&scene).await;
}

async fn a_state_moves_to_an_http_backend_and_back(scene: Scene) {
    scene.admin.given_workspace("acme", "web").await;
    moves_and_returns(&scene).await;
}

async fn moves_and_returns(scene: &Scene) {
    let here = local(scene).await;
    here.write("backend.tf", &scene.block());
    here.runs("init -migrate-state -force-copy").await;
    assert_eq!(scene.versions().await.len(), 1);
    remove_local_states(&here);
    says(&here.runs("plan").await, "No changes.");

    fs::remove_file(here.path.join("backend.tf")).expect("it is there");
    here.runs("init -migrate-state -force-copy").await;
    assert_eq!(here.runs("state list").await, "terraform_data.web\n");
    says(&here.read("terraform.tfstate"), r#""name": "web""#);
}

/// Not the other way round: `default`, which every local state has, cannot get a name behind a prefix.
async fn workspaces_move_out_of_a_remote_backend(scene: Scene) {
    let here = scene.user.directory("web", RESOURCES);
    here.write("backend.tf", &scene.remote(r#"prefix = "web-""#));
    here.fails("init").await;
    for name in ["dev", "prod"] {
        here.runs(&format!("workspace new {name}")).await;
        here.runs("apply -auto-approve").await;
    }
    fs::remove_file(here.path.join("backend.tf")).expect("it is there");
    here.runs("init -migrate-state -force-copy").await;
    for name in ["dev", "prod"] {
        here.runs(&format!("workspace select {name}")).await;
        says(&here.runs("state show terraform_data.web").await, &format!(r#"input = "{name}""#));
    }
}
