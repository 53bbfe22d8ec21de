//! Words and rules: ids, names, records, and what may happen to them, as plain functions. No I/O, no async, no clock:
//! times, randomness and keys are arguments, so a hundred cases cost milliseconds.

pub mod attribute;
pub mod author;
pub mod grant;
pub mod id;
pub mod name;
pub mod password_link;
pub mod secret;
pub mod session;
pub mod token;
pub mod user;

pub use attribute::InvalidAttribute;
pub use author::Author;
