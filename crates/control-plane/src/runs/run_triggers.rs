//! Run triggers: an apply in one workspace starts a run in another. What they do is in `run_flow`.

use taco_boxed::boxed;
use taco_domain::id::{RunTriggerId, WorkspaceId};
use taco_domain::permission::{Action, Resource};
use taco_domain::run_trigger::{MOST_SOURCES, RunTrigger};
use taco_domain::workspace::Workspace;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::graph::dependencies::DependencyView;
use crate::page::{Listed, PageRequest};
use crate::workspace_view::{WorkspaceRef, WorkspaceView, sees_workspace};

/// A run trigger as a door shows it.
#[derive(Clone)]
pub struct RunTriggerView {
    pub trigger: RunTrigger,
    pub workspace: Workspace,
    pub source: Workspace,
    pub org: OrganizationSnapshot,
}

impl RunTriggerView {
    fn of(org: &OrganizationSnapshot, trigger: &RunTrigger) -> Option<Self> {
        let workspace = org.state.workspaces.get(&trigger.workspace).cloned()?;
        let source = org.state.workspaces.get(&trigger.source).cloned()?;
        Some(Self { trigger: trigger.clone(), workspace, source, org: org.clone() })
    }

    /// True if the caller may see both workspaces: a trigger names them.
    fn is_seen_by(&self, caller: &Caller) -> bool {
        [self.workspace.id, self.source.id].iter().all(|id| sees_workspace(caller, &self.org.state, id))
    }

    /// The workspace in which it starts runs, if the caller may read it.
    pub fn readable_workspace(&self, caller: &Caller) -> Option<WorkspaceView> {
        self.readable(caller, &self.workspace)
    }

    /// The workspace whose applies pull it, if the caller may read it.
    pub fn readable_source(&self, caller: &Caller) -> Option<WorkspaceView> {
        self.readable(caller, &self.source)
    }

    fn readable(&self, caller: &Caller, workspace: &Workspace) -> Option<WorkspaceView> {
        let view = WorkspaceView { workspace: workspace.clone(), org: self.org.clone() };
        caller.may(Action::ReadWorkspace, view.resource()).allowed.then_some(view)
    }
}

/// From which end a workspace's triggers are seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TriggerDirection {
    /// Those that start runs in the workspace.
    Inbound,
    /// Those that its applies pull.
    Outbound,
}

#[boxed]
impl ControlPlane {
    /// Lets applies of `source` start runs in the workspace: all of them, or those that change outputs which it uses.
    /// Repeating it leads to the same trigger, as it is asked for then.
    pub async fn create_run_trigger(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        source: WorkspaceId,
        only_when_outputs_changed: bool,
    ) -> Result<RunTriggerView, Error> {
        let view = self.find_workspace(caller, workspace).await?;
        let (mut org, workspace) = (view.org, view.workspace.id);
        let id = RunTriggerId::within(workspace.organization_prefix(), self.random());
        let new = RunTrigger { id, workspace, source, created_at: self.now(), only_when_outputs_changed };
        let trigger = org.change(caller, "run-trigger.create", self.now(), move |tx| create(tx, &new)).await?;
        RunTriggerView::of(&org, &trigger).ok_or(Error::NotFound(RunTrigger::NOUN))
    }

    /// Lets changes of the outputs that go over a dependency start runs in its consumer, as the graph proposes.
    pub async fn trigger_over_dependency(
        &self,
        caller: &Caller,
        dependency: &DependencyView,
    ) -> Result<RunTriggerView, Error> {
        let consumer = WorkspaceRef::Id(dependency.dependency.consumer);
        let Some(source) = dependency.dependency.producer else {
            let why = "The producer is no workspace of this organization, so no apply here can start a run";
            return Err(Error::Conflict(why.to_owned()));
        };
        self.create_run_trigger(caller, &consumer, source, true).await
    }

    pub async fn run_trigger(&self, caller: &Caller, id: RunTriggerId) -> Result<RunTriggerView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), RunTrigger::NOUN).await?;
        let trigger = org.get(&id)?;
        let view = RunTriggerView::of(&org, trigger).ok_or(Error::NotFound(RunTrigger::NOUN))?;
        caller.require(Action::ReadRuns, Resource::Workspace(&org.state, &view.workspace), RunTrigger::NOUN)?;
        if view.is_seen_by(caller) { Ok(view) } else { Err(Error::NotFound(RunTrigger::NOUN)) }
    }

    /// A workspace's triggers, oldest first, as far as the caller may see what is at their other end.
    pub async fn run_triggers(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        direction: TriggerDirection,
        page: PageRequest,
    ) -> Result<Listed<RunTriggerView>, Error> {
        let view = self.workspace_with_runs(caller, workspace).await?;
        let triggers = &view.org.state.run_triggers;
        let mut found: Vec<&RunTrigger> = match direction {
            TriggerDirection::Inbound => triggers.by().workspace.get(&view.workspace.id).collect(),
            TriggerDirection::Outbound => triggers.by().source.get(&view.workspace.id).collect(),
        };
        found.sort_by_key(|trigger| (trigger.created_at, trigger.id));
        let views = found.into_iter().filter_map(|trigger| RunTriggerView::of(&view.org, trigger));
        Ok(Listed::from_all(views.filter(|view| view.is_seen_by(caller)), page))
    }

    pub async fn delete_run_trigger(&self, caller: &Caller, id: RunTriggerId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), RunTrigger::NOUN).await?;
        org.change(caller, "run-trigger.delete", self.now(), move |tx| {
            let trigger: RunTrigger = tx.get(&id)?;
            tx.workspace_of::<RunTrigger>(&trigger.workspace, Action::UpdateWorkspace)?;
            tx.delete::<RunTrigger>(&id)
        })
        .await
    }
}

fn create(tx: &mut Tx<'_>, new: &RunTrigger) -> Result<RunTrigger, Error> {
    tx.workspace_of::<Workspace>(&new.workspace, Action::UpdateWorkspace)?;
    let (state, caller) = (tx.state(), tx.caller());
    let refuse = |detail: String| Err(Error::Invalid { pointer: "/data/relationships/sourceable".to_owned(), detail });
    if new.source == new.workspace {
        return refuse("A workspace cannot start runs in itself: name another one".to_owned());
    }
    let may_see = |source: &&Workspace| caller.may(Action::ReadWorkspace, Resource::Workspace(state, source)).allowed;
    if state.workspaces.get(&new.source).filter(may_see).is_none() {
        return refuse(format!("The workspace {} does not exist in this organization", new.source));
    }
    let triggers: Vec<&RunTrigger> = state.run_triggers.by().workspace.get(&new.workspace).collect();
    if let Some(same) = triggers.iter().find(|trigger| trigger.source == new.source) {
        let trigger = RunTrigger { only_when_outputs_changed: new.only_when_outputs_changed, ..(*same).clone() };
        if trigger != **same {
            tx.put(&trigger);
        }
        return Ok(trigger);
    }
    if triggers.len() >= MOST_SOURCES {
        return refuse(format!("{MOST_SOURCES} workspaces start runs in this one already, which is the most"));
    }
    tx.put(new);
    Ok(new.clone())
}
