use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes};

use crate::id::UserId;
use crate::name::{Email, NameKey, Username};

/// A person, or a program with an account of its own.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct User {
    pub id: UserId,
    pub username: Username,
    pub email: Email,
    /// The argon2id hash of the password, encrypted; in PHC's notation if an older version stored it. Without one there
    /// is no login with a form.
    pub password: Option<String>,
    /// May do everything, everywhere.
    #[serde(default)]
    pub site_admin: bool,
    /// Keeps what it made, but opens nothing.
    #[serde(default)]
    pub suspended: bool,
    #[serde(default)]
    pub service_account: bool,
    /// The address that a site admin has vouched for. It counts while it is the user's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_email: Option<Email>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl User {
    /// The name under which the hash of a user's password is sealed.
    pub fn seal_name(user: UserId) -> String {
        format!("{user} password")
    }

    /// True if someone other than the user has verified that the address is theirs.
    pub fn has_verified_email(&self) -> bool {
        self.verified_email.as_ref().is_some_and(|verified| verified.key() == self.email.key())
    }
}

impl Record for User {
    const KIND: &'static str = "user";
    const UNIQUE: &'static [&'static str] = &["username", "email"];
    type Id = UserId;
    type Indexes = UserIndexes;

    fn id(&self) -> &UserId {
        &self.id
    }

    fn sealed_mut(&mut self) -> Vec<(String, &mut String)> {
        let name = Self::seal_name(self.id);
        self.password.as_mut().map(|password| (name, password)).into_iter().collect()
    }
}

indexes! {
    pub struct UserIndexes for User {
        pub username: NameKey, unique "username" => |user| [user.username.key()];
        pub email: NameKey, unique "email" => |user| [user.email.key()];
    }
}
