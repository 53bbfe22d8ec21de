//! Policy sets: create, list, read, change, delete, and what they have and apply to.

use std::collections::BTreeSet;

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::id::{ProjectId, WorkspaceId};
use taco_domain::permission::{Action, Decision};
use taco_domain::policy::{Policy, PolicyId};
use taco_domain::policy_parameter::PolicyParameter;
use taco_domain::policy_set::{PolicySet, PolicySetId, PolicySetPatch, PolicySetTargets};
use taco_domain::policy_set_version::PolicySetVersion;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::policies::{PolicyFilter, PolicyView};
use crate::policy_code::policy_key;
use crate::projects::ProjectView;
use crate::workspace_view::{ListChange, WorkspaceRef, WorkspaceView, sees_project, sees_workspace};

const WHAT: &str = PolicySet::NOUN;

/// A policy set as a door shows it.
#[derive(Clone)]
pub struct PolicySetView {
    pub set: PolicySet,
    pub org: OrganizationSnapshot,
}

/// A version of a policy set as a door shows it.
#[derive(Clone)]
pub struct PolicySetVersionView {
    pub version: PolicySetVersion,
    pub org: OrganizationSnapshot,
}

impl PolicySetView {
    /// Workspaces of a list of the set, as far as the caller may see them.
    pub fn workspaces_seen_by(&self, caller: &Caller, ids: &BTreeSet<WorkspaceId>) -> Vec<WorkspaceView> {
        let seen = ids.iter().filter(|id| sees_workspace(caller, &self.org.state, id));
        let found = seen.filter_map(|id| self.org.state.workspaces.get(id));
        found.map(|workspace| WorkspaceView { workspace: workspace.clone(), org: self.org.clone() }).collect()
    }

    /// Projects of a list of the set, as far as the caller may see them.
    pub fn projects_seen_by(&self, caller: &Caller, ids: &BTreeSet<ProjectId>) -> Vec<ProjectView> {
        let seen = ids.iter().filter(|id| sees_project(caller, &self.org.state, id));
        let found = seen.filter_map(|id| self.org.state.projects.get(id));
        found.map(|project| ProjectView { project: project.clone(), org: self.org.clone() }).collect()
    }

    /// The policies that it names.
    pub fn policies(&self) -> Vec<PolicyView> {
        let found = self.set.policies.iter().filter_map(|id| self.org.state.policies.get(id));
        found.map(|policy| PolicyView { policy: policy.clone(), org: self.org.clone() }).collect()
    }

    /// Number of its policies: those that it names, and those of its current version.
    pub fn policy_count(&self) -> usize {
        let version = self.current_version();
        self.set.policies.len() + version.map_or(0, |version| version.version.policies.len())
    }

    pub fn current_version(&self) -> Option<PolicySetVersionView> {
        self.version(self.set.current_version?)
    }

    pub fn newest_version(&self) -> Option<PolicySetVersionView> {
        self.version(self.set.newest_version?)
    }

    fn version(&self, id: taco_domain::policy_set_version::PolicySetVersionId) -> Option<PolicySetVersionView> {
        let version = self.org.state.policy_set_versions.get(&id)?.clone();
        Some(PolicySetVersionView { version, org: self.org.clone() })
    }

    /// Its parameters by key.
    pub fn parameters(&self) -> Vec<PolicyParameter> {
        self.org.state.policy_parameters.by().set.under(&self.set.id).cloned().collect()
    }

    /// May the caller change it?
    pub fn may_manage(&self, caller: &Caller) -> Decision {
        caller.may(Action::ManagePolicies, self.org.resource())
    }
}

