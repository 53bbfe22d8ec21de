//! Who did something, as records remember it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{AgentPoolId, OrganizationId, RunId, TeamId, UserId};

/// Who made a change or holds a lock. A team's token acts for the team, not for the person who typed it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Author {
    User(UserId),
    Team(TeamId),
    Organization(OrganizationId),
    Run(RunId),
    AgentPool(AgentPoolId),
    /// Taco itself: schedules, and what follows from something else.
    Taco,
}

impl Author {
    /// The word for its kind that clients look for in `is locked by …`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::User(_) => "User",
            Self::Team(_) => "Team",
            Self::Organization(_) => "Organization",
            Self::Run(_) => "Run",
            Self::AgentPool(_) => "Agent pool",
            Self::Taco => "Taco",
        }
    }
}

/// As the audit trail spells it.
impl fmt::Display for Author {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(id) => id.fmt(formatter),
            Self::Team(id) => id.fmt(formatter),
            Self::Organization(id) => id.fmt(formatter),
            Self::Run(id) => id.fmt(formatter),
            Self::AgentPool(id) => id.fmt(formatter),
            Self::Taco => formatter.write_str("taco"),
        }
    }
}
