//! State of the site, built from its ledger: users and their credentials, and which organizations exist.

use taco_tables::tables;

use crate::grant::Grant;
use crate::id::OrganizationPrefix;
use crate::idempotency_record::IdempotencyRecord;
use crate::name::{Email, NameKey, OrganizationName, Username};
use crate::organization::OrganizationEntry;
use crate::password_link::PasswordLink;
use crate::session::Session;
use crate::site_secret::SiteSecret;
use crate::token::Token;
use crate::user::User;

tables! {
    /// State of the site, built from its ledger.
    pub struct Site {
        pub users: User;
        pub organizations: OrganizationEntry;
        /// Users' tokens; those of an organization are in its own ledger.
        pub tokens: Token;
        pub sessions: Session;
        pub grants: Grant;
        pub password_links: PasswordLink;
        pub secrets: SiteSecret;
        pub idempotency_records: IdempotencyRecord;
    }
}

impl Site {
    /// The organization of exactly this name.
    pub fn organization_named(&self, name: &str) -> Option<&OrganizationEntry> {
        self.organizations.by().name.first(&NameKey::of(name)).filter(|entry| entry.name.as_str() == name)
    }

    /// True if an organization has this name, ignoring case.
    pub fn has_organization_named(&self, name: &OrganizationName) -> bool {
        self.organizations.by().name.first(&name.key()).is_some()
    }

    /// The organization that ids with this home belong to.
    pub fn organization_at(&self, prefix: OrganizationPrefix) -> Option<&OrganizationEntry> {
        self.organizations.by().prefix.first(&prefix)
    }

    pub fn user_named(&self, username: &Username) -> Option<&User> {
        self.users.by().username.first(&username.key())
    }

    pub fn user_with_email(&self, email: &Email) -> Option<&User> {
        self.users.by().email.first(&email.key())
    }

    /// Finds a user by what people type into a login form: the name or the address.
    pub fn user_called(&self, text: &str) -> Option<&User> {
        let key = NameKey::of(text.trim());
        let by = self.users.by();
        by.username.first(&key).or_else(|| by.email.first(&key))
    }
}
