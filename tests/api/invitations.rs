//! No one becomes a member without accepting, an unverified address opens nothing, and an invitation tells nothing
//! about accounts.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use jiff::SignedDuration;
use serde_json::{Value, json};
use taco_domain::membership::{Membership, MembershipStatus};

const INVITATIONS: &str = "/api/v2/account/invitations";

async fn invite(inviter: &Client, organization: &str, email: &str, teams: &[&str]) -> Answer {
    let teams: Vec<_> = teams.iter().map(|team| json!({ "type": "teams", "id": team })).collect();
    let body = json!({ "data": { "type": "organization-memberships", "attributes": { "email": email },
        "relationships": { "teams": { "data": teams } } } });
    let path = format!("/api/v2/organizations/{organization}/organization-memberships");
    inviter.post(&path, &body).await.expect(StatusCode::CREATED)
}

fn link_of(answer: &Answer) -> String {
    answer.attribute("invitation-link").as_str().expect("a link").to_owned()
}

async fn answer(client: &Client, action: &str, invitation: Value) -> Answer {
    let mut body = json!({ "data": { "type": "invitations" } });
    match invitation.as_str() {
        Some(id) if id.starts_with("ou-") => body["data"]["id"] = invitation,
        _ => body["data"]["attributes"] = json!({ "link": invitation }),
    }
    client.post(&format!("{INVITATIONS}/actions/{action}"), &body).await
}

async fn moves_to(client: &Client, email: &str) {
    let body = json!({ "data": { "type": "users", "attributes": { "email": email } } });
    client.patch("/api/v2/account/update", &body).await.expect(StatusCode::OK);
}

async fn sees(client: &Client, organization: &str) -> bool {
    client.get(&format!("/api/v2/organizations/{organization}")).await.status == StatusCode::OK
}

/// The organizations that the client is invited to.
async fn offers(client: &Client) -> Vec<String> {
    let listed = client.get(INVITATIONS).await.expect(StatusCode::OK).data();
    let names = listed.as_array().expect("a list").iter().map(|offer| offer["attributes"]["organization-name"].clone());
    names.map(|name| name.as_str().expect("a name").to_owned()).collect()
}

#[tokio::test]
async fn an_inviter_learns_nothing_and_the_invited_decides() {
    let server = ApiServer::start().await;
    let (alice_id, alice) = server.given_user("alice").await;
    let (_, eve) = server.given_user("eve").await;
    let (alice, eve) = (server.with_token(&alice), server.with_token(&eve));
    let body = json!({ "data": { "type": "organizations", "attributes": { "name": "evil", "email": "e@acme.test" } } });
    eve.post("/api/v2/organizations", &body).await.expect(StatusCode::CREATED);

    let of_account = invite(&eve, "evil", "Alice@acme.test", &[]).await;
    let of_nobody = invite(&eve, "evil", "nobody@acme.test", &[]).await;
    let mut shapes = Vec::new();
    for invited in [&of_account, &of_nobody] {
        let path = format!("/api/v2/organization-memberships/{}?include=user", invited.id());
        let read = eve.get(&path).await.expect(StatusCode::OK);
        for shown in [invited, &read] {
            assert_eq!(shown.attribute("status"), "invited");
            assert_eq!(shown.json().get("included"), None, "{}", shown.json());
            assert!(!String::from_utf8_lossy(&shown.bytes).contains(&alice_id.to_string()), "{}", shown.json());
        }
        assert_eq!(read.attribute("invitation-link"), Value::Null, "it is shown once");
        let attributes = read.data()["attributes"].as_object().expect("attributes").keys().cloned().collect::<Vec<_>>();
        let relations = read.data()["relationships"].as_object().expect("some").keys().cloned().collect::<Vec<_>>();
        shapes.push((attributes, relations, invited.data()["attributes"].as_object().map(serde_json::Map::len)));
    }
    assert_eq!(shapes[0], shapes[1]);
    let path = "/api/v2/organizations/evil/organization-memberships?include=user&filter[status]=invited";
    let listed = eve.get(path).await.expect(StatusCode::OK);
    assert_eq!(listed.data().as_array().map(Vec::len), Some(2));
    assert!(!String::from_utf8_lossy(&listed.bytes).contains(&alice_id.to_string()), "{}", listed.json());
    let again = json!({ "data": { "type": "organization-memberships", "attributes": { "email": "alice@acme.test" } } });
    eve.post("/api/v2/organizations/evil/organization-memberships", &again)
        .await
        .expect(StatusCode::UNPROCESSABLE_ENTITY);

    assert!(!sees(&alice, "evil").await, "nobody asked her");
    assert_eq!(alice.get("/api/v2/organizations").await.data(), json!([]));
    assert_eq!(offers(&alice).await, ["evil"]);
    let id = json!(of_account.id());
    answer(&alice, "decline", id.clone()).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(offers(&alice).await, [""; 0]);
    answer(&alice, "accept", id).await.expect(StatusCode::NOT_FOUND);

    let id = json!(invite(&eve, "evil", "alice@acme.test", &[]).await.id());
    for _ in 0..2 {
        answer(&alice, "accept", id.clone()).await.expect(StatusCode::OK);
    }
    assert!(sees(&alice, "evil").await);
    let path = format!("/api/v2/organization-memberships/{}?include=user", id.as_str().expect("an id"));
    let read = eve.get(&path).await.expect(StatusCode::OK);
    assert_eq!(read.attribute("status"), "active");
    assert_eq!(read.json()["included"][0]["id"], alice_id.to_string());
    let renew = format!("/api/v2/organization-memberships/{}/actions/renew-invitation", id.as_str().expect("an id"));
    eve.act(&renew).await.expect(StatusCode::CONFLICT);
}

