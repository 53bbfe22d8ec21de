//! Tags of workspaces and projects, and what an organization's tags add up to.

use std::collections::{BTreeSet, HashMap};

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::id::{ProjectId, TagId, WorkspaceId};
use taco_domain::organization_state::TagUse;
use taco_domain::permission::{Action, Resource};
use taco_domain::project::Project;
use taco_domain::tag::{TagBinding, Tags, tag_id, with_tags};
use taco_domain::workspace::Workspace;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::projects::ProjectView;
use crate::reserved_tag_keys::check_reserved;
use crate::workspace_view::{WorkspaceRef, WorkspaceView, sees_workspace};

/// Tags have no record of their own: they exist where something carries them.
const TAG: &str = "tag";

/// A tag that a request names: by its key, or by its id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TagRef {
    Key(String),
    Id(TagId),
}

/// Filter for an organization's tags.
#[derive(Clone, Default, Debug)]
pub struct TagFilter {
    /// A part of the key.
    pub query: Option<String>,
    /// Without those that this workspace carries.
    pub not_on: Option<WorkspaceId>,
}

#[boxed]
impl OrganizationSnapshot {
    /// `Ok` if the caller could delete a tag now, otherwise the reason why not.
    pub fn tag_deletion_choice(&self, caller: &Caller, tag: &TagUse) -> Result<(), String> {
        let carriers = self.state.workspaces_tagged(&tag.key);
        let mut decisions =
            carriers.map(|carrier| caller.may(Action::UpdateWorkspace, Resource::Workspace(&self.state, carrier)));
        match decisions.find(|decision| !decision.allowed) {
            Some(decision) => Err(decision.reason.into_owned()),
            None => Ok(()),
        }
    }
}

#[boxed]
impl ControlPlane {
    /// Adds tags to a workspace, or gives those that it carries another value.
    pub async fn add_workspace_tags(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        tags: Vec<TagBinding>,
    ) -> Result<WorkspaceView, Error> {
        self.put_tags(caller, wanted, "workspace.tag", move |_, workspace| Ok(with_tags(&workspace.tags, &tags)?)).await
    }

    /// Adds tags to a workspace that are named as clients name them, without values.
    pub async fn tag_workspace(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        tags: Vec<TagRef>,
    ) -> Result<WorkspaceView, Error> {
        self.put_tags(caller, wanted, "workspace.tag", move |state, workspace| {
            let key = |tag: &TagRef| match tag {
                TagRef::Key(key) => Ok(key.clone()),
                TagRef::Id(id) => state.tag_key(id).map(ToString::to_string).ok_or(Error::NotFound(TAG)),
            };
            let binding = |tag: &TagRef| key(tag).map(|key| TagBinding { key, value: None });
            let bindings = tags.iter().map(binding).collect::<Result<Vec<_>, _>>()?;
            Ok(with_tags(&workspace.tags, &bindings)?)
        })
        .await
    }

    /// Takes tags from a workspace; those that it does not carry are fine.
    pub async fn remove_workspace_tags(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        tags: Vec<TagRef>,
    ) -> Result<WorkspaceView, Error> {
        self.put_tags(caller, wanted, "workspace.untag", move |state, workspace| {
            let mut after = workspace.tags.clone();
            for tag in &tags {
                match tag {
                    TagRef::Key(key) => after.retain(|carried, _| carried.as_str() != key),
                    TagRef::Id(id) => {
                        let key = state.tag_key(id);
                        after.retain(|carried, _| Some(carried) != key);
                    }
                }
            }
            Ok(after)
        })
        .await
    }

    /// Gives a workspace the tags that `tags` makes of what it has.
    async fn put_tags(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        action: &'static str,
        mut tags: impl FnMut(&OrganizationState, &Workspace) -> Result<Tags, Error> + Send + 'static,
    ) -> Result<WorkspaceView, Error> {
        let mut org = self.organization_with(caller, wanted).await?;
        let (wanted, now) = (wanted.clone(), self.now());
        let change = org.change(caller, action, now, move |tx| {
            let workspace = tx.workspace(&wanted, Action::UpdateWorkspace)?;
            let after = tags(tx.state(), &workspace)?;
            let updated_at = if after == workspace.tags { workspace.updated_at } else { now };
            let before = workspace.tags.clone();
            let changed = Workspace { tags: after, updated_at, ..workspace };
            check_reserved(tx.state(), &before, &changed)?;
            tx.put(&changed);
            Ok(changed)
        });
        let workspace = change.await?;
        Ok(WorkspaceView { workspace, org })
    }

