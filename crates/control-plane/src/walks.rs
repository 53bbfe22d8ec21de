//! Walks: begin, list, look at. What people decide about one is in `walk_actions`; how it goes on in `walk_progress`.

pub(crate) mod walk_actions;
pub(crate) mod walk_preview;
pub(crate) mod walk_progress;
pub(crate) mod walk_units;

use jiff::Timestamp;
use serde::Deserialize;
use taco_boxed::boxed;
use taco_configuration_archive::Contents;
use taco_domain::OrganizationState;
use taco_domain::author::Author;
use taco_domain::configuration_version::ConfigurationVersion;
use taco_domain::graph::dependency::Dependency;
use taco_domain::graph::status::UnitStatus;
use taco_domain::id::{ConfigurationVersionId, WorkspaceId};
use taco_domain::permission::{Action, Resource};
use taco_domain::walks::facts::list;
use taco_domain::walks::plan::{PlannedNode, Selection, WalkEdge, WalkRefusal, WalkRequest, WalkUnit, plan_walk};
use taco_domain::walks::walk::{KEPT_WALKS, OnFail, Walk, WalkApproval, WalkId, WalkNode, WalkPolicy};
use taco_domain::walks::words::{Freshness, WalkKind, WalkState};
use taco_domain::workspace::Workspace;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::change::Tx;
use crate::configuration_archives::unit_contents;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::graph::graph_view::HIDDEN_UNIT;
use crate::page::{Listed, PageRequest};

/// The attributes of a request for a walk, spelled as on the wire.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct NewWalk {
    pub kind: Option<String>,
    /// Names of units with which it begins.
    pub from: Vec<String>,
    /// The same, for one unit.
    pub subtree: Option<String>,
    pub stale: bool,
    pub all: bool,
    pub to: Vec<String>,
    pub parallel: Option<u32>,
    pub approval: Option<String>,
    pub on_fail: Option<String>,
    pub leave_consumers: bool,
    /// Configuration version with the code of all units; each is found in it by its working directory.
    pub code: Option<String>,
}

/// Code that a walk brings along.
struct WalkCode {
    version: ConfigurationVersion,
    contents: Contents,
}

impl WalkCode {
    /// The configuration of a unit, if its directory is there. It shares the archive.
    fn configuration_of(
        &self,
        state: &OrganizationState,
        workspace: &Workspace,
        walk: &Walk,
        now: Timestamp,
    ) -> Option<ConfigurationVersion> {
        if !self.contents.has_configuration_in(&workspace.working_directory) {
            return None;
        }
        let purpose = format!("{} {} code", walk.id, workspace.id);
        let only_plans = walk.kind == WalkKind::Plan;
        Some(ConfigurationVersion {
            id: ConfigurationVersionId::derived(walk.id.organization_prefix(), &purpose),
            workspace: workspace.id,
            number: state.next_configuration_number(workspace.id),
            speculative: only_plans,
            // It becomes the workspace's own when it is applied.
            provisional: !only_plans,
            auto_queue_runs: false,
            created_at: now,
            created_by: walk.created_by,
            has_readme: false,
            uploaded_at: Some(now),
            contents: Some(unit_contents(&self.contents, &workspace.working_directory)),
            shares_archive: true,
            ..self.version.clone()
        })
    }
}

/// A walk as a door shows it.
#[derive(Clone)]
pub struct WalkView {
    pub walk: Walk,
    pub org: OrganizationSnapshot,
}

/// A node as a door shows it to a caller.
#[derive(Clone, Debug)]
pub struct WalkNodeView {
    pub node: WalkNode,
    /// False if the caller may not see its unit: then only its state is told.
    pub is_seen: bool,
}

