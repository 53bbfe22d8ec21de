use std::time::Duration;

use jiff::SignedDuration;
use taco_control_plane::{NewToken, OrganizationTokenKind};
use taco_domain::permission::Actor;

use crate::harness::{SECRET, SITE_TOKEN, TestSite, kind};

#[tokio::test]
async fn a_token_opens_as_its_user_on_every_server() {
    let site = TestSite::start().await;
    let (jane, token) = site.given_user("jane").await;
    let there = site.another_server().await;
    let caller = there.authenticate(&token, Default::default()).await.expect("a caller");
    assert!(matches!(caller.actor, Actor::User { id, site_admin: false, .. } if id == jane.id));
    assert_eq!(there.account(&caller).await.expect("an account").username, jane.username);
}

#[tokio::test]
async fn nothing_else_opens() {
    let site = TestSite::start().await;
    let (_, token) = site.given_user("jane").await;
    let mut mistyped = token.clone();
    mistyped.replace_range(token.len() - 1.., if token.ends_with('a') { "b" } else { "a" });
    for text in ["", "bad", &mistyped, "taco_u_", &format!("{token} "), "a text that the operator chos"] {
        assert_eq!(kind(site.with_token(text).await), "unauthorized", "{text:?}");
    }
}

#[tokio::test]
async fn an_expired_token_says_when() {
    let site = TestSite::start().await;
    let (jane, _) = site.given_user("jane").await;
    let admin = site.admin().await;
    let end = site.now().checked_add(SignedDuration::from_hours(1)).expect("a timestamp");
    let new = NewToken { expires_at: Some(end), ..NewToken::default() };
    let token = site.control_plane.create_user_token(&admin, jane.id, new.clone()).await.expect("a token");
    assert_eq!(token.token.expires_at, Some(end));
    assert_eq!(kind(site.with_token(&token.text.reveal()).await), "ok");
    site.pass(SignedDuration::from_hours(1));
    let error = site.with_token(&token.text.reveal()).await.expect_err("expired");
    assert_eq!(error.to_string(), "the token expired at 2026-01-01T13:00:00Z");
    assert_eq!(kind(site.control_plane.create_user_token(&admin, jane.id, new).await), "invalid");
}

#[tokio::test]
async fn a_revoked_token_and_a_suspended_user_open_nothing() {
    let site = TestSite::start().await;
    let (jane, token) = site.given_user("jane").await;
    let caller = site.with_token(&token).await.expect("a caller");
    let tokens = site.control_plane.user_tokens(&caller, jane.id).await.expect("tokens");
    assert_eq!(tokens.len(), 1);

    let admin = site.admin().await;
    site.control_plane.suspend_user(&admin, jane.id, true).await.expect("suspended");
    assert_eq!(kind(site.with_token(&token).await), "unauthorized");
    site.control_plane.suspend_user(&admin, jane.id, false).await.expect("back");
    assert_eq!(kind(site.with_token(&token).await), "ok");

    site.control_plane.revoke_token(&caller, tokens[0].id).await.expect("revoked");
    assert_eq!(kind(site.with_token(&token).await), "unauthorized");
    let admin = site.admin().await;
    assert_eq!(kind(site.control_plane.token_with_id(&admin, tokens[0].id).await), "not found");
}

#[tokio::test]
async fn a_users_tokens_are_nobody_elses_business() {
    let site = TestSite::start().await;
    let (jane, token) = site.given_user("jane").await;
    let (_, joe) = site.given_user("joe").await;
    let tokens = site.control_plane.user_tokens(&site.with_token(&token).await.expect("jane"), jane.id).await;
    let id = tokens.expect("tokens")[0].id;
    let joe = site.with_token(&joe).await.expect("joe");
    let control_plane = &site.control_plane;
    assert_eq!(kind(control_plane.create_user_token(&joe, jane.id, NewToken::default()).await), "not found");
    assert_eq!(kind(control_plane.user_tokens(&joe, jane.id).await), "not found");
    assert_eq!(kind(control_plane.token_with_id(&joe, id).await), "not found");
    assert_eq!(kind(control_plane.revoke_token(&joe, id).await), "not found");
    assert_eq!(kind(site.with_token(&token).await), "ok");
}

