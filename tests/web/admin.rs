use reqwest::StatusCode;

use crate::form_scene::{FormScene, exactly, log_in};

const ADMIN: &str = "/app/admin";
const USERS: &str = "/app/admin/users";

#[tokio::test]
async fn the_page_tells_how_the_site_is_doing() {
    let scene = FormScene::new().await;
    let page = scene.admin.get(ADMIN).await;
    assert_eq!(page.status, StatusCode::OK);
    for part in ["Healthy", "file:///", "taco 0.", "acme", "href=\"/app/admin/audit\"", "href=\"/app/admin/users\""] {
        assert!(page.text.contains(part), "{part} is missing:\n{}", page.text);
    }
}

#[tokio::test]
async fn a_user_is_created_suspended_and_resumed() {
    let scene = FormScene::new().await;
    let jane = scene.stranger("jane").await;
    assert_eq!(jane.get("/app").await.status, StatusCode::OK);

    let page = scene.admin.get("/app/admin/users?search=JANE").await;
    assert!(page.text.contains("jane@acme.test") && !page.text.contains("admin@localhost</td>"), "{}", page.text);
    assert!(page.text.contains("Suspend jane?"), "it asks first: {}", page.text);
    let id = page.text.split("/app/admin/users/").nth(1).and_then(|rest| rest.split('/').next()).expect("an id");
    let form = |what: &str| page.form(&format!("{USERS}/{id}/{what}"));
    assert_eq!(
        scene.admin.send(&form("suspend"), &[]).await.done(),
        "/app/admin/users: User jane suspended. Their sessions and tokens no longer work."
    );
    assert!(jane.get("/app").await.location().starts_with("/login"));
    let page = scene.admin.get("/app/admin/users?search=jane").await;
    let resume = page.form(&format!("{USERS}/{id}/resume"));
    assert_eq!(scene.admin.send(&resume, &[]).await.done(), "/app/admin/users: User jane can log in again.");
    log_in(&scene.site, "jane").await;

    let done = scene.admin.send(&form("password-link"), &[]).await;
    assert_eq!((done.status, done.location()), (StatusCode::SEE_OTHER, USERS));
    let page = scene.admin.get(USERS).await;
    assert!(page.text.contains("Password link for jane") && page.text.contains("/setup/"), "{}", page.text);
}

#[tokio::test]
async fn the_link_of_a_new_user_is_shown_once_and_to_nobody_else() {
    let scene = FormScene::new().await;
    let form = exactly(&scene.admin.get(USERS).await, USERS);
    let done = scene.admin.send(&form, &[("username", "jane"), ("email", "jane@acme.test")]).await;
    assert_eq!((done.status, done.location()), (StatusCode::SEE_OTHER, USERS), "a reload sends nothing again");
    let cookies: Vec<_> = done.headers.get_all("set-cookie").iter().map(|line| line.to_str().expect("text")).collect();
    let cookie = cookies.iter().find(|line| line.starts_with("taco-once=")).expect("a cookie").to_string();
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/app/admin/users", "Max-Age=60"] {
        assert!(cookie.contains(attribute), "{attribute}: {cookie}");
    }
    let page = scene.admin.get(USERS).await;
    assert!(page.text.contains("/setup/") && page.text.contains("data-copy=\"password-link\""), "{}", page.text);
    assert!(page.text.contains("<span class=\"count\">2</span>"), "both users are counted: {}", page.text);
    assert_eq!(page.header("cache-control"), "no-store");
    assert!(!scene.admin.get(USERS).await.text.contains("/setup/"), "shown once");

    // The same cookie in another session shows nothing.
    let other = log_in(&scene.site, "admin").await;
    let session = other.cookie.borrow().clone().expect("a session");
    let pair = cookie.split(';').next().expect("a pair");
    *other.cookie.borrow_mut() = Some(format!("{session}; {pair}"));
    let page = other.get(USERS).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(!page.text.contains("/setup/"), "{}", page.text);
}

#[tokio::test]
async fn a_user_with_a_name_that_cannot_be_is_refused_beside_the_field() {
    let scene = FormScene::new().await;
    let form = exactly(&scene.admin.get(USERS).await, USERS);
    for (username, email, field) in
        [("admin", "new@acme.test", "error-username"), ("new", "nonsense", "error-email"), ("", "n@a.test", "error-")]
    {
        let page = scene.admin.send(&form, &[("username", username), ("email", email)]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{username}");
        assert!(page.text.contains(field), "{field}: {}", page.text);
    }
    let own = scene.admin.get("/app/settings/account").await;
    let id = own.text.split("<code class=\"id\">").nth(1).and_then(|rest| rest.split('<').next()).expect("an id");
    let mut suspend = form.clone();
    suspend.action = format!("{ADMIN}/users/{id}/suspend");
    let page = scene.admin.send(&suspend, &[]).await;
    assert_eq!(page.status, StatusCode::CONFLICT, "nobody suspends themselves");
    suspend.action = format!("{ADMIN}/users/nonsense/suspend");
    assert_eq!(scene.admin.send(&suspend, &[]).await.status, StatusCode::NOT_FOUND);
    suspend.hidden.clear();
    assert_eq!(scene.admin.send(&suspend, &[]).await.status, StatusCode::FORBIDDEN, "without a proof");
}

#[tokio::test]
async fn for_anyone_else_there_is_no_such_page() {
    let scene = FormScene::new().await;
    let jane = scene.stranger("jane").await;
    let mine = jane.get("/app/settings/account").await;
    assert!(!mine.text.contains("/app/admin"), "the menu does not lead there");
    assert_eq!(jane.get(ADMIN).await.status, StatusCode::NOT_FOUND);
    let mut form = mine.form("/app/settings/account");
    for path in ["/users", "/users/user-1111111111111111/suspend", "/users/user-1111111111111111/password-link"] {
        form.action = format!("{ADMIN}{path}");
        let fields = [("username", "eve"), ("email", "eve@acme.test")];
        assert_eq!(jane.send(&form, &fields).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert!(scene.site.browser().get(ADMIN).await.location().starts_with("/login"));
}
