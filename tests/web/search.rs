//! The search page, which is the palette's too.

use harness::page_server::PageServer;
use reqwest::StatusCode;

const PATH: &str = "/app/acme/search";

/// Names of what was found, in their order.
fn names(text: &str) -> Vec<&str> {
    let rest = text.split("<span class=\"name\">").skip(1);
    rest.filter_map(|rest| rest.split('<').next()).collect()
}

#[tokio::test]
async fn workspaces_runs_and_places_are_found_by_a_few_letters() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    for name in ["network-prod", "network-test", "web-prod"] {
        site.api.given_workspace("acme", name).await;
    }
    let browser = site.admin().await;
    let page = browser.get(&format!("{PATH}?q=net+prod")).await;
    assert_eq!((page.status, names(&page.text)), (StatusCode::OK, vec!["network-prod"]), "{}", page.text);
    assert!(page.text.contains("href=\"/app/acme/workspaces/network-prod\""), "{}", page.text);
    assert_eq!(names(&browser.get(&format!("{PATH}?q=npr")).await.text), ["network-prod"], "letters in their order");
    assert_eq!(names(&browser.get(&format!("{PATH}?q=teams")).await.text)[0], "Teams");
    let start = browser.get(&format!("{PATH}?q=start+web")).await;
    assert_eq!(names(&start.text), ["Start run in web-prod"], "{}", start.text);
    assert!(start.text.contains("href=\"/app/acme/workspaces/web-prod/runs/new\""), "{}", start.text);
    let nothing = browser.get(&format!("{PATH}?q=%3Cb%3Enowhere")).await;
    assert!(nothing.text.contains("Nothing matches “&#60;b&#62;nowhere”."), "{}", nothing.text);

    let empty = browser.get(PATH).await;
    let offered = names(&empty.text);
    assert!(offered.contains(&"Dashboard") && offered.contains(&"New workspace"), "{offered:?}");
    let part = browser.get_part(&format!("{PATH}?q=network&kind=workspace")).await;
    assert!(part.text.trim_start().starts_with("<div class=\"hits\">"), "{}", part.text);
    assert_eq!(names(&part.text), ["network-prod", "network-test"]);
    let everywhere = browser.get("/app/organizations/search?q=network").await;
    assert_eq!(names(&everywhere.text), ["network-prod", "network-test"], "{}", everywhere.text);
    assert_eq!(names(&browser.get("/app/organizations/search?q=acm").await.text), ["acme"]);
}

#[tokio::test]
async fn a_command_leads_to_a_form_that_is_there() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let browser = site.admin().await;
    let page = browser.get(&format!("{PATH}?q=create")).await;
    let links = page.text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let links: Vec<_> = links.filter_map(|link| link.split_once('#')).filter(|(path, _)| !path.is_empty()).collect();
    assert!(links.len() >= 4, "{links:?}");
    for (path, form) in links.into_iter().filter(|(path, _)| path.starts_with("/app/acme/")) {
        let page = browser.get(path).await;
        assert!(page.text.contains(&format!(" id=\"{form}\"")), "{path}#{form}: {}", page.text);
    }
}

#[tokio::test]
async fn nobody_finds_what_they_may_not_see() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let mine = site.api.given_workspace("acme", "web-mine").await;
    site.api.given_workspace("acme", "web-secret").await;
    let jane = site.member("jane", "acme", &mine, "read").await;
    let page = jane.get(&format!("{PATH}?q=web")).await;
    assert_eq!(names(&page.text), ["web-mine"], "{}", page.text);
    let page = jane.get(&format!("{PATH}?q=run+web")).await;
    assert!(!page.text.contains("Start run in"), "she may only read: {}", page.text);
    let offered = jane.get(PATH).await;
    for command in ["New workspace", "New team", "Site administration"] {
        assert!(!names(&offered.text).contains(&command), "{command}");
    }
    let everywhere = jane.get("/app/organizations/search?q=web").await;
    assert_eq!(names(&everywhere.text), ["web-mine"]);
    assert_eq!(site.stranger("eve").await.get(&format!("{PATH}?q=web")).await.status, StatusCode::NOT_FOUND);
}
