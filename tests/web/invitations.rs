//! Someone is invited, and joins when they say so.

use harness::browser::{PASSWORD, Page};
use harness::page_server::PageServer;
use reqwest::StatusCode;

use crate::form_scene::exactly;

const MEMBERS: &str = "/app/acme/settings/members";

/// The path of the link that a page shows.
fn link(page: &Page) -> String {
    let rest = page.text.split("/app/settings/invitations/taco_i_").nth(1).and_then(|rest| rest.split('<').next());
    format!("/app/settings/invitations/taco_i_{}", rest.unwrap_or_else(|| panic!("no link:\n{}", page.text)))
}

fn owners(page: &Page) -> String {
    let choice = page
        .text
        .split("name=\"team\" value=\"")
        .skip(1)
        .find(|rest| rest.split("</label>").next().is_some_and(|label| label.contains(" owners")));
    choice.and_then(|choice| choice.split('"').next()).expect("a choice").to_owned()
}

#[tokio::test]
async fn a_link_is_shown_once_and_leads_through_the_login_to_a_question() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let admin = site.admin().await;
    let page = admin.get(MEMBERS).await;
    let (form, team) = (exactly(&page, MEMBERS), owners(&page));
    let made = admin.sends_and_follows(&form, &[("email", "someone@acme.test"), ("team", &team)]).await;
    let first = link(&made);
    assert!(!admin.get(MEMBERS).await.text.contains("taco_i_"), "it is shown once");
    let renew = made.text.split("action=\"").find_map(|rest| rest.split('"').next().filter(|to| to.ends_with("/link")));
    let renewed = admin.sends_and_follows(&made.form(renew.expect("a form")), &[]).await;
    let second = link(&renewed);
    assert_ne!(first, second);

    let eve = site.stranger("eve").await;
    assert!(!eve.get("/app/organizations").await.text.contains("You are invited"), "it is not her address");
    assert_eq!(eve.get(&first).await.status, StatusCode::NOT_FOUND, "the new one ended it");
    let browser = site.browser();
    let asked = browser.get(&second).await;
    assert!(asked.location().starts_with("/login?next="), "{}", asked.text);
    let login = browser.get(asked.location()).await;
    let done = browser.send(&login.form("/login"), &[("username", "eve"), ("password", PASSWORD)]).await;
    assert_eq!(done.location(), second);
    let page = browser.get(&second).await;
    assert!(page.text.contains("Join acme") && page.text.contains("someone@acme.test"), "{}", page.text);
    assert_eq!(browser.get("/app/acme").await.status, StatusCode::NOT_FOUND, "looking is not accepting");
    let done = browser.send(&page.form(&format!("{second}/accept")), &[]).await;
    assert_eq!(done.done(), "/app/acme: Welcome! You are now a member of acme.", "{}", done.text);
    assert_eq!(browser.get("/app/acme").await.status, StatusCode::OK);
    assert_eq!(browser.get(&second).await.status, StatusCode::NOT_FOUND);
    assert!(admin.get(MEMBERS).await.text.contains(">eve</td>"));
}

#[tokio::test]
async fn a_site_admin_vouches_for_the_address_that_they_saw() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let admin = site.admin().await;
    let jane = site.stranger("jane").await;
    let account = "/app/settings/account";
    let moves = async |email: &str| {
        let form = exactly(&jane.get(account).await, account);
        let done = jane.send(&form, &[("username", "jane"), ("email", email)]).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    };
    assert!(jane.get(account).await.text.contains("Verified by a site admin"));
    moves("jane@new.test").await;
    assert!(jane.get(account).await.text.contains("Not verified"));
    let page = admin.get(MEMBERS).await;
    let (form, team) = (exactly(&page, MEMBERS), owners(&page));
    admin.sends_and_follows(&form, &[("email", "jane@new.test"), ("team", &team)]).await;
    assert!(!jane.get("/app").await.text.contains("You are invited"));

    let page = admin.get("/app/admin/users?search=jane").await;
    let verify =
        page.text.split("action=\"").find_map(|rest| rest.split('"').next().filter(|to| to.ends_with("/verify-email")));
    let form = page.form(verify.expect("a form"));
    moves("jane@other.test").await;
    assert_eq!(admin.send(&form, &[]).await.status, StatusCode::CONFLICT, "she has another address by now");
    moves("jane@new.test").await;
    let done = admin.send(&form, &[]).await;
    assert_eq!(
        done.done(),
        "/app/admin/users: Email address of jane verified. Invitations to it are theirs.",
        "{}",
        done.text
    );
    let page = jane.get("/app").await;
    assert!(page.text.contains("You are invited") && page.text.contains("acme"), "{}", page.text);
    let decline =
        page.text.split("action=\"").find_map(|rest| rest.split('"').next().filter(|to| to.ends_with("/decline")));
    let done = jane.send(&page.form(decline.expect("a form")), &[]).await;
    assert_eq!(done.done(), "/app/organizations: Invitation declined.", "{}", done.text);
    assert!(!admin.get(MEMBERS).await.text.contains("jane@new.test"));
}