impl WalkView {
    /// Its nodes, in order, as far as the caller may see them.
    pub fn nodes(&self, caller: &Caller) -> Vec<WalkNodeView> {
        let state = &self.org.state;
        let sees = |id: &WorkspaceId| {
            let workspace = state.workspaces.get(id);
            // One that is gone was seen by whoever may see the organization.
            workspace.is_none_or(|workspace| may(caller, state, workspace, Action::ReadRuns))
        };
        let view = |node: &WalkNode| {
            let is_seen = sees(&node.workspace);
            if !is_seen {
                let hidden = WalkNode::new(node.walk, node.workspace, HIDDEN_UNIT, node.position, Vec::new());
                let node = WalkNode { id: node.id, state: node.state, result: node.result, ..hidden };
                return WalkNodeView { node, is_seen };
            }
            let mut node = node.clone();
            let producers = state.dependencies_of(node.workspace).filter_map(|edge| edge.producer);
            // A reason names what the unit uses.
            if !producers.chain(node.needs.iter().copied()).all(|unit| sees(&unit)) {
                node.reason = node.reason.map(|_| "it follows from workspaces of which you may not see all".to_owned());
            }
            node.needs.retain(sees);
            WalkNodeView { node, is_seen }
        };
        nodes_of(state, self.walk.id).map(view).collect()
    }

    /// The choice of its units, if the caller may see all of them.
    pub fn selection(&self, caller: &Caller) -> &str {
        let all_seen = self.nodes(caller).iter().all(|node| node.is_seen);
        if all_seen { &self.walk.selection } else { "some workspaces" }
    }

    /// Display name of someone who decided something about it.
    pub fn name_of(&self, author: &Author) -> String {
        self.org.name_of(author)
    }
}

pub(crate) fn nodes_of(state: &OrganizationState, walk: WalkId) -> impl Iterator<Item = &WalkNode> {
    state.walk_nodes.by().walk.under(&walk)
}

fn may(caller: &Caller, state: &OrganizationState, workspace: &Workspace, action: Action) -> bool {
    caller.may(action, Resource::Workspace(state, workspace)).allowed
}

/// A request that makes sense by itself.
#[derive(Clone)]
struct Wanted {
    request: WalkRequest,
    policy: WalkPolicy,
    /// In words.
    selection: String,
}

impl NewWalk {
    fn read(self) -> Result<Wanted, Error> {
        let kind = self.kind.as_deref().unwrap_or("plan");
        let kind: WalkKind = kind.parse().map_err(|error| Error::invalid("kind", format!("Kind: {error}")))?;
        let approval = match self.approval.as_deref() {
            None | Some("each") => WalkApproval::Each,
            Some("auto") => WalkApproval::Auto,
            Some("once") => WalkApproval::Once,
            Some(other) => {
                return Err(Error::invalid("approval", format!("Approval is auto, each or once, and not {other:?}")));
            }
        };
        let on_fail = match self.on_fail.as_deref() {
            None | Some("stop") => OnFail::Stop,
            Some("continue") => OnFail::Continue,
            Some(other) => {
                return Err(Error::invalid("on-fail", format!("On-fail is stop or continue, and not {other:?}")));
            }
        };
        let default = WalkPolicy::default();
        let policy = WalkPolicy { approval, on_fail, parallel: self.parallel.unwrap_or(default.parallel) }.check()?;
        let from: Vec<String> = self.from.into_iter().chain(self.subtree).collect();
        let (selection, mut words) = match (from.is_empty(), self.stale, self.all) {
            (false, false, false) => (Selection::From(from.clone()), format!("from {}", from.join(", "))),
            (true, true, false) => (Selection::Stale, "stale".to_owned()),
            (true, false, true) => (Selection::All, "all".to_owned()),
            _ => {
                let detail = "Choose the workspaces in one way: from (or subtree) with names, stale, or all";
                return Err(Error::invalid("from", detail));
            }
        };
        if !self.to.is_empty() {
            words = format!("{words} to {}", self.to.join(", "));
        }
        let request = WalkRequest { kind, selection, to: self.to, leaves_consumers: self.leave_consumers };
        Ok(Wanted { request, policy, selection: words })
    }
}

