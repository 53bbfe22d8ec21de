//! Mistakes that the simulation has to find; else it proves nothing. They are made around the rules of walks, which hold
//! no trace of them.

use super::promises::Promise;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sabotage {
    None,
    /// Nodes do not know what comes before them.
    ForgetsNeeds,
    /// What a unit uses never differs from what it last applied.
    SeesNoDifference,
    /// A unit's own configuration never differs from what it last applied.
    SeesNoOwnChange,
    /// Plans are never outdated.
    AppliesOutdatedPlans,
    /// Runs are written without the nodes that they belong to, now and then: two writes instead of one commit.
    LosesNodes,
    /// The apply of a run that is over is queued again.
    QueuesAppliesAgain,
    /// As many runs are started as there are nodes that are ready.
    CountsNoRuns,
    /// A resumed walk begins from the beginning.
    RetriesEverything,
    /// Why a node ended is not written down.
    TellsNoReasons,
    /// A decision of a person is never written down.
    LosesDecisions,
}

impl Sabotage {
    /// Each mistake, and the promise by which it has to be found: another one may break by chance.
    pub(super) const PLANTED: [(Self, Promise); 10] = [
        (Self::ForgetsNeeds, Promise::WhatIsUsedComesFirst),
        (Self::SeesNoDifference, Promise::WhatIsCutOffIsUnchanged),
        (Self::SeesNoOwnChange, Promise::WhatIsCutOffIsUnchanged),
        (Self::AppliesOutdatedPlans, Promise::NoOutdatedPlanIsApplied),
        (Self::LosesNodes, Promise::ARunStartsOnce),
        (Self::QueuesAppliesAgain, Promise::AnApplyHappensOnce),
        (Self::CountsNoRuns, Promise::NotTooManyAtOnce),
        (Self::RetriesEverything, Promise::OnlyFailuresAreRetried),
        (Self::TellsNoReasons, Promise::EverythingEndsWithAReason),
        (Self::LosesDecisions, Promise::EverythingEndsWithAReason),
    ];
}
