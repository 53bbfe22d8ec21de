//! Notifications: who is told what, and how it gets there.

pub(crate) mod courier;
pub(crate) mod deliveries;
mod messages;
pub(crate) mod notification_configurations;
pub(crate) mod outbox;
