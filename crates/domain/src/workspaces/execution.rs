//! Execution mode of runs: a setting that a workspace may inherit from its project, and a project from its
//! organization.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::attribute::{InvalidAttribute, shown};
use crate::id::AgentPoolId;

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum ExecutionMode {
    /// On the agent within the server.
    Remote,
    /// On the client; taco keeps the state alone.
    Local,
    /// On the agents of a pool.
    Agent,
}

impl fmt::Display for ExecutionMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Remote => "remote",
            Self::Local => "local",
            Self::Agent => "agent",
        })
    }
}

/// A mode, with its pool where it needs one.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Execution {
    pub mode: ExecutionMode,
    pub agent_pool: Option<AgentPoolId>,
}

impl Execution {
    pub const REMOTE: Self = Self { mode: ExecutionMode::Remote, agent_pool: None };
    pub const LOCAL: Self = Self { mode: ExecutionMode::Local, agent_pool: None };
}

/// `setting-overwrites`: whether a thing has a setting of its own. Mode and pool go together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct SettingOverwrites {
    #[serde(alias = "default-execution-mode")]
    pub execution_mode: Option<bool>,
    #[serde(alias = "default-agent-pool")]
    pub agent_pool: Option<bool>,
}

/// Changes to the execution settings in a request.
#[derive(Clone, Default, Debug)]
pub struct ExecutionPatch<'a> {
    pub mode: Option<&'a str>,
    pub agent_pool: Option<Option<AgentPoolId>>,
    pub overwrites: SettingOverwrites,
}

/// Attribute names of one kind of thing, in requests and in refusals.
pub(crate) struct Spelling {
    pub(crate) mode_attribute: &'static str,
    pub(crate) pool_attribute: &'static str,
    pub(crate) pool_title: &'static str,
}

pub(crate) const OWN: Spelling =
    Spelling { mode_attribute: "execution-mode", pool_attribute: "agent-pool-id", pool_title: "Agent pool" };
pub(crate) const DEFAULT: Spelling = Spelling {
    mode_attribute: "default-execution-mode",
    pool_attribute: "default-agent-pool-id",
    pool_title: "Default agent pool",
};

impl ExecutionPatch<'_> {
    /// The own setting after the request; `None` where the thing inherits `inherited`.
    pub(crate) fn apply(
        &self,
        current: Option<Execution>,
        inherited: Execution,
        spelling: &Spelling,
    ) -> Result<Option<Execution>, InvalidAttribute> {
        let refuse =
            |what: &str| Err(InvalidAttribute::new(spelling.pool_attribute, format!("{} {what}", spelling.pool_title)));
        let SettingOverwrites { execution_mode: own_mode, agent_pool: own_pool } = self.overwrites;
        if own_mode.is_some() && own_pool.is_some() && own_mode != own_pool {
            return Err(InvalidAttribute::new(
                "setting-overwrites",
                "If agent-pool and execution-mode are both included in setting-overwrites, their values must be the same.",
            ));
        }
        if own_mode == Some(false) || own_pool == Some(false) {
            return Ok(None);
        }
        let mode = self.mode.map(|mode| parse_mode(mode, spelling)).transpose()?;
        let before = current.unwrap_or(inherited);
        if mode.is_none() && self.agent_pool.is_none() {
            let wants_own = own_mode == Some(true) || own_pool == Some(true);
            return Ok(if wants_own { Some(before) } else { current });
        }
        match (mode.unwrap_or(before.mode), self.agent_pool) {
            (ExecutionMode::Agent, Some(Some(pool))) => {
                Ok(Some(Execution { mode: ExecutionMode::Agent, agent_pool: Some(pool) }))
            }
            (ExecutionMode::Agent, None) if before.agent_pool.is_some() => Ok(Some(before)),
            (ExecutionMode::Agent, _) => refuse("must be specified when using 'agent' execution mode"),
            (_, Some(Some(_))) => refuse("must not be specified unless using 'agent' execution mode"),
            (mode, _) => Ok(Some(Execution { mode, agent_pool: None })),
        }
    }
}

