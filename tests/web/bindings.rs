//! Bindings on the page of a workspace's variables.

use harness::run_site::text;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::form_scene::FormScene;

const PAGE: &str = "/app/acme/workspaces/web/variables";
const BINDINGS: &str = "/app/acme/workspaces/web/bindings";

/// A scene with a network that shares its state with all.
async fn scene() -> FormScene {
    let scene = FormScene::new().await;
    scene.api.given_workspace("acme", "network").await;
    share(&scene, true).await;
    scene
}

async fn share(scene: &FormScene, shares: bool) {
    let body = json!({ "data": { "type": "workspaces", "attributes": { "global-remote-state": shares } } });
    let path = "/api/v2/organizations/acme/workspaces/network";
    scene.api.patch(path, body).await;
}

async fn bindings(scene: &FormScene) -> Vec<Value> {
    let id = text(&scene.workspace().await["id"]);
    let listed = scene.api.get(&format!("/api/v2/workspaces/{id}/bindings")).await;
    listed["data"].as_array().expect("a list").iter().map(|binding| binding["attributes"].clone()).collect()
}

#[tokio::test]
async fn a_variable_is_bound_on_the_page_and_let_go_again() {
    let scene = scene().await;
    let browser = &scene.admin;
    let page = browser.get(PAGE).await;
    assert!(page.text.contains(r#"<option value="network">"#), "workspaces are proposed: {}", page.text);
    let fields = [("key", "vpc"), ("category", "terraform"), ("producer", "network"), ("output", "vpc_id")];
    let made = browser.send(&page.form(BINDINGS), &fields).await;
    assert_eq!((made.status, made.done()), (StatusCode::SEE_OTHER, format!("{PAGE}: vpc bound to vpc_id of network.")));
    let page = browser.get(PAGE).await;
    for words in [
        "Bound to outputs",
        r#"from <a href="/app/acme/workspaces/network/outputs/history">network</a> → <code>vpc_id</code>"#,
        "The variable vpc is bound to the output vpc_id of network, which was never applied",
    ] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    let dependencies = browser.get("/app/acme/workspaces/web/dependencies").await;
    assert!(dependencies.text.contains("var.vpc"), "{}", dependencies.text);
    let settings = browser.get("/app/acme/workspaces/network/settings/delete").await;
    assert!(settings.text.contains("variables of web are bound to its outputs"), "{}", settings.text);

    let delete = page.form(&format!("{BINDINGS}/"));
    let gone = browser.send(&delete, &[]).await;
    assert_eq!((gone.status, gone.done()), (StatusCode::SEE_OTHER, format!("{PAGE}: Binding of vpc deleted.")));
    assert_eq!(bindings(&scene).await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_mistake_comes_back_beside_its_field() {
    let scene = scene().await;
    let browser = &scene.admin;
    let form = browser.get(PAGE).await.form(BINDINGS);
    for (key, producer, output, said) in [
        ("a b", "network", "vpc_id", "may only contain"),
        ("vpc", "nothing", "vpc_id", "There is no workspace"),
        ("vpc", "web", "vpc_id", "its own workspace"),
        ("vpc", "network", "", "can&#39;t be blank"),
    ] {
        let fields = [("key", key), ("category", "env"), ("producer", producer), ("output", output)];
        let again = browser.send(&form, &fields).await;
        assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY, "{said}");
        assert!(again.text.contains(said), "{said}: {}", again.text);
        assert!(again.text.contains(&format!(r#"name="key" value="{key}""#)), "what was typed stays: {}", again.text);
    }
    share(&scene, false).await;
    let fields = [("key", "vpc"), ("category", "terraform"), ("producer", "network"), ("output", "vpc_id")];
    let again = browser.send(&form, &fields).await;
    assert!(again.text.contains("network does not share its state with web"), "{}", again.text);
    assert_eq!(bindings(&scene).await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_reader_sees_bindings_and_changes_none() {
    let scene = scene().await;
    let form = scene.admin.get(PAGE).await.form(BINDINGS);
    let fields = [("key", "vpc"), ("category", "terraform"), ("producer", "network"), ("output", "vpc_id")];
    assert_eq!(scene.admin.send(&form, &fields).await.status, StatusCode::SEE_OTHER);
    let reader = scene.member("reader", "read").await;
    let page = reader.get(PAGE).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("a unit you may not see → <code>vpc_id</code>"), "{}", page.text);
    assert!(!page.text.contains(BINDINGS), "no form: {}", page.text);
}
