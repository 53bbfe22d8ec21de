use harness::browser::PageForm;

use crate::form_scene::FormScene;
use crate::site::Site;

#[tokio::test]
async fn every_page_tells_browsers_what_it_never_does() {
    let site = Site::start();
    let stranger = site.browser();
    let link = stranger.get(&site.link).await;
    let browser = site.admin().await;
    let mut pages = vec![link, stranger.get("/login").await, stranger.get("/app").await, browser.get("/").await];
    for path in [
        "/app",
        "/app/settings/tokens",
        "/app/nothing-here",
        "/setup/nonsense",
        "/logout",
        "/oauth/authorize",
        "/oauth/token",
    ] {
        pages.push(browser.get(path).await);
    }
    pages.push(browser.send(&PageForm { action: "/oauth/token".into(), hidden: Vec::new() }, &[]).await);
    for page in pages {
        assert!(page.status.as_u16() < 500, "{page:?}");
        let policy = page.header("content-security-policy");
        for part in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"] {
            assert!(policy.contains(part), "{}: {policy}", page.path);
        }
        assert!(!policy.contains("unsafe"), "{}: {policy}", page.path);
        assert_eq!(page.header("x-content-type-options"), "nosniff", "{}", page.path);
        assert_eq!(page.header("referrer-policy"), "same-origin", "{}", page.path);
        assert_eq!(page.header("cache-control"), "no-store", "{}", page.path);
        let scripts = page.text.matches("<script").count();
        assert_eq!(scripts, page.text.matches("<script src=\"/static/").count(), "only files of ours: {}", page.text);
        assert!(!page.text.contains(" style=") && !page.text.contains(" hx-on"), "{}", page.text);
    }
}

#[tokio::test]
async fn an_error_is_a_page_with_the_id_of_its_request() {
    let site = Site::start();
    let browser = site.admin().await;
    let page = browser.get("/app/nothing-here").await;
    assert_eq!(page.status.as_u16(), 404);
    assert!(page.text.contains(page.header("x-request-id")), "{}", page.text);
    let page = browser.get("/logout").await;
    assert_eq!((page.status.as_u16(), page.header("allow")), (405, "POST"));
    assert!(page.text.contains("GET is not supported at this address."), "{}", page.text);
}

#[tokio::test]
async fn an_error_keeps_the_navigation_of_what_the_visitor_may_see() {
    let scene = FormScene::new().await;
    let lost = scene.admin.get("/app/acme/workspaces/web/bogus").await;
    assert_eq!(lost.status.as_u16(), 404);
    for part in [" popover aria-label=\"Organization\">", " popover aria-label=\"Workspace\">", "Go to web"] {
        assert!(lost.text.contains(part), "{part} is missing: {}", lost.text);
    }
    assert!(lost.text.contains("Page not found, or you don&#39;t have access to it."), "{}", lost.text);
    let lost = scene.admin.get("/app/acme/workspaces/none").await;
    assert!(
        lost.text.contains(" popover aria-label=\"Organization\"")
            && !lost.text.contains(" popover aria-label=\"Workspace\"")
    );
    let stranger = scene.stranger("eve").await;
    let hidden = stranger.get("/app/acme/workspaces/web/bogus").await;
    assert!(!hidden.text.contains("<nav aria-label="), "they learn nothing: {}", hidden.text);
}

#[tokio::test]
async fn the_lock_is_beside_the_workspaces_name_on_each_of_its_pages() {
    let scene = FormScene::new().await;
    let overview = "/app/acme/workspaces/web";
    let pages = ["", "/runs", "/runs/new", "/states", "/variables", "/configurations", "/settings", "/bogus"];
    for page in pages {
        assert!(!scene.admin.get(&format!("{overview}{page}")).await.text.contains("title=\"Locked by"), "{page}");
    }
    let lock = scene.admin.get(overview).await.form(&format!("{overview}/lock"));
    scene.admin.send(&lock, &[]).await;
    for page in pages {
        let page = scene.admin.get(&format!("{overview}{page}")).await;
        assert!(page.text.contains("title=\"Locked by admin\""), "{}: {}", page.path, page.text);
    }
}

#[tokio::test]
async fn a_page_below_a_tab_shows_the_way_back() {
    let scene = FormScene::new().await;
    let page = scene.admin.get("/app/acme/workspaces/web/runs/new").await;
    let way = "<li><a href=\"/app/acme/workspaces/web/runs\">Runs</a></li>";
    assert!(page.text.contains("aria-label=\"Breadcrumb\"") && page.text.contains(way), "{}", page.text);
    assert!(page.text.contains("href=\"/app/acme/search?kind=workspace\""), "the switcher works without scripts");
    let tab = scene.admin.get("/app/acme/workspaces/web/runs").await;
    assert!(!tab.text.contains("aria-label=\"Breadcrumb\""), "{}", tab.text);
}

#[tokio::test]
async fn pages_can_be_walked_without_a_mouse() {
    let scene = FormScene::new().await;
    for path in
        ["/app/organizations", "/app/settings/tokens", "/app/acme/settings", "/app/acme/workspaces/web/variables"]
    {
        let page = scene.admin.get(path).await;
        for part in [r##"href="#content""##, r#"<main id="content""#, r#"<html lang="en""#] {
            assert!(page.text.contains(part), "{part} is missing on {path}");
        }
        let within_organization = path.starts_with("/app/acme/");
        assert_eq!(page.text.contains(r#" popover aria-label="Organization""#), within_organization, "{path}");
        assert_eq!(page.text.matches("<h1").count(), 1, "{path}");
    }
}

#[tokio::test]
async fn the_style_sheet_may_be_kept_for_ever() {
    let site = Site::start();
    let page = site.browser().get("/login").await;
    let path = page
        .text
        .split("rel=\"stylesheet\" href=\"/static/")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("a link");
    let sheet = site.browser().get(&format!("/static/{path}")).await;
    assert_eq!(sheet.header("content-type"), "text/css; charset=utf-8");
    assert!(sheet.header("cache-control").contains("immutable"));
    assert!(sheet.text.contains(":focus-visible"));
}

#[tokio::test]
async fn the_start_page_says_what_to_type_next() {
    let site = Site::start();
    let page = site.admin().await.get("/app").await;
    let host = &site.server.address;
    for part in [format!("terraform login {host}"), format!("hostname     = \"{host}\""), "~/.terraformrc".into()] {
        assert!(page.text.contains(&part), "{part} is missing:\n{}", page.text);
    }
}
