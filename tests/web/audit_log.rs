//! Audit log: what happened in words, searched, paged and exported.

use harness::browser::Page;
use reqwest::StatusCode;
use serde_json::{Value, json};
use taco_ledger::{Clock as _, SystemClock};

use crate::form_scene::{FormScene, WORKSPACE};

const PATH: &str = "/app/acme/settings/audit";

/// What a page tells in its rows, without markup.
fn told(page: &Page) -> Vec<String> {
    let rows = page.text.split("<tr>").skip(2).map(|row| row.split("</tr>").next().expect("a first part"));
    let cell = |row: &str| {
        let cell = row
            .split("<td data-label=\"Event\">")
            .nth(1)
            .and_then(|rest| rest.split("</td>").next())
            .expect("what happened")
            .to_owned();
        let plain: String = cell.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
        plain.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    rows.map(cell).collect()
}

#[tokio::test]
async fn an_owner_reads_what_happened_in_plain_words() {
    let scene = FormScene::new().await;
    let lock = scene.admin.get(WORKSPACE).await.form(&format!("{WORKSPACE}/lock"));
    scene.admin.send(&lock, &[]).await;
    let variable = json!({ "data": { "type": "vars", "attributes": {
        "key": "password", "value": "s3cr3t-marker", "category": "env", "sensitive": true } } });
    let workspace = scene.workspace().await["id"].as_str().expect("an id").to_owned();
    scene.api.post(&format!("/api/v2/workspaces/{workspace}/vars"), variable).await;

    let settings = scene.admin.get("/app/acme/settings").await;
    assert!(settings.text.contains(&format!("<a href=\"{PATH}\">Audit log</a>")), "{}", settings.text);
    let page = scene.admin.get(PATH).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    let told = told(&page);
    let expected =
        ["admin created variable password in web", "admin locked workspace web", "admin created workspace web"];
    assert_eq!(told[..3], expected, "{told:?}");
    assert_eq!(told.last().map(String::as_str), Some("admin created organization acme"), "{told:?}");
    assert!(page.text.contains(&format!("<a href=\"{WORKSPACE}\">workspace web</a>")), "{}", page.text);
    assert!(!page.text.contains("s3cr3t"), "values are nobody's business here");
}

#[tokio::test]
async fn it_is_searched_by_who_what_thing_and_day() {
    let scene = FormScene::new().await;
    scene.api.given_workspace("acme", "network").await;
    let jane = scene.member("jane", "write").await;
    let lock = jane.get(WORKSPACE).await.form(&format!("{WORKSPACE}/lock"));
    assert_eq!(jane.send(&lock, &[]).await.status, StatusCode::SEE_OTHER);
    let network = scene.api.workspace("acme", "network").await["id"].as_str().expect("an id").to_owned();
    let today = SystemClock.now().strftime("%Y-%m-%d").to_string();
    for (query, expected) in [
        ("who=jane&kind=workspaces".to_owned(), vec!["jane locked workspace web"]),
        ("kind=workspaces&thing=network".to_owned(), vec!["admin created workspace network"]),
        (format!("thing={network}&who=ADMIN"), vec!["admin created workspace network"]),
        ("thing=jane&kind=agents".to_owned(), vec![]),
        ("who=nobody".to_owned(), vec![]),
        ("who=jane&kind=workspaces&from=2020-01-01&to=2020-12-31".to_owned(), vec![]),
        (format!("who=jane&kind=workspaces&from=2020-01-01&to={today}"), vec!["jane locked workspace web"]),
    ] {
        let page = scene.admin.get(&format!("{PATH}?{query}")).await;
        assert_eq!(page.status, StatusCode::OK, "{query}");
        assert_eq!(told(&page), expected, "{query}");
        assert_eq!(page.text.contains("No entries match."), expected.is_empty(), "{query}");
    }
    let wrong = scene.admin.get(&format!("{PATH}?from=yesterday")).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.text.contains("error-from") && wrong.text.contains("not yesterday"), "{}", wrong.text);
}

