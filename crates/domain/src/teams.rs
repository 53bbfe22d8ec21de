//! Teams, and what they may touch.

pub mod team;
pub mod team_access;
pub mod team_access_patch;
