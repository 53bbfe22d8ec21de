//! Workspaces that clients make, find and delete: by name, tags, project and prefix.

use harness::engine::{Directory, Engine};
use serde_json::{Value, json};

use crate::scene::{Scene, says, told_by_both};

told_by_both!(
    init_makes_the_workspace_in_its_project(Cloud),
    workspaces_with_tags_are_made_listed_selected_and_deleted(Cloud),
    tags_with_values_find_their_workspaces(Cloud),
    workspaces_with_a_prefix_are_made_listed_selected_and_deleted(Remote),
    an_http_backend_has_one_workspace(Http),
);

const RESOURCES: &str = r#"resource "terraform_data" "web" { input = terraform.workspace }"#;

async fn init_makes_the_workspace_in_its_project(scene: Scene) {
    let block = scene.cloud("name = \"web\"\nproject = \"Network\"");
    let here = scene.user.directory("web", &format!("{block}{RESOURCES}"));
    here.runs("init").await;
    let project = scene.workspace().await["relationships"]["project"]["data"]["id"].clone();
    let path = format!("/api/v2/projects/{}", project.as_str().expect("an id"));
    assert_eq!(scene.admin.get(&path).await["data"]["attributes"]["name"], "Network");
    assert_eq!(here.runs("workspace show").await, "web\n");
    assert_eq!(here.runs("workspace list").await.trim(), "* web");
    says(&here.fails("workspace new other").await, "workspaces not supported");

    // Someone else meets what is there.
    let there = scene.user.directory("again", &format!("{block}{RESOURCES}"));
    there.runs("init").await;
    let projects = scene.admin.get("/api/v2/organizations/acme/projects?filter[names]=Network").await;
    assert_eq!(projects["data"].as_array().map(Vec::len), Some(1));
}

fn listed(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// From the first workspace on, which is called `dev`, with the names as the client shows them.
async fn work_in_two_workspaces(here: &Directory<'_>) {
    assert_eq!(listed(&here.runs("workspace list").await), ["* dev"]);
    here.runs("workspace new prod").await;
    assert_eq!(here.runs("workspace show").await, "prod\n");
    here.runs("apply -auto-approve").await;
    says(&here.runs("state show terraform_data.web").await, r#"input = "prod""#);

    here.runs("workspace select dev").await;
    says(&here.fails("state list").await, "No state file was found");
    assert_eq!(listed(&here.runs("workspace list").await), ["* dev", "prod"]);
    says(&here.fails("workspace select none").await, r#"Workspace "none" doesn't exist"#);
    here.runs("workspace select -or-create more").await;
    here.runs("workspace select dev").await;

    says(&here.fails("workspace delete prod").await, "Workspace is not empty");
    here.runs("workspace delete -force prod").await;
    here.runs("workspace delete more").await;
    says(&here.fails("workspace delete dev").await, "is your active workspace");
    assert_eq!(listed(&here.runs("workspace list").await), ["* dev"]);
}

async fn names_of_workspaces(scene: &Scene) -> Vec<String> {
    let listed = scene.admin.get("/api/v2/organizations/acme/workspaces?sort=name").await;
    let name = |workspace: &Value| workspace["attributes"]["name"].as_str().expect("text").to_owned();
    listed["data"].as_array().expect("a list").iter().map(name).collect()
}

async fn workspaces_with_tags_are_made_listed_selected_and_deleted(scene: Scene) {
    scene.admin.given_workspace("acme", "without-tags").await;
    let block = scene.cloud(r#"tags = ["app", "blue"]"#);
    let here = scene.user.directory("web", &format!("{block}{RESOURCES}"));
    here.runs_answered("init", &["dev"]).await;
    work_in_two_workspaces(&here).await;
    let tags = scene.admin.workspace("acme", "dev").await["attributes"]["tag-names"].clone();
    assert_eq!(tags, json!(["app", "blue"]));
    assert_eq!(names_of_workspaces(&scene).await, ["dev", "without-tags"]);
}

async fn workspaces_with_a_prefix_are_made_listed_selected_and_deleted(scene: Scene) {
    scene.admin.given_workspace("acme", "other").await;
    let block = scene.remote(r#"prefix = "app-""#);
    let here = scene.user.directory("web", &format!("{block}{RESOURCES}"));
    says(&here.fails("init").await, "No existing workspaces.");
    here.runs("workspace new dev").await;
    here.runs("init").await;
    work_in_two_workspaces(&here).await;
    assert_eq!(names_of_workspaces(&scene).await, ["app-dev", "other"]);
    let made = scene.admin.workspace("acme", "app-dev").await;
    assert_eq!(made["attributes"]["taco-engine"], scene.user.engine.word());
}

async fn tags_with_values_find_their_workspaces(scene: Scene) {
    let block = scene.cloud(r#"tags = { team = "network", tier = "front" }"#);
    let here = scene.user.directory("web", &format!("{block}{RESOURCES}"));
    if scene.user.engine == Engine::Tofu {
        // It knows names alone.
        says(&here.fails("init").await, "attribute \"tags\": set of string required");
        return;
    }
    here.runs_answered("init", &["web"]).await;
    let id = scene.workspace().await["id"].as_str().expect("an id").to_owned();
    let bindings = scene.admin.get(&format!("/api/v2/workspaces/{id}/tag-bindings")).await;
    let binding = |binding: &Value| [&binding["attributes"]["key"], &binding["attributes"]["value"]].map(Clone::clone);
    let bindings: Vec<_> = bindings["data"].as_array().expect("a list").iter().map(binding).collect();
    assert_eq!(bindings, [[json!("team"), json!("network")], [json!("tier"), json!("front")]]);
    assert_eq!(listed(&here.runs("workspace list").await), ["* web"]);

    let block = scene.cloud(r#"tags = { team = "storage" }"#);
    let there = scene.user.directory("other", &format!("{block}{RESOURCES}"));
    there.runs_answered("init", &["disk"]).await;
    assert_eq!(listed(&there.runs("workspace list").await), ["* disk"]);
    // One that is there gets the tags that it lacks.
    let block = scene.cloud(r#"tags = { team = "network" }"#);
    there.write("main.tf", &format!("{block}{RESOURCES}"));
    there.runs("init").await;
    assert_eq!(listed(&there.runs("workspace list").await), ["* web"]);
}

async fn an_http_backend_has_one_workspace(scene: Scene) {
    let here = scene.initialized(RESOURCES).await;
    assert_eq!(here.runs("workspace show").await, "default\n");
    for words in ["workspace list", "workspace new other", "workspace delete other"] {
        says(&here.fails(words).await, "workspaces not supported");
    }
}
