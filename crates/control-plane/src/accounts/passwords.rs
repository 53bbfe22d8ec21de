//! Passwords: argon2id, with a salt of its own for each.

use std::net::IpAddr;

use argon2::{Algorithm, Argon2, Block, Params, PasswordHash, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use subtle::ConstantTimeEq as _;
use taco_boxed::boxed;
use taco_domain::attribute::InvalidAttribute;
use taco_domain::id::{SessionId, UserId};
use taco_domain::password_link::PasswordLink;
use taco_domain::user::User;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::first_start::first_admin;
use crate::password_queue::asker;
use crate::sessions::delete_other_sessions;

const SHORTEST: usize = 10;
/// Argon2 would take more, but nobody types it, and hashing costs time.
const MAX_PASSWORD_BYTES: usize = 1024;
/// Dummy hash for unknown users: comparing with it costs what a user's own hash costs, and no password matches.
const HASH_OF_NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5J3Mgc2FsdCAuLg$dGhpcyBpcyB0aGUgaGFzaCBvZiBubyBwYXNzd29yZC4";

#[boxed]
impl ControlPlane {
    /// The user whom a link was made for, while it works. It changes nothing.
    pub async fn user_of_password_link(&self, link: &str) -> Result<User, Error> {
        let gone = || Error::NotFound("link");
        let site = self.read_site().await?;
        let link = site.password_links.by().hash.first(&self.hash_key().hash("password-link", link));
        let link = link.filter(|link| link.is_open(self.now())).ok_or_else(gone)?;
        site.users.get(&link.user).cloned().ok_or_else(gone)
    }

    /// Sets the password of the user whom a link was made for, and ends all links and all sessions of theirs: a user
    /// who needs a link may need it because someone else knew the password before. Returns the user.
    pub async fn set_password_by_link(&self, link: &str, password: String) -> Result<User, Error> {
        check_password_rules(&password)?;
        let hash = self.hash_key().hash("password-link", link);
        let now = self.now();
        let gone = || Error::NotFound("link");
        let find = move |site: &taco_domain::Site| -> Result<PasswordLink, Error> {
            let link = site.password_links.by().hash.first(&hash);
            link.filter(|link| link.is_open(now)).cloned().ok_or_else(gone)
        };
        // Before the hashing, which is expensive on purpose: a wrong link must not cost us that.
        let site = self.read_site().await?;
        let user = find(&site)?.user;
        let hashed = self.hash_password(user, password, None).await?;
        let intent = taco_ledger::Intent { actor: user.to_string(), action: "user.set-password", request: None };
        self.commit_site(intent, move |tx| {
            let link = find(tx.state())?;
            let user = tx.state().users.get(&link.user).cloned().ok_or_else(gone)?;
            let user = User { password: Some(hashed.clone()), updated_at: now, ..user };
            let links: Vec<_> = tx.state().password_links.by().user.get(&user.id).map(|record| record.id).collect();
            for link in links {
                tx.delete::<PasswordLink>(&link);
            }
            delete_other_sessions(tx, user.id, None);
            tx.put(&user);
            Ok(user)
        })
        .await
    }

    /// Changes the caller's own password. They have to know the one before, and sessions elsewhere end: users may
    /// change a password because someone else knows it.
    pub async fn change_password(
        &self,
        caller: &Caller,
        current: String,
        new: String,
        kept: Option<SessionId>,
    ) -> Result<User, Error> {
        let user = self.account(caller).await?;
        check_password_rules(&new)?;
        let from = caller.request.address;
        let known = self.user_with_password(user.username.as_str(), current, from).await;
        match known {
            Ok(known) if known.id == user.id => {}
            Ok(_) | Err(Error::Unauthorized(_)) => {
                return Err(Error::invalid("current-password", "The current password is not this one"));
            }
            Err(error) => return Err(error),
        }
        let (id, hashed, now) = (user.id, self.hash_password(user.id, new, from).await?, self.now());
        self.commit_site(caller.intent("user.change-password"), move |tx| {
            let user = tx.state().users.get(&id).cloned().ok_or(Error::NotFound(User::NOUN))?;
            let user = User { password: Some(hashed.clone()), updated_at: now, ..user };
            delete_other_sessions(tx, id, kept);
            tx.put(&user);
            Ok(user)
        })
        .await
    }

    /// The user who has this name, or address, and this password. It takes as long to refuse a stranger as a wrong
    /// password, and says no more. `from` is the client's address: addresses take turns.
    pub async fn user_with_password(&self, name: &str, password: String, from: Option<IpAddr>) -> Result<User, Error> {
        let refused = || Error::Unauthorized("incorrect username or password".to_owned());
        let site = self.read_site().await?;
        let user = site.user_called(name).filter(|user| !user.suspended).cloned();
        let stored = user.as_ref().and_then(|user| user.password.clone());
        let known = stored.is_some();
        let (stored, is_plain) = match (&user, stored) {
            (Some(user), Some(stored)) if !is_plain(&stored) => {
                (self.unseal(&User::seal_name(user.id), &stored)?, false)
            }
            (_, Some(stored)) => (stored, true),
            (_, None) => (HASH_OF_NOBODY.to_owned(), false),
        };
        let hash = stored.clone();
        let fits = self.in_turn(from, move |memory| fits(&password, &stored, memory)).await?;
        let user = user.filter(|_| known && fits).ok_or_else(refused)?;
        if is_plain {
            self.seal_password(user.id, &hash).await;
        }
        Ok(user)
    }

    /// Seals a hash that an older version stored as it is. If that fails, the next login tries again.
    async fn seal_password(&self, id: UserId, hash: &str) {
        let (old, sealed) = (hash.to_owned(), self.seal(&User::seal_name(id), hash));
        let done = self.commit_site(Self::own_intent("user.seal-password"), move |tx| {
            let user = tx.state().users.get(&id).filter(|user| user.password.as_ref() == Some(&old)).cloned();
            if let Some(user) = user {
                tx.put(&User { password: Some(sealed.clone()), ..user });
            }
            Ok::<_, Error>(())
        });
        if let Err(error) = done.await {
            tracing::debug!(%error, "a password could not be sealed");
        }
    }

    /// The first admin's id, for a door that speaks for a site without login.
    pub fn first_admin(&self) -> UserId {
        first_admin()
    }

    /// The hash of a user's password, sealed: a commit stays in the bucket for ever, and a hash can be guessed at.
    async fn hash_password(&self, user: UserId, password: String, from: Option<IpAddr>) -> Result<String, Error> {
        let salt = self.random();
        let hashed = self.in_turn(from, move |memory| hash(&password, salt, memory)).await?;
        Ok(self.seal(&User::seal_name(user), &hashed))
    }

    /// Hashing takes tens of milliseconds, in which other requests should not wait, and memory, which only a few have at
    /// once.
    async fn in_turn<T: Send + 'static>(
        &self,
        from: Option<IpAddr>,
        work: impl FnOnce(&mut Vec<Block>) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let turn = self.shared.password_queue.turn(asker(from)).await?;
        let working = tokio::task::spawn_blocking(move || {
            let mut memory = turn.memory();
            let done = work(&mut memory);
            turn.give_back(memory);
            done
        });
        let broken = |error: tokio::task::JoinError| taco_ledger::Error::Broken(error.to_string());
        Ok(working.await.map_err(broken)?)
    }
}

