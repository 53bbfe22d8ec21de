//! Notifications: who is told what about runs, and in which form.

pub mod delivery;
pub mod email;
pub mod message;
pub mod microsoft_teams;
pub mod notification_configuration;
pub mod notification_patch;
pub mod payload;
pub mod slack;
pub mod trigger;
