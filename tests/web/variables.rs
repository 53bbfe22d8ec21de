use harness::browser::PageForm;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::form_scene::{FormScene, WORKSPACE};

const PAGE: &str = "/app/acme/workspaces/web/variables";

/// A variable of the workspace, as the API shows it.
async fn variable(scene: &FormScene, key: &str) -> Option<Value> {
    let id = scene.workspace().await["id"].as_str().expect("an id").to_owned();
    let list = scene.api.get(&format!("/api/v2/workspaces/{id}/vars")).await;
    let mut variables = list["data"].as_array().expect("a list").clone().into_iter();
    variables.find(|variable| variable["attributes"]["key"] == key)
}

async fn address_of(scene: &FormScene, key: &str) -> String {
    let variable = variable(scene, key).await.expect("it is there");
    format!("{PAGE}/{}", variable["id"].as_str().expect("an id"))
}

#[tokio::test]
async fn a_variable_is_added_edited_and_deleted() {
    let scene = FormScene::new().await;
    let browser = &scene.admin;
    let empty = browser.get(PAGE).await;
    assert!(empty.text.contains("taco var set"), "an empty list says what to type");
    let fields = [("key", "zones"), ("value", "[\r\n  \"<a>\",\r\n]"), ("category", "terraform"), ("hcl", "true")];
    let made = browser.send(&empty.form(PAGE), &fields).await;
    assert_eq!(
        (made.status, made.done()),
        (StatusCode::SEE_OTHER, "/app/acme/workspaces/web/variables: Variable zones created.".to_owned())
    );
    let stored = variable(&scene, "zones").await.expect("it is there");
    assert_eq!(stored["attributes"]["value"], "[\n  \"<a>\",\n]", "as it was typed, not as browsers send it");
    let page = browser.get(PAGE).await;
    assert!(page.text.contains("&#60;a&#62;") && page.text.contains("HCL"), "{}", page.text);

    let address = address_of(&scene, "zones").await;
    let form = browser.get(&address).await.form(&address);
    let saved =
        browser.send(&form, &[("key", "zones"), ("value", "eu"), ("category", "env"), ("description", "where")]).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
    let attributes = variable(&scene, "zones").await.expect("it is there")["attributes"].clone();
    assert_eq!(
        (&attributes["value"], &attributes["category"], &attributes["hcl"], &attributes["description"]),
        (&json!("eu"), &json!("env"), &json!(false), &json!("where"))
    );

    let delete = browser.get(PAGE).await.form(&format!("{address}/delete"));
    assert_eq!(browser.send(&delete, &[]).await.status, StatusCode::SEE_OTHER);
    assert!(variable(&scene, "zones").await.is_none());
}

