//! Accounts, users and tokens.

pub(crate) mod account;
pub(crate) mod authentication_tokens;
pub(crate) mod user_tokens;
pub(crate) mod users;
