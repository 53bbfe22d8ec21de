//! Agent pools: made, given tokens, narrowed, deleted.

use axum::http::StatusCode;
use harness::browser::PageForm;

use crate::run_scene::{RunScene, is_harmless};

const LIST: &str = "/app/acme/agents";

#[tokio::test]
async fn a_pool_is_made_with_a_token_that_is_shown_once() {
    let scene = RunScene::start().await;
    let browser = &scene.admin;
    let form = browser.get(LIST).await.form(LIST);
    let refused = browser.send(&form, &[("name", "<b>")]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("value=\"&#60;b&#62;\""), "{}", refused.text);
    let made = browser.send(&form, &[("name", "rack-1")]).await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.text);
    let address = made.location().split('?').next().expect("a first part").to_owned();
    let page = browser.get(&address).await;
    assert!(page.text.contains("taco-agent --server") && page.text.contains("No agent has come yet"), "{}", page.text);

    let tokens = page.form(&format!("{address}/tokens"));
    let issued = browser.send(&tokens, &[("description", "host <7>"), ("days", "30")]).await;
    assert_eq!(issued.status, StatusCode::CREATED);
    let at = issued.text.find("taco_a_").expect("the token is shown");
    let token = issued.text[at..].split_whitespace().next().expect("a word").to_owned();
    let page = browser.get(&address).await;
    assert!(!page.text.contains(&token) && page.text.contains("host &#60;7&#62;"), "{}", page.text);
    let caller = scene.server.api.agent_caller(&token).await;
    let connected = scene.server.api.control_plane.connect_agent(&caller, None, None, "<i>host</i>", "1.0").await;
    connected.expect("the agent is let in");
    let page = browser.get(&address).await;
    assert!(page.text.contains("&#60;i&#62;host&#60;/i&#62;") && page.text.contains("Not heard"), "{}", page.text);
    is_harmless(&page);

    let revoke = page.form(&format!("{address}/tokens/at-"));
    assert_eq!(browser.send(&revoke, &[]).await.status, StatusCode::SEE_OTHER);
    assert!(scene.server.api.control_plane.authenticate(&token, Default::default()).await.is_err());
}

#[tokio::test]
async fn a_pool_is_narrowed_and_deleted() {
    let scene = RunScene::start().await;
    let browser = &scene.admin;
    let form = browser.get(LIST).await.form(LIST);
    let made = browser.send(&form, &[("name", "rack-1")]).await;
    let address = made.location().split('?').next().expect("a first part").to_owned();
    let first = browser.get(&address).await.form(&address);
    let pool = PageForm { action: address.clone(), ..first };
    let wrong = [("name", "rack-2"), ("scope", "some"), ("workspaces", "web\r\nnowhere")];
    let refused = browser.send(&pool, &wrong).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("There is no workspace nowhere") && refused.text.contains("value=\"rack-2\""));
    let right = [("name", "rack-2"), ("scope", "some"), ("workspaces", "web")];
    assert_eq!(browser.send(&pool, &right).await.status, StatusCode::SEE_OTHER);
    let list = browser.get(LIST).await;
    assert!(list.text.contains("rack-2") && list.text.contains("1 workspace, 0 projects"), "{}", list.text);

    let delete = browser.get(&address).await.form(&format!("{address}/delete"));
    assert_eq!(browser.send(&delete, &[("typed_name", "rack-1")]).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(browser.send(&delete, &[("typed_name", "rack-2")]).await.status, StatusCode::SEE_OTHER);
    assert_eq!(browser.get(&address).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn whoever_may_not_manage_pools_sees_them_and_why() {
    let scene = RunScene::start().await;
    let form = scene.admin.get(LIST).await.form(LIST);
    let made = scene.admin.send(&form, &[("name", "rack-1")]).await;
    let address = made.location().split('?').next().expect("a first part").to_owned();
    let reader = scene.server.member("reader", "acme", &scene.workspace, "read").await;
    let list = reader.get(LIST).await;
    assert!(list.text.contains("rack-1") && list.text.contains("You may not manage agent pools"), "{}", list.text);
    assert_eq!(reader.send(&list.form(LIST), &[("name", "mine")]).await.status, StatusCode::FORBIDDEN);
    let page = reader.get(&address).await;
    assert!(
        page.text.contains("You may not manage agent pools") && !page.text.contains(&format!("{address}/tokens")),
        "{}",
        page.text
    );
    let stranger = scene.server.stranger("stranger").await;
    for path in [LIST, &address, "/app/acme/agents/pools/nonsense"] {
        assert_eq!(stranger.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}
