//! Users, and how they prove who they are.

pub mod grant;
pub mod password_link;
pub mod session;
pub mod token;
pub mod user;
