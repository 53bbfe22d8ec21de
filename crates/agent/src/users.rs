//! The Unix users that engines run as: one for all runs, or one for each run at a time.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use nix::unistd::User;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of users: more than any machine has phases at a time.
const MAX_USERS: u32 = 1000;

/// A user and a group of this machine, by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Debug)]
pub(crate) struct RunAs {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// Users for engines. If there are several, no two runs have the same one at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunUsers(BTreeSet<RunAs>);

impl RunUsers {
    /// The users of a text: `taco-runs`, `runs-1,runs-2`, or `64000-64031` for users by number, whose groups have the same
    /// numbers and who need no names. The error completes the sentence "«text» …".
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut users = BTreeSet::new();
        for word in text.split(',').map(str::trim) {
            match numbers(word)? {
                Some((first, last)) => users.extend((first..=last).map(|id| RunAs { user: id, group: id })),
                None => {
                    users.insert(named(word)?);
                }
            }
        }
        if users.iter().any(|user| user.user == 0) {
            return Err("has root among its users, who can do what the agent can do".to_owned());
        }
        match nix::unistd::geteuid().is_root() {
            true => Ok(Self(users)),
            false => Err("is another user, and only root can run engines as another user".to_owned()),
        }
    }

    /// Checks that so many phases at a time can each have a user of their own, or all share the only one. The error
    /// completes the sentence "«text» …".
    pub fn check_concurrency(&self, concurrency: u32) -> Result<(), String> {
        match self.0.len() {
            1 => Ok(()),
            count if count >= concurrency as usize => Ok(()),
            count => Err(format!(
                "has {count} users for {concurrency} runs at a time: give one user, or at least {concurrency}"
            )),
        }
    }

    /// True if runs at the same time have different users.
    pub(crate) fn differ(&self) -> bool {
        self.0.len() > 1
    }
}

/// `64000-64031`, or `None` for a name.
fn numbers(word: &str) -> Result<Option<(u32, u32)>, String> {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let Some((first, last)) = word.split_once('-').filter(|(first, last)| is_number(first) && is_number(last)) else {
        return Ok(None);
    };
    let (first, last) = match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) => (first, last),
        _ => return Err(format!("has a number that no user can have: {word}")),
    };
    // The last two stand for no user, and for one whom a namespace does not know.
    if first > last || last - first >= MAX_USERS || last >= u32::MAX - 1 {
        return Err(format!("needs 1 to {MAX_USERS} users in a range such as 64000-64031, and {word} is none"));
    }
    Ok(Some((first, last)))
}

fn named(user: &str) -> Result<RunAs, String> {
    let found = User::from_name(user).map_err(|error| format!("cannot be looked up: {error}"))?;
    let found = found.ok_or("is no user of this machine")?;
    Ok(RunAs { user: found.uid.as_raw(), group: found.gid.as_raw() })
}

/// The users of one agent, who go from run to run.
pub(crate) enum UserPool {
    /// Engines have the agent's own user.
    Own,
    Shared(RunAs),
    Each {
        free: Arc<Mutex<BTreeSet<RunAs>>>,
        permits: Arc<Semaphore>,
    },
}

impl UserPool {
    pub(crate) fn new(users: Option<&RunUsers>) -> Self {
        match users.map(|users| &users.0) {
            None => Self::Own,
            Some(users) if users.len() == 1 => users.first().map_or(Self::Own, |user| Self::Shared(*user)),
            Some(users) => {
                Self::Each { free: Arc::new(Mutex::new(users.clone())), permits: Arc::new(Semaphore::new(users.len())) }
            }
        }
    }

    /// A user for a run, which is its own until the result is dropped; `None` for the agent's own user.
    pub(crate) async fn take(&self) -> Option<TakenUser> {
        match self {
            Self::Own => None,
            Self::Shared(user) => Some(TakenUser { user: *user, back_to: None }),
            Self::Each { free, permits } => {
                let permit = Arc::clone(permits).acquire_owned().await.ok()?;
                let user = free.lock().unwrap_or_else(PoisonError::into_inner).pop_first()?;
                Some(TakenUser { user, back_to: Some((Arc::clone(free), permit)) })
            }
        }
    }
}

/// A user whom a run has.
pub(crate) struct TakenUser {
    user: RunAs,
    back_to: Option<(Arc<Mutex<BTreeSet<RunAs>>>, OwnedSemaphorePermit)>,
}

impl Deref for TakenUser {
    type Target = RunAs;

    fn deref(&self) -> &RunAs {
        &self.user
    }
}

impl Drop for TakenUser {
    fn drop(&mut self) {
        // Before the permit goes back, which is dropped after this.
        if let Some((free, _)) = &self.back_to {
            free.lock().unwrap_or_else(PoisonError::into_inner).insert(self.user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_named_listed_or_numbered() {
        assert_eq!(numbers("64000-64003"), Ok(Some((64_000, 64_003))));
        assert_eq!(numbers("taco-runs"), Ok(None));
        assert_eq!(numbers("runs-1"), Ok(None), "this is a name");
        for wrong in ["5-4", "1-5000", "1-99999999999", "4294967290-4294967294"] {
            numbers(wrong).expect_err(wrong);
        }
        assert!(RunUsers::parse("nobody-like-this").expect_err("nobody").contains("is no user of this machine"));
        assert!(RunUsers::parse("0-5").expect_err("root").contains("root"));
        if nix::unistd::geteuid().is_root() {
            assert_eq!(RunUsers::parse("64000-64003, nobody").map(|users| users.0.len()), Ok(5));
        }
    }

    #[test]
    fn there_is_a_user_for_each_or_one_for_all() {
        let of = |count| RunUsers((1..=count).map(|id| RunAs { user: id, group: id }).collect());
        of(1).check_concurrency(8).expect("all share it");
        of(8).check_concurrency(8).expect("one each");
        assert!(of(7).check_concurrency(8).expect_err("one too few").contains("7 users for 8 runs at a time"));
    }

    #[tokio::test]
    async fn no_two_runs_have_a_user_at_a_time() {
        let users = RunUsers((1..=2).map(|id| RunAs { user: id, group: id }).collect());
        let pool = UserPool::new(Some(&users));
        let (first, second) = (pool.take().await.expect("a user"), pool.take().await.expect("a user"));
        assert_ne!(*first, *second);
        let third = pool.take();
        tokio::pin!(third);
        assert!(futures::poll!(third.as_mut()).is_pending(), "it waits");
        let left = *first;
        drop(first);
        assert_eq!(*third.await.expect("a user"), left);
        drop(second);
        assert!(UserPool::new(None).take().await.is_none());
    }
}
