//! An empty site gets an admin, and a link with which a person becomes that admin.

use jiff::{SignedDuration, Timestamp};
use taco_boxed::boxed;
use taco_domain::id::{PasswordLinkId, UserId};
use taco_domain::membership::invited_user;
use taco_domain::name::Email;
use taco_domain::password_link::PasswordLink;
use taco_domain::secret::Secret;
use taco_domain::user::User;

use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::privileged::Privileged;

const USERNAME: &str = "admin";
const EMAIL: &str = "admin@localhost";

/// Lifetime of a link to set a password.
pub(crate) const LINK_LIFETIME: SignedDuration = SignedDuration::from_hours(24);

/// The first admin's id. It never changes, whatever they call themselves later, and every server knows it.
pub(crate) fn first_admin() -> UserId {
    invited_user(&admin_email())
}

fn admin_email() -> Email {
    EMAIL.parse().expect("a legal address")
}

/// State of the first start: is there an admin of the site yet?
#[derive(Clone, Debug)]
pub enum FirstStart {
    /// Someone has set the first admin's password.
    Ready,
    /// Nobody has yet: show them the link.
    SetPassword(PasswordLinkText),
}

/// A link to set a password, with the secret that is shown only once. Doors make an address of it.
#[derive(Clone, Debug)]
pub struct PasswordLinkText {
    pub username: String,
    pub secret: Secret,
    pub expires_at: Timestamp,
}

#[boxed]
impl ControlPlane {
    /// A fresh link for a user, and its text without the user's name.
    pub(crate) fn password_link(&self, user: UserId, now: Timestamp) -> (PasswordLink, PasswordLinkText) {
        let secret = self.secret();
        let expires_at = now.checked_add(LINK_LIFETIME).unwrap_or(Timestamp::MAX);
        let link = PasswordLink {
            id: PasswordLinkId::from_random(self.random()),
            hash: self.hash_key().hash("password-link", secret.reveal()),
            user,
            created_at: now,
            expires_at,
        };
        (link, PasswordLinkText { username: String::new(), secret, expires_at })
    }
}

impl ControlPlane {
    /// True while nobody has a password, as far as this server has seen: then the login says how to set the first one.
    pub fn needs_setup(&self) -> bool {
        self.shared.site.last_seen().users.iter().all(|user| user.password.is_none())
    }
}

/// Verbs without permission checks, for the server itself.
#[boxed]
impl Privileged {
    /// Makes the first admin unless there is one. Returns their name while they have no password.
    pub async fn make_first_admin(&self) -> Result<Option<String>, Error> {
        let now = self.now();
        self.commit_site(ControlPlane::own_intent("site.first-admin"), move |tx| {
            let admin = match tx.state().users.get(&first_admin()).cloned() {
                Some(admin) => admin,
                None => {
                    let admin = new_admin(now);
                    tx.put(&admin);
                    admin
                }
            };
            Ok(admin.password.is_none().then(|| admin.username.to_string()))
        })
        .await
    }

    /// Makes the first admin unless there is one, and a link until one is used: for the operator at a server's machine,
    /// since it makes them the site's admin. Each call makes a link of its own, and the first that is used ends them
    /// all.
    pub async fn first_start(&self) -> Result<FirstStart, Error> {
        let now = self.now();
        let (link, text) = self.password_link(first_admin(), now);
        let username = self
            .commit_site(ControlPlane::own_intent("site.first-start"), move |tx| {
                let admin = tx.state().users.get(&first_admin()).cloned().unwrap_or_else(|| new_admin(now));
                if admin.password.is_some() {
                    return Ok(None);
                }
                tx.put(&admin);
                tx.put(&link);
                Ok(Some(admin.username))
            })
            .await?;
        Ok(match username {
            None => FirstStart::Ready,
            Some(username) => FirstStart::SetPassword(PasswordLinkText { username: username.to_string(), ..text }),
        })
    }
}

fn new_admin(now: Timestamp) -> User {
    User {
        id: first_admin(),
        username: USERNAME.parse().expect("a legal name"),
        email: admin_email(),
        password: None,
        site_admin: true,
        suspended: false,
        service_account: false,
        verified_email: None,
        created_at: now,
        updated_at: now,
    }
}
