use harness::browser::PASSWORD;
use reqwest::StatusCode;

use crate::form_scene::log_in;
use crate::site::Site;

const SESSIONS: &str = "/app/settings/sessions";
const ACCOUNT: &str = "/app/settings/account";

#[tokio::test]
async fn a_session_elsewhere_is_seen_and_revoked() {
    let site = Site::start();
    let here = site.admin().await;
    let elsewhere = log_in(&site, "admin").await;
    let page = elsewhere.get(SESSIONS).await;
    assert_eq!((page.text.matches("this browser</span>").count(), page.text.matches("127.0.0.1").count()), (1, 2));
    // The newest comes first: the other one's own.
    let revoke = here.get(SESSIONS).await.form(&format!("{SESSIONS}/ses"));
    let page = here.get(SESSIONS).await;
    let other =
        page.text.split("<tr>").find(|row| row.contains("/revoke") && !row.contains("this browser")).expect("a row");
    let id = other.split("/sessions/").nth(1).and_then(|rest| rest.split('/').next()).expect("an id");
    let revoke = harness::browser::PageForm { action: format!("{SESSIONS}/{id}/revoke"), ..revoke };
    let done = here.send(&revoke, &[]).await;
    assert_eq!((done.status, done.done()), (StatusCode::SEE_OTHER, format!("{SESSIONS}: Session ended.")));
    assert!(elsewhere.get("/app").await.location().starts_with("/login"));
    assert_eq!(here.get("/app").await.status, StatusCode::OK);
    assert_eq!(here.send(&revoke, &[]).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn all_other_sessions_end_together() {
    let site = Site::start();
    let here = site.admin().await;
    let others = [log_in(&site, "admin").await, log_in(&site, "admin").await];
    let form = here.get(SESSIONS).await.form(&format!("{SESSIONS}/close-others"));
    assert_eq!(here.send(&form, &[]).await.status, StatusCode::SEE_OTHER);
    for other in &others {
        assert!(other.get("/app").await.location().starts_with("/login"));
    }
    assert!(here.get(SESSIONS).await.text.contains("Log out</button>"));
}

#[tokio::test]
async fn a_new_password_needs_the_old_one_and_ends_other_sessions() {
    let site = Site::start();
    let here = site.admin().await;
    let elsewhere = log_in(&site, "admin").await;
    let form = here.get(ACCOUNT).await.form(&format!("{ACCOUNT}/password"));
    let new = "battery staple horse";
    for (current, password, repeated, said) in [
        ("wrong password", new, new, "current password is not this one"),
        (PASSWORD, new, "something else", "passwords do not match"),
        (PASSWORD, "tiny one", "tiny one", "too short"),
    ] {
        let page = here.send(&form, &[("current", current), ("password", password), ("repeated", repeated)]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(page.text.contains(said) && !page.text.contains(password), "{}", page.text);
    }
    let done = here.send(&form, &[("current", PASSWORD), ("password", new), ("repeated", new)]).await;
    assert_eq!(
        done.done(),
        "/app/settings/account: Password changed. Your other sessions have ended.",
        "{}",
        done.text
    );
    assert!(elsewhere.get("/app").await.location().starts_with("/login"));
    let login = elsewhere.get("/login").await.form("/login");
    let refused = elsewhere.send(&login, &[("username", "admin"), ("password", PASSWORD)]).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    let entered = elsewhere.send(&login, &[("username", "admin"), ("password", new)]).await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn name_and_address_are_changed_by_their_owner() {
    let site = Site::start();
    let browser = site.admin().await;
    let form = browser.get(ACCOUNT).await.form(ACCOUNT);
    let done = browser.send(&form, &[("username", "jane"), ("email", "jane@acme.test")]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    assert!(browser.get(ACCOUNT).await.text.contains("jane@acme.test"));
    let wrong = browser.send(&form, &[("username", "jane doe <b>"), ("email", "jane@acme.test")]).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.text.contains("jane doe &#60;b&#62;") && wrong.text.contains("error-username"), "{}", wrong.text);
    let mut forged = form.clone();
    forged.hidden.clear();
    let refused = browser.send(&forged, &[("username", "eve"), ("email", "eve@acme.test")]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_error_page_keeps_the_header_of_whoever_is_logged_in() {
    let site = Site::start();
    let browser = site.admin().await;
    let page = browser.get("/app/settings/nothing/here").await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
    assert!(page.text.contains(r#"<details class="menu">"#) && page.text.contains("Log out"), "{}", page.text);
    assert!(page.text.contains(page.header("x-request-id")));
    let page = site.browser().get("/app/settings/nothing/here").await;
    assert!(!page.text.contains(r#"<details class="menu">"#), "{}", page.text);
}