#[tokio::test]
async fn an_address_that_nobody_verified_opens_nothing() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let (eve_id, eve) = server.given_user("eve").await;
    let eve = server.with_token(&eve);
    moves_to(&eve, "ceo@corp.test").await;
    let invited = invite(&server.admin(), "acme", "ceo@corp.test", &[]).await;
    let id = json!(invited.id());
    assert!(!sees(&eve, "acme").await);
    assert_eq!(offers(&eve).await, [""; 0]);
    for action in ["accept", "decline"] {
        answer(&eve, action, id.clone()).await.expect(StatusCode::NOT_FOUND);
    }

    let plane = &server.control_plane;
    let admin = server.admin_caller().await;
    assert!(plane.verify_email(&admin, eve_id, "eve@acme.test").await.is_err(), "that was the one before");
    assert!(plane.verify_email(&server.caller(&token_of(&server, "joe").await).await, eve_id, "x@y.z").await.is_err());
    assert_eq!(offers(&eve).await, [""; 0]);
    plane.verify_email(&admin, eve_id, "ceo@corp.test").await.expect("the address");
    assert_eq!(offers(&eve).await, ["acme"]);
    answer(&eve, "accept", id).await.expect(StatusCode::OK);
    assert!(sees(&eve, "acme").await);
}

async fn token_of(server: &ApiServer, name: &str) -> String {
    server.given_user(name).await.1
}

#[tokio::test]
async fn who_had_an_address_once_is_not_invited_with_it() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let bob = server.with_token(&token_of(&server, "bob").await);
    moves_to(&bob, "bob2@acme.test").await;
    let id = json!(invite(&server.admin(), "acme", "bob@acme.test", &[]).await.id());
    assert!(!sees(&bob, "acme").await);
    answer(&bob, "accept", id.clone()).await.expect(StatusCode::NOT_FOUND);
    // Someone who returns to an address need not be who left it.
    moves_to(&bob, "bob@acme.test").await;
    assert_eq!(offers(&bob).await, [""; 0]);
    answer(&bob, "accept", id.clone()).await.expect(StatusCode::NOT_FOUND);
    moves_to(&bob, "bob3@acme.test").await;

    let admin = server.admin_caller().await;
    let made = server.control_plane.create_user(&admin, "robert", "bob@acme.test", false).await;
    let robert = made.expect("a user").0;
    assert!(!offers(&bob).await.contains(&"acme".to_owned()));
    let admin = server.admin_caller().await;
    let token = server.control_plane.create_user_token(&admin, robert.id, Default::default()).await;
    let robert = server.with_token(&token.expect("a token").text.reveal());
    assert!(!sees(&robert, "acme").await, "he is asked first");
    answer(&robert, "accept", id).await.expect(StatusCode::OK);
    assert!(sees(&robert, "acme").await && !sees(&bob, "acme").await);
}

