//! A walk and its nodes, one for each unit. The truth about a unit never lies in a walk: a walk that is forgotten leaves
//! every unit's own status as it is.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};
use taco_words::graph::{OutputChange, WalkKind, WalkNodeState, WalkResult, WalkState};
use taco_words::id_kinds;

use crate::attribute::InvalidAttribute;
use crate::author::Author;
use crate::graph::output_commit::OutputCommitNumber;
use crate::id::{ConfigurationVersionId, RunId, WorkspaceId};
use crate::output::OutputDigest;

/// Number of ended walks that an organization keeps; older ones are deleted when a new one begins.
pub const KEPT_WALKS: usize = 50;
/// Maximum number of runs of a walk at a time.
pub const MAX_PARALLEL: u32 = 256;
const DEFAULT_PARALLEL: u32 = 10;

id_kinds! {
    /// Plans, applies or destroys of many units, in the order of the graph.
    WalkId = "walk";
    /// One unit's part in a walk.
    WalkNodeId = "wn";
}

/// Decision of who lets a walk's plans be applied.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum WalkApproval {
    /// Nobody is asked.
    Auto,
    /// Each plan waits for a person.
    Each,
    /// The first plan waits for a person, who approves the whole walk.
    Once,
}

/// What a failed unit means for the rest of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum OnFail {
    /// Nothing more begins.
    Stop,
    /// Everything goes on that does not need the failed unit.
    Continue,
}

/// Rules by which a walk goes on.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct WalkPolicy {
    pub approval: WalkApproval,
    pub on_fail: OnFail,
    /// Maximum number of units that have a run at a time.
    pub parallel: u32,
}

impl Default for WalkPolicy {
    fn default() -> Self {
        Self { approval: WalkApproval::Each, on_fail: OnFail::Stop, parallel: DEFAULT_PARALLEL }
    }
}

impl WalkPolicy {
    pub fn check(self) -> Result<Self, InvalidAttribute> {
        if (1..=MAX_PARALLEL).contains(&self.parallel) {
            return Ok(self);
        }
        let detail = format!("Parallel is a number from 1 to {MAX_PARALLEL}, and not {}", self.parallel);
        Err(InvalidAttribute::new("parallel", detail))
    }
}

/// A person's word, and when it was said.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Decision {
    pub by: Author,
    pub at: Timestamp,
}

/// Plans, applies or destroys of many units, in the order of the graph.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Walk {
    pub id: WalkId,
    pub kind: WalkKind,
    pub state: WalkState,
    pub policy: WalkPolicy,
    /// The choice of units, in words: `from vpc`.
    pub selection: String,
    pub created_at: Timestamp,
    pub created_by: Author,
    /// Who has resumed it last: its runs begin in their name from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_by: Option<Author>,
    /// Goes up by one when it is resumed.
    #[serde(default)]
    pub attempt: u32,
    /// Somebody approved all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Decision>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canceled: Option<Decision>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// Output commits of producers that a plan was made against.
pub type SeenCommits = Vec<SeenCommit>;

/// A producer's newest output commit when a plan began.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct SeenCommit {
    pub producer: WorkspaceId,
    pub number: OutputCommitNumber,
}

/// The output commit of a producer among these.
pub fn seen_commit(saw: &[SeenCommit], producer: WorkspaceId) -> Option<OutputCommitNumber> {
    saw.iter().find(|seen| seen.producer == producer).map(|seen| seen.number)
}

/// One unit's part in a walk.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct WalkNode {
    pub id: WalkNodeId,
    pub walk: WalkId,
    pub workspace: WorkspaceId,
    /// The unit's name, also after it is gone.
    pub name: String,
    /// Its place: after everything that it needs.
    pub position: u32,
    /// Units of the walk that come before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<WorkspaceId>,
    pub state: WalkNodeState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<WalkResult>,
    /// A sentence: why it is as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Goes up by one with each run.
    #[serde(default)]
    pub attempt: u32,
    /// Its runs, oldest first. While it is planning, waits for approval or is applying, the last one is under way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunId>,
    /// Number of plans in a row that were outdated before they could be applied.
    #[serde(default)]
    pub outdated: u32,
    /// What the last run's plan was made against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub saw: SeenCommits,
    /// Configuration that its runs use, if the walk brought its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration_version: Option<ConfigurationVersionId>,
    /// Approval of the last run's plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Decision>,
    /// Outputs that its plan would change; `None` as long as nobody has looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_outputs: Option<BTreeMap<String, PlannedOutput>>,
    /// Somebody has looked what its plan announces, whether or not there was anything to see.
    #[serde(default)]
    pub is_plan_read: bool,
    /// Its plan was made without values that are known only when others are applied: its own outputs may change then.
    #[serde(default)]
    pub may_change: bool,
    /// Since when it could begin, and waits for its evidence to be examined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// One output as a plan announces it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct PlannedOutput {
    pub change: OutputChange,
    /// Digest of the planned value; `None` if it is known only after the apply, or gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<OutputDigest>,
    /// The value is known only after the apply.
    #[serde(default)]
    pub unknown: bool,
}

impl WalkNodeId {
    pub fn of(walk: WalkId, workspace: WorkspaceId) -> Self {
        Self::derived(walk.organization_prefix(), &format!("{walk} {workspace}"))
    }
}

