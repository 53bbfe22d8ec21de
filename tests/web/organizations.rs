use harness::page_server::PageServer;
use reqwest::StatusCode;

const PATH: &str = "/app/organizations";

#[tokio::test]
async fn the_first_organization_is_made_on_the_start_page_which_then_leads_to_it() {
    let site = PageServer::start().await;
    let browser = site.admin().await;
    let form = browser.get("/app").await.form(PATH);
    let made = browser.send(&form, &[("name", "acme"), ("email", "ops@example.com")]).await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.text);
    assert!(made.location().starts_with("/app/acme"), "{}", made.location());
    let page = browser.get(made.location()).await;
    assert!(page.text.contains("Organization acme created."), "{}", page.text);

    let start = browser.get("/app").await;
    assert_eq!(start.status, StatusCode::SEE_OTHER);
    assert!(start.location().starts_with("/app/acme"), "the only one is a shortcut: {}", start.location());
    assert!(browser.get(PATH).await.text.contains("ops@example.com"), "the list is there nevertheless");

    browser.send(&form, &[("name", "umbrella"), ("email", "ops@example.com")]).await;
    assert_eq!(browser.get("/app").await.location(), PATH, "of two, one chooses");
    let found = browser.get(&format!("{PATH}?search=umb")).await;
    assert!(found.text.contains("umbrella") && !found.text.contains("acme"), "{}", found.text);
    assert!(browser.get(&format!("{PATH}?search=%3Cb%3E")).await.text.contains("“&#60;b&#62;”"));
}

#[tokio::test]
async fn a_mistake_stands_beside_its_field_and_the_input_is_kept() {
    let site = PageServer::start().await;
    let browser = site.admin().await;
    let form = browser.get("/app").await.form(PATH);
    for (name, email, error, described) in [
        ("a <b>", "ops@example.com", "Name may only contain", "error-name"),
        ("settings", "ops@example.com", "is reserved", "error-name"),
        ("acme", "nobody", "Email", "error-email"),
    ] {
        let page = browser.send(&form, &[("name", name), ("email", email)]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{name} {email}");
        assert!(page.text.contains(error), "{}", page.text);
        assert!(page.text.contains("<h2 id=\"log-in\">"), "the first steps are still there: {}", page.text);
        let expected = [format!("id=\"{described}\""), format!("value=\"{email}\"")];
        assert!(expected.iter().all(|part| page.text.contains(part)), "{}", page.text);
    }
    assert_eq!(browser.get("/app").await.status, StatusCode::OK, "nothing was made");

    let list = browser.get(PATH).await;
    assert!(list.text.contains("popovertarget=\"new-organization\""), "{}", list.text);
    let page = browser.send(&list.form(PATH), &[("name", "a!"), ("email", "ops@example.com")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.text.contains("<h1>Organizations</h1>") && page.text.contains("error-name"), "{}", page.text);
    assert!(!page.text.contains("popover role=\"dialog\" id=\"new-organization\""), "the form stands open");
}

#[tokio::test]
async fn a_form_that_is_not_ours_makes_nothing() {
    let site = PageServer::start().await;
    let browser = site.admin().await;
    let form = browser.get("/app").await.form(PATH);
    let fields = [("name", "acme"), ("email", "ops@example.com")];
    let elsewhere = browser.send_from(&form, &fields, &[("sec-fetch-site", "cross-site")]).await;
    assert_eq!(elsewhere.status, StatusCode::FORBIDDEN);
    let mut unproven = form.clone();
    unproven.hidden.clear();
    assert_eq!(browser.send(&unproven, &fields).await.status, StatusCode::FORBIDDEN);
    assert_eq!(browser.get("/app").await.status, StatusCode::OK, "nothing was made");
}
