use harness::page_server::PageServer;
use reqwest::StatusCode;
use serde_json::json;

const PATH: &str = "/app/acme/workspaces";

#[tokio::test]
async fn a_workspace_is_made_and_listed() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let browser = site.admin().await;
    let empty = browser.get(PATH).await;
    for part in ["cloud {", "organization = &#34;acme&#34;", "terraform login 127.0.0.1:", "~/.terraformrc"] {
        assert!(empty.text.contains(part), "an empty list teaches {part}:\n{}", empty.text);
    }
    let fields = [
        ("name", "web-prod"),
        ("description", "the <b>shop</b>"),
        ("execution_mode", "local"),
        ("engine", "tofu"),
        ("version", "~> 1.11"),
    ];
    let made = browser.send(&empty.form(PATH), &fields).await;
    assert_eq!(
        (made.status, made.done()),
        (StatusCode::SEE_OTHER, "/app/acme/workspaces/web-prod: Workspace web-prod created.".to_owned())
    );
    let workspace = site.api.admin().get("/api/v2/organizations/acme/workspaces/web-prod").await.json();
    let attributes = &workspace["data"]["attributes"];
    assert_eq!(attributes["description"], "the <b>shop</b>");
    assert_eq!((&attributes["execution-mode"], &attributes["taco-engine"]), (&json!("local"), &json!("tofu")));
    assert_eq!((&attributes["terraform-version"], &attributes["source"]), (&json!("~> 1.11"), &json!("tfe-ui")));
    let page = browser.get(PATH).await;
    assert!(page.text.contains(r#"<a href="/app/acme/workspaces/web-prod">web-prod</a>"#), "{}", page.text);
    assert!(!page.text.contains("There is no workspace yet"));
}

#[tokio::test]
async fn a_mistake_stands_beside_its_field_and_the_input_is_kept() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    site.api.given_workspace("acme", "taken").await;
    let browser = site.admin().await;
    let form = browser.get(PATH).await.form(PATH);
    for (fields, error, described) in [
        ([("name", "a b"), ("version", "1.11.4")], "Name may only contain", "error-name"),
        ([("name", "TAKEN"), ("version", "1.11.4")], "has already been taken", "error-name"),
        ([("name", "new"), ("version", "<b>")], "version", "error-terraform-version"),
    ] {
        let page = browser.send(&form, &fields).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{fields:?}");
        for part in [error, &format!("id=\"{described}\""), "<section class=\"card sheet\" id=\"new-workspace\""] {
            assert!(page.text.contains(part), "{part} is missing:\n{}", page.text);
        }
        assert!(page.text.contains(&format!("value=\"{}\"", fields[0].1)), "{}", page.text);
    }
    let elsewhere = browser.send_from(&form, &[("name", "new")], &[("sec-fetch-site", "cross-site")]).await;
    assert_eq!(elsewhere.status, StatusCode::FORBIDDEN);
    let unproven = harness::browser::PageForm { hidden: Vec::new(), ..form };
    assert_eq!(browser.send(&unproven, &[("name", "new")]).await.status, StatusCode::FORBIDDEN);
}

