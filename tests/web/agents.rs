//! Agent pools: made, given tokens, narrowed, deleted.

use axum::http::StatusCode;
use harness::browser::PageForm;
use jiff::{SignedDuration, Timestamp};
use taco_domain::agent::AgentPresence;

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
    assert!(page.text.contains("taco-agent --server") && page.text.contains("No agents connected"), "{}", page.text);

    let tokens = page.form(&format!("{address}/tokens"));
    let issued = browser.sends_and_follows(&tokens, &[("description", "host <7>"), ("days", "30")]).await;
    let at = issued.text.find("taco_a_").expect("the token is shown");
    let token = issued.text[at..].split_whitespace().next().expect("a word").to_owned();
    let page = browser.get(&address).await;
    assert!(!page.text.contains(&token) && page.text.contains("host &#60;7&#62;"), "{}", page.text);
    let caller = scene.server.api.agent_caller(&token).await;
    let connected = scene.server.api.control_plane.connect_agent(&caller, None, None, "<i>host</i>", "1.0").await;
    connected.expect("the agent is let in");
    let page = browser.get(&address).await;
    assert!(page.text.contains("&#60;i&#62;host&#60;/i&#62;") && page.text.contains("Unresponsive"), "{}", page.text);
    is_harmless(&page);
    assert!(!row_of(&page.text, "&#60;i&#62;host").contains("never"), "it was seen when it connected: {}", page.text);

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
    let form = PageForm { action: LIST.to_owned(), ..list.form("/logout") };
    assert_eq!(reader.send(&form, &[("name", "mine")]).await.status, StatusCode::FORBIDDEN);
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

/// The row of a table that has this text.
fn row_of<'a>(page: &'a str, text: &str) -> &'a str {
    page.split("<tr>").find(|row| row.contains(text)).and_then(|row| row.split("</tr>").next()).expect("a row")
}

#[tokio::test]
async fn an_agent_that_is_lost_was_last_seen_when_it_was_heard() {
    let scene = RunScene::start().await;
    let browser = &scene.admin;
    let form = browser.get(LIST).await.form(LIST);
    let made = browser.send(&form, &[("name", "rack-1")]).await;
    let address = made.location().split('?').next().expect("a first part").to_owned();
    let tokens = browser.get(&address).await.form(&format!("{address}/tokens"));
    let issued = browser.sends_and_follows(&tokens, &[("description", "host"), ("days", "30")]).await;
    let at = issued.text.find("taco_a_").expect("the token is shown");
    let token = issued.text[at..].split_whitespace().next().expect("a word").to_owned();
    let caller = scene.server.api.agent_caller(&token).await;
    let control_plane = &scene.server.api.control_plane;
    let connected = control_plane.connect_agent(&caller, None, None, "host-7", "1.0").await.expect("it is let in");

    scene.server.api.pass(SignedDuration::from_secs(600));
    let heard = control_plane.now();
    let presence = AgentPresence {
        agent: connected.agent.id,
        name: "host-7".to_owned(),
        pool: Some(connected.agent.pool),
        heartbeat: 1,
        concurrency: 1,
        busy: 0,
        draining: false,
        engines: Vec::new(),
        version: "1.0".to_owned(),
        last_heard_at: Some(heard),
    };
    control_plane.presence().set(vec![presence]);
    control_plane.presence().set(Vec::new());
    scene.server.api.pass(SignedDuration::from_secs(120));

    let moment = heard.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let page = browser.get(&address).await;
    assert!(row_of(&page.text, "host-7").contains(&moment), "{moment}: {}", page.text);
    let path = format!("/api/v2/agents/{}", connected.agent.id);
    let told = scene.server.api.admin().get(&path).await.expect(StatusCode::OK);
    let told: Timestamp = told.attribute("last-ping-at").as_str().expect("a moment").parse().expect("a moment");
    assert_eq!(told, heard);
}
