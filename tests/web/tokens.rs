use reqwest::StatusCode;

use crate::site::Site;

const PATH: &str = "/app/settings/tokens";

#[tokio::test]
async fn a_token_is_made_shown_once_and_revoked() {
    let site = Site::start();
    let browser = site.admin().await;
    let form = browser.get(PATH).await.form(PATH);
    let made = browser.sends_and_follows(&form, &[("description", "laptop <b>"), ("days", "30")]).await;
    let token = made.text.split("taco_u_").nth(1).and_then(|rest| rest.get(..43)).expect("the token is shown");
    let token = format!("taco_u_{token}");

    let page = browser.get(PATH).await;
    assert!(!page.text.contains(&token), "never again");
    assert!(page.text.contains("laptop &#60;b&#62;"), "{}", page.text);
    assert_eq!(browser.api_status("/api/v2/account/details", &token).await, 200);

    let revoke = page.form(&format!("{PATH}/at-"));
    let done = browser.send(&revoke, &[]).await;
    assert_eq!((done.status, done.location()), (StatusCode::SEE_OTHER, PATH));
    assert!(!browser.get(PATH).await.text.contains("laptop &#60;b&#62;"));
    assert_eq!(browser.api_status("/api/v2/account/details", &token).await, 401);
}

#[tokio::test]
async fn a_form_with_a_mistake_keeps_what_was_typed() {
    let site = Site::start();
    let browser = site.admin().await;
    let form = browser.get(PATH).await.form(PATH);
    let description = "x".repeat(600);
    let page = browser.send(&form, &[("description", &description), ("days", "30")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.text.contains(&description) && page.text.contains("at most 512"), "{}", page.text);
    let page = browser.send(&form, &[("description", "x"), ("days", "100000")]).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_token_that_is_not_there_is_not_found() {
    let site = Site::start();
    let browser = site.admin().await;
    let form = browser.get(PATH).await.form(PATH);
    browser.send(&form, &[("description", "one"), ("days", "30")]).await;
    let mut revoke = browser.get(PATH).await.form(&format!("{PATH}/"));
    for id in ["nonsense", "at-0000000000000000", "..%2f..%2fx"] {
        revoke.action = format!("{PATH}/{id}/revoke");
        assert_eq!(browser.send(&revoke, &[]).await.status, StatusCode::NOT_FOUND, "{id}");
    }
}