#[tokio::test]
async fn long_logs_come_page_by_page() {
    let scene = FormScene::new().await;
    for number in 0..60 {
        scene.api.given_workspace("acme", &format!("w{number:02}")).await;
    }
    let first = scene.admin.get(&format!("{PATH}?kind=workspaces")).await;
    assert_eq!(told(&first)[0], "admin created workspace w59");
    let mut all = told(&first);
    let older = |page: &Page| {
        let link = page.text.split("<a class=\"button\" href=\"").find(|part| part.contains("Older"));
        link.map(|link| link.split('"').next().expect("an address").replace("&#38;", "&"))
    };
    assert!((50..62).contains(&all.len()) && older(&first).is_some(), "{}", all.len());
    let mut next = older(&first);
    while let Some(address) = next {
        let page = scene.admin.get(&address).await;
        assert!(page.text.contains(">Newest</a>"), "{}", page.text);
        all.extend(told(&page));
        next = older(&page);
    }
    let created = all.iter().filter(|line| line.starts_with("admin created workspace")).count();
    assert_eq!(created, 61, "each once: {all:?}");
}

#[tokio::test]
async fn the_same_is_exported_as_a_table_and_as_lines_of_json() {
    let scene = FormScene::new().await;
    for number in 0..60 {
        scene.api.given_workspace("acme", &format!("w{number:02}")).await;
    }
    let page = scene.admin.get(&format!("{PATH}?kind=workspaces")).await;
    assert!(page.text.contains(&format!("{PATH}/export.csv?kind=workspaces")), "{}", page.text);
    let csv = scene.admin.get(&format!("{PATH}/export.csv?kind=workspaces")).await;
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(csv.header("content-disposition"), "attachment; filename=\"acme-audit-log.csv\"");
    let lines: Vec<_> = csv.text.lines().collect();
    assert!(lines[0].starts_with("time,actor,actor_id,action,summary,"), "{}", lines[0]);
    assert_eq!(lines.len(), 62, "all pages: a head, and 61 workspaces");
    assert!(lines[1].contains(",workspace.create,admin created workspace w59,workspace,ws-"), "{}", lines[1]);
    let json = scene.admin.get(&format!("{PATH}/export.jsonl?kind=workspaces&thing=w07")).await;
    let lines: Vec<Value> = json.text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 1);
    assert_eq!([&lines[0]["actor"], &lines[0]["action"], &lines[0]["name"]], ["admin", "workspace.create", "w07"]);
    let wrong = scene.admin.get(&format!("{PATH}/export.csv?to=x")).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn members_may_not_read_it_and_are_not_led_there() {
    let scene = FormScene::new().await;
    let jane = scene.member("jane", "admin").await;
    assert!(!jane.get("/app/acme/settings").await.text.contains("Audit log"));
    for path in [PATH.to_owned(), format!("{PATH}/export.csv"), format!("{PATH}/export.jsonl")] {
        assert_eq!(jane.get(&path).await.status, StatusCode::FORBIDDEN, "{path}");
    }
    for path in ["/app/admin/audit", "/app/admin/audit/export.csv"] {
        assert_eq!(jane.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn the_site_has_a_log_of_users_logins_and_organizations() {
    let scene = FormScene::new().await;
    scene.stranger("jane").await;
    let page = scene.admin.get("/app/admin/audit?kind=users&thing=jane").await;
    let told = told(&page);
    assert!(told.iter().any(|line| line == "admin created user jane"), "{told:?}");
    assert!(told.iter().any(|line| line == "jane set the password of user jane"), "{told:?}");
    let logins = scene.admin.get("/app/admin/audit?kind=sessions&who=jane").await;
    assert!(logins.text.contains("logged in") && !logins.text.contains("correct horse"), "{}", logins.text);
    let csv = scene.admin.get("/app/admin/audit/export.csv?kind=organizations").await;
    assert!(csv.text.contains("admin created organization acme"), "{}", csv.text);
}