#[tokio::test]
async fn an_organization_has_one_token_of_each_kind() {
    let site = TestSite::start().await;
    let organization = site.given_organization(SITE_TOKEN, "acme").await.organization.id;
    let admin = site.admin().await;
    let control_plane = &site.control_plane;
    for (kind_of_token, actor) in [
        (OrganizationTokenKind::Organization, Actor::Organization(organization)),
        (OrganizationTokenKind::AuditTrail, Actor::AuditTrail(organization)),
    ] {
        let create = || control_plane.create_organization_token(&admin, "acme", kind_of_token, NewToken::default());
        let first = create().await.expect("a token");
        let second = create().await.expect("another in its place");
        // Before it is used, which is noted on the side.
        let read = control_plane.organization_token(&admin, "acme", kind_of_token).await.expect("a token");
        assert_eq!(read, second.token);
        assert_eq!(control_plane.token_with_id(&admin, read.id).await.expect("by id"), read);
        assert_eq!(kind(site.with_token(&first.text.reveal()).await), "unauthorized");
        assert_eq!(site.with_token(&second.text.reveal()).await.expect("a caller").actor, actor);
        control_plane.delete_organization_token(&admin, "acme", kind_of_token).await.expect("deleted");
        assert_eq!(kind(control_plane.delete_organization_token(&admin, "acme", kind_of_token).await), "not found");
        assert_eq!(kind(site.with_token(&second.text.reveal()).await), "unauthorized");
    }
}

#[tokio::test]
async fn an_organizations_token_cannot_make_itself_another() {
    let site = TestSite::start().await;
    site.given_organization(SITE_TOKEN, "acme").await;
    let admin = site.admin().await;
    let control_plane = &site.control_plane;
    let create = |caller| {
        let kind = OrganizationTokenKind::Organization;
        async move { control_plane.create_organization_token(caller, "acme", kind, NewToken::default()).await }
    };
    let token = create(&admin).await.expect("a token");
    let caller = site.with_token(&token.text.reveal()).await.expect("a caller");
    assert_eq!(kind(create(&caller).await), "denied");
    assert_eq!(kind(control_plane.account(&caller).await), "not found");
}

#[tokio::test]
async fn a_team_has_one_token_without_and_many_with_a_description() {
    let site = TestSite::start().await;
    let (_, jane) = site.given_user("jane").await;
    let team = site.given_organization(&jane, "acme").await.organization.owners_team;
    let caller = site.with_token(&jane).await.expect("a caller");
    let control_plane = &site.control_plane;
    let create = |description: Option<&str>| {
        let new = NewToken { description: description.map(Into::into), expires_at: None };
        let caller = &caller;
        async move { control_plane.create_team_token(caller, team, new).await }
    };
    let first = create(None).await.expect("a token");
    create(Some("ci")).await.expect("another");
    assert_eq!(kind(create(Some("ci")).await), "invalid");
    let second = create(None).await.expect("in place of the first");
    assert_eq!(kind(site.with_token(&first.text.reveal()).await), "unauthorized");
    assert_eq!(control_plane.team_token(&caller, team).await.expect("a token"), second.token);
    assert_eq!(control_plane.team_tokens(&caller, team).await.expect("tokens").len(), 2);
    let (_, joe) = site.given_user("joe").await;
    let stranger = site.with_token(&joe).await.expect("a caller");
    assert_eq!(kind(control_plane.team_tokens(&stranger, team).await), "not found");
}

#[tokio::test]
async fn tokens_survive_a_new_master_key_and_a_wrong_one_is_refused() {
    let site = TestSite::start().await;
    let (_, token) = site.given_user("jane").await;
    let new = "another master key with more than enough characters";
    assert_eq!(kind(site.server_with_secrets(&[new]).await), "sealed");
    let rotating = site.server_with_secrets(&[new, SECRET]).await.expect("both keys");
    assert_eq!(kind(rotating.authenticate(&token, Default::default()).await), "ok");
    let rotated = site.server_with_secrets(&[new]).await.expect("the new key alone");
    assert_eq!(kind(rotated.authenticate(&token, Default::default()).await), "ok");
}

#[tokio::test]
async fn uses_are_remembered_once_an_hour() {
    let site = TestSite::start().await;
    let (jane, token) = site.given_user("jane").await;
    let last_use = || async {
        let admin = site.admin().await;
        site.control_plane.user_tokens(&admin, jane.id).await.expect("tokens")[0].last_used_at
    };
    let use_it = || async {
        for _ in 0..20 {
            site.with_token(&token).await.expect("a caller");
        }
    };
    let first = site.now();
    use_it().await;
    while last_use().await.is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(last_use().await, Some(first));
    site.pass(SignedDuration::from_mins(59));
    use_it().await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(last_use().await, Some(first));
    site.pass(SignedDuration::from_mins(1));
    use_it().await;
    while last_use().await == Some(first) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
