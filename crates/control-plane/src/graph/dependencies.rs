//! Dependencies: list what a unit uses, declare what no evidence shows, mute what does not count, acknowledge a change by
//! hand.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use taco_boxed::boxed;
use taco_domain::graph::dependency::{Consumed, ConsumedOutput, Declaration, Dependency, DependencyId, Mute, Producer};
use taco_domain::graph::output_commit::UsedOutputs;
use taco_domain::graph::status::EdgeState;
use taco_domain::graph::words::{ConsumedBy, EdgePolicy, Grade};
use taco_domain::id::WorkspaceId;
use taco_domain::permission::{Action, Resource};
use taco_domain::workspace::Workspace;
use taco_graph_picture::Edge;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::graph::graph_view::Eyes;
use crate::page::{Listed, PageRequest};
use crate::workspace_view::WorkspaceRef;

const MAX_REASON_BYTES: usize = 1024;
const MAX_DECLARED_OUTPUTS: usize = 1_000;
const MAX_OUTPUT_NAME_BYTES: usize = 1024;

/// A dependency as a door shows it.
#[derive(Clone)]
pub struct DependencyView {
    pub dependency: Dependency,
    pub state: EdgeState,
    /// The same as it stands in the graph's document.
    pub edge: Edge,
    pub org: OrganizationSnapshot,
    pub sees_consumer: bool,
    pub sees_producer: bool,
}

/// From which end a unit's dependencies are seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DependencyDirection {
    /// Those through which it uses others.
    Upstream,
    /// Those through which others use it.
    Downstream,
}

/// The attributes of a request that declares a dependency.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NewDependency {
    /// Name or id of the workspace whose outputs are used.
    pub producer: String,
    /// Names of the outputs that are used; all, if it is not given.
    pub outputs: Option<BTreeSet<String>>,
    /// File and line that say so.
    pub place: Option<String>,
}

/// The attributes of a request that changes a dependency.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct DependencyPatch {
    pub policy: Option<String>,
    pub muted: Option<bool>,
    pub reason: Option<String>,
}

impl DependencyView {
    fn of(org: &OrganizationSnapshot, caller: &Caller, dependency: &Dependency) -> Self {
        let state = org.state.edge_state(dependency);
        let eyes = Eyes { state: &org.state, caller };
        Self {
            dependency: dependency.clone(),
            edge: eyes.edge(dependency, &state),
            state,
            org: org.clone(),
            sees_consumer: eyes.unit(dependency.consumer).is_some(),
            sees_producer: dependency.producer.is_some_and(|id| eyes.unit(id).is_some()),
        }
    }
}

#[boxed]
impl ControlPlane {
    /// The units whose outputs a workspace uses, or that use its outputs, by name.
    pub async fn dependencies(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        direction: DependencyDirection,
        page: PageRequest,
    ) -> Result<Listed<DependencyView>, Error> {
        let view = self.workspace_with_runs(caller, workspace).await?;
        let org = self.with_evidence(view.org).await?;
        let id = view.workspace.id;
        let edges: Vec<&Dependency> = match direction {
            DependencyDirection::Upstream => org.state.dependencies_of(id).collect(),
            DependencyDirection::Downstream => org.state.dependents_of(id).collect(),
        };
        let mut views: Vec<_> = edges.into_iter().map(|edge| DependencyView::of(&org, caller, edge)).collect();
        views.sort_by(|one, other| {
            let key = |view: &DependencyView| (view.edge.producer.clone(), view.edge.consumer.clone());
            key(one).cmp(&key(other))
        });
        Ok(Listed::from_all(views, page))
    }