/// True if it is a hash in PHC's notation, as older versions stored it.
pub(crate) fn is_plain(stored: &str) -> bool {
    stored.starts_with('$')
}

fn hash(password: &str, salt: [u8; 16], memory: &mut Vec<Block>) -> String {
    let (algorithm, version, params) = (Algorithm::default(), Version::default(), Params::default());
    let mut output = [0; Params::DEFAULT_OUTPUT_LEN];
    argon2(algorithm, version, params.clone(), password, &salt, &mut output, memory)
        .expect("the default parameters and a salt of 16 bytes are legal");
    format!(
        "${algorithm}$v={}$m={},t={},p={}${}${}",
        u32::from(version),
        params.m_cost(),
        params.t_cost(),
        params.p_cost(),
        STANDARD_NO_PAD.encode(salt),
        STANDARD_NO_PAD.encode(output)
    )
}

/// True if the password matches a hash in PHC's notation.
fn fits(password: &str, stored: &str, memory: &mut Vec<Block>) -> bool {
    let mut output = || -> Option<(Vec<u8>, Vec<u8>)> {
        let hash = PasswordHash::new(stored).ok()?;
        let algorithm = Algorithm::try_from(hash.algorithm.as_str()).ok()?;
        let version = hash.version.map_or(Ok(Version::default()), Version::try_from).ok()?;
        let params = Params::try_from(&hash).ok()?;
        let expected = hash.hash?.as_bytes().to_vec();
        let mut output = vec![0; expected.len()];
        argon2(algorithm, version, params, password, &hash.salt?, &mut output, memory).ok()?;
        Some((output, expected))
    };
    output().is_some_and(|(output, expected)| output.ct_eq(&expected).into())
}

