use futures::future::join_all;
use taco_control_plane::{NewToken, OrganizationTokenKind, PageRequest};
use taco_domain::execution::ExecutionMode;
use taco_domain::permission::Action;
use taco_domain::team::OWNERS;

use crate::harness::{SITE_TOKEN, TestSite, kind, named, patch};

#[tokio::test]
async fn a_new_organization_has_an_owner_a_team_and_a_project() {
    let site = TestSite::start().await;
    let (jane, token) = site.given_user("jane").await;
    let created = site.given_organization(&token, "acme").await;
    assert_eq!(created.name, "acme");
    assert_eq!(created.organization.default_execution.mode, ExecutionMode::Remote);
    let state = site.control_plane.state(&created.org);
    let project = state.projects.get(&created.organization.default_project).expect("a project");
    assert_eq!(project.name.as_str(), "Default Project");
    let team = state.teams.get(&created.organization.owners_team).expect("a team");
    assert_eq!(team.name.as_str(), OWNERS);
    assert!(state.membership_of(&jane.id).expect("a member").teams.contains(&team.id));

    let caller = site.with_token(&token).await.expect("a caller");
    let read = site.control_plane.organization(&caller, "acme").await.expect("an organization");
    assert_eq!(read.organization, created.organization);
    assert!(caller.may(Action::DeleteOrganization, read.org.resource()).allowed);
}

#[tokio::test]
async fn a_server_that_was_not_there_begins_the_ledger_alike() {
    let site = TestSite::start().await;
    let (_, token) = site.given_user("jane").await;
    let here = site.given_organization(&token, "acme").await;
    let there = site.another_server().await;
    let caller = there.authenticate(&token, Default::default()).await.expect("a caller");
    let read = there.organization(&caller, "acme").await.expect("an organization");
    assert_eq!(read.organization, here.organization);
    assert_eq!(read.org.moment(), here.org.moment());
}