#[tokio::test]
async fn a_link_lets_one_in_once_while_it_is_new() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let team = json!({ "data": { "type": "teams", "attributes": { "name": "operators" } } });
    let team = admin.post("/api/v2/organizations/acme/teams", &team).await.expect(StatusCode::CREATED).id();
    let jane = server.with_token(&token_of(&server, "jane").await);
    let joe = server.with_token(&token_of(&server, "joe").await);

    let invited = invite(&admin, "acme", "someone@acme.test", &[&team]).await;
    let first = link_of(&invited);
    assert!(first.starts_with("http://taco.test/app/settings/invitations/taco_i_"), "{first}");
    server.pass(SignedDuration::from_hours(14 * 24));
    answer(&jane, "accept", json!(first)).await.expect(StatusCode::NOT_FOUND);
    let renew = format!("/api/v2/organization-memberships/{}/actions/renew-invitation", invited.id());
    let second = link_of(&admin.act(&renew).await.expect(StatusCode::OK));
    let third = link_of(&admin.act(&renew).await.expect(StatusCode::OK));
    for wrong in [&first, &second, &format!("{third}x"), "nonsense"] {
        let refused = answer(&jane, "accept", json!(wrong)).await.status;
        assert!([StatusCode::NOT_FOUND, StatusCode::UNPROCESSABLE_ENTITY].contains(&refused), "{wrong}: {refused}");
    }
    assert!(!sees(&jane, "acme").await);
    // The text alone means the same as the whole link.
    let text = third.rsplit('/').next().expect("a last part");
    answer(&jane, "accept", json!(text)).await.expect(StatusCode::OK);
    assert!(sees(&jane, "acme").await);
    let members = admin.get(&format!("/api/v2/teams/{team}?include=users")).await;
    assert_eq!(members.json()["included"][0]["attributes"]["username"], "jane");
    answer(&joe, "accept", json!(third)).await.expect(StatusCode::NOT_FOUND);
    assert!(!sees(&joe, "acme").await);

    let other = link_of(&invite(&admin, "acme", "other@acme.test", &[]).await);
    answer(&jane, "accept", json!(other)).await.expect(StatusCode::CONFLICT);
    answer(&joe, "decline", json!(other)).await.expect(StatusCode::NO_CONTENT);
    answer(&joe, "accept", json!(other)).await.expect(StatusCode::NOT_FOUND);
    // What is no user joins nothing.
    let issued = admin.post(&format!("/api/v2/teams/{team}/authentication-token"), &json!({})).await;
    let issued = issued.expect(StatusCode::CREATED).attribute("token");
    let token = server.with_token(issued.as_str().expect("a token"));
    let link = link_of(&invite(&admin, "acme", "third@acme.test", &[]).await);
    answer(&token, "accept", json!(link)).await.expect(StatusCode::NOT_FOUND);
    let unnamed = json!({ "data": { "type": "invitations" } });
    let unnamed = jane.post(&format!("{INVITATIONS}/actions/accept"), &unnamed).await;
    let (_, pointer) = unnamed.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
    assert_eq!(pointer.as_deref(), Some("/data/id"));
}

#[tokio::test]
async fn who_manages_members_gets_no_link_that_makes_owners_and_an_invited_owner_is_none() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let owners = admin.get("/api/v2/organizations/acme/teams?filter[names]=owners").await.data()[0]["id"].clone();
    let owners = owners.as_str().expect("an id");
    let stewards = json!({ "data": { "type": "teams", "attributes": {
        "name": "stewards", "organization-access": { "manage-membership": true } } } });
    let stewards = admin.post("/api/v2/organizations/acme/teams", &stewards).await.expect(StatusCode::CREATED).id();
    let steward = server.with_token(&token_of(&server, "steward").await);
    steward.accepts(&invite(&admin, "acme", "steward@acme.test", &[&stewards]).await.id()).await;

    let owner = invite(&admin, "acme", "owner@acme.test", &[owners]).await.id();
    let renew = |id: &str| format!("/api/v2/organization-memberships/{id}/actions/renew-invitation");
    steward.act(&renew(&owner)).await.expect(StatusCode::NOT_FOUND);
    let guest = invite(&steward, "acme", "guest@acme.test", &[]).await.id();
    steward.act(&renew(&guest)).await.expect(StatusCode::OK);

    let members = "/api/v2/organizations/acme/organization-memberships?filter[status]=active&q=admin";
    let first = admin.get(members).await.data()[0]["id"].as_str().expect("an id").to_owned();
    let refused = admin.delete(&format!("/api/v2/organization-memberships/{first}")).await;
    refused.expect(StatusCode::CONFLICT);
    admin.delete(&format!("/api/v2/organization-memberships/{owner}")).await.expect(StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn members_whom_an_earlier_version_let_in_stay() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let (jane_id, jane) = server.given_user("jane").await;
    let invited = invite(&server.admin(), "acme", "someone@acme.test", &[]).await.id();
    let id = invited.parse().expect("an id");
    let ledger = server.ledger().await;
    let intent = taco_ledger::Intent { actor: "test".into(), action: "test", request: None };
    let write = move |tx: &mut taco_ledger::Transaction<taco_domain::OrganizationState>| {
        let before = tx.state().memberships.get(&id).cloned().expect("the membership");
        // As they wrote it: with the id of the address's user, and nothing else.
        tx.put(&Membership { user: jane_id, status: MembershipStatus::Invited, link: None, ..before });
        Ok::<_, taco_control_plane::Error>(())
    };
    ledger.commit(intent, write).await.expect("a commit");
    assert!(sees(&server.with_token(&jane), "acme").await);
    let read = server.admin().get(&format!("/api/v2/organization-memberships/{invited}")).await;
    assert_eq!(read.attribute("status"), "active");
}
