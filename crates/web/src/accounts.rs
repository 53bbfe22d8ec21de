//! Logins, accounts, sessions and tokens of people.

pub(crate) mod account;
pub(crate) mod consent;
pub(crate) mod lifetimes;
pub(crate) mod login;
pub(crate) mod login_limit;
pub mod oauth;
pub(crate) mod password_link;
pub(crate) mod session_cookie;
pub(crate) mod sessions;
pub(crate) mod tokens;