fn parse_mode(mode: &str, spelling: &Spelling) -> Result<ExecutionMode, InvalidAttribute> {
    mode.parse().map_err(|UnknownMode| {
        let detail = format!("Execution mode must be remote, local or agent; it is {}", shown(mode));
        InvalidAttribute::new(spelling.mode_attribute, detail)
    })
}

/// There are three modes, and this is none of them.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
#[error("execution modes are remote, local and agent")]
pub struct UnknownMode;

impl FromStr for ExecutionMode {
    type Err = UnknownMode;

    fn from_str(mode: &str) -> Result<Self, UnknownMode> {
        match mode {
            "remote" => Ok(Self::Remote),
            "local" => Ok(Self::Local),
            "agent" => Ok(Self::Agent),
            _ => Err(UnknownMode),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_own_or_inherited() {
        let pool = AgentPoolId::from_random([1; 16]);
        let agent = Execution { mode: ExecutionMode::Agent, agent_pool: Some(pool) };
        let both = |own| SettingOverwrites { execution_mode: Some(own), agent_pool: Some(own) };
        let nothing = SettingOverwrites::default();
        let inherits = None;
        for (number, (current, inherited, mode, agent_pool, overwrites, expected)) in [
            (inherits, Execution::REMOTE, None, None, nothing, Ok(None)),
            (inherits, agent, None, None, both(false), Ok(None)),
            (Some(Execution::LOCAL), agent, None, None, nothing, Ok(Some(Execution::LOCAL))),
            (Some(Execution::LOCAL), agent, None, None, both(false), Ok(None)),
            (inherits, agent, None, None, both(true), Ok(Some(agent))),
            (inherits, agent, Some("local"), None, both(true), Ok(Some(Execution::LOCAL))),
            (inherits, agent, Some("remote"), None, nothing, Ok(Some(Execution::REMOTE))),
            (inherits, Execution::REMOTE, Some("agent"), Some(Some(pool)), nothing, Ok(Some(agent))),
            (Some(agent), Execution::REMOTE, Some("agent"), None, nothing, Ok(Some(agent))),
            (Some(agent), Execution::REMOTE, Some("remote"), None, nothing, Ok(Some(Execution::REMOTE))),
            (Some(agent), Execution::REMOTE, Some("remote"), Some(None), nothing, Ok(Some(Execution::REMOTE))),
            (inherits, agent, None, Some(Some(pool)), nothing, Ok(Some(agent))),
            (inherits, Execution::REMOTE, Some("agent"), None, nothing, Err("agent-pool-id")),
            (Some(agent), Execution::REMOTE, None, Some(None), nothing, Err("agent-pool-id")),
            (inherits, Execution::REMOTE, None, Some(Some(pool)), nothing, Err("agent-pool-id")),
            (inherits, Execution::REMOTE, Some("local"), Some(Some(pool)), nothing, Err("agent-pool-id")),
            (inherits, Execution::REMOTE, Some("cloud"), None, nothing, Err("execution-mode")),
            (
                inherits,
                Execution::REMOTE,
                Some("agent"),
                Some(Some(pool)),
                SettingOverwrites { execution_mode: Some(true), agent_pool: Some(false) },
                Err("setting-overwrites"),
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let patch = ExecutionPatch { mode, agent_pool, overwrites };
            let result = patch.apply(current, inherited, &OWN).map_err(|refusal| refusal.attribute);
            assert_eq!(result, expected, "row {number}");
        }
    }

    #[test]
    fn refusals_are_worded_as_clients_expect() {
        let pool = Some(Some(AgentPoolId::from_random([1; 16])));
        let refusal =
            |patch: ExecutionPatch| patch.apply(None, Execution::REMOTE, &DEFAULT).expect_err("refused").detail;
        assert_eq!(
            refusal(ExecutionPatch { agent_pool: pool, ..ExecutionPatch::default() }),
            "Default agent pool must not be specified unless using 'agent' execution mode"
        );
        assert_eq!(
            refusal(ExecutionPatch { mode: Some("agent"), ..ExecutionPatch::default() }),
            "Default agent pool must be specified when using 'agent' execution mode"
        );
    }
}