impl WalkNode {
    /// A node that nothing has happened to yet.
    pub fn new(walk: WalkId, workspace: WorkspaceId, name: &str, position: u32, needs: Vec<WorkspaceId>) -> Self {
        Self {
            id: WalkNodeId::of(walk, workspace),
            walk,
            workspace,
            name: name.to_owned(),
            position,
            needs,
            state: WalkNodeState::Waiting,
            result: None,
            reason: None,
            attempt: 0,
            runs: Vec::new(),
            outdated: 0,
            saw: SeenCommits::new(),
            configuration_version: None,
            approved: None,
            planned_outputs: None,
            is_plan_read: false,
            may_change: false,
            ready_at: None,
            started_at: None,
            ended_at: None,
        }
    }

    /// The id of its next run, the same for everyone who starts it.
    pub fn next_run_id(&self) -> RunId {
        RunId::derived(
            self.walk.organization_prefix(),
            &format!("{} {} {}", self.walk, self.workspace, self.attempt + 1),
        )
    }

    /// The run that is under way.
    pub fn open_run(&self) -> Option<RunId> {
        use WalkNodeState as S;
        let has_run = matches!(self.state, S::Planning | S::NeedsApproval | S::Applying);
        self.runs.last().copied().filter(|_| has_run)
    }

    /// Nothing more happens to it unless the walk is resumed.
    pub fn has_ended(&self) -> bool {
        use WalkNodeState as S;
        match self.state {
            S::Done | S::CutOff | S::Failed | S::Canceled | S::Blocked => true,
            S::Waiting | S::Ready | S::Planning | S::NeedsApproval | S::Applying | S::Outdated => false,
        }
    }

    /// What needs it can begin.
    pub fn lets_others_begin(&self) -> bool {
        matches!(self.state, WalkNodeState::Done | WalkNodeState::CutOff)
    }

    /// A resumed walk tries it again.
    pub fn can_be_resumed(&self) -> bool {
        self.has_ended() && !self.lets_others_begin()
    }

    /// The node as a resumed walk begins with it.
    #[must_use]
    pub fn resumed(self) -> Self {
        if !self.can_be_resumed() {
            return self;
        }
        Self {
            state: WalkNodeState::Waiting,
            result: None,
            reason: None,
            outdated: 0,
            saw: SeenCommits::new(),
            approved: None,
            planned_outputs: None,
            is_plan_read: false,
            may_change: false,
            ready_at: None,
            ended_at: None,
            ..self
        }
    }
}

/// Reason why something cannot be done to a walk now.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
pub enum WalkStateRefused {
    #[error("The walk is {0} already")]
    Ended(WalkState),
    #[error("The walk is {0}: it can be resumed when it has failed or was canceled")]
    NotResumable(WalkState),
    #[error("The walk only plans: nothing of it is applied")]
    OnlyPlans,
    #[error("No plan of this walk waits for approval")]
    NothingToApprove,
    #[error("{0} has no plan that waits for approval in this walk")]
    NotWaiting(String),
}

impl Walk {
    /// True while it goes on.
    pub fn is_open(&self) -> bool {
        matches!(self.state, WalkState::Running | WalkState::NeedsApproval)
    }

    /// The walk after someone wants it to stop. Asking again changes nothing.
    pub fn canceled(self, decision: Decision) -> Result<Self, WalkStateRefused> {
        if !self.is_open() {
            return Err(WalkStateRefused::Ended(self.state));
        }
        Ok(Self { canceled: self.canceled.or(Some(decision)), ..self })
    }

    /// The one in whose name its runs begin.
    pub fn carrier(&self) -> Author {
        self.carried_by.unwrap_or(self.created_by)
    }

    /// The walk after someone wants what failed to be tried again, or goes on with what another has begun: where each
    /// works on a machine of their own, nobody else would.
    pub fn resumed(self, by: Author) -> Result<Self, WalkStateRefused> {
        match self.state {
            WalkState::Failed | WalkState::Canceled => Ok(Self {
                state: WalkState::Running,
                canceled: None,
                ended_at: None,
                attempt: self.attempt + 1,
                carried_by: Some(by),
                ..self
            }),
            WalkState::Running if self.carrier() != by => Ok(Self { carried_by: Some(by), ..self }),
            state => Err(WalkStateRefused::NotResumable(state)),
        }
    }
}

impl Record for Walk {
    const KIND: &'static str = "walk";
    type Id = WalkId;
    type Indexes = WalkIndexes;

    fn id(&self) -> &WalkId {
        &self.id
    }
}

indexes! {
    pub struct WalkIndexes for Walk {
        pub newest: Reverse<Timestamp> => |walk| [Reverse(walk.created_at)];
        /// Walks that go on, oldest first.
        pub open: Timestamp => |walk| walk.is_open().then_some(walk.created_at);
    }
}

impl Record for WalkNode {
    const KIND: &'static str = "walk-node";
    const NOUN: &'static str = "node of a walk";
    const PART_OF: &'static [&'static str] = &["walk"];
    type Id = WalkNodeId;
    type Indexes = WalkNodeIndexes;

    fn id(&self) -> &WalkNodeId {
        &self.id
    }

    references! {
        "walk": WalkId, cascade(|nodes, id| nodes.by().walk.under(id));
        "workspace": WorkspaceId, keep("it tells what was walked over");
        "needs": WorkspaceId, keep("it tells what came before it");
        "saw": WorkspaceId, keep("it tells what was planned against");
        "runs": RunId, keep("it tells what was run");
        "configuration_version": ConfigurationVersionId, keep("it tells what was run");
    }
}

indexes! {
    pub struct WalkNodeIndexes for WalkNode {
        /// In the order of the graph.
        pub walk: (WalkId, u64) => |node| [(node.walk, u64::from(node.position))];
        pub run: RunId => |node| node.runs.iter().copied();
        /// Nodes that have not ended.
        pub open: WorkspaceId => |node| (!node.has_ended()).then_some(node.workspace);
    }
}
