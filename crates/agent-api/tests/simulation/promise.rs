//! Promises of taco about runs, by name, so that a test can say which of them a mistake breaks.

use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Promise {
    /// The log can be read from its beginning to its end.
    TheLogIsWhole,
    /// A run or a state that someone was told of is there for ever, on every server at once.
    WhatWasAcknowledgedStays,
    /// Requests of people take effect once, and a refusal is true.
    WishesAreGrantedOnce,
    /// The serials of a workspace's states go up, in one lineage, and what is final does not change.
    StatesFollowEachOther,
    TheCurrentStateIsTheNewest,
    /// A workspace's lock has one holder, who lets it go.
    ALockHasOneHolder,
    /// In each workspace at most one run is under way, the first of its queue.
    OneRunAtATime,
    /// An attempt is one agent's, which executes it once.
    AnAttemptHasOneExecutor,
    AnApplyBeginsOnce,
    /// No two applies of a workspace go on at the same time.
    AppliesDoNotOverlap,
    /// Runs move along the graph of their statuses.
    RunsFollowTheGraph,
    /// A request to stop a phase is heard: nothing follows its plan, and no other phase stops for it.
    ACancelIsForOnePhase,
    /// An attempt ends with what its own agent said.
    OthersCannotSpeakForAnAttempt,
    /// A log, as readers see it, is what its engine wrote.
    LogsAreTrue,
    /// A phase that an agent took is executed, or given up for a reason that names the agent.
    WhatIsTakenComesToSomething,
    /// Applies before plans before plans that change nothing, the oldest first; and no run is passed over for ever.
    TheQueueKeepsItsOrder,
    /// No node of a walk begins before all that it uses is done.
    AWalkKeepsItsOrder,
    /// What a walk cuts off uses what it took in last.
    WhatIsCutOffIsUnchanged,
    /// A walk applies a workspace once.
    AWalkAppliesOnce,
    /// Every walk ends when the faults are over, and each of its nodes has an end and a reason.
    EveryWalkComesToAnEnd,
    /// Every run ends or waits for a person when the faults are over.
    EveryRunComesToAnEnd,
}

/// The promises that a history broke, each with how that was first seen.
#[derive(Clone, PartialEq, Default)]
pub(crate) struct Broken(BTreeMap<Promise, String>);

impl Broken {
    pub(crate) fn note(&mut self, promise: Promise, how: String) {
        self.0.entry(promise).or_insert(how);
    }

    pub(crate) fn has(&self, promise: Promise) -> bool {
        self.0.contains_key(&promise)
    }

    pub(crate) fn or<T>(self, kept: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(kept) } else { Err(self) }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.0.iter().map(|(promise, how)| format!("{promise:?}: {how}"));
        formatter.write_str(&lines.collect::<Vec<_>>().join("\n  "))
    }
}

impl fmt::Debug for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
