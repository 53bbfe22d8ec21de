//! Accounts, users and tokens.

pub(crate) mod account;
pub(crate) mod admin_users;
pub(crate) mod authentication_tokens;
pub(crate) mod user_tokens;
pub(crate) mod users;