#[tokio::test]
async fn a_sensitive_value_is_never_on_a_page_again() {
    let scene = FormScene::new().await;
    let browser = &scene.admin;
    let form = browser.get(PAGE).await.form(PAGE);
    let secret = "hunter2-hunter2";
    let fields = [("key", "TOKEN"), ("value", secret), ("category", "env"), ("sensitive", "true")];
    assert_eq!(browser.send(&form, &fields).await.status, StatusCode::SEE_OTHER);
    let address = address_of(&scene, "TOKEN").await;
    let (list, edit) = (browser.get(PAGE).await, browser.get(&address).await);
    for page in [&list, &edit] {
        assert!(!page.text.contains(secret), "{}", page.text);
    }
    assert!(list.text.contains("sensitive, write only"));
    assert!(edit.text.contains(r#"name="value" type="password" autocomplete="off""#), "{}", edit.text);

    // Without a value it keeps the old one, and a mistake does not bring the new one back either.
    let fields = [("key", "API_TOKEN"), ("value", ""), ("category", "env")];
    assert_eq!(browser.send(&edit.form(&address), &fields).await.status, StatusCode::SEE_OTHER);
    let stored = variable(&scene, "API_TOKEN").await.expect("renamed");
    assert_eq!((&stored["attributes"]["sensitive"], &stored["attributes"]["value"]), (&json!(true), &Value::Null));
    let wrong = browser.send(&edit.form(&address), &[("key", "a b"), ("value", secret), ("category", "env")]).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.text.contains("may only contain") && !wrong.text.contains(secret), "{}", wrong.text);
    let wrong = browser.send(&form, &[("key", ""), ("value", secret), ("category", "env"), ("sensitive", "on")]).await;
    assert!(!wrong.text.contains(secret), "{}", wrong.text);
}

#[tokio::test]
async fn a_form_with_a_mistake_comes_back_with_what_was_typed() {
    let scene = FormScene::new().await;
    let form = scene.admin.get(PAGE).await.form(PAGE);
    for (key, value, hcl, said) in [
        ("a b", "kept \"value\"", false, "may only contain"),
        ("zones", "[1,", true, "is not a valid HCL expression"),
        ("", "kept", false, "can&#39;t be blank"),
    ] {
        let mut fields = vec![("key", key), ("value", value), ("category", "terraform")];
        fields.extend(hcl.then_some(("hcl", "true")));
        let page = scene.admin.send(&form, &fields).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{key}");
        let kept = value.replace('"', "&#34;");
        assert!(page.text.contains(said) && page.text.contains(&kept), "{key}: {}", page.text);
        assert!(page.text.contains("aria-invalid"), "{key}");
    }
    for path in [format!("{PAGE}/nonsense"), format!("{PAGE}/var-1111111111111111"), format!("{WORKSPACE}x/variables")]
    {
        assert_eq!(scene.admin.get(&path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a_pasted_file_is_shown_first_and_then_taken_over_at_once() {
    let scene = FormScene::new().await;
    let browser = &scene.admin;
    let form = browser.get(PAGE).await.form(PAGE);
    browser.send(&form, &[("key", "region"), ("value", "us"), ("category", "terraform")]).await;
    let paste = browser.get(PAGE).await.form(&format!("{PAGE}/import"));
    let text = "region = \"eu\"\r\nzones  = [\"a\", \"b\"]\r\n";
    let preview = browser.send(&paste, &[("format", "tfvars"), ("text", text)]).await;
    assert_eq!(preview.status, StatusCode::OK, "{}", preview.text);
    for part in ["Changes", "New", "Import 2 variables", ">us</code></del>"] {
        assert!(preview.text.contains(part), "{part} is missing:\n{}", preview.text);
    }
    assert!(variable(&scene, "zones").await.is_none(), "nothing is written yet");
    let confirm = preview.form(&format!("{PAGE}/import/confirm"));
    let done = browser.send(&confirm, &[]).await;
    assert_eq!(done.done(), format!("{PAGE}: 2 variables imported."), "{}", done.text);
    assert_eq!(variable(&scene, "region").await.expect("it is there")["attributes"]["value"], "eu");
    assert_eq!(variable(&scene, "zones").await.expect("it is there")["attributes"]["hcl"], true);
    let again = browser.send(&confirm, &[]).await;
    assert_eq!(again.status, StatusCode::CONFLICT, "what was shown is no longer so");
}

#[tokio::test]
async fn a_pasted_secret_does_not_come_back() {
    let scene = FormScene::new().await;
    let browser = &scene.admin;
    let paste = browser.get(PAGE).await.form(&format!("{PAGE}/import"));
    let fields = [("format", "env"), ("text", "A=s3cr3t-1\nB='s3cr3t-2'\n"), ("sensitive", "true")];
    let preview = browser.send(&paste, &fields).await;
    assert!(preview.status == StatusCode::OK && !preview.text.contains("s3cr3t"), "{}", preview.text);
    browser.send(&preview.form(&format!("{PAGE}/import/confirm")), &[]).await;
    assert_eq!(variable(&scene, "B").await.expect("it is there")["attributes"]["sensitive"], true);
    for (text, said) in [("A=1\ns3cr3t", "line 2"), ("A=1\nA=s3cr3t", "twice"), ("", "no variables")] {
        let page = browser.send(&paste, &[("format", "env"), ("text", text), ("sensitive", "true")]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{text}");
        assert!(page.text.contains(said) && !page.text.contains("s3cr3t"), "{text}: {}", page.text);
    }
    let mut forged = preview.form(&format!("{PAGE}/import/confirm"));
    forged.hidden.retain(|(name, _)| name != "sealed");
    let page = browser.send(&forged, &[("sealed", "nonsense")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn forms_that_our_pages_did_not_send_change_nothing() {
    let scene = FormScene::new().await;
    let mut form = scene.admin.get(PAGE).await.form(PAGE);
    let fields = [("key", "a"), ("value", "b"), ("category", "env")];
    let foreign = [("origin", "https://evil.test"), ("sec-fetch-site", "cross-site")];
    assert_eq!(scene.admin.send_from(&form, &fields, &foreign).await.status, StatusCode::FORBIDDEN);
    form.hidden.clear();
    for action in [PAGE.to_owned(), format!("{PAGE}/import"), format!("{PAGE}/import/confirm")] {
        form.action = action;
        assert_eq!(scene.admin.send(&form, &fields).await.status, StatusCode::FORBIDDEN, "{}", form.action);
    }
    assert!(variable(&scene, "a").await.is_none());
}

#[tokio::test]
async fn whoever_may_only_read_sees_why_they_cannot_write() {
    let scene = FormScene::new().await;
    let jane = scene.member("jane", "read").await;
    let page = jane.get(PAGE).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    assert!(page.text.contains("You may not change the workspace&#39;s variables"), "{}", page.text);
    assert!(page.text.contains("disabled aria-describedby=\"add-refusal\""), "{}", page.text);
    let fields = [("key", "a"), ("value", "b"), ("category", "env"), ("format", "env"), ("text", "A=1")];
    for action in [PAGE.to_owned(), format!("{PAGE}/import")] {
        let form = PageForm { action: action.clone(), ..page.form("/logout") };
        assert_eq!(jane.send(&form, &fields).await.status, StatusCode::FORBIDDEN, "{action}");
    }
    let stranger = scene.stranger("eve").await;
    assert_eq!(stranger.get(PAGE).await.status, StatusCode::NOT_FOUND);
}