#[boxed]
impl ControlPlane {
    /// Begins a walk, if the caller may run every unit in it.
    pub async fn create_walk(&self, caller: &Caller, organization: &str, new: NewWalk) -> Result<WalkView, Error> {
        let org = self.organization_named(caller, organization).await?;
        let code = new.code.clone();
        let wanted = new.read()?;
        // What is stale is decided from states that have been looked at.
        let mut org = self.with_evidence(org).await?;
        let code = match code {
            Some(code) => Some(self.walk_code(caller, &org, &code).await?),
            None => None,
        };
        let id = WalkId::within(org.id().organization_prefix(), self.random());
        let now = self.now();
        let change = org.change(caller, "walk.create", now, move |tx: &mut Tx<'_>| {
            let planned = planned_nodes(tx, &wanted.request)?;
            require_in_all(tx, planned.iter().map(|node| node.unit), action_to_begin(&wanted))?;
            let walk = Walk {
                id,
                kind: wanted.request.kind,
                state: WalkState::Running,
                policy: wanted.policy,
                selection: wanted.selection.clone(),
                created_at: now,
                created_by: tx.caller().author(),
                carried_by: None,
                attempt: 0,
                approved: None,
                canceled: None,
                ended_at: None,
            };
            tx.put(&walk);
            if let Some(WalkCode { version, .. }) = &code {
                tx.put(&ConfigurationVersion { shares_archive: true, ..version.clone() });
            }
            for (position, planned) in (0..).zip(planned) {
                let state = tx.state();
                let brought = code
                    .as_ref()
                    .and_then(|code| code.configuration_of(state, state.workspaces.get(&planned.unit)?, &walk, now));
                if let Some(brought) = &brought {
                    tx.put(brought);
                }
                let node = WalkNode::new(id, planned.unit, &planned.name, position, planned.needs);
                tx.put(&WalkNode { configuration_version: brought.map(|brought| brought.id), ..node });
            }
            forget_old_walks(tx)?;
            Ok(walk)
        });
        let walk = change.await?;
        Ok(WalkView { walk, org })
    }

    /// The archive that a walk's code is in. It was uploaded as a configuration of one of the units.
    async fn walk_code(&self, caller: &Caller, org: &OrganizationSnapshot, code: &str) -> Result<WalkCode, Error> {
        let unknown = || {
            let detail = "Code is the id of a configuration version of this organization that was uploaded";
            Error::invalid("code", detail)
        };
        let id: ConfigurationVersionId = code.parse().map_err(|_| unknown())?;
        let version = org.state.configuration_versions.get(&id).filter(|version| version.is_usable());
        let version = version.ok_or_else(unknown)?.clone();
        let owner = org.state.workspaces.get(&version.workspace).ok_or_else(unknown)?;
        caller.require(Action::QueuePlan, Resource::Workspace(&org.state, owner), ConfigurationVersion::NOUN)?;
        let contents = self.contents_of(org, &version, &owner.working_directory).await?;
        Ok(WalkCode { version, contents })
    }

    pub async fn walk(&self, caller: &Caller, id: WalkId) -> Result<WalkView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), Walk::NOUN).await?;
        caller.require(Action::ReadDirectory, org.resource(), Walk::NOUN)?;
        let walk = org.get::<Walk>(&id)?.clone();
        Ok(WalkView { walk, org })
    }

    /// An organization's walks, newest first.
    pub async fn walks(
        &self,
        caller: &Caller,
        organization: &str,
        page: PageRequest,
    ) -> Result<Listed<WalkView>, Error> {
        let org = self.organization_named(caller, organization).await?;
        caller.require(Action::ReadDirectory, org.resource(), "organization")?;
        let walks = org.state.walks.by().newest.iter();
        Ok(Listed::from_all(walks, page).map(|walk| WalkView { walk: walk.clone(), org: org.clone() }))
    }
}

fn action_to_begin(wanted: &Wanted) -> Action {
    let applies = wanted.request.kind != WalkKind::Plan && wanted.policy.approval == WalkApproval::Auto;
    if applies { Action::ApplyRun } else { Action::QueuePlan }
}

