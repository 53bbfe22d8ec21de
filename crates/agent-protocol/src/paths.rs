use serde::{Deserialize, Serialize};

use crate::job::PhaseAttempt;

/// Path where agents connect.
pub const CONNECT_PATH: &str = "/api/agent/v1/connect";

/// Upload of an agent for a phase, by `PUT` to the phase's path and this name. `GET` of `configuration`, `state` and
/// `plan` at the same place downloads what it needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Upload {
    /// The engine's own file.
    Plan,
    /// `show -json` of it.
    JsonPlan,
    /// Plan that the `cloud` block renders: the changes and the providers' schemas, without sensitive values.
    RedactedPlan,
    /// Part of the log, with `?offset=`. The first byte of a log is STX, the last ETX; the agent writes both.
    Log,
    /// The state as it is now. Repeating it is harmless.
    State,
    /// [`crate::Outcome`] as JSON. Everything else has to be there before.
    Outcome,
}

impl Upload {
    pub const ALL: [Self; 6] = [Self::Plan, Self::JsonPlan, Self::RedactedPlan, Self::Log, Self::State, Self::Outcome];

    pub fn word(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::JsonPlan => "json-plan",
            Self::RedactedPlan => "redacted-plan",
            Self::Log => "log",
            Self::State => "state",
            Self::Outcome => "outcome",
        }
    }
}

/// The body of `409 Conflict` to a part of a log that neither follows what the server has nor repeats it: the agent
/// goes on from there. Every other 401, 403, 404, 409 or 410 tells an agent that the phase is no longer its own, and
/// 400, 413 or 422 that this request will never be accepted; on any other failure it retries.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct LogConflict {
    /// Number of bytes of this attempt's log that the server has.
    pub next: u64,
}

/// Path for requests about a phase; a name follows.
pub fn phase_path(phase: &PhaseAttempt) -> String {
    format!("/api/agent/v1/phases/{}/{}/{}", phase.run, phase.phase, phase.epoch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PROTOCOL, PhaseKind};

    /// Agents and servers of other releases know these. What they send is pinned by `tests/formats`.
    #[test]
    fn addresses_stay_where_they_are() {
        assert_eq!((PROTOCOL, CONNECT_PATH), (1, "/api/agent/v1/connect"));
        let run = "run-4Tk9mXbq7cWvZpHn".parse().expect("an id");
        for (phase, path) in [(PhaseKind::Plan, "plan"), (PhaseKind::Apply, "apply")] {
            let expected = format!("/api/agent/v1/phases/run-4Tk9mXbq7cWvZpHn/{path}/3");
            assert_eq!(phase_path(&PhaseAttempt { run, phase, epoch: 3 }), expected);
        }
        let words = ["plan", "json-plan", "redacted-plan", "log", "state", "outcome"];
        assert_eq!(Upload::ALL.map(Upload::word), words);
    }
}
