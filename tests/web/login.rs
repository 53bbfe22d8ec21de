use harness::browser::{PASSWORD, PageForm};
use reqwest::StatusCode;

use crate::form_scene::log_in;
use crate::site::Site;

fn login_form() -> PageForm {
    PageForm { action: "/login".to_owned(), hidden: Vec::new() }
}

#[tokio::test]
async fn the_first_link_sets_the_password_once() {
    let site = Site::start();
    let browser = site.browser();
    let page = browser.get(&site.link).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("<strong>admin</strong>"), "{}", page.text);
    let form = page.form("");

    let short = browser.send(&form, &[("password", "short"), ("repeated", "short")]).await;
    assert_eq!(short.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(short.text.contains("too short"), "{}", short.text);
    let differing = browser.send(&form, &[("password", PASSWORD), ("repeated", "correct house")]).await;
    assert_eq!(differing.status, StatusCode::UNPROCESSABLE_ENTITY);

    let done = browser.send(&form, &[("password", PASSWORD), ("repeated", PASSWORD)]).await;
    assert_eq!((done.status, done.location()), (StatusCode::SEE_OTHER, "/app"));
    assert_eq!(browser.get("/app").await.status, StatusCode::OK, "and one is logged in");

    assert_eq!(site.browser().get(&site.link).await.status, StatusCode::NOT_FOUND);
    let again = site.browser().send(&form, &[("password", "another password"), ("repeated", "another password")]).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
    assert!(again.text.contains("This link does not work"), "{}", again.text);
}

#[tokio::test]
async fn the_login_of_a_new_server_says_where_the_setup_link_is() {
    let site = Site::start();
    let browser = site.browser();
    let page = browser.get("/login").await;
    for part in ["one-time setup link", "taco admin setup-link", "its log"] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    let refused = browser.send(&page.form("/login"), &[("username", "admin"), ("password", "a wrong password")]).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert!(refused.text.contains("Incorrect username or password."), "{}", refused.text);
    assert!(refused.text.contains("one-time setup link"), "{}", refused.text);
    site.admin().await;
    assert!(!site.browser().get("/login").await.text.contains("setup link"), "somebody has a password now");
}

#[tokio::test]
async fn one_logs_in_with_name_or_address_and_out_again() {
    let site = Site::start();
    site.admin().await;
    for name in ["admin", "ADMIN", "admin@localhost"] {
        let browser = site.browser();
        let refused = browser.get("/app/settings/tokens").await;
        assert_eq!(refused.location(), "/login?next=%2Fapp%2Fsettings%2Ftokens");
        let page = browser.get(refused.location()).await;
        let done = browser.send(&page.form("/login"), &[("username", name), ("password", PASSWORD)]).await;
        assert_eq!((done.status, done.location()), (StatusCode::SEE_OTHER, "/app/settings/tokens"), "{name}");
        let cookie = done.header("set-cookie").to_owned();
        for part in ["; Path=/", "; HttpOnly", "; SameSite=Lax"] {
            assert!(cookie.contains(part), "{cookie}");
        }

        let page = browser.get("/app").await;
        assert_eq!(page.status, StatusCode::OK);
        let stolen = browser.cookie.borrow().clone();
        let left = browser.send(&page.form("/logout"), &[]).await;
        assert_eq!((left.status, left.location()), (StatusCode::SEE_OTHER, "/login"));
        *browser.cookie.borrow_mut() = stolen;
        assert_eq!(browser.get("/app").await.location(), "/login", "the session is over, whoever has the cookie");
    }
}

#[tokio::test]
async fn a_wrong_password_and_a_stranger_look_the_same() {
    let site = Site::start();
    site.admin().await;
    let mut answers = Vec::new();
    for (name, password) in [("admin", "wrong password"), ("nobody", PASSWORD)] {
        let browser = site.browser();
        let page = browser.send(&login_form(), &[("username", name), ("password", password)]).await;
        assert_eq!(page.status, StatusCode::UNAUTHORIZED);
        assert!(browser.cookie.borrow().is_none());
        answers.push(page.text.replace(name, "NAME"));
    }
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test]
async fn guessing_passwords_is_slowed_down() {
    let site = Site::start();
    site.admin().await;
    let browser = site.browser();
    for _ in 0..10 {
        let page = browser.send(&login_form(), &[("username", "admin"), ("password", "a guess")]).await;
        assert_eq!(page.status, StatusCode::UNAUTHORIZED);
    }
    let page = browser.send(&login_form(), &[("username", "admin"), ("password", PASSWORD)]).await;
    assert_eq!(page.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(page.header("retry-after").parse::<u64>().is_ok_and(|seconds| (1..=60).contains(&seconds)));
}

#[tokio::test]
async fn what_was_typed_is_no_markup() {
    let site = Site::start();
    let name = r#""><script>alert(1)</script>"#;
    let page = site.browser().send(&login_form(), &[("username", name), ("password", "x")]).await;
    assert!(!page.text.contains("<script"), "{}", page.text);
    assert!(page.text.contains("script&#62;"), "it stands there as text:\n{}", page.text);
}

#[tokio::test]
async fn after_the_login_one_goes_nowhere_else() {
    let site = Site::start();
    site.admin().await;
    for next in ["https://evil.test/", "//evil.test", "/\\evil.test"] {
        let fields = [("username", "admin"), ("password", PASSWORD), ("next", next)];
        let done = site.browser().send(&login_form(), &fields).await;
        assert_eq!(done.location(), "/app", "{next}");
    }
}

#[tokio::test]
async fn forms_of_other_sites_are_refused() {
    let site = Site::start();
    let browser = site.admin().await;
    let page = browser.get("/app/settings/tokens").await;
    let create = page.form("/app/settings/tokens");
    let fields = [("description", "planted"), ("days", "30")];
    let own = browser.origin.clone();
    for headers in [
        vec![("origin", "https://evil.test")],
        vec![("origin", "null")],
        vec![("origin", own.as_str()), ("sec-fetch-site", "cross-site")],
        vec![("sec-fetch-site", "same-site")],
    ] {
        for (form, fields) in [
            (&create, &fields[..]),
            (&page.form("/logout"), &[]),
            (&login_form(), &[("username", "admin"), ("password", PASSWORD)]),
        ] {
            let refused = browser.send_from(form, fields, &headers).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{} with {headers:?}", form.action);
            assert!(refused.text.contains("Form expired"), "{}", refused.text);
        }
    }
    // A form without proof, or with that of another session.
    let other = log_in(&site, "admin").await.get("/app/settings/tokens").await.form("/logout");
    for hidden in [Vec::new(), other.hidden] {
        let form = PageForm { hidden, ..create.clone() };
        assert_eq!(browser.send(&form, &fields).await.status, StatusCode::FORBIDDEN);
    }
    let page = browser.get("/app/settings/tokens").await;
    assert_eq!(page.status, StatusCode::OK, "still logged in");
    assert!(!page.text.contains("planted"), "and nothing was made");
}
