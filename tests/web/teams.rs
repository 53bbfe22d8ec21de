//! Teams of an organization: created, filled, given access, deleted.

use harness::browser::{Browser, Page};
use harness::page_server::PageServer;
use reqwest::StatusCode;

use crate::form_scene::exactly;

const PATH: &str = "/app/acme/settings/teams";

/// Creates a team as a person does, and gives its address.
async fn created(admin: &Browser, name: &str, visibility: &str) -> String {
    let page = admin.get(&format!("{PATH}/new")).await;
    let done = admin.send(&exactly(&page, PATH), &[("name", name), ("visibility", visibility)]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    done.location().split('?').next().expect("an address").to_owned()
}

/// The value of an option with this text.
fn option(page: &Page, text: &str) -> String {
    let mut options = page.text.split("<option value=\"").skip(1);
    let option = options.find(|option| option.contains(&format!(">{text}</option>")));
    option.and_then(|option| option.split('"').next()).unwrap_or_else(|| panic!("no {text}: {}", page.text)).to_owned()
}

/// An address of a form, which contains this.
fn action(page: &Page, part: &str) -> String {
    let mut actions = page.text.split("action=\"").skip(1).filter_map(|rest| rest.split('"').next());
    actions.find(|action| action.contains(part)).unwrap_or_else(|| panic!("no {part}: {}", page.text)).to_owned()
}

#[tokio::test]
async fn a_team_is_created_renamed_and_deleted() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let admin = site.admin().await;
    let list = admin.get(PATH).await;
    assert!(list.text.contains(&format!("href=\"{PATH}/new\"")) && list.text.contains("Full access"));
    let form = exactly(&admin.get(&format!("{PATH}/new")).await, PATH);
    for name in ["", "a/b", "owners"] {
        let wrong = admin.send(&form, &[("name", name)]).await;
        assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY, "{name}");
        assert!(wrong.text.contains("id=\"error-name\""), "{name}: {}", wrong.text);
    }
    let team = created(&admin, "platform", "secret").await;
    let page = admin.get(&team).await;
    assert!(page.text.contains("Nobody is in this team yet."), "{}", page.text);
    let done = admin.send(&exactly(&page, &team), &[("name", "infra"), ("visibility", "organization")]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    let list = admin.get(PATH).await;
    assert!(list.text.contains(">infra</a>") && !list.text.contains("Secret"), "{}", list.text);
    assert!(admin.get(&format!("{PATH}?search=nothing")).await.text.contains("No teams match."));

    let page = admin.get(&team).await;
    assert!(page.text.contains("This cannot be undone."), "it asks first: {}", page.text);
    let done = admin.send(&exactly(&page, &format!("{team}/delete")), &[]).await;
    assert_eq!(done.done(), format!("{PATH}: Team infra deleted."), "{}", done.text);
    assert_eq!(admin.get(&team).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_owners_team_says_what_it_is_and_cannot_be_changed() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let admin = site.admin().await;
    let list = admin.get(PATH).await;
    let addresses = list.text.split("href=\"").filter_map(|rest| rest.split('"').next());
    let owners = addresses.filter(|address| address.starts_with(&format!("{PATH}/team-"))).last().expect("owners");
    let page = admin.get(owners).await;
    assert!(page.text.contains("Owners have full access to the organization."), "{}", page.text);
    assert!(page.text.contains("The last owner cannot be removed: add another owner first"), "{}", page.text);
    for part in ["/delete\"", "/rights\"", "/projects\""] {
        assert!(!page.text.contains(&format!("action=\"{owners}{part}")), "{part}: {}", page.text);
    }
}

#[tokio::test]
async fn members_join_and_leave_a_team_and_see_what_it_has_access_to() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let web = site.api.given_workspace("acme", "web").await;
    site.api.given_workspace("acme", "billing").await;
    let admin = site.admin().await;
    let jane = site.member("jane", "acme", &web, "read").await;
    let team = created(&admin, "accounting", "organization").await;
    assert_eq!(jane.get("/app/acme/workspaces/billing").await.status, StatusCode::NOT_FOUND);

    let page = admin.get(&team).await;
    let member = option(&page, "jane@acme.test");
    let done = admin.send(&exactly(&page, &format!("{team}/members")), &[("member", &member)]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    let page = admin.get(&team).await;
    assert!(page.text.contains("<strong>jane</strong>"), "{}", page.text);
    let fields = [("workspace", option(&page, "billing")), ("access", "read".to_owned())];
    let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
    let done = admin.send(&exactly(&page, &format!("{team}/workspaces")), &fields).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    assert_eq!(jane.get("/app/acme/workspaces/billing").await.status, StatusCode::OK);
    let settings = jane.get("/app/acme/workspaces/billing/settings").await;
    assert!(settings.text.contains("disabled"), "she may only read: {}", settings.text);

    let page = admin.get(&team).await;
    let access = action(&page, "/workspaces/tws-");
    let access = access.trim_end_matches("/remove");
    let done = admin.send(&exactly(&page, access), &[("access", "admin")]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    let done = admin.send(&exactly(&page, &format!("{access}/remove")), &[]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    assert_eq!(jane.get("/app/acme/workspaces/billing").await.status, StatusCode::NOT_FOUND);

    // A project brings all of its workspaces.
    let page = admin.get(&team).await;
    let fields = [("project", option(&page, "Default Project")), ("access", "write".to_owned())];
    let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
    let done = admin.send(&exactly(&page, &format!("{team}/projects")), &fields).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    assert_eq!(jane.get("/app/acme/workspaces/billing").await.status, StatusCode::OK);
    let page = admin.get(&team).await;
    let done = admin.send(&exactly(&page, &action(&page, "/members/remove")), &[("member", &member)]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    assert_eq!(jane.get("/app/acme/workspaces/billing").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn rights_in_the_organization_are_given_and_taken() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let web = site.api.given_workspace("acme", "web").await;
    let admin = site.admin().await;
    let jane = site.member("jane", "acme", &web, "read").await;
    let list = admin.get(&format!("{PATH}?search=team-of-jane")).await;
    let addresses = list.text.split("href=\"").filter_map(|rest| rest.split('"').next());
    let team = addresses.filter(|address| address.starts_with(&format!("{PATH}/team-"))).last().expect("her team");
    assert!(jane.get(PATH).await.text.contains(" disabled aria-describedby=\"no-team\""), "she may not create teams");
    let rights = format!("{team}/rights");
    let page = admin.get(team).await;
    let done = admin.send(&exactly(&page, &rights), &[("right", "manage-teams"), ("right", "read-projects")]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    assert!(!jane.get(PATH).await.text.contains(" disabled aria-describedby=\"no-team\""), "now she may");
    let page = admin.get(team).await;
    assert!(page.text.contains("value=\"manage-teams\" checked"), "{}", page.text);
    // She may not give a team more than she has.
    let refused = jane.send(&exactly(&jane.get(team).await, &rights), &[("right", "manage-workspaces")]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    let done = admin.send(&exactly(&page, &rights), &[]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    assert!(jane.get(PATH).await.text.contains(" disabled aria-describedby=\"no-team\""));
}

#[tokio::test]
async fn a_token_of_a_team_is_shown_once_and_revoked() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let admin = site.admin().await;
    let team = created(&admin, "pipeline", "organization").await;
    let form = exactly(&admin.get(&team).await, &format!("{team}/tokens"));
    let done = admin.sends_and_follows(&form, &[("description", "deploys"), ("days", "30")]).await;
    assert!(done.text.contains("data-copy=\"team-token\""), "{}", done.text);
    let token = done.text.split("<code id=\"team-token\">").nth(1).and_then(|rest| rest.split('<').next());
    let token = token.expect("a token").to_owned();
    let again = admin.send(&form, &[("description", "deploys"), ("days", "30")]).await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY, "the description is taken: {}", again.text);
    let page = admin.get(&team).await;
    assert!(page.text.contains("deploys") && !page.text.contains(&token), "{}", page.text);
    let teams = "/api/v2/organizations/acme/teams";
    site.api.with_token(&token).get(teams).await.expect(StatusCode::OK);
    let revoke = action(&page, "/tokens/at-");
    let done = admin.send(&exactly(&page, &revoke), &[]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    site.api.with_token(&token).get(teams).await.expect(StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_secret_team_is_hidden_from_others() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let web = site.api.given_workspace("acme", "web").await;
    let admin = site.admin().await;
    let jane = site.member("jane", "acme", &web, "admin").await;
    let secret = created(&admin, "auditors", "secret").await;
    let known = created(&admin, "platform", "organization").await;
    let list = jane.get(PATH).await;
    assert!(list.text.contains("platform") && !list.text.contains("auditors"), "{}", list.text);
    assert_eq!(jane.get(&known).await.status, StatusCode::OK);
    // The same answer as for a team that does not exist.
    let missing = format!("{PATH}/{}x", &secret[secret.rfind('/').expect("a path") + 1..secret.len() - 1]);
    let (hidden, missing) = (jane.get(&secret).await, jane.get(&missing).await);
    assert_eq!((hidden.status, missing.status), (StatusCode::FORBIDDEN, StatusCode::FORBIDDEN));
    assert!(!hidden.text.contains("auditors"), "{}", hidden.text);
}
