//! Authors on machines of their own: whoever can open the bucket with its key can act, and says who they are. Nobody has
//! verified it, so that these users have names that say so, and addresses that no mail reaches.

use taco_boxed::boxed;
use taco_domain::id::UserId;
use taco_domain::membership::invited_user;
use taco_domain::name::{Email, Username};
use taco_domain::user::User;

use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::privileged::Privileged;

/// End of the username of everyone who only claims to be someone.
const CLAIMED: &str = "-claimed";

/// Domain of their addresses, which no mail ever reaches.
const NOWHERE: &str = "claimed.invalid";

/// Longest part of a claim that becomes a name or an address.
const MAX_LENGTH: usize = 40;

/// Numbers that are tried for a name that others claim too.
const MAX_NAMESAKES: u32 = 1000;

/// The part of a claim before its `@`, and the whole, both with plain letters only.
fn plain(claim: &str) -> (String, String) {
    let legal = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let plain = |text: &str| {
        let text: String = text.chars().map(legal).collect();
        let text = text.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
        let text: String = text.chars().take(MAX_LENGTH).collect();
        if text.is_empty() { "someone".to_owned() } else { text }
    };
    (plain(claim.split('@').next().unwrap_or_default()), plain(claim))
}

fn email_of(claim: &str) -> Result<Email, Error> {
    let email = format!("{}@{NOWHERE}", plain(claim).1);
    email.parse().map_err(|_| Error::Conflict(format!("{claim} cannot be an author")))
}

#[boxed]
impl Privileged {
    /// Makes whoever comes to this server with its site token, or without a login, the user of a claim, and makes that
    /// user unless there is one.
    pub async fn act_for_claimed_author(&self, claim: &str) -> Result<UserId, Error> {
        let (now, email) = (self.now(), email_of(claim)?);
        let (id, name) = (invited_user(&email), plain(claim).0);
        let found = self.control_plane().shared.site.last_seen().users.contains(&id);
        if !found {
            self.commit_site(ControlPlane::own_intent("site.claimed-author"), move |tx| {
                let users = &tx.state().users;
                if users.contains(&id) {
                    return Ok(());
                }
                let is_free = |name: &Username| users.iter().all(|user| user.username.key() != name.key());
                let names = (1..MAX_NAMESAKES).map(|number| match number {
                    1 => format!("{name}{CLAIMED}"),
                    _ => format!("{name}{CLAIMED}-{number}"),
                });
                let username = names.filter_map(|name| name.parse().ok()).find(is_free);
                let username = username.ok_or_else(|| Error::Conflict(format!("too many claim to be {name}")))?;
                tx.put(&User {
                    id,
                    username,
                    email: email.clone(),
                    password: None,
                    site_admin: false,
                    suspended: false,
                    service_account: false,
                    verified_email: None,
                    created_at: now,
                    updated_at: now,
                });
                Ok(())
            })
            .await?;
        }
        // A server has one operator.
        let _ = self.control_plane().shared.claimed_author.set(id);
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_become_names_and_addresses_of_nobody_else() {
        assert_eq!(plain("Ana.Diaz@acme.example"), ("ana-diaz".to_owned(), "ana-diaz-acme-example".to_owned()));
        assert_eq!(email_of("ana@acme.example").expect("legal").as_str(), "ana-acme-example@claimed.invalid");
        assert_eq!(plain("@").0, "someone");
        assert!(email_of(&"ü".repeat(500)).is_ok());
    }
}
