use std::time::{Duration, Instant};

use jiff::SignedDuration;
use taco_control_plane::{AccountPatch, FirstStart, RequestInfo};
use taco_domain::permission::Actor;

use crate::harness::{TestSite, kind};

#[tokio::test]
async fn the_first_link_makes_a_person_the_admin_and_ends_all_links() {
    let site = TestSite::start().await;
    let (first, second) = (site.first_link().await, site.first_link().await);
    let control_plane = &site.control_plane;
    assert_eq!(kind(control_plane.user_with_password("admin", "correct horse".into(), None).await), "unauthorized");
    assert_eq!(kind(control_plane.set_password_by_link(&first, "short".into()).await), "invalid");
    assert_eq!(kind(control_plane.set_password_by_link("guess", "correct horse".into()).await), "not found");

    let admin = control_plane.set_password_by_link(&first, "correct horse".into()).await.expect("a password");
    assert!(admin.site_admin);
    for link in [&first, &second] {
        assert_eq!(kind(control_plane.set_password_by_link(link, "another horse".into()).await), "not found");
    }
    assert!(matches!(control_plane.first_start().await.expect("a start"), FirstStart::Ready));

    for (name, password, expected) in [
        ("admin", "correct horse", "ok"),
        (" Admin", "correct horse", "ok"),
        ("admin@localhost", "correct horse", "ok"),
        ("admin", "correct horse ", "unauthorized"),
        ("admin", "", "unauthorized"),
        ("nobody", "correct horse", "unauthorized"),
    ] {
        assert_eq!(
            kind(control_plane.user_with_password(name, password.into(), None).await),
            expected,
            "{name:?} {password:?}"
        );
    }
}

#[tokio::test]
async fn refusing_a_stranger_takes_as_long_as_refusing_a_wrong_password() {
    let site = TestSite::start().await;
    let link = site.first_link().await;
    site.control_plane.set_password_by_link(&link, "correct horse".into()).await.expect("a password");
    let time_of = async |name: &str| {
        let begun = Instant::now();
        assert_eq!(kind(site.control_plane.user_with_password(name, "a guess".into(), None).await), "unauthorized");
        begun.elapsed()
    };
    // The shortest of several: other load on the machine makes them longer, not shorter.
    let (mut known, mut stranger) = (Duration::MAX, Duration::MAX);
    for _ in 0..20 {
        known = known.min(time_of("admin").await);
        stranger = stranger.min(time_of("nobody").await);
        if stranger < known * 3 / 2 && known < stranger * 3 / 2 {
            return;
        }
    }
    panic!("a wrong password takes {known:?}, a stranger {stranger:?}");
}

#[tokio::test]
async fn a_link_works_for_a_day() {
    let site = TestSite::start().await;
    let link = site.first_link().await;
    site.pass(SignedDuration::from_hours(24));
    assert_eq!(kind(site.control_plane.set_password_by_link(&link, "correct horse".into()).await), "not found");
}

#[tokio::test]
async fn servers_that_start_together_make_one_admin() {
    let site = TestSite::start().await;
    let there = site.another_server().await;
    let (one, other) = futures::join!(site.control_plane.first_start(), there.first_start());
    assert!(matches!((one, other), (Ok(FirstStart::SetPassword(_)), Ok(FirstStart::SetPassword(_)))));
    let admin = site.admin().await;
    assert_eq!(site.control_plane.account(&admin).await.expect("an account").username.as_str(), "admin");
}

#[tokio::test]
async fn users_change_their_own_account() {
    let site = TestSite::start().await;
    let (jane, token) = site.given_user("jane").await;
    let (joe, _) = site.given_user("joe").await;
    let caller = site.with_token(&token).await.expect("a caller");
    let control_plane = &site.control_plane;
    let change = |username: Option<&str>, email: Option<&str>| {
        let patch = AccountPatch { username: username.map(Into::into), email: email.map(Into::into) };
        let caller = &caller;
        async move { control_plane.update_user(caller, jane.id, patch).await }
    };
    assert_eq!(change(None, None).await.expect("nothing"), jane);
    assert_eq!(change(Some("Jane-Two"), None).await.expect("a name").username.as_str(), "Jane-Two");
    assert_eq!(change(None, Some("new@acme.test")).await.expect("an address").email.as_str(), "new@acme.test");
    assert_eq!(kind(change(Some("JOE"), None).await), "invalid");
    assert_eq!(kind(change(None, Some("JOE@acme.test")).await), "invalid");
    assert_eq!(kind(change(None, Some("notamailaddress")).await), "invalid");
    assert_eq!(kind(control_plane.update_user(&caller, joe.id, AccountPatch::default()).await), "not found");
}

#[tokio::test]
async fn only_site_admins_make_users_and_names_are_unique() {
    let site = TestSite::start().await;
    let (_, token) = site.given_user("jane").await;
    let caller = site.with_token(&token).await.expect("a caller");
    let control_plane = &site.control_plane;
    assert_eq!(kind(control_plane.create_user(&caller, "joe", "joe@acme.test", false).await), "not found");
    let admin = site.admin().await;
    assert_eq!(kind(control_plane.create_user(&admin, "Jane", "other@acme.test", false).await), "invalid");
    assert_eq!(kind(control_plane.create_user(&admin, "other", "Jane@acme.test", false).await), "invalid");
    let (joe, link) = control_plane.create_user(&admin, "joe", "joe@acme.test", false).await.expect("a user");
    let set =
        control_plane.set_password_by_link(link.secret.reveal(), "correct horse".into()).await.expect("a password");
    assert_eq!(set.id, joe.id);
}

#[tokio::test]
async fn whoever_takes_over_an_address_does_not_become_its_former_user() {
    let site = TestSite::start().await;
    let (jane, token) = site.given_user("jane").await;
    let caller = site.with_token(&token).await.expect("a caller");
    let moved = AccountPatch { email: Some("elsewhere@acme.test".into()), username: None };
    site.control_plane.update_user(&caller, jane.id, moved).await.expect("an address");
    let admin = site.admin().await;
    let (successor, _) =
        site.control_plane.create_user(&admin, "successor", "jane@acme.test", false).await.expect("a user");
    assert_ne!(successor.id, jane.id);
}

#[tokio::test]
async fn a_site_without_login_takes_everyone_for_its_admin() {
    let site = TestSite::start().await;
    let caller = site.control_plane.without_login(RequestInfo::default()).await.expect("a caller");
    assert!(matches!(caller.actor, Actor::User { site_admin: true, .. }));
    assert_eq!(site.control_plane.account(&caller).await.expect("an account").id, site.control_plane.first_admin());
}
