//! Organizations, and who belongs to them.

pub mod invitation;
pub mod membership;
pub mod organization;
pub mod token_lifetime;
