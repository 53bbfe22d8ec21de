use reqwest::StatusCode;

use crate::form_scene::{FormScene, WORKSPACE, exactly};

const LIST: &str = "/app/acme/variable-sets";

/// Makes a set through the page; returns its address.
async fn given_set(scene: &FormScene, name: &str, more: &[(&str, &str)]) -> String {
    let form = exactly(&scene.admin.get(LIST).await, LIST);
    let fields: Vec<_> = [("name", name)].into_iter().chain(more.iter().copied()).collect();
    let made = scene.admin.send(&form, &fields).await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.text);
    made.location().split('?').next().expect("an address").to_owned()
}

async fn add_variable(scene: &FormScene, page: &str, variables: &str, key: &str, value: &str) {
    let form = exactly(&scene.admin.get(page).await, variables);
    let done = scene.admin.send(&form, &[("key", key), ("value", value), ("category", "env")]).await;
    assert_eq!(done.done(), format!("{page}: Variable {key} created."), "{}", done.text);
}

#[tokio::test]
async fn a_set_reaches_the_workspaces_it_is_applied_to_and_says_what_it_overrides() {
    let scene = FormScene::new().await;
    assert!(scene.admin.get(LIST).await.text.contains("No variable sets yet."));
    let set = given_set(&scene, "common", &[("description", "for <all>")]).await;
    add_variable(&scene, &set, &format!("{set}/variables"), "REGION", "from-set").await;
    add_variable(&scene, &set, &format!("{set}/variables"), "ONLY", "in-set").await;
    let variables = format!("{WORKSPACE}/variables");
    add_variable(&scene, &variables, &variables, "REGION", "from-workspace").await;

    let page = scene.admin.get(&variables).await;
    assert!(!page.text.contains("from-set"), "it does not reach the workspace yet");
    let apply = scene.admin.get(&set).await.form(&format!("{set}/apply"));
    let wrong = scene.admin.send(&apply, &[("project", ""), ("workspace", "nowhere")]).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.text.contains("No workspace &#34;nowhere&#34; in this organization"), "{}", wrong.text);
    let done = scene.admin.send(&apply, &[("project", ""), ("workspace", "web")]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);

    let page = scene.admin.get(&variables).await;
    assert!(page.text.contains("overridden by the workspace") && page.text.contains("in-set"), "{}", page.text);
    assert!(page.text.contains(&format!("href=\"{set}\"")), "the set is linked");

    // With priority it is the other way round.
    let update = exactly(&scene.admin.get(&set).await, &set);
    let fields = [("name", "shared"), ("description", ""), ("priority", "true")];
    assert_eq!(scene.admin.send(&update, &fields).await.status, StatusCode::SEE_OTHER);
    let page = scene.admin.get(&variables).await;
    assert!(page.text.contains("overridden by the set shared"), "{}", page.text);
    let list = scene.admin.get(LIST).await;
    assert!(list.text.contains("1 workspace") && list.text.contains("priority"), "{}", list.text);

    let withdraw = scene.admin.get(&set).await.form(&format!("{set}/withdraw"));
    assert_eq!(scene.admin.send(&withdraw, &[]).await.status, StatusCode::SEE_OTHER);
    assert!(!scene.admin.get(&variables).await.text.contains("in-set"));
}

#[tokio::test]
async fn a_set_takes_a_pasted_file_and_is_deleted_with_its_variables() {
    let scene = FormScene::new().await;
    let set = given_set(&scene, "secrets", &[("global", "true")]).await;
    let paste = scene.admin.get(&set).await.form(&format!("{set}/variables/import"));
    let fields = [("format", "env"), ("text", "TOKEN=s3cr3t\nUSER=jane"), ("sensitive", "true")];
    let preview = scene.admin.send(&paste, &fields).await;
    assert!(preview.text.contains("Import 2 variables") && !preview.text.contains("s3cr3t"), "{}", preview.text);
    let confirm = preview.form(&format!("{set}/variables/import/confirm"));
    assert_eq!(scene.admin.send(&confirm, &[]).await.done(), format!("{set}: 2 variables imported."));
    let page = scene.admin.get(&format!("{WORKSPACE}/variables")).await;
    assert!(page.text.contains("TOKEN") && !page.text.contains("s3cr3t"), "{}", page.text);

    let delete = scene.admin.get(&set).await.form(&format!("{set}/delete"));
    assert_eq!(scene.admin.send(&delete, &[]).await.done(), "/app/acme/variable-sets: Variable set secrets deleted.");
    assert_eq!(scene.admin.get(&set).await.status, StatusCode::NOT_FOUND);
    assert!(!scene.admin.get(&format!("{WORKSPACE}/variables")).await.text.contains("TOKEN"));
}

#[tokio::test]
async fn a_name_that_is_taken_is_refused_beside_the_field() {
    let scene = FormScene::new().await;
    let set = given_set(&scene, "common", &[]).await;
    let form = exactly(&scene.admin.get(LIST).await, LIST);
    let page = scene.admin.send(&form, &[("name", "Common"), ("description", "kept text")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    for part in ["has already been taken", "error-name", "kept text"] {
        assert!(page.text.contains(part), "{part} is missing:\n{}", page.text);
    }
    let forged = harness::browser::PageForm { action: LIST.to_owned(), hidden: Vec::new() };
    assert_eq!(scene.admin.send(&forged, &[("name", "other")]).await.status, StatusCode::FORBIDDEN);
    for path in [format!("{LIST}/nonsense"), set.replace("/acme/", "/other/"), "/app/other/variable-sets".to_owned()] {
        assert_eq!(scene.admin.get(&path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn whoever_sees_a_workspace_sees_its_sets_but_does_not_change_them() {
    let scene = FormScene::new().await;
    let set = given_set(&scene, "common", &[("global", "true")]).await;
    let jane = scene.member("jane", "write").await;
    let page = jane.get(&set).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("You may not change the organization&#39;s variable sets"), "{}", page.text);
    let mut form = page.form("/logout");
    for path in ["", "/variables", "/delete", "/apply"] {
        form.action = format!("{set}{path}");
        let fields = [("key", "a"), ("category", "env"), ("name", "mine"), ("workspace", "web")];
        assert_eq!(jane.send(&form, &fields).await.status, StatusCode::FORBIDDEN, "{path}");
    }
    let eve = scene.stranger("eve").await;
    for path in [LIST, set.as_str()] {
        assert_eq!(eve.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}
