//! Author of a change, as recorded.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::id::{AgentPoolId, OrganizationId, RunId, TeamId, UserId};

/// Author of a change or holder of a lock. A team's token acts for the team, not for the person who typed it.
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
    /// The name of its kind that clients look for in `is locked by …`.
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

    /// Whom the audit trail spells so.
    pub fn spelled(text: &str) -> Option<Self> {
        fn id<I: FromStr>(text: &str, author: impl FnOnce(I) -> Author) -> Option<Author> {
            text.parse().ok().map(author)
        }
        id(text, Self::User)
            .or_else(|| id(text, Self::Team))
            .or_else(|| id(text, Self::Organization))
            .or_else(|| id(text, Self::Run))
            .or_else(|| id(text, Self::AgentPool))
            .or_else(|| (text == TACO).then_some(Self::Taco))
    }
}

/// Taco itself, where others have an id.
const TACO: &str = "taco";

/// Spelling of the audit trail.
impl fmt::Display for Author {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(id) => id.fmt(formatter),
            Self::Team(id) => id.fmt(formatter),
            Self::Organization(id) => id.fmt(formatter),
            Self::Run(id) => id.fmt(formatter),
            Self::AgentPool(id) => id.fmt(formatter),
            Self::Taco => formatter.write_str(TACO),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_author_is_read_as_it_is_spelled() {
        let prefix = OrganizationId::from_random([1; 16]).organization_prefix();
        for author in [
            Author::User(UserId::from_random([2; 16])),
            Author::Team(TeamId::within(prefix, [3; 16])),
            Author::Organization(OrganizationId::from_random([1; 16])),
            Author::Run(RunId::within(prefix, [4; 16])),
            Author::AgentPool(AgentPoolId::within(prefix, [5; 16])),
            Author::Taco,
        ] {
            assert_eq!(Author::spelled(&author.to_string()), Some(author));
        }
        assert_eq!(Author::spelled("nobody"), None);
    }
}
