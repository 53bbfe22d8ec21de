//! Logged-in browsers.

use taco_boxed::boxed;
use taco_domain::Site;
use taco_domain::id::{SessionId, UserId};
use taco_domain::permission::{Action, Actor, Credential, Resource};
use taco_domain::secret::Secret;
use taco_domain::session::Session;
use taco_domain::user::User;
use taco_ledger::Transaction;
use taco_tables::Record as _;

use crate::caller::{Caller, PrefetchedOrganization, RequestInfo};
use crate::control_plane::ControlPlane;
use crate::error::Error;

/// A new session, with the cookie's text, which is shown only once.
#[derive(Clone, Debug)]
pub struct OpenedSession {
    pub session: Session,
    pub secret: Secret,
    pub user: User,
}

#[boxed]
impl ControlPlane {
    /// Logs someone in with name and password. The session is always a new one, so no attacker can plant theirs.
    pub async fn log_in(
        &self,
        name: &str,
        password: String,
        request: &RequestInfo,
        user_agent: Option<String>,
    ) -> Result<OpenedSession, Error> {
        let user = self.user_with_password(name, password, request.address).await?;
        let (secret, now) = (self.secret(), self.now());
        let session = Session {
            id: SessionId::from_random(self.random()),
            hash: self.hash_key().hash("session", secret.reveal()),
            user: user.id,
            created_at: now,
            last_used_at: now,
            address: request.from.clone(),
            user_agent,
        };
        let stored = session.clone();
        let intent =
            taco_ledger::Intent { actor: user.id.to_string(), action: "session.open", request: request.id.clone() };
        self.commit_site(intent, move |tx| {
            // Cleanup of expired sessions, for which this is as good a moment as any.
            for old in sessions_of(tx.state(), stored.user).into_iter().filter(|old| !old.is_open(now)) {
                tx.delete::<Session>(&old.id);
            }
            tx.put(&stored);
            Ok(())
        })
        .await?;
        Ok(OpenedSession { session, secret, user })
    }

    /// Caller who sent this session cookie.
    pub async fn authenticate_session(&self, cookie: &str, request: RequestInfo) -> Result<Caller, Error> {
        let over = || Error::Unauthorized("the session is over: log in again".to_owned());
        let site = self.read_site().await?;
        let session = site.sessions.by().hash.first(&self.hash_key().hash("session", cookie));
        let session = session.filter(|session| session.is_open(self.now())).ok_or_else(over)?;
        let user = site.users.get(&session.user).filter(|user| !user.suspended).ok_or_else(over)?;
        let actor = Actor::User { id: user.id, site_admin: user.site_admin, by: Credential::Session };
        self.remember_session(session);
        Ok(Caller { actor, token: None, request, site, prefetched: PrefetchedOrganization::default() })
    }

    /// Notes now and then that a session is in use, in the background of the request: otherwise it would end as idle.
    fn remember_session(&self, session: &Session) {
        let (id, now) = (session.id, self.now());
        if session.use_to_remember(now).is_none() {
            return;
        }
        let control_plane = self.clone();
        tokio::spawn(async move {
            let noted = control_plane.commit_site(Self::own_intent("session.use"), move |tx| {
                if let Some(used) = tx.state().sessions.get(&id).and_then(|session| session.use_to_remember(now)) {
                    tx.put(&used);
                }
                Ok(())
            });
            if let Err(error) = noted.await {
                tracing::warn!(
                    event = "session_use_not_recorded", session = %id, %error,
                    "the use of a session could not be noted"
                );
            }
        });
    }

    /// Ends the session of this cookie, on every server at once. One that is over already is fine.
    pub async fn log_out(&self, cookie: &str) -> Result<(), Error> {
        let hash = self.hash_key().hash("session", cookie);
        let site = self.read_site().await?;
        let Some(session) = site.sessions.by().hash.first(&hash) else { return Ok(()) };
        let (id, actor) = (session.id, session.user.to_string());
        let intent = taco_ledger::Intent { actor, action: "session.close", request: None };
        self.commit_site(intent, move |tx| {
            tx.delete::<Session>(&id);
            Ok(())
        })
        .await
    }

    /// The session that a cookie belongs to, as it was when the caller was recognised.
    pub fn session_of_cookie(&self, caller: &Caller, cookie: &str) -> Option<SessionId> {
        caller.site.sessions.by().hash.first(&self.hash_key().hash("session", cookie)).map(|record| record.id)
    }

    /// Ends all sessions of a user but one.
    pub async fn close_other_sessions(
        &self,
        caller: &Caller,
        user: UserId,
        kept: Option<SessionId>,
    ) -> Result<usize, Error> {
        caller.require(Action::UpdateAccount, Resource::Account(user), "user")?;
        self.commit_site(caller.intent("session.close-others"), move |tx| Ok(delete_other_sessions(tx, user, kept)))
            .await
    }

    /// A user's open sessions, newest first.
    pub async fn sessions(&self, caller: &Caller, user: UserId) -> Result<Vec<Session>, Error> {
        caller.require(Action::ReadAccount, Resource::Account(user), "user")?;
        let now = self.now();
        let mut sessions: Vec<Session> =
            sessions_of(&caller.site, user).into_iter().filter(|session| session.is_open(now)).collect();
        sessions.sort_by_key(|session| std::cmp::Reverse(session.created_at));
        Ok(sessions)
    }

    /// Ends a session that someone else may be using.
    pub async fn close_session(&self, caller: &Caller, id: SessionId) -> Result<(), Error> {
        let session = caller.site.sessions.get(&id).ok_or(Error::NotFound(Session::NOUN))?;
        caller.require(Action::UpdateAccount, Resource::Account(session.user), "session")?;
        self.commit_site(caller.intent("session.close"), move |tx| {
            tx.delete::<Session>(&id);
            Ok(())
        })
        .await
    }
}

pub(crate) fn delete_other_sessions(tx: &mut Transaction<Site>, user: UserId, kept: Option<SessionId>) -> usize {
    let others = sessions_of(tx.state(), user).into_iter().filter(|session| Some(session.id) != kept);
    let others: Vec<SessionId> = others.map(|session| session.id).collect();
    for id in &others {
        tx.delete::<Session>(id);
    }
    others.len()
}

fn sessions_of(site: &Site, user: UserId) -> Vec<Session> {
    site.sessions.by().user.get(&user).cloned().collect()
}