    pub async fn dependency(&self, caller: &Caller, id: DependencyId) -> Result<DependencyView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), Dependency::NOUN).await?;
        let org = self.with_evidence(org).await?;
        let dependency: &Dependency = org.get(&id)?;
        let consumer: &Workspace = org.get(&dependency.consumer)?;
        caller.require(Action::ReadRuns, Resource::Workspace(&org.state, consumer), Dependency::NOUN)?;
        Ok(DependencyView::of(&org, caller, dependency))
    }

    /// Says that a unit uses another's outputs. Repeating it replaces what was declared before.
    pub async fn declare_dependency(
        &self,
        caller: &Caller,
        consumer: &WorkspaceRef,
        new: NewDependency,
    ) -> Result<DependencyView, Error> {
        let mut org = self.organization_with(caller, consumer).await?;
        check_declaration(&new)?;
        let (consumer, now) = (consumer.clone(), self.now());
        let change = org.change(caller, "dependency.declare", now, move |tx| {
            let consumer = tx.workspace(&consumer, Action::UpdateWorkspace)?;
            let producer = producer_named(tx, &new.producer)?;
            if producer == consumer.id {
                return Err(Error::invalid("producer", "A workspace cannot depend on itself: name another one"));
            }
            let producer = Producer::Unit(producer);
            let known = tx.state().dependencies.get(&DependencyId::of(consumer.id, &producer)).cloned();
            let mut dependency = known.unwrap_or_else(|| Dependency::new(consumer.id, &producer, now));
            let used = new.outputs.clone().map_or(UsedOutputs::All, UsedOutputs::Names);
            let by = tx.caller().author();
            dependency.declared = Some(Declaration { used, by, at: now, place: new.place.clone() });
            tx.put(&dependency);
            Ok(dependency)
        });
        let dependency = change.await?;
        Ok(DependencyView::of(&org, caller, &dependency))
    }

    /// Mutes a dependency or lets it count again, and sets what a change of it does.
    pub async fn update_dependency(
        &self,
        caller: &Caller,
        id: DependencyId,
        patch: DependencyPatch,
    ) -> Result<DependencyView, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), Dependency::NOUN).await?;
        let policy: Option<EdgePolicy> = patch
            .policy
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(|error: taco_domain::graph::words::UnknownWord| Error::invalid("policy", error.to_string()))?;
        check_reason(patch.reason.as_deref())?;
        let now = self.now();
        let change = org.change(caller, "dependency.update", now, move |tx| {
            let mut dependency = changeable(tx, id)?;
            dependency.policy = policy.unwrap_or(dependency.policy);
            match patch.muted {
                Some(true) => {
                    let by = tx.caller().author();
                    dependency.muted = Some(Mute { by, at: now, reason: patch.reason.clone() });
                }
                Some(false) => dependency.muted = None,
                None => {}
            }
            tx.put(&dependency);
            Ok(dependency)
        });
        let dependency = change.await?;
        Ok(DependencyView::of(&org, caller, &dependency))
    }

    /// Takes back what was declared. A dependency that evidence shows stays, as far as that shows it.
    pub async fn delete_dependency(&self, caller: &Caller, id: DependencyId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), Dependency::NOUN).await?;
        org.change(caller, "dependency.delete", self.now(), move |tx| {
            let mut dependency = changeable(tx, id)?;
            if dependency.declared.is_none() && dependency.muted.is_none() {
                let why =
                    "Nobody declared this dependency: it was observed, and would be observed again. Mute it instead";
                return Err(Error::Conflict(why.to_owned()));
            }
            (dependency.declared, dependency.muted) = (None, None);
            if dependency.is_forgotten() {
                return tx.delete::<Dependency>(&id);
            }
            tx.put(&dependency);
            Ok(())
        })
        .await
    }

    /// Says that a unit is up to date with its producer as it is now, whatever evidence there is.
    pub async fn acknowledge_dependency(
        &self,
        caller: &Caller,
        id: DependencyId,
        reason: Option<String>,
    ) -> Result<DependencyView, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), Dependency::NOUN).await?;
        check_reason(reason.as_deref())?;
        let now = self.now();
        let change = org.change(caller, "dependency.acknowledge", now, move |tx| {
            let mut dependency = changeable(tx, id)?;
            let state = tx.state();
            let outputs = dependency.producer.and_then(|producer| state.workspace_outputs.get(&producer));
            let Some(outputs) = outputs else {
                let why = "The producer has no outputs that are known here, so there is nothing to acknowledge";
                return Err(Error::Conflict(why.to_owned()));
            };
            let held = dependency.consumed.take().map(|consumed| consumed.outputs).unwrap_or_default();
            let seen: BTreeMap<String, ConsumedOutput> = outputs
                .outputs
                .iter()
                .map(|(name, output)| {
                    let tokens = held.get(name).map(|held| held.tokens.clone()).unwrap_or_default();
                    let detailed_type = output.committed.detailed_type.clone();
                    (name.clone(), ConsumedOutput { digest: output.committed.digest, detailed_type, tokens })
                })
                .collect();
            dependency.consumed = Some(Consumed {
                how: ConsumedBy::Acknowledged,
                grade: Grade::Declared,
                assumed: false,
                commit: Some(outputs.number),
                outputs: seen,
                at: now,
                by: tx.caller().author(),
                run: None,
                state_version: None,
                reason: reason.clone(),
            });
            tx.put(&dependency);
            Ok(dependency)
        });
        let dependency = change.await?;
        Ok(DependencyView::of(&org, caller, &dependency))
    }
}

