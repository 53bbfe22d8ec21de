//! Users: their own view of their account, and a site admin's of everyone's.

pub(crate) mod acting;
pub(crate) mod claimed_authors;
pub(crate) mod first_start;
pub(crate) mod grants;
pub(crate) mod password_queue;
pub(crate) mod passwords;
pub(crate) mod sessions;
pub(crate) mod signed_url_token;
pub(crate) mod signed_urls;
pub(crate) mod token_guesses;
pub(crate) mod token_uses;
pub(crate) mod tokens;

use serde::Deserialize;
use taco_boxed::boxed;
use taco_domain::Site;
use taco_domain::id::UserId;
use taco_domain::name::{Email, Username};
use taco_domain::password_link::PasswordLink;
use taco_domain::permission::{Action, Actor, Resource};
use taco_domain::user::User;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::first_start::PasswordLinkText;
use crate::page::{Listed, PageRequest};

/// The attributes of a request that changes an account, spelled as on the wire.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct AccountPatch {
    pub username: Option<String>,
    pub email: Option<String>,
}

#[boxed]
impl ControlPlane {
    /// The caller's own account.
    pub async fn account(&self, caller: &Caller) -> Result<User, Error> {
        match caller.actor {
            Actor::User { id, .. } => self.user(caller, id).await,
            Actor::Anonymous => Err(Error::Unauthorized("you are not logged in".to_owned())),
            _ => Err(Error::NotFound("account")),
        }
    }

    pub async fn user(&self, caller: &Caller, id: UserId) -> Result<User, Error> {
        caller.require(Action::ReadAccount, Resource::Account(id), "user")?;
        caller.site.users.get(&id).cloned().ok_or(Error::NotFound(User::NOUN))
    }

    pub async fn update_user(&self, caller: &Caller, id: UserId, patch: AccountPatch) -> Result<User, Error> {
        caller.require(Action::UpdateAccount, Resource::Account(id), "user")?;
        let username: Option<Username> = patch.username.as_deref().map(str::parse).transpose()?;
        let email: Option<Email> = patch.email.as_deref().map(str::parse).transpose()?;
        let now = self.now();
        self.commit_site(caller.intent("user.update"), move |tx| {
            let before = tx.state().users.get(&id).ok_or(Error::NotFound(User::NOUN))?;
            let mut user = before.clone();
            user.username = username.clone().unwrap_or(user.username);
            user.email = email.clone().unwrap_or(user.email);
            if user == *before {
                return Ok(user);
            }
            if user.email.key() != before.email.key() {
                // The new one is unverified; and someone who returns to the old one need not be who left it.
                user.verified_email = None;
            }
            user.updated_at = now;
            check_unique(tx.state(), &user)?;
            tx.put(&user);
            Ok(user)
        })
        .await
    }

    /// All users by name, for a site admin. `query` is a part of the name or of the address.
    pub async fn users(&self, caller: &Caller, query: Option<&str>, page: PageRequest) -> Result<Listed<User>, Error> {
        caller.require(Action::ManageSite, Resource::Site, "page")?;
        let query = query.unwrap_or_default().trim().to_lowercase();
        let users = &caller.site.users;
        let by_name = users.by().username.iter();
        let fits = |user: &&User| {
            user.username.as_str().to_lowercase().contains(&query)
                || user.email.as_str().to_lowercase().contains(&query)
        };
        Ok(Listed::from_all(by_name.filter(fits), page).cloned())
    }

    /// A link with which a user sets a new password: for one who has lost theirs. It ends the links before it.
    pub async fn renew_password_link(&self, caller: &Caller, id: UserId) -> Result<PasswordLinkText, Error> {
        caller.require(Action::ManageSite, Resource::Site, "user")?;
        let (link, text) = self.password_link(id, self.now());
        let user = self
            .commit_site(caller.intent("user.renew-password-link"), move |tx| {
                let user = tx.state().users.get(&id).cloned().ok_or(Error::NotFound(User::NOUN))?;
                let before: Vec<_> = tx.state().password_links.by().user.get(&id).map(|record| record.id).collect();
                for old in before {
                    tx.delete::<PasswordLink>(&old);
                }
                tx.put(&link);
                Ok(user)
            })
            .await?;
        Ok(PasswordLinkText { username: user.username.to_string(), ..text })
    }

    /// Makes a user, who sets a password with the link.
    pub async fn create_user(
        &self,
        caller: &Caller,
        username: &str,
        email: &str,
        site_admin: bool,
    ) -> Result<(User, PasswordLinkText), Error> {
        caller.require(Action::ManageSite, Resource::Site, "site")?;
        let (username, email): (Username, Email) = (username.parse()?, email.parse()?);
        let now = self.now();
        let id = UserId::from_random(self.random());
        let (link, text) = self.password_link(id, now);
        let user = User {
            id,
            username,
            // A site admin says whose it is.
            verified_email: Some(email.clone()),
            email,
            password: None,
            site_admin,
            suspended: false,
            service_account: false,
            created_at: now,
            updated_at: now,
        };
        let user = self
            .commit_site(caller.intent("user.create"), move |tx| {
                check_unique(tx.state(), &user)?;
                tx.put(&user);
                tx.put(&link);
                Ok(user.clone())
            })
            .await?;
        let text = PasswordLinkText { username: user.username.to_string(), ..text };
        Ok((user, text))
    }

    /// Vouches that an address is its user's, so that invitations to it are theirs. `email` is what the site admin saw:
    /// if the user has changed it meanwhile, the new one is unverified.
    pub async fn verify_email(&self, caller: &Caller, id: UserId, email: &str) -> Result<User, Error> {
        caller.require(Action::ManageSite, Resource::Site, "user")?;
        let email: Email = email.parse()?;
        let now = self.now();
        self.commit_site(caller.intent("user.verify-email"), move |tx| {
            let user = tx.state().users.get(&id).cloned().ok_or(Error::NotFound(User::NOUN))?;
            if user.email.key() != email.key() {
                return Err(Error::Conflict("Their address is another one by now: look again".to_owned()));
            }
            let user = User { verified_email: Some(user.email.clone()), updated_at: now, ..user };
            tx.put(&user);
            Ok(user)
        })
        .await
    }

    /// Ends a user's access at once, or gives it back. Nobody does it to themselves: there might be no one left who
    /// could undo it.
    pub async fn suspend_user(&self, caller: &Caller, id: UserId, suspended: bool) -> Result<User, Error> {
        caller.require(Action::ManageSite, Resource::Site, "user")?;
        if suspended && matches!(caller.actor, Actor::User { id: own, .. } if own == id) {
            return Err(Error::Conflict("You cannot suspend yourself: ask another site admin".to_owned()));
        }
        let now = self.now();
        self.commit_site(caller.intent("user.suspend"), move |tx| {
            let mut user = tx.state().users.get(&id).cloned().ok_or(Error::NotFound(User::NOUN))?;
            if user.suspended != suspended {
                user = User { suspended, updated_at: now, ..user };
                tx.put(&user);
            }
            Ok(user)
        })
        .await
    }
}

/// Two users cannot share a name or an address.
fn check_unique(site: &Site, user: &User) -> Result<(), Error> {
    let other = |found: Option<&User>| found.is_some_and(|found| found.id != user.id);
    if other(site.user_named(&user.username)) {
        return Err(Error::name_taken("username"));
    }
    if other(site.user_with_email(&user.email)) {
        return Err(Error::name_taken("email"));
    }
    Ok(())
}