#[tokio::test]
async fn bad_attributes_are_refused_by_name() {
    let site = TestSite::start().await;
    site.given_organization(SITE_TOKEN, "acme").await;
    for (json, expected) in [
        ("{}", "Name can't be blank"),
        (r#"{"name":"good"}"#, "Email can't be blank"),
        (r#"{"name":"a b","email":"a@b.c"}"#, "Name may only contain"),
        (r#"{"name":"acme","email":"a@b.c"}"#, "Name has already been taken"),
        (r#"{"name":"ACME","email":"a@b.c"}"#, "Name has already been taken"),
        (r#"{"name":"good","email":"nobody"}"#, "Email is invalid"),
        (r#"{"name":"good","email":"a@b.c","default-execution-mode":"agent"}"#, "Default agent pool must be specified"),
    ] {
        let caller = site.admin().await;
        let error = site.control_plane.create_organization(&caller, &patch(json)).await.err().expect(json);
        assert!(error.to_string().starts_with(expected), "{json}: {error}");
        assert_eq!(kind::<()>(Err(error)), "invalid");
    }
    let anonymous = site.anonymous().await;
    assert_eq!(kind(site.control_plane.create_organization(&anonymous, &named("good")).await), "unauthorized");
}

#[tokio::test]
async fn of_two_servers_that_found_the_same_name_one_wins() {
    let site = TestSite::start().await;
    let there = site.another_server().await;
    let here_caller = site.admin().await;
    let there_caller = there.authenticate(SITE_TOKEN, Default::default()).await.expect("a caller");
    for round in 0..50 {
        let attributes = named(&format!("round-{round}"));
        let attempts = join_all([
            Box::pin(site.control_plane.create_organization(&here_caller, &attributes)),
            Box::pin(there.create_organization(&there_caller, &attributes)),
        ]);
        let mut outcomes: Vec<_> = attempts.await.into_iter().map(kind).collect();
        outcomes.sort_unstable();
        assert_eq!(outcomes, ["invalid", "ok"], "round {round}");
    }
}

#[tokio::test]
async fn settings_and_name_change_together() {
    let site = TestSite::start().await;
    let (_, token) = site.given_user("jane").await;
    let before = site.given_organization(&token, "acme").await;
    let caller = site.with_token(&token).await.expect("a caller");
    let change =
        patch(r#"{"name":"acme-two","email":"new@acme.test","session-timeout":3600,"default-execution-mode":"local"}"#);
    let after = site.control_plane.update_organization(&caller, "acme", &change).await.expect("legal");
    assert_eq!((after.name.as_str(), after.organization.email.as_str()), ("acme-two", "new@acme.test"));
    assert_eq!(after.organization.default_execution.mode, ExecutionMode::Local);
    assert_eq!(after.organization.id, before.organization.id);

    let caller = site.with_token(&token).await.expect("a caller");
    assert_eq!(kind(site.control_plane.organization(&caller, "acme").await), "not found");
    let read = site.control_plane.organization(&caller, "acme-two").await.expect("an organization");
    assert_eq!(read.organization, after.organization);
    let again = site.control_plane.update_organization(&caller, "acme-two", &change).await.expect("the same again");
    assert_eq!(
        again.org.moment().organization,
        read.org.moment().organization,
        "nothing changed, so nothing was written"
    );
}

#[tokio::test]
async fn a_name_that_another_has_is_not_taken_over() {
    let site = TestSite::start().await;
    site.given_organization(SITE_TOKEN, "acme").await;
    site.given_organization(SITE_TOKEN, "other").await;
    let admin = site.admin().await;
    let rename = patch(r#"{"name":"Other","email":"new@acme.test"}"#);
    assert_eq!(kind(site.control_plane.update_organization(&admin, "acme", &rename).await), "invalid");
    let read = site.control_plane.organization(&admin, "acme").await.expect("an organization");
    assert_eq!(read.organization.email.as_str(), "acme@acme.test", "nothing of the request happened");
    let own_case = patch(r#"{"name":"Acme"}"#);
    let renamed = site.control_plane.update_organization(&admin, "acme", &own_case).await.expect("its own name");
    assert_eq!(renamed.name, "Acme");
}

#[tokio::test]
async fn an_agent_pool_that_does_not_exist_is_refused() {
    let site = TestSite::start().await;
    let organization = site.given_organization(SITE_TOKEN, "acme").await;
    let mut change = patch(r#"{"default-execution-mode":"agent"}"#);
    let pool = taco_domain::id::AgentPoolId::within(organization.organization.id.organization_prefix(), [1; 16]);
    change.default_agent_pool = Some(Some(pool));
    let admin = site.admin().await;
    let error = site.control_plane.update_organization(&admin, "acme", &change).await.err().expect("refused");
    assert_eq!(error.to_string(), format!("The agent pool {pool} does not exist"));
}

#[tokio::test]
async fn a_deleted_organization_is_gone_with_its_tokens() {
    let site = TestSite::start().await;
    site.given_organization(SITE_TOKEN, "acme").await;
    let admin = site.admin().await;
    let token = site
        .control_plane
        .create_organization_token(&admin, "acme", OrganizationTokenKind::Organization, NewToken::default())
        .await
        .expect("a token")
        .text
        .reveal();
    assert_eq!(kind(site.with_token(&token).await), "ok");
    site.control_plane.delete_organization(&admin, "acme").await.expect("deleted");
    assert_eq!(kind(site.with_token(&token).await), "unauthorized");
    let admin = site.admin().await;
    assert_eq!(kind(site.control_plane.organization(&admin, "acme").await), "not found");
    assert_eq!(kind(site.control_plane.delete_organization(&admin, "acme").await), "not found");
    let again = site.given_organization(SITE_TOKEN, "acme").await;
    assert_eq!(again.org.workspace_count(), 0);
}

#[tokio::test]
async fn a_list_shows_what_its_reader_may_see() {
    let site = TestSite::start().await;
    let (_, jane) = site.given_user("jane").await;
    let (_, joe) = site.given_user("joe").await;
    for (token, name) in [(&jane, "beta"), (&jane, "Alpha"), (&joe, "gamma")] {
        site.given_organization(token, name).await;
    }
    for (token, query, expected) in [
        (jane.as_str(), None, vec!["Alpha", "beta"]),
        (&joe, None, vec!["gamma"]),
        (SITE_TOKEN, None, vec!["Alpha", "beta", "gamma"]),
        (SITE_TOKEN, Some("ALPHA"), vec!["Alpha"]),
        (SITE_TOKEN, Some("beta@acme"), vec!["beta"]),
        (&jane, Some("gamma"), vec![]),
    ] {
        let caller = site.with_token(token).await.expect("a caller");
        let listed = site.control_plane.organizations(&caller, query, PageRequest::default()).await.expect("a list");
        let names: Vec<_> = listed.items.iter().map(|view| view.name.as_str()).collect();
        assert_eq!((names, listed.total), (expected.clone(), expected.len()));
    }
}

#[tokio::test]
async fn strangers_do_not_learn_that_an_organization_exists() {
    let site = TestSite::start().await;
    let (_, jane) = site.given_user("jane").await;
    let (_, joe) = site.given_user("joe").await;
    site.given_organization(&jane, "acme").await;
    let stranger = site.with_token(&joe).await.expect("a caller");
    let control_plane = &site.control_plane;
    let missing = control_plane.organization(&stranger, "nothing-there").await.err().expect("missing").to_string();
    let hidden = control_plane.organization(&stranger, "acme").await.err().expect("hidden").to_string();
    assert_eq!(hidden, missing);
    assert_eq!(kind(control_plane.update_organization(&stranger, "acme", &patch("{}")).await), "not found");
    assert_eq!(kind(control_plane.delete_organization(&stranger, "acme").await), "not found");
    assert_eq!(kind(control_plane.entitlements(&stranger, "acme").await), "not found");
    assert_eq!(kind(control_plane.organization(&site.anonymous().await, "acme").await), "unauthorized");
}

#[tokio::test]
async fn an_organization_that_refuses_users_tokens_takes_its_teams() {
    let site = TestSite::start().await;
    let (_, jane) = site.given_user("jane").await;
    let organization = site.given_organization(&jane, "acme").await;
    let caller = site.with_token(&jane).await.expect("a caller");
    let team = organization.organization.owners_team;
    let owners = site.control_plane.create_team_token(&caller, team, NewToken::default()).await.expect("a token");
    let owners = site.with_token(&owners.text.reveal()).await.expect("a caller");
    let off = patch(r#"{"user-tokens-enabled":false}"#);
    site.control_plane.update_organization(&owners, "acme", &off).await.expect("an owner may");
    assert_eq!(kind(site.control_plane.organization(&caller, "acme").await), "unauthorized");
    let on = patch(r#"{"user-tokens-enabled":true}"#);
    site.control_plane.update_organization(&owners, "acme", &on).await.expect("an owner may");
    assert_eq!(kind(site.control_plane.organization(&caller, "acme").await), "ok");
}
