//! Special cases of the `http` backend.

use harness::engine::{Engine, User};
use harness::installation::SITE_TOKEN;
use serde_json::Value;

use crate::scene::{Scene, says, told_by_both};

told_by_both!(
    gitlab_s_verbs_lock_and_unlock(Http),
    a_bearer_token_may_stand_in_the_headers(Http),
    a_wrong_token_is_refused(Http),
    it_writes_the_same_versions_as_the_cloud_block(Http),
);

const RESOURCES: &str = r#"
    variable "greeting" { default = "hello" }
    resource "terraform_data" "web" { input = var.greeting }
    output "greeting" { value = terraform_data.web.output }
"#;

async fn gitlab_s_verbs_lock_and_unlock(scene: Scene) {
    scene.admin.given_workspace("acme", "web").await;
    let verbs = "lock_method = \"POST\"\nunlock_method = \"DELETE\"";
    let here = scene.user.directory("web", &format!("{}{RESOURCES}", scene.http("web", verbs)));
    here.runs("init").await;
    here.runs("apply -auto-approve").await;
    assert!(!scene.is_locked().await);
    let lock = "/api/http-backend/acme/web/lock";
    assert_eq!(scene.proxy().saw(&format!("POST {lock}")), 1);
    assert_eq!(scene.proxy().saw(&format!("DELETE {lock}")), 1);

    scene.admin.act(&scene.workspace().await, "lock").await;
    let refused = here.fails("apply -auto-approve").await;
    says(&refused, "Error acquiring the state lock");
    match scene.user.engine {
        Engine::Terraform => says(&refused, "ID=acme/web"),
        Engine::Tofu => says(&refused, "is locked by User admin since"),
    }
    here.runs("force-unlock -force acme/web").await;
    assert!(!scene.is_locked().await);
}

async fn a_bearer_token_may_stand_in_the_headers(scene: Scene) {
    scene.admin.given_workspace("acme", "web").await;
    let bearer = format!("headers = {{ \"Authorization\" = \"Bearer {SITE_TOKEN}\" }}");
    let block = scene.http("web", &bearer);
    let block: Vec<_> = block.lines().filter(|line| !line.contains("username") && !line.contains("password")).collect();
    let here = scene.user.directory("web", &format!("{}\n{RESOURCES}", block.join("\n")));
    if scene.user.engine == Engine::Terraform {
        // It has no headers. The token is the password of Basic, or in a variable.
        says(&here.fails("init").await, r#"An argument named "headers" is not expected here."#);
        return;
    }
    here.runs("init").await;
    here.runs("apply -auto-approve").await;
    assert_eq!(here.runs("output -raw greeting").await, "hello");
    assert_eq!(scene.versions().await.len(), 1);
}

async fn a_wrong_token_is_refused(scene: Scene) {
    scene.admin.given_workspace("acme", "web").await;
    let block = scene.http("web", "").replace(SITE_TOKEN, "wrong");
    let here = scene.user.directory("web", &format!("{block}{RESOURCES}"));
    says(&here.fails("init").await, "requires auth");
    let here = scene.user.directory("none", &format!("{}{RESOURCES}", scene.http("none", "")));
    // A workspace that is not there looks like one without a state, until someone locks it.
    here.runs("init").await;
    here.fails("apply -auto-approve").await;
}

async fn it_writes_the_same_versions_as_the_cloud_block(scene: Scene) {
    let http = scene.initialized(RESOURCES).await;
    http.runs("apply -auto-approve").await;
    let user = User::new(scene.user.engine, &scene.installation).holds(scene.installation.host(), SITE_TOKEN);
    let cloud = user.directory("cloud", &format!("{}{RESOURCES}", scene.cloud(r#"name = "web""#)));
    cloud.runs("init").await;
    assert_eq!(cloud.runs("output -raw greeting").await, "hello");
    says(&cloud.runs("plan").await, "No changes.");
    cloud.runs("apply -auto-approve -var=greeting=goodbye").await;
    assert_eq!(http.runs("output -raw greeting").await, "goodbye");
    http.runs("apply -auto-approve").await;

    let versions = scene.versions().await;
    let of = |name: &str| versions.iter().map(|version| version["attributes"][name].clone()).collect::<Vec<Value>>();
    assert_eq!(of("serial"), [3, 2, 1]);
    assert_eq!(of("status"), ["finalized"; 3]);
    assert!(of("lineage").iter().all(|lineage| *lineage == of("lineage")[0]));
    let url = versions[0]["attributes"]["hosted-state-download-url"].as_str().expect("an address");
    let state: Value =
        scene.admin.client.get(url).send().await.expect("an answer").json().await.expect("a state is JSON");
    assert_eq!(state["outputs"]["greeting"]["value"], "hello");
}