/// Argon2 itself, which leaves its memory to the next one.
fn argon2(
    algorithm: Algorithm,
    version: Version,
    params: Params,
    password: &str,
    salt: &[u8],
    output: &mut [u8],
    memory: &mut Vec<Block>,
) -> argon2::Result<()> {
    if memory.len() < params.block_count() {
        memory.resize(params.block_count(), Block::default());
    }
    Argon2::new(algorithm, version, params).hash_password_into_with_memory(password.as_bytes(), salt, output, memory)
}

fn check_password_rules(password: &str) -> Result<(), InvalidAttribute> {
    let length = password.chars().count();
    let refuse = |what: String| Err(InvalidAttribute::new("password", format!("Password {what}")));
    match length {
        0 => refuse("can't be blank".to_owned()),
        _ if length < SHORTEST => refuse(format!("is too short (minimum is {SHORTEST} characters); it has {length}")),
        _ if password.len() > MAX_PASSWORD_BYTES => {
            refuse(format!("is too long (maximum is {MAX_PASSWORD_BYTES} bytes)"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_nobody_costs_what_a_hash_of_today_costs() {
        /// All but salt and hash, and how long those are.
        fn cost(hash: &str) -> (Vec<&str>, Vec<usize>) {
            assert!(PasswordHash::new(hash).is_ok(), "{hash}");
            let parts: Vec<&str> = hash.split('$').collect();
            let (parameters, rest) = parts.split_at(4);
            (parameters.to_vec(), rest.iter().map(|part| part.len()).collect())
        }
        let mut memory = Vec::new();
        assert_eq!(cost(HASH_OF_NOBODY), cost(&hash("correct horse", [7; 16], &mut memory)));
        assert!(!fits("correct horse", HASH_OF_NOBODY, &mut memory));
    }

    #[test]
    fn hashes_are_what_everyone_takes_for_argon2_whatever_the_memory_held_before() {
        use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
        let mut memory = Vec::new();
        for salt in [[7; 16], [8; 16]] {
            let ours = hash("correct horse", salt, &mut memory);
            assert!(
                Argon2::default().verify_password(b"correct horse", &PasswordHash::new(&ours).expect("a hash")).is_ok()
            );
            let theirs =
                Argon2::default().hash_password_with_salt(b"correct horse", &salt).expect("a hash").to_string();
            assert_eq!(ours, theirs);
            assert!(fits("correct horse", &theirs, &mut memory) && !fits("wrong horse", &theirs, &mut memory));
        }
        assert!(!fits("correct horse", "no hash", &mut memory));
    }
}