/// The dependency, if the caller may change its consumer.
fn changeable(tx: &Tx<'_>, id: DependencyId) -> Result<Dependency, Error> {
    let dependency: Dependency = tx.get(&id)?;
    tx.workspace_of::<Dependency>(&dependency.consumer, Action::UpdateWorkspace)?;
    Ok(dependency)
}

/// The workspace of this name or id, if the caller may see it.
pub(crate) fn producer_named(tx: &Tx<'_>, wanted: &str) -> Result<WorkspaceId, Error> {
    let state = tx.state();
    let by_id = wanted.parse().ok().and_then(|id: WorkspaceId| state.workspaces.get(&id));
    let found = by_id.or_else(|| state.workspace_named(wanted));
    let may_see =
        |workspace: &&Workspace| tx.caller().may(Action::ReadWorkspace, Resource::Workspace(state, workspace)).allowed;
    let unknown = || {
        let wanted = taco_domain::attribute::shown(wanted);
        Error::invalid("producer", format!("There is no workspace {wanted} in this organization that you may see"))
    };
    found.filter(may_see).map(|workspace| workspace.id).ok_or_else(unknown)
}

fn check_declaration(new: &NewDependency) -> Result<(), Error> {
    if new.producer.is_empty() {
        return Err(Error::invalid("producer", "Producer can't be blank: name the workspace whose outputs are used"));
    }
    let names = new.outputs.iter().flatten();
    if new.outputs.as_ref().is_some_and(|names| names.len() > MAX_DECLARED_OUTPUTS) {
        return Err(Error::invalid("outputs", format!("At most {MAX_DECLARED_OUTPUTS} outputs can be named")));
    }
    for name in names {
        if name.is_empty() || name.len() > MAX_OUTPUT_NAME_BYTES {
            return Err(Error::invalid("outputs", format!("Names of outputs have 1 to {MAX_OUTPUT_NAME_BYTES} bytes")));
        }
    }
    if new.place.as_ref().is_some_and(|place| place.len() > MAX_REASON_BYTES) {
        return Err(Error::invalid("place", format!("Place is too long (maximum is {MAX_REASON_BYTES} bytes)")));
    }
    Ok(())
}

fn check_reason(reason: Option<&str>) -> Result<(), Error> {
    if reason.is_some_and(|reason| reason.len() > MAX_REASON_BYTES) {
        return Err(Error::invalid("reason", format!("Reason is too long (maximum is {MAX_REASON_BYTES} bytes)")));
    }
    Ok(())
}
