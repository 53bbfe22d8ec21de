//! Messages about what was done are shown once, on the page that they are for.

use harness::page_server::PageServer;

const PATH: &str = "/app/acme/workspaces/web";

#[tokio::test]
async fn a_message_names_the_thing_and_is_shown_once() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    site.api.given_workspace("acme", "web").await;
    let browser = site.admin().await;
    let lock = browser.get(PATH).await.form(&format!("{PATH}/lock"));
    let locked = browser.send(&lock, &[]).await;
    assert_eq!(locked.location(), PATH, "the address does not tell it");
    let cookie = locked.header("set-cookie").to_owned();
    for part in ["; HttpOnly", "; SameSite=Lax", "; Path=/app;", "; Max-Age=60"] {
        assert!(cookie.contains(part), "{part}: {cookie}");
    }

    const TEXT: &str = "Workspace web locked.";
    assert!(!browser.get_part("/app/acme").await.text.contains(TEXT));
    assert!(!browser.get("/app/acme").await.text.contains(TEXT), "it is for another page");
    let page = browser.get(PATH).await;
    assert!(page.text.contains(&format!("<span>{TEXT}</span></p>")), "{}", page.text);
    assert!(!browser.get(PATH).await.text.contains(TEXT), "a reload does not tell it again");

    let shared = browser.get(&format!("{PATH}?notice=unlocked")).await;
    assert!(!shared.text.contains("role=\"status\""), "no address tells anything: {}", shared.text);
}

#[tokio::test]
async fn nobody_brings_a_message_into_another_session() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let workspace = site.api.given_workspace("acme", "web").await;
    let browser = site.admin().await;
    let other = site.member("jane", "acme", &workspace, "read").await;
    let lock = browser.get(PATH).await.form(&format!("{PATH}/lock"));
    let locked = browser.send(&lock, &[]).await;
    let planted = locked.header("set-cookie").split(';').next().expect("a cookie").to_owned();
    let session = other.cookie.borrow().clone().expect("a session");
    *other.cookie.borrow_mut() = Some(format!("{session}; {planted}"));
    assert!(!other.get(PATH).await.text.contains("Workspace web locked."));
}
