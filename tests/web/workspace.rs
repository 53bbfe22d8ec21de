use harness::browser::PageForm;
use harness::page_server::PageServer;
use reqwest::StatusCode;
use serde_json::json;

const PATH: &str = "/app/acme/workspaces/web";

/// A server with one workspace, and the workspace's id.
async fn given_workspace() -> (PageServer, String) {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let id = site.api.given_workspace("acme", "web").await;
    (site, id)
}

#[tokio::test]
async fn an_overview_says_what_a_workspace_is_and_what_to_type() {
    let (site, id) = given_workspace().await;
    let attributes =
        json!({ "description": "the <b>shop</b>", "terraform-version": "1.11.4", "execution-mode": "local" });
    let body = json!({ "data": { "type": "workspaces", "attributes": attributes } });
    site.api.admin().patch(&format!("/api/v2/workspaces/{id}"), &body).await.expect(StatusCode::OK);
    let page = site.admin().await.get(PATH).await;
    assert_eq!(page.status, StatusCode::OK);
    for part in [
        id.as_str(),
        "the &#60;b&#62;shop&#60;/b&#62;",
        "terraform 1.11.4",
        "<dd>Local</dd>",
        "Default Project",
        "name = &#34;web&#34;",
        "No runs yet",
    ] {
        assert!(page.text.contains(part), "{part} is missing:\n{}", page.text);
    }
}

#[tokio::test]
async fn what_the_command_line_prints_leads_to_the_workspace() {
    let (site, _) = given_workspace().await;
    let browser = site.admin().await;
    let page = browser.get("/app/acme/web").await;
    assert_eq!((page.status, page.location()), (StatusCode::SEE_OTHER, PATH));
    for path in [
        "/app/acme/workspaces/nothing",
        "/app/nobody/workspaces/web",
        "/app/acme/workspaces/WEB",
        "/app/acme/nothing",
        "/app/acme/%0d%0a%3Cb%3E",
    ] {
        assert_eq!(browser.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a_workspace_is_locked_with_a_reason_and_unlocked() {
    let (site, _) = given_workspace().await;
    let browser = site.admin().await;
    let form = browser.get(PATH).await.form(&format!("{PATH}/lock"));
    let locked = browser.send(&form, &[("reason", "moving to <i>Oslo</i>")]).await;
    assert_eq!((locked.status, locked.done()), (StatusCode::SEE_OTHER, format!("{PATH}: Workspace web locked.")));
    let page = browser.get(locked.location()).await;
    for part in
        ["Workspace web locked.", "moving to &#60;i&#62;Oslo&#60;/i&#62;", "by <strong>admin</strong>", "127.0.0.1"]
    {
        assert!(page.text.contains(part), "{part} is missing:\n{}", page.text);
    }
    assert_eq!(browser.send(&form, &[]).await.status, StatusCode::CONFLICT, "it is locked already");
    let unlocked = browser.send(&page.form(&format!("{PATH}/unlock")), &[]).await;
    assert_eq!(unlocked.done(), format!("{PATH}: Workspace web unlocked."));
    assert!(browser.get(PATH).await.text.contains("<p>Unlocked.</p>"));
    let unproven = PageForm { hidden: Vec::new(), ..form };
    assert_eq!(browser.send(&unproven, &[]).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn anothers_lock_is_taken_away_by_force_and_only_by_who_may() {
    let (site, id) = given_workspace().await;
    let writer = site.member("jane", "acme", &id, "write").await;
    let form = writer.get(PATH).await.form(&format!("{PATH}/lock"));
    writer.send(&form, &[("reason", "mine")]).await;

    let reader = site.member("joe", "acme", &id, "read").await;
    let seen = reader.get(PATH).await;
    for reason in ["You may not lock or unlock the workspace", "You may not force-unlock the workspace"] {
        assert!(seen.text.contains(reason), "{reason} is missing:\n{}", seen.text);
    }
    for action in ["unlock", "force-unlock"] {
        let form = PageForm { action: format!("{PATH}/{action}"), ..seen.form(PATH) };
        assert_eq!(reader.send(&form, &[]).await.status, StatusCode::FORBIDDEN, "{action}");
    }

    let admin = site.admin().await;
    let page = admin.get(PATH).await;
    assert!(page.text.contains("is locked by jane"), "why it cannot simply be unlocked:\n{}", page.text);
    assert_eq!(admin.send(&page.form(&format!("{PATH}/unlock")), &[]).await.status, StatusCode::CONFLICT);
    let done = admin.send(&page.form(&format!("{PATH}/force-unlock")), &[]).await;
    assert_eq!(done.done(), format!("{PATH}: Workspace web unlocked."));
    assert_eq!(site.stranger("eve").await.get(PATH).await.status, StatusCode::NOT_FOUND);
}
