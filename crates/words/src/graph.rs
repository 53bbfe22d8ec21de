//! Words for the graph of states: how fresh a unit is, how an edge is known, and what to do about it. A unit is a
//! workspace, that is one Terraform state.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that is none of the words that are allowed here.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("{found:?} is not one of {allowed}")]
pub struct UnknownWord {
    pub found: String,
    pub allowed: String,
}

/// Declares enums whose variants are words: as JSON, on command lines and in texts.
macro_rules! word_enums {
    ($($(#[$attribute:meta])* $name:ident { $($(#[$variant_attribute:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
        pub enum $name {
            $($(#[$variant_attribute])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(self.word())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(found: &str) -> Result<Self, UnknownWord> {
                Self::ALL.iter().copied().find(|word| word.word() == found).ok_or_else(|| UnknownWord {
                    found: found.to_owned(),
                    allowed: Self::ALL.iter().map(|word| word.word()).collect::<Vec<_>>().join(", "),
                })
            }
        }
    )*};
}

word_enums! {
    /// Freshness of a unit: does its state hold what its producers say today?
    Freshness {
        /// It has no state yet.
        NeverApplied = "never_applied",
        /// Proven: every output that it uses is the one that it last applied against.
        Clean = "clean",
        /// An output that it uses has changed since.
        Stale = "stale",
        /// An output that it uses is gone, or has another type.
        Broken = "broken",
        /// A plan that nobody applied yet may change an output that it uses.
        MayChange = "may_change",
        /// There is no proof either way. Never shown as clean.
        Unknown = "unknown",
    }

    /// What a unit is doing.
    Activity {
        Idle = "idle",
        Queued = "queued",
        Planning = "planning",
        NeedsApproval = "needs_approval",
        Applying = "applying",
        Locked = "locked",
    }

    /// Health of a unit, by its newest run and state.
    Health {
        Ok = "ok",
        Errored = "errored",
        /// What is deployed is not what its state says.
        Drifted = "drifted",
        /// Two states with the same serial and lineage, and different contents.
        Diverged = "diverged",
    }

    /// Status of an edge: what its consumer last applied against, compared with what its producer says now.
    EdgeStatus {
        Fresh = "fresh",
        Stale = "stale",
        /// An output that is used is gone.
        Missing = "missing",
        /// An output that is used has another type.
        Retyped = "retyped",
        /// The producer is not known here, or was never applied.
        Unbound = "unbound",
        /// Declared, and no read of it was seen.
        Unobserved = "unobserved",
        /// The producer's outputs cannot be read: its state is encrypted, or has too many of them.
        Opaque = "opaque",
        /// Nothing says what the consumer last applied against.
        Unknown = "unknown",
    }

    /// How an edge is known, best first.
    Grade {
        /// A variable of the consumer is bound to the output.
        Binding = "binding",
        /// The plan of a run names the output.
        Plan = "plan",
        /// A run's own token read the producer's outputs.
        Log = "log",
        /// The consumer's state holds a data block that reads the producer.
        State = "state",
        /// Resources of the consumer hold values that the producer made.
        Echo = "echo",
        /// A person says so.
        Declared = "declared",
    }

    /// What happens to a consumer when an output that it uses has changed.
    EdgePolicy {
        /// A run starts by itself.
        Auto = "auto",
        /// It is shown as stale.
        Notify = "notify",
        /// Nothing, and the change does not count.
        Ignore = "ignore",
    }

    /// What happens to a plan that removes or retypes an output that others use.
    ContractPolicy {
        Off = "off",
        /// The run says so, and goes on.
        Warn = "warn",
        /// The run waits for a person to decide.
        Stop = "stop",
    }

    /// What a plan does to an output, so that whoever uses it breaks.
    BreakingChange {
        Removed = "removed",
        /// It gets another type.
        Retyped = "retyped",
    }

    /// How sure it is that a consumer uses an output.
    OutputUse {
        /// Evidence or a person names it.
        Uses = "uses",
        /// It uses the producer, and nothing tells which outputs.
        MayUse = "may_use",
        /// Only its values look like it.
        ProbablyUses = "probably_uses",
    }

    /// Change of one output from one output commit to the next.
    OutputChange {
        Added = "added",
        Removed = "removed",
        Type = "type",
        Value = "value",
        Sensitivity = "sensitivity",
    }

    /// How a consumer came to hold what its producer said.
    ConsumedBy {
        /// It was applied.
        Applied = "applied",
        /// A plan found nothing to change.
        Verified = "verified",
        /// A person says so.
        Acknowledged = "acknowledged",
    }

    WalkKind {
        Plan = "plan",
        Apply = "apply",
        Destroy = "destroy",
    }

    WalkState {
        Running = "running",
        /// A node waits for approval, and nothing else goes on.
        NeedsApproval = "needs_approval",
        /// Every node is done or cut off.
        Done = "done",
        /// Some nodes failed or are blocked.
        Failed = "failed",
        Canceled = "canceled",
    }

    WalkNodeState {
        /// Producers in the walk are not done.
        Waiting = "waiting",
        Ready = "ready",
        Planning = "planning",
        NeedsApproval = "needs_approval",
        Applying = "applying",
        Done = "done",
        /// Without a run: nothing that it uses changed, and it has no change of its own.
        CutOff = "cut_off",
        Failed = "failed",
        Canceled = "canceled",
        /// A producer failed.
        Blocked = "blocked",
        /// What its plan saw has moved; it is planned again.
        Outdated = "outdated",
    }

    WalkResult {
        Changed = "changed",
        Unchanged = "unchanged",
        CutOff = "cut_off",
        Failed = "failed",
    }
}

impl Freshness {
    /// Two of a unit's edges together: the one that asks for more attention wins.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let weight = |freshness| match freshness {
            Self::Clean => 0,
            Self::MayChange => 1,
            Self::Unknown => 2,
            Self::Stale => 3,
            Self::Broken => 4,
            Self::NeverApplied => 5,
        };
        if weight(other) > weight(self) { other } else { self }
    }

    /// The word as people read it.
    pub fn text(self) -> &'static str {
        match self {
            Self::NeverApplied => "never applied",
            Self::MayChange => "may change",
            other => other.word(),
        }
    }
}

