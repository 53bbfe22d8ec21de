use futures::future::join;
use jiff::SignedDuration;
use taco_control_plane::{AuthorizationRequest, CodeExchange, Error, OpenedSession, RequestInfo};
use taco_domain::grant::challenge_of;
use taco_domain::permission::{Actor, Credential};

use crate::harness::{TestSite, kind};

const HERE: &str = "http://localhost:10000/login";

impl TestSite {
    async fn logged_in(&self) -> OpenedSession {
        let link = self.first_link().await;
        self.control_plane.set_password_by_link(&link, "correct horse".into()).await.expect("a password");
        self.log_in().await.expect("a session")
    }

    async fn log_in(&self) -> Result<OpenedSession, Error> {
        let request = RequestInfo { from: Some("10.0.0.7".into()), ..RequestInfo::default() };
        self.control_plane.log_in("admin", "correct horse".into(), &request, Some("a browser".into())).await
    }

    async fn with_cookie(&self, cookie: &str) -> Result<taco_control_plane::Caller, Error> {
        self.control_plane.authenticate_session(cookie, RequestInfo::default()).await
    }

    /// Waits until the ledger knows of the use just now.
    async fn use_was_remembered(&self, session: &OpenedSession) {
        loop {
            let admin = self.admin().await;
            let sessions = self.control_plane.sessions(&admin, session.user.id).await.expect("sessions");
            if sessions[0].last_used_at == self.now() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    async fn given_code(&self, session: &OpenedSession) -> String {
        let caller = self.with_cookie(session.secret.reveal()).await.expect("a caller");
        let request = AuthorizationRequest {
            client: "terraform-cli".into(),
            redirect_uri: HERE.into(),
            code_challenge: challenge_of("verifier"),
            token_expires_at: None,
        };
        let code = self.control_plane.grant(&caller, request).await.expect("a code");
        code.reveal().to_owned()
    }
}

fn exchange(code: &str) -> CodeExchange {
    CodeExchange {
        client: "terraform-cli".into(),
        redirect_uri: HERE.into(),
        code: code.into(),
        code_verifier: "verifier".into(),
    }
}

#[tokio::test]
async fn a_session_is_open_on_every_server_until_it_is_closed() {
    let site = TestSite::start().await;
    let session = site.logged_in().await;
    let there = site.another_server().await;
    let cookie = session.secret.reveal();
    let caller = there.authenticate_session(cookie, RequestInfo::default()).await.expect("a caller");
    assert!(matches!(caller.actor, Actor::User { by: Credential::Session, site_admin: true, .. }));
    let sessions = there.sessions(&caller, session.user.id).await.expect("sessions");
    assert_eq!(sessions[0].address.as_deref(), Some("10.0.0.7"));

    there.log_out(cookie).await.expect("logged out");
    assert_eq!(kind(site.with_cookie(cookie).await), "unauthorized");
    there.log_out(cookie).await.expect("logged out before");
}

#[tokio::test]
async fn a_session_ends_when_nobody_uses_it() {
    let site = TestSite::start().await;
    let session = site.logged_in().await;
    let cookie = session.secret.reveal();
    site.pass(SignedDuration::from_hours(7));
    assert_eq!(kind(site.with_cookie(cookie).await), "ok");
    site.use_was_remembered(&session).await;
    site.pass(SignedDuration::from_hours(7));
    assert_eq!(kind(site.with_cookie(cookie).await), "ok", "its use seven hours ago was remembered");
    site.use_was_remembered(&session).await;
    site.pass(SignedDuration::from_hours(8));
    assert_eq!(kind(site.with_cookie(cookie).await), "unauthorized");

    let again = site.log_in().await.expect("a session");
    let caller = site.with_cookie(again.secret.reveal()).await.expect("a caller");
    let sessions = site.control_plane.sessions(&caller, again.user.id).await.expect("sessions");
    assert_eq!(sessions.len(), 1, "the one that is over was cleared away");
    site.control_plane.close_session(&caller, again.session.id).await.expect("closed");
    assert_eq!(kind(site.with_cookie(again.secret.reveal()).await), "unauthorized");
}

#[tokio::test]
async fn a_password_set_by_a_link_ends_all_sessions_of_its_user() {
    let site = TestSite::start().await;
    let session = site.logged_in().await;
    let cookie = session.secret.reveal();
    let admin = site.admin().await;
    let (jane, link) = site.control_plane.create_user(&admin, "jane", "jane@acme.test", false).await.expect("a user");
    let password = || "correct horse".to_owned();
    site.control_plane.set_password_by_link(link.secret.reveal(), password()).await.expect("a password");
    let janes = site.control_plane.log_in("jane", password(), &RequestInfo::default(), None).await.expect("a session");
    assert_eq!(kind(site.with_cookie(cookie).await), "ok", "another's password changes nothing for this one");

    let link = site.control_plane.renew_password_link(&site.admin().await, jane.id).await.expect("a link");
    assert_eq!(kind(site.with_cookie(janes.secret.reveal()).await), "ok", "a link that nobody used changes nothing");
    let set = site.control_plane.set_password_by_link(link.secret.reveal(), "battery staple".into()).await;
    assert_eq!(set.expect("a password").id, jane.id);
    assert_eq!(kind(site.with_cookie(janes.secret.reveal()).await), "unauthorized");
    assert_eq!(kind(site.with_cookie(cookie).await), "ok");
}

#[tokio::test]
async fn a_code_gives_a_token_once() {
    let site = TestSite::start().await;
    let session = site.logged_in().await;
    let code = site.given_code(&session).await;
    let issued = site.control_plane.exchange_code(exchange(&code)).await.expect("a token");
    assert_eq!(issued.token.description.as_deref(), Some("terraform-cli login"));
    assert_eq!(kind(site.with_token(&issued.text.reveal()).await), "ok");

    assert_eq!(kind(site.control_plane.exchange_code(exchange(&code)).await), "invalid");
    assert_eq!(kind(site.with_token(&issued.text.reveal()).await), "unauthorized", "a second try revokes the token");
}

#[tokio::test]
async fn of_two_who_exchange_a_code_neither_keeps_a_token() {
    let site = TestSite::start().await;
    let session = site.logged_in().await;
    let there = site.another_server().await;
    for round in 0..20 {
        let code = site.given_code(&session).await;
        let here = site.control_plane.exchange_code(exchange(&code));
        let (one, other) = join(here, there.exchange_code(exchange(&code))).await;
        let (winner, loser) = if one.is_ok() { (one, other) } else { (other, one) };
        assert_eq!(kind(loser), "invalid", "round {round}");
        let token = winner.expect("one of them").text.reveal();
        assert_eq!(kind(site.with_token(&token).await), "unauthorized", "round {round}");
    }
}

#[tokio::test]
async fn a_code_is_worth_nothing_to_others_or_later() {
    let site = TestSite::start().await;
    let session = site.logged_in().await;
    let code = site.given_code(&session).await;
    for wrong in [
        CodeExchange { client: "other".into(), ..exchange(&code) },
        CodeExchange { redirect_uri: "http://localhost:10001/login".into(), ..exchange(&code) },
        CodeExchange { code_verifier: "guess".into(), ..exchange(&code) },
        exchange("guess"),
    ] {
        assert_eq!(kind(site.control_plane.exchange_code(wrong).await), "invalid");
    }
    site.pass(SignedDuration::from_secs(60));
    assert_eq!(kind(site.control_plane.exchange_code(exchange(&code)).await), "invalid");
}

#[tokio::test]
async fn only_a_logged_in_user_gives_codes_and_only_to_a_cli() {
    let site = TestSite::start().await;
    let session = site.logged_in().await;
    let request = AuthorizationRequest {
        client: "terraform-cli".into(),
        redirect_uri: HERE.into(),
        code_challenge: challenge_of("verifier"),
        token_expires_at: None,
    };
    let control_plane = &site.control_plane;
    let anonymous = site.anonymous().await;
    assert_eq!(kind(control_plane.grant(&anonymous, request.clone()).await), "unauthorized");
    let caller = site.with_cookie(session.secret.reveal()).await.expect("a caller");
    let evil = AuthorizationRequest { redirect_uri: "http://evil.test:10000/login".into(), ..request.clone() };
    assert_eq!(kind(control_plane.grant(&caller, evil).await), "invalid");
    let plain = AuthorizationRequest { code_challenge: "verifier".into(), ..request };
    assert_eq!(kind(control_plane.grant(&caller, plain).await), "invalid");
}