    pub async fn add_project_tags(
        &self,
        caller: &Caller,
        project: ProjectId,
        tags: Vec<TagBinding>,
    ) -> Result<ProjectView, Error> {
        let mut org = self.authorized_organization(caller, project.organization_prefix(), Project::NOUN).await?;
        let change = org.change(caller, "project.tag", self.now(), move |tx| {
            let mut project = tx.project(&project, Action::UpdateProject)?;
            project.tags = with_tags(&project.tags, &tags)?;
            tx.put(&project);
            Ok(project)
        });
        let project = change.await?;
        Ok(ProjectView { project, org })
    }

    /// The tags that a workspace carries, by key. `query` is a part of the key.
    pub async fn workspace_tags(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
        query: Option<&str>,
        page: PageRequest,
    ) -> Result<(OrganizationSnapshot, Listed<TagUse>), Error> {
        let WorkspaceView { workspace, org } = self.workspace_with_runs(caller, wanted).await?;
        let keys = workspace.tags.keys().filter(|key| query.is_none_or(|text| key.as_str().contains(text)));
        let listed = Listed::from_all(keys, page).map(|key| TagUse {
            id: tag_id(workspace.id.organization_prefix(), key),
            key: key.clone(),
            workspaces: org.state.workspaces_tagged(key).count(),
        });
        Ok((org, listed))
    }

    /// The tags that an organization's workspaces carry, by key, as far as the caller may see the workspaces.
    pub async fn organization_tags(
        &self,
        caller: &Caller,
        organization: &str,
        filter: &TagFilter,
        page: PageRequest,
    ) -> Result<(OrganizationSnapshot, Listed<TagUse>), Error> {
        let org = self.organization_named(caller, organization).await?;
        caller.require(Action::ReadOrganization, org.resource(), "organization")?;
        let carried: BTreeSet<_> = filter
            .not_on
            .filter(|id| sees_workspace(caller, &org.state, id))
            .and_then(|id| org.state.workspaces.get(&id))
            .into_iter()
            .flat_map(|workspace| workspace.tags.keys().cloned())
            .collect();
        let query = filter.query.as_deref().unwrap_or_default().to_lowercase();
        let wanted = |tag: &TagUse| tag.key.as_str().to_lowercase().contains(&query) && !carried.contains(&tag.key);
        let mut known = HashMap::new();
        let sees = |id: &WorkspaceId| *known.entry(*id).or_insert_with(|| sees_workspace(caller, &org.state, id));
        let listed = Listed::from_all(org.state.tags_of(sees).into_iter().filter(wanted), page);
        Ok((org, listed))
    }

    /// Takes tags from every workspace that carries them.
    pub async fn delete_organization_tags(
        &self,
        caller: &Caller,
        organization: &str,
        tags: Vec<TagId>,
    ) -> Result<(), Error> {
        let (mut org, now) = (self.organization_named(caller, organization).await?, self.now());
        org.change(caller, "tag.delete", now, move |tx| {
            for id in &tags {
                let state = tx.state();
                let key = state.tag_key(id).cloned().ok_or(Error::NotFound(TAG))?;
                let carriers: Vec<Workspace> = state.workspaces_tagged(&key).cloned().collect();
                for mut workspace in carriers {
                    let resource = Resource::Workspace(tx.state(), &workspace);
                    tx.caller().require(Action::UpdateWorkspace, resource, TAG)?;
                    workspace.tags.remove(&key);
                    workspace.updated_at = now;
                    tx.put(&workspace);
                }
            }
            Ok(())
        })
        .await
    }

    /// Gives workspaces a tag that another carries already.
    pub async fn tag_workspaces(&self, caller: &Caller, tag: TagId, workspaces: Vec<WorkspaceId>) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, tag.organization_prefix(), TAG).await?;
        let now = self.now();
        org.change(caller, "tag.add", now, move |tx| {
            let key = tx.state().tag_key(&tag).cloned().ok_or(Error::NotFound(TAG))?;
            let binding = TagBinding { key: key.to_string(), value: None };
            for id in &workspaces {
                let workspace = tx.workspace_of::<Workspace>(id, Action::UpdateWorkspace)?;
                if !workspace.tags.contains_key(&key) {
                    let tags = with_tags(&workspace.tags, std::slice::from_ref(&binding))?;
                    let before = workspace.tags.clone();
                    let changed = Workspace { tags, updated_at: now, ..workspace };
                    check_reserved(tx.state(), &before, &changed)?;
                    tx.put(&changed);
                }
            }
            Ok(())
        })
        .await
    }
}
