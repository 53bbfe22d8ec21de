//! Members of an organization.

use harness::browser::{Page, PageForm};
use harness::page_server::PageServer;
use reqwest::StatusCode;
use serde_json::json;

use crate::form_scene::exactly;

const PATH: &str = "/app/acme/settings/members";

/// The line of a member.
fn row(page: &Page, email: &str) -> String {
    let mut rows = page.text.split("<tr><th scope=\"row\">").skip(1);
    let row = rows.find(|row| row.starts_with(email)).and_then(|row| row.split("</tr>").next());
    row.unwrap_or_else(|| panic!("no {email}:\n{}", page.text)).to_owned()
}

/// The team that a box of this page names.
pub(crate) fn team(page: &Page, name: &str) -> String {
    let mut boxes = page.text.split("name=\"team\" value=\"").skip(1);
    let found = boxes.find(|text| text.split('>').nth(1).is_some_and(|rest| rest.trim().starts_with(name)));
    found.and_then(|text| text.split('"').next()).unwrap_or_else(|| panic!("no {name}: {}", page.text)).to_owned()
}

#[tokio::test]
async fn members_are_invited_into_a_team_found_and_removed() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let admin = site.admin().await;
    assert!(admin.get("/app/acme/settings").await.text.contains(&format!("<a href=\"{PATH}\">")));
    let eve = site.stranger("eve").await;
    assert_eq!(eve.get(PATH).await.status, StatusCode::NOT_FOUND);
    let page = admin.get(PATH).await;
    let (form, owners) = (exactly(&page, PATH), team(&page, "owners"));
    for (email, team, field) in [("nonsense", owners.as_str(), "email"), ("eve@acme.test", "mistyped", "teams")] {
        let wrong = admin.send(&form, &[("email", email), ("team", team)]).await;
        assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY, "{email}");
        for part in [format!("id=\"error-{field}\""), format!("value=\"{email}\"")] {
            assert!(wrong.text.contains(&part), "{part} is missing:\n{}", wrong.text);
        }
    }
    for email in ["eve@acme.test", "later@acme.test"] {
        let done = admin.sends_and_follows(&form, &[("email", email), ("team", &owners)]).await;
        assert!(done.text.contains("/app/settings/invitations/taco_i_"), "{}", done.text);
    }
    let page = admin.get(PATH).await;
    for email in ["eve@acme.test", "later@acme.test"] {
        assert!(row(&page, email).contains("invited, not accepted yet"), "{}", page.text);
    }
    let offered = eve.get("/app").await;
    let accept =
        offered.text.split("action=\"").find_map(|rest| rest.split('"').next().filter(|to| to.ends_with("/accept")));
    let done = eve.send(&offered.form(accept.expect("an invitation")), &[]).await;
    assert_eq!(done.done(), "/app/acme: Welcome! You are now a member of acme.", "{}", done.text);
    let page = admin.get(PATH).await;
    let known = row(&page, "eve@acme.test");
    assert!(known.contains(">eve</td>") && known.contains(">owners</td>"), "{known}");
    assert_eq!(eve.get(PATH).await.status, StatusCode::OK);
    for (search, found) in [("EVE", true), ("ve@", true), ("later", false)] {
        let page = admin.get(&format!("{PATH}?search={search}")).await;
        assert_eq!(page.text.contains("eve@acme.test"), found, "{search}");
    }
    assert!(admin.get(&format!("{PATH}?search=nobody")).await.text.contains("No members match."));

    assert!(known.contains("They lose access to this organization at once."), "it asks first: {known}");
    let action = known.split("action=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a form").to_owned();
    let done = admin.send(&PageForm { action, ..form }, &[]).await;
    assert_eq!(done.done(), format!("{PATH}: Member removed."), "{}", done.text);
    assert_eq!(eve.get(PATH).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn all_members_can_be_seen_page_by_page() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let admin = site.admin().await;
    let (caller, control_plane) = (site.api.admin_caller().await, &site.api.control_plane);
    for number in 0..105 {
        let email = format!("member-{number:03}@acme.test");
        control_plane.create_invitation(&caller, "acme", &email, Default::default()).await.expect("a member");
    }
    let page = admin.get(PATH).await;
    assert!(page.text.contains("member-000@") && !page.text.contains("member-104@"));
    let next =
        page.text.split("href=\"").find_map(|rest| rest.split('"').next().filter(|next| next.contains("page=2")));
    let next = admin.get(&next.expect("a next page").replace("&#38;", "&")).await;
    assert!(row(&next, "member-104@acme.test").contains("Remove"), "{}", next.text);
    assert!(!next.text.contains("member-000@"));
    let found = admin.get(&format!("{PATH}?search=member-104")).await;
    assert!(row(&found, "member-104@acme.test").contains("Remove") && !found.text.contains("member-000@"));
}