/// The units of a walk in order. Names lead only to units that the caller may see.
fn planned_nodes(tx: &Tx<'_>, request: &WalkRequest) -> Result<Vec<PlannedNode>, Error> {
    let (state, caller) = (tx.state(), tx.caller());
    let is_stale = matches!(request.selection, Selection::Stale);
    let mut units = Vec::new();
    for workspace in state.workspaces_by_name() {
        let is_seen = may(caller, state, workspace, Action::ReadWorkspace);
        // A name with a space is no workspace's, so that nobody can ask for it.
        let name = if is_seen { workspace.name.to_string() } else { format!("{HIDDEN_UNIT} ({})", units.len()) };
        let freshness = match is_stale && is_seen {
            true => UnitStatus { freshness: state.freshness(workspace), ..state.unit_status(workspace) }.freshness,
            false => Freshness::Unknown,
        };
        units.push((is_seen, WalkUnit { id: workspace.id, name, freshness }));
    }
    let edges = |is_wanted: fn(&Dependency) -> bool| -> Vec<WalkEdge> {
        let wanted = state.dependencies.iter().filter(|edge| edge.counts() && is_wanted(edge));
        wanted.filter_map(|edge| Some(WalkEdge { consumer: edge.consumer, producer: edge.producer? })).collect()
    };
    let request = match &request.selection {
        // Everything, as far as the caller knows.
        Selection::All => {
            let seen = units.iter().filter(|(is_seen, _)| *is_seen).map(|(_, unit)| unit.name.clone()).collect();
            WalkRequest { selection: Selection::From(seen), ..request.clone() }
        }
        _ => request.clone(),
    };
    if units.is_empty() {
        return Ok(Vec::new());
    }
    let units: Vec<WalkUnit> = units.into_iter().map(|(_, unit)| unit).collect();
    let planned = match plan_walk(&units, &edges(|_| true), &request) {
        // What values alone suggest may go in a circle: then it says nothing about who comes first.
        Err(WalkRefusal::Cycle(_)) => plan_walk(&units, &edges(Dependency::is_told), &request),
        planned => planned,
    };
    planned.map_err(|refusal| match refusal {
        WalkRefusal::Unknown(_) => Error::Denied(refusal.to_string()),
        other => Error::Invalid { pointer: "/data/attributes/from".to_owned(), detail: other.to_string() },
    })
}

/// May the caller do this in all of these units? If not, the error names those in which they may not.
pub(crate) fn require_in_all(
    tx: &Tx<'_>,
    units: impl Iterator<Item = WorkspaceId>,
    action: Action,
) -> Result<(), Error> {
    let (state, caller) = (tx.state(), tx.caller());
    let concerned: Vec<&Workspace> = units.filter_map(|id| state.workspaces.get(&id)).collect();
    let lacking: Vec<&Workspace> =
        concerned.iter().copied().filter(|workspace| !may(caller, state, workspace, action)).collect();
    let Some(first) = lacking.first() else { return Ok(()) };
    let knows_of =
        |workspace: &&Workspace| caller.may(Action::ReadWorkspace, Resource::Workspace(state, workspace)).visible;
    if !concerned.iter().any(knows_of) {
        return Err(Error::NotFound(Walk::NOUN));
    }
    let decision = caller.may(action, Resource::Workspace(state, first));
    let (seen, hidden): (Vec<&Workspace>, Vec<&Workspace>) =
        lacking.iter().partition(|workspace| may(caller, state, workspace, Action::ReadWorkspace));
    let mut names: Vec<String> = seen.iter().map(|workspace| workspace.name.to_string()).collect();
    match hidden.len() {
        0 => {}
        1 => names.push(HIDDEN_UNIT.to_owned()),
        many => names.push(format!("{many} units you may not see")),
    }
    let names = list(names.iter().map(String::as_str)).unwrap_or_default();
    Err(Error::Denied(format!("Every workspace of a walk takes this right. {}. Lacking in: {names}", decision.reason)))
}

/// Deletes walks that ended long ago.
fn forget_old_walks(tx: &mut Tx<'_>) -> Result<(), Error> {
    let ended = tx.state().walks.by().newest.iter().filter(|walk| !walk.is_open());
    let old: Vec<WalkId> = ended.skip(KEPT_WALKS).map(|walk| walk.id).collect();
    old.iter().try_for_each(|walk| tx.delete::<Walk>(walk))
}