#[boxed]
impl ControlPlane {
    /// An organization's policy sets by name.
    pub async fn policy_sets(
        &self,
        caller: &Caller,
        organization: &str,
        filter: &PolicyFilter,
        page: PageRequest,
    ) -> Result<Listed<PolicySetView>, Error> {
        let org = self.organization_named(caller, organization).await?;
        caller.require(Action::ReadDirectory, org.resource(), "organization")?;
        let all = &org.state.policy_sets.by().name;
        let listed = match filter.is_empty() {
            true => Listed::from_sorted(all.iter(), all.len(), page),
            false => Listed::from_all(all.iter().filter(|it| filter.takes(it.name.as_str(), it.kind)), page),
        };
        Ok(listed.cloned().map(|set| PolicySetView { set, org: org.clone() }))
    }

    pub async fn policy_set(&self, caller: &Caller, id: PolicySetId) -> Result<PolicySetView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        caller.require(Action::ReadDirectory, org.resource(), WHAT)?;
        let set = org.get::<PolicySet>(&id)?.clone();
        Ok(PolicySetView { set, org })
    }

    /// The sets that apply to the runs of a workspace, by name.
    pub async fn policy_sets_of_workspace(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
    ) -> Result<Vec<PolicySetView>, Error> {
        let WorkspaceView { workspace, org } = self.find_workspace(caller, wanted).await?;
        let sets = org.state.policy_sets.by().name.iter().filter(|set| set.applies_to(&workspace));
        Ok(sets.map(|set| PolicySetView { set: set.clone(), org: org.clone() }).collect())
    }

    pub async fn create_policy_set(
        &self,
        caller: &Caller,
        organization: &str,
        patch: PolicySetPatch,
    ) -> Result<PolicySetView, Error> {
        let mut org = self.organization_named(caller, organization).await?;
        caller.require(Action::ManagePolicies, org.resource(), "organization")?;
        let now = self.now();
        let id = PolicySetId::within(org.id().organization_prefix(), self.random());
        let name = patch.name.as_deref().unwrap_or_default().parse()?;
        let blank = PolicySet::new(id, name, patch.kind()?, caller.author(), now);
        let set = org.change(caller, "policy-set.create", now, move |tx| {
            tx.require::<PolicySet>(Action::ManagePolicies, tx.organization())?;
            let set = PolicySet { updated_at: now, ..patch.apply(&blank, now)? };
            put_checked(tx, &blank, set)
        });
        let set = set.await?;
        Ok(PolicySetView { set, org })
    }

    pub async fn update_policy_set(
        &self,
        caller: &Caller,
        id: PolicySetId,
        patch: PolicySetPatch,
    ) -> Result<PolicySetView, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        let now = self.now();
        let set = org.change(caller, "policy-set.update", now, move |tx| {
            tx.require::<PolicySet>(Action::ManagePolicies, tx.organization())?;
            let before: PolicySet = tx.get(&id)?;
            put_checked(tx, &before, patch.apply(&before, now)?)
        });
        let set = set.await?;
        Ok(PolicySetView { set, org })
    }

    /// Changes what a set has or applies to.
    pub async fn change_policy_set(
        &self,
        caller: &Caller,
        id: PolicySetId,
        targets: PolicySetTargets,
        change: ListChange,
    ) -> Result<PolicySetView, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        let now = self.now();
        let set = org.change(caller, "policy-set.apply", now, move |tx| {
            tx.require::<PolicySet>(Action::ManagePolicies, tx.organization())?;
            let before: PolicySet = tx.get(&id)?;
            let mut set = before.clone();
            changed(&mut set.policies, &targets.policies, change);
            changed(&mut set.workspaces, &targets.workspaces, change);
            changed(&mut set.projects, &targets.projects, change);
            changed(&mut set.workspace_exclusions, &targets.workspace_exclusions, change);
            changed(&mut set.project_exclusions, &targets.project_exclusions, change);
            if set != before {
                set.updated_at = now;
            }
            put_checked(tx, &before, set)
        });
        let set = set.await?;
        Ok(PolicySetView { set, org })
    }

    /// Deletes a set with its versions and parameters. Its policies stay.
    pub async fn delete_policy_set(&self, caller: &Caller, id: PolicySetId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        let blobs = org.change(caller, "policy-set.delete", self.now(), move |tx| {
            tx.require::<PolicySet>(Action::ManagePolicies, tx.organization())?;
            let versions = tx.state().policy_set_versions.by().set.get(&id);
            let blobs: Vec<String> = versions.filter_map(|version| Some(version.code.as_ref()?.blob.clone())).collect();
            tx.delete::<PolicySet>(&id)?;
            Ok(blobs)
        });
        for blob in blobs.await? {
            self.remove_blob(&policy_key(org.ledger.name(), &blob)).await;
        }
        Ok(())
    }
}