#[tokio::test]
async fn a_secret_team_is_named_to_its_members_and_to_those_who_manage_teams() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let workspace = site.api.given_workspace("acme", "web").await;
    let admin = site.admin().await;
    let jane = site.member("jane", "acme", &workspace, "read").await;
    let joe = site.member("joe", "acme", &workspace, "admin").await;
    let teams = "/api/v2/organizations/acme/teams";
    let body = json!({ "data": { "type": "teams", "attributes": { "name": "known", "visibility": "organization" } } });
    let known = site.api.admin().post(teams, &body).await.expect(StatusCode::CREATED).id();
    let body = json!({ "data": [{ "type": "users", "id": "jane" }] });
    let path = format!("/api/v2/teams/{known}/relationships/users");
    site.api.admin().post(&path, &body).await.expect(StatusCode::NO_CONTENT);

    let seen = row(&admin.get(PATH).await, "jane@acme.test");
    assert!(seen.contains("team-of-jane") && seen.contains("known"), "{seen}");
    assert!(row(&jane.get(PATH).await, "jane@acme.test").contains("team-of-jane"), "her own");
    let page = joe.get(PATH).await;
    assert!(!page.text.contains("team-of-jane") && page.text.contains("team-of-joe"), "{}", page.text);
    assert!(row(&page, "jane@acme.test").contains(">known</td>"), "{}", page.text);
    assert!(!row(&page, "jane@acme.test").contains("Remove"), "he manages no members");
    // The same where it says who may do what with a workspace.
    let settings = "/app/acme/workspaces/web/settings/teams";
    assert!(admin.get(settings).await.text.contains("team-of-jane"));
    let page = joe.get(settings).await;
    assert!(!page.text.contains("team-of-jane") && page.text.contains("a secret team, team-"), "{}", page.text);
}

#[tokio::test]
async fn who_manages_members_does_not_remove_owners() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let workspace = site.api.given_workspace("acme", "web").await;
    let jane = site.member("jane", "acme", &workspace, "read").await;
    site.member("joe", "acme", &workspace, "read").await;
    let api = site.api.admin();
    let teams = api.get("/api/v2/organizations/acme/teams?filter[names]=team-of-jane").await.data();
    let team = teams[0]["id"].as_str().expect("a team").to_owned();
    let access = json!({ "organization-access": { "manage-membership": true } });
    let body = json!({ "data": { "type": "teams", "attributes": access } });
    api.patch(&format!("/api/v2/teams/{team}"), &body).await.expect(StatusCode::OK);

    let page = jane.get(PATH).await;
    assert!(row(&page, "joe@acme.test").contains("Remove"), "{}", page.text);
    assert_eq!(page.text.matches(">Remove<span").count(), 2, "hers and his, and not the owner's: {}", page.text);
    assert!(page.text.contains("choose the organization"), "{}", page.text);
}

#[tokio::test]
async fn someone_is_invited_without_a_team_and_gets_teams_later() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let admin = site.admin().await;
    let eve = site.stranger("eve").await;
    let page = admin.get(PATH).await;
    let done = admin.sends_and_follows(&exactly(&page, PATH), &[("email", "eve@acme.test")]).await;
    assert!(done.text.contains("data-copy=\"invitation-link\""), "{}", done.text);
    let link = done.text.split("<code id=\"invitation-link\">").nth(1).and_then(|rest| rest.split('<').next());
    let link = link.and_then(|link| link.find("/app/").map(|start| link[start..].to_owned())).expect("a link");
    let offered = eve.get(&link).await;
    let accept = format!("{link}/accept");
    assert_eq!(eve.send(&exactly(&offered, &accept), &[]).await.status, StatusCode::SEE_OTHER);
    assert!(row(&admin.get(PATH).await, "eve@acme.test").contains("no teams that you can see"));

    let known = row(&admin.get(PATH).await, "eve@acme.test");
    let member = known.split("href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a link").to_owned();
    let page = admin.get(&member).await;
    let (form, owners) = (exactly(&page, &format!("{member}/teams")), team(&page, "owners"));
    assert_eq!(eve.get(&member).await.status, StatusCode::OK);
    let refused = eve.send(&exactly(&eve.get(&member).await, &format!("{member}/teams")), &[("team", &owners)]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    let done = admin.send(&form, &[("team", &owners)]).await;
    assert_eq!(done.done(), format!("{PATH}: Teams of the member saved."), "{}", done.text);
    assert!(row(&admin.get(PATH).await, "eve@acme.test").contains(">owners</td>"));
    let done = admin.send(&form, &[]).await;
    assert_eq!(done.done(), format!("{PATH}: Teams of the member saved."), "no team is fine: {}", done.text);
    assert!(row(&admin.get(PATH).await, "eve@acme.test").contains("no teams that you can see"));
}

#[tokio::test]
async fn the_last_owner_cannot_be_removed_and_the_button_says_why() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let admin = site.admin().await;
    let page = admin.get(PATH).await;
    assert!(page.text.contains("<button class=\"quiet\" disabled"), "{}", page.text);
    assert!(page.text.contains("The last owner cannot be removed: add another owner first"), "{}", page.text);
    assert!(!page.text.contains("/remove\""), "{}", page.text);
    // Nor can they leave the owners by the form of their teams.
    let address = page.text.split("href=\"").filter_map(|rest| rest.split('"').next());
    let member =
        address.filter(|address| address.starts_with(&format!("{PATH}/"))).last().expect("a member").to_owned();
    let form = exactly(&admin.get(&member).await, &format!("{member}/teams"));
    let refused = admin.send(&form, &[]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
    assert!(refused.text.contains("last owner"), "{}", refused.text);
}
