//! The registry's pages.

use harness::configurations::packed;
use harness::registry::{MODULE, module_path};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::form_scene::{FormScene, exactly};

const REGISTRY: &str = "/app/acme/registry";

async fn publish(scene: &FormScene, version: &str, files: &[(&str, &str)]) {
    let body = json!({ "data": { "type": "registry-module-versions", "attributes": { "version": version } } });
    let path = format!("{}/versions", module_path("acme", "greeter", "local"));
    let announced = scene.api.post(&path, body).await;
    let address = announced["data"]["links"]["upload"].as_str().expect("an address").to_owned();
    let sent = scene.api.client.put(address).body(packed(files)).send().await.expect("an answer");
    assert_eq!(sent.status(), StatusCode::OK);
}

async fn given_module(scene: &FormScene) -> String {
    let body =
        json!({ "data": { "type": "registry-modules", "attributes": { "name": "greeter", "provider": "local" } } });
    let made = scene.api.post("/api/v2/organizations/acme/registry-modules", body).await;
    format!("{REGISTRY}/modules/{}", made["data"]["id"].as_str().expect("an id"))
}

fn uploads(scene: &FormScene, announced: &Value, source: &str) -> impl Future<Output = StatusCode> {
    let files = format!("module \"greeter\" {{\n  source  = \"{source}\"\n  version = \"~> 1.0\"\n}}\n");
    let address = announced["data"]["attributes"]["upload-url"].as_str().expect("an address").to_owned();
    let sending = scene.api.client.put(address).body(packed(&[("main.tf", &files)])).send();
    async move { sending.await.expect("an answer").status() }
}

#[tokio::test]
async fn a_module_is_found_read_used_and_deprecated() {
    let scene = FormScene::new().await;
    let page = scene.admin.get(REGISTRY).await;
    assert!(
        page.text.contains("No modules yet") && page.text.contains("taco registry module publish"),
        "{}",
        page.text
    );
    let address = given_module(&scene).await;
    assert!(scene.admin.get(&address).await.text.contains("No version can be used yet"));
    publish(&scene, "1.0.0", &MODULE).await;
    publish(&scene, "1.1.0", &MODULE).await;

    let list = scene.admin.get(REGISTRY).await.text;
    assert!(list.contains("acme/greeter/local") && list.contains(&address) && list.contains("1.1.0"), "{list}");
    assert!(scene.admin.get(&format!("{REGISTRY}?search=nothing")).await.text.contains("No modules match"));
    assert!(scene.admin.get(&format!("{REGISTRY}?search=greet")).await.text.contains(&address));

    let page = scene.admin.get(&address).await.text;
    for part in [
        "Version <strong>1.1.0</strong>",
        "Greets <strong>everyone</strong>",
        "<code>greeting</code>",
        "Said to everyone",
        "map(object({",
        "Not null.",
        "<code>said</code>",
        "hashicorp/null",
        "modules/quiet",
        "examples/simple",
        "/acme/greeter/local&#34;",
        "No workspace that you can see",
    ] {
        assert!(page.contains(part), "{part} is missing: {page}");
    }
    let older = scene.admin.get(&format!("{address}?version=1.0.0")).await.text;
    assert!(older.contains("Version <strong>1.0.0</strong>"), "{older}");

    let workspace = scene.workspace().await["id"].as_str().expect("an id").to_owned();
    let body = json!({ "data": { "type": "configuration-versions", "attributes": { "auto-queue-runs": false } } });
    let announced = scene.api.post(&format!("/api/v2/workspaces/{workspace}/configuration-versions"), body).await;
    assert_eq!(uploads(&scene, &announced, "localterraform.com/acme/greeter/local").await, StatusCode::OK);
    let page = scene.admin.get(&address).await;
    assert!(page.text.contains("/app/acme/workspaces/web") && page.text.contains("~&#62; 1.0"), "{}", page.text);

    let form = exactly(&page, &address);
    let refused =
        scene.admin.send(&form, &[("version", "1.1.0"), ("reason", "old"), ("link", "javascript:alert(1)")]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("must be an address that begins with https://"), "{}", refused.text);
    let done = scene.admin.send(&form, &[("version", "1.1.0"), ("reason", "Use 2.0"), ("link", "")]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER);
    let page = scene.admin.get(&address).await;
    assert!(page.text.contains("This version is deprecated.") && page.text.contains("Use 2.0"), "{}", page.text);

    let delete = format!("{address}/versions/1.1.0/delete");
    let done = scene.admin.send(&exactly(&page, &delete), &[]).await;
    assert_eq!((done.status, done.location()), (StatusCode::SEE_OTHER, address.as_str()));
    let page = scene.admin.get(&address).await;
    assert!(page.text.contains("Version <strong>1.0.0</strong>"), "{}", page.text);
    let done = scene.admin.send(&exactly(&page, &format!("{address}/versions/1.0.0/delete")), &[]).await;
    assert_eq!(done.location(), REGISTRY, "with its last version it is gone");

    let member = scene.member("bob", "read").await;
    let address = given_module(&scene).await;
    publish(&scene, "1.0.0", &MODULE).await;
    let page = member.get(&address).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("manage the registry") && !page.text.contains("Deprecate version"), "{}", page.text);
    assert_eq!(scene.stranger("eve").await.get(&address).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn nothing_in_a_module_does_anything_in_a_browser() {
    let scene = FormScene::new().await;
    let address = given_module(&scene).await;
    let poison = "\"'><img src=x onerror=alert(1)></td></script><script>alert(2)</script>";
    let text = format!(
        "variable \"x\" {{\n  description = {0}\n  default = {0}\n  type = string\n}}\noutput \"o\" {{\n  description = {0}\n  value = 1\n}}\n\
         module \"m\" {{\n  source = {0}\n}}\n",
        json!(poison)
    );
    publish(&scene, "1.0.0", &[("main.tf", &text), ("README.md", poison)]).await;
    let page = scene.admin.get(&address).await.text;
    assert!(!page.contains("<img src=x") && !page.contains("<script>alert"), "{page}");
    assert_eq!(page.matches("<script").count(), page.matches("<script src=\"/static/").count());
}