fn changed<I: Ord + Copy>(list: &mut BTreeSet<I>, named: &Option<BTreeSet<I>>, change: ListChange) {
    let Some(named) = named else { return };
    match change {
        ListChange::Add => list.extend(named),
        ListChange::Remove => list.retain(|id| !named.contains(id)),
        ListChange::Replace => list.clone_from(named),
    }
}

/// Puts a set, if what it names newly is there.
fn put_checked(tx: &mut Tx<'_>, before: &PolicySet, set: PolicySet) -> Result<PolicySet, Error> {
    check_targets(tx.caller(), tx.state(), before, &set)?;
    tx.put_unique(set)
}

fn check_targets(caller: &Caller, state: &OrganizationState, before: &PolicySet, set: &PolicySet) -> Result<(), Error> {
    let refuse =
        |list: &str, detail: String| Err(Error::Invalid { pointer: format!("/data/relationships/{list}"), detail });
    let new_policies: Vec<&PolicyId> = set.policies.difference(&before.policies).collect();
    for id in new_policies {
        match state.policies.get(id) {
            None => return refuse("policies", format!("The policy {id} does not exist in this organization")),
            Some(Policy { kind, name, .. }) if *kind != set.kind => {
                let detail = format!("The policy {name} is of the kind {kind}, and the set of the kind {}", set.kind);
                return refuse("policies", detail);
            }
            Some(_) => {}
        }
    }
    let workspaces = [
        ("workspaces", set.workspaces.difference(&before.workspaces)),
        ("workspace-exclusions", set.workspace_exclusions.difference(&before.workspace_exclusions)),
    ];
    for (list, ids) in workspaces {
        for id in ids {
            if !sees_workspace(caller, state, id) {
                return refuse(list, format!("The workspace {id} does not exist in this organization"));
            }
        }
    }
    let projects = [
        ("projects", set.projects.difference(&before.projects)),
        ("project-exclusions", set.project_exclusions.difference(&before.project_exclusions)),
    ];
    for (list, ids) in projects {
        for id in ids {
            if !sees_project(caller, state, id) {
                return refuse(list, format!("The project {id} does not exist in this organization"));
            }
        }
    }
    Ok(())
}

/// The set that a version or a parameter belongs to, if the caller may change it.
pub(crate) fn manage(tx: &Tx<'_>, id: PolicySetId) -> Result<PolicySet, Error> {
    tx.require::<PolicySet>(Action::ManagePolicies, tx.organization())?;
    tx.get(&id)
}

/// Keeps versions that nothing names any more from piling up.
pub(crate) fn outdated_versions(state: &OrganizationState, set: &PolicySet) -> Vec<PolicySetVersion> {
    let versions = state.policy_set_versions.by().set.get(&set.id);
    let is_named =
        |version: &&PolicySetVersion| Some(version.id) != set.current_version && Some(version.id) != set.newest_version;
    let mut outdated: Vec<PolicySetVersion> = versions.filter(is_named).cloned().collect();
    outdated.sort_by_key(|version| std::cmp::Reverse(version.created_at));
    outdated.split_off(outdated.len().min(KEPT_VERSIONS))
}

/// Versions of a set that are kept beside the current and the newest one.
const KEPT_VERSIONS: usize = 10;
