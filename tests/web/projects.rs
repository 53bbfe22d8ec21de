use harness::browser::PageForm;
use harness::page_server::PageServer;
use reqwest::StatusCode;

const PATH: &str = "/app/acme/projects";

#[tokio::test]
async fn a_project_is_made_changed_and_deleted() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let browser = site.admin().await;
    let form = browser.get(PATH).await.form(PATH);
    let made = browser.send(&form, &[("name", "Web Shop"), ("description", "what <b>sells</b>")]).await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.text);
    let address = made.location().split('?').next().expect("a first part").to_owned();
    let page = browser.get(&address).await;
    for part in ["Web Shop", "what &#60;b&#62;sells&#60;/b&#62;", "No workspaces yet."] {
        assert!(page.text.contains(part), "{part} is missing:\n{}", page.text);
    }
    let saved = browser.send(&page.form(&address), &[("name", "Shop"), ("description", "")]).await;
    assert_eq!(saved.done(), format!("{address}: Project Shop saved."));
    let found = browser.get(&format!("{PATH}?search=sho")).await;
    assert!(found.text.contains(">Shop</a>") && !found.text.contains(">Default Project</a>"), "{}", found.text);

    let page = browser.get(&address).await;
    assert!(page.text.contains("Delete project Shop?"), "it asks first: {}", page.text);
    let delete = page.form(&format!("{address}/delete"));
    assert_eq!(browser.send(&delete, &[]).await.done(), format!("{PATH}: Project Shop deleted."));
    assert_eq!(browser.get(&address).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_project_with_workspaces_stays_and_says_why() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let browser = site.admin().await;
    let form = browser.get(PATH).await.form(PATH);
    let made = browser.send(&form, &[("name", "Shop")]).await;
    let address = made.location().split('?').next().expect("a first part").to_owned();
    let project = address.rsplit('/').next().expect("a last part");
    let list = browser.get(&format!("/app/acme/workspaces?project={project}")).await;
    let create = list.form("/app/acme/workspaces");
    browser.send(&create, &[("name", "web"), ("project", project)]).await;

    let page = browser.get(&address).await;
    assert!(page.text.contains(r#"<a href="/app/acme/workspaces/web">web</a>"#), "{}", page.text);
    assert!(page.text.contains("The project has 1 workspaces: move or delete them first"), "{}", page.text);
    assert!(!page.text.contains(&format!("action=\"{address}/delete\"")), "nothing to press: {}", page.text);
    let delete = PageForm { action: format!("{address}/delete"), ..page.form(&address) };
    assert_eq!(browser.send(&delete, &[]).await.status, StatusCode::CONFLICT);
}

#[tokio::test]
async fn mistakes_and_missing_rights_are_told() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let workspace = site.api.given_workspace("acme", "web").await;
    let browser = site.admin().await;
    let form = browser.get(PATH).await.form(PATH);
    for (name, error) in [("a/b", "Name may only contain"), ("default project", "has already been taken")] {
        let page = browser.send(&form, &[("name", name)]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{name}");
        assert!(page.text.contains(error) && page.text.contains(&format!("value=\"{name}\"")), "{}", page.text);
    }
    let unproven = PageForm { hidden: Vec::new(), ..form };
    assert_eq!(browser.send(&unproven, &[("name", "Shop")]).await.status, StatusCode::FORBIDDEN);
    for path in [format!("{PATH}/nonsense"), format!("{PATH}/prj-0000000000000000")] {
        assert_eq!(browser.get(&path).await.status, StatusCode::NOT_FOUND, "{path}");
    }

    let reader = site.member("jane", "acme", &workspace, "read").await;
    let page = reader.get(PATH).await;
    assert!(page.text.contains("You may not create projects"), "{}", page.text);
    let form = PageForm { action: PATH.into(), hidden: page.form("/logout").hidden };
    assert_eq!(reader.send(&form, &[("name", "Mine")]).await.status, StatusCode::FORBIDDEN);
    assert_eq!(site.stranger("eve").await.get(PATH).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_projects_tags_are_lines_and_mistakes_stand_beside_them() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let browser = site.admin().await;
    let form = browser.get(PATH).await.form(PATH);
    let made = browser.send(&form, &[("name", "Shop"), ("tags", "team = web\r\nprod\r\n")]).await;
    let address = made.location().split('?').next().expect("a first part").to_owned();
    let project = address.rsplit('/').next().expect("a last part").to_owned();
    let page = browser.get(&address).await;
    assert!(page.text.contains(">\nprod\nteam=web</textarea>"), "{}", page.text);

    let form = page.form(&address);
    let wrong = browser.send(&form, &[("name", "Shop"), ("tags", "prod\r\n<b>")]).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    for part in ["id=\"error-tags\">Key may only contain", "prod\r\n&#60;b&#62;</textarea>"] {
        assert!(wrong.text.contains(part), "{part} is missing:\n{}", wrong.text);
    }
    let saved = browser.send(&form, &[("name", "Shop"), ("tags", "team=shop")]).await;
    assert_eq!(saved.done(), format!("{address}: Project Shop saved."), "{}", saved.text);
    let bindings = site.api.admin().get(&format!("/api/v2/projects/{project}/tag-bindings")).await;
    let bindings = bindings.expect(StatusCode::OK).json();
    let found: Vec<_> = bindings["data"].as_array().expect("a list").iter().map(|tag| &tag["attributes"]).collect();
    assert_eq!(found, [&serde_json::json!({ "key": "team", "value": "shop" })], "the others are gone");
}