/// The names that a page lists, in their order.
fn names(page: &harness::browser::Page) -> Vec<&str> {
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    let rows = page.text.split(r#"<th scope="row"><a href="/app/acme/workspaces/"#).skip(1);
    rows.map(|row| row.split('"').next().expect("a first part")).collect()
}

async fn given_tagged_workspaces(site: &PageServer) -> String {
    site.api.given_organization("acme").await;
    let admin = site.api.admin();
    let body = json!({ "data": { "type": "projects", "attributes": { "name": "Shop" } } });
    let project = admin.post("/api/v2/organizations/acme/projects", &body).await.expect(StatusCode::CREATED).id();
    for (name, project, tag) in
        [("api", None, "env"), ("Web", Some(&project), "env"), ("batch", Some(&project), "team")]
    {
        let mut relationships = json!({ "tag-bindings": { "data": [
            { "type": "tag-bindings", "attributes": { "key": tag, "value": name.to_lowercase() } },
        ] } });
        if let Some(project) = project {
            relationships["project"] = json!({ "data": { "type": "projects", "id": project } });
        }
        let body =
            json!({ "data": { "type": "workspaces", "attributes": { "name": name }, "relationships": relationships } });
        admin.post("/api/v2/organizations/acme/workspaces", &body).await.expect(StatusCode::CREATED);
    }
    project
}

#[tokio::test]
async fn the_address_says_which_workspaces_are_shown_and_how() {
    let site = PageServer::start().await;
    let project = given_tagged_workspaces(&site).await;
    let browser = site.admin().await;
    for (query, expected) in [
        (String::new(), vec!["api", "batch", "Web"]),
        ("?search=B".to_owned(), vec!["batch", "Web"]),
        ("?sort=name-reversed".to_owned(), vec!["Web", "batch", "api"]),
        ("?tag=env".to_owned(), vec!["api", "Web"]),
        ("?tag=env:web".to_owned(), vec!["Web"]),
        (format!("?project={project}"), vec!["batch", "Web"]),
        (format!("?project={project}&search=w&tag=env"), vec!["Web"]),
        ("?status=errored".to_owned(), vec![]),
        ("?status=locked".to_owned(), vec![]),
        ("?status=nonsense".to_owned(), vec![]),
        ("?project=nonsense".to_owned(), vec![]),
        ("?page=2".to_owned(), vec![]),
        ("?page=x&sort=y".to_owned(), vec!["api", "batch", "Web"]),
    ] {
        let page = browser.get(&format!("{PATH}{query}")).await;
        assert_eq!(names(&page), expected, "{query}");
    }
    let page = browser.get(&format!("{PATH}?search=%22%3E%3Cscript%3E")).await;
    assert!(!page.text.contains("\"><script>") && page.text.contains("No workspaces match"), "{}", page.text);
}

#[tokio::test]
async fn a_locked_workspace_says_by_whom() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let id = site.api.given_workspace("acme", "web").await;
    site.api.given_workspace("acme", "api").await;
    site.api.admin().post(&format!("/api/v2/workspaces/{id}/actions/lock"), &json!({})).await.expect(StatusCode::OK);
    let page = site.admin().await.get(&format!("{PATH}?status=locked")).await;
    assert_eq!(names(&page), ["web"]);
    assert!(page.text.contains("Locked by admin"), "{}", page.text);
}

#[tokio::test]
async fn a_person_sees_only_the_workspaces_that_they_may_see() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let id = site.api.given_workspace("acme", "web").await;
    site.api.given_workspace("acme", "secret").await;
    let reader = site.member("jane", "acme", &id, "read").await;
    let page = reader.get(PATH).await;
    assert_eq!(names(&page), ["web"]);
    assert!(
        page.text.contains("id=\"new-workspace-refusal\"") && page.text.contains("You may not create workspaces"),
        "{}",
        page.text
    );
    let stranger = site.stranger("joe").await;
    assert_eq!(stranger.get(PATH).await.status, StatusCode::NOT_FOUND);
    let form =
        harness::browser::PageForm { action: PATH.into(), ..stranger.get("/app").await.form("/app/organizations") };
    assert_eq!(stranger.send(&form, &[("name", "mine")]).await.status, StatusCode::NOT_FOUND);
    assert_eq!(site.browser().get(PATH).await.status, StatusCode::SEE_OTHER, "who is not logged in, logs in first");
}

#[tokio::test]
async fn a_page_has_a_hundred_rows_and_htmx_gets_the_list_alone() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    for number in 0..101 {
        site.api.given_workspace("acme", &format!("workspace-{number:03}")).await;
    }
    let browser = site.admin().await;
    let page = browser.get(PATH).await;
    assert_eq!(names(&page).len(), 100);
    assert!(page.text.contains("1–100 of 101") && page.text.contains(r#"href="/app/acme/workspaces?page=2""#));
    let rest = browser.get(&format!("{PATH}?page=2")).await;
    assert_eq!(names(&rest), ["workspace-100"]);
    let part = browser.get_part(&format!("{PATH}?search=00")).await;
    assert_eq!(names(&part).len(), 11, "{}", part.text);
    assert!(part.text.trim_start().starts_with("<div id=\"list\" ") && !part.text.contains("<html"), "{}", part.text);
}