impl Activity {
    /// The word as people read it.
    pub fn text(self) -> &'static str {
        match self {
            Self::NeedsApproval => "needs approval",
            other => other.word(),
        }
    }
}

impl Health {
    /// The word as people read it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Errored => "failed",
            other => other.word(),
        }
    }
}

impl Grade {
    /// Evidence that can prove a unit clean. An echo proves nothing, and neither does a declaration.
    pub fn is_proof(self) -> bool {
        matches!(self, Self::Binding | Self::Plan | Self::Log | Self::State)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_in_json_and_in_texts() {
        for freshness in Freshness::ALL {
            assert_eq!(serde_json::to_string(freshness).expect("JSON"), format!("\"{freshness}\""));
            assert_eq!(freshness.word().parse(), Ok(*freshness));
        }
        let refusal = "tuesday".parse::<EdgePolicy>().expect_err("no policy").to_string();
        assert_eq!(refusal, "\"tuesday\" is not one of auto, notify, ignore");
    }

    #[test]
    fn of_two_edges_the_one_that_asks_for_more_wins() {
        assert_eq!(Freshness::Clean.and(Freshness::Unknown), Freshness::Unknown);
        assert_eq!(Freshness::Unknown.and(Freshness::Stale), Freshness::Stale);
        assert_eq!(Freshness::Stale.and(Freshness::Broken), Freshness::Broken);
        assert_eq!(Freshness::Clean.and(Freshness::Clean), Freshness::Clean);
    }
}
