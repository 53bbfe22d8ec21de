//! Forms of a workspace's settings that concern other workspaces: who reads its state, whose applies start its runs;
//! and the key with which its runs fetch modules.

use std::collections::BTreeSet;

use axum::extract::{Path, State};
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{Error, ListChange, RunTriggerView, WorkspaceRef};
use taco_domain::id::{RunTriggerId, WorkspaceId};
use taco_domain::workspace::{Workspace, WorkspacePatch};

use crate::Web;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, Ticked, VisitorForm};
use crate::navigation::workspace_address;
use crate::visitor::Visitor;
use crate::workspace_settings::{Place, Section, SettingsPage};

/// Another workspace, as a list shows it.
pub(crate) struct Other {
    pub(crate) id: WorkspaceId,
    pub(crate) name: String,
    pub(crate) address: String,
}

impl Other {
    pub(crate) fn of(organization: &str, workspace: &Workspace) -> Self {
        let name = workspace.name.to_string();
        Self { id: workspace.id, address: workspace_address(organization, &name), name }
    }
}

/// A run trigger, and the workspace at its other end.
pub(crate) struct Trigger {
    pub(crate) id: RunTriggerId,
    pub(crate) other: Other,
    pub(crate) only_when_outputs_changed: bool,
}

impl Trigger {
    pub(crate) fn of(organization: &str, view: &RunTriggerView, other: &Workspace) -> Self {
        let only_when_outputs_changed = view.trigger.only_when_outputs_changed;
        Self { id: view.trigger.id, other: Other::of(organization, other), only_when_outputs_changed }
    }
}

/// A form that names another workspace.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct OtherForm {
    pub(crate) workspace: String,
    /// Of a trigger: it fires only when outputs changed that are used. A box that is not ticked sends nothing.
    #[serde(default)]
    pub(crate) only_when_outputs_changed: bool,
    #[serde(skip)]
    pub(crate) complaint: Complaint,
}

impl OtherForm {
    /// The workspace that is meant. Lists send ids, people type names.
    async fn find(&self, web: &Web, visitor: &Visitor, place: &Place) -> Result<WorkspaceId, Error> {
        let name = self.workspace.trim();
        if let Ok(id) = name.parse() {
            return Ok(id);
        }
        let wanted = WorkspaceRef::Named { organization: place.organization.clone(), name: name.to_owned() };
        match web.control_plane.workspace(&visitor.caller, &wanted).await {
            Ok(view) => Ok(view.workspace.id),
            Err(Error::NotFound(_)) => {
                let detail = format!("No workspace {name:?} in this organization, or you have no access to it");
                Err(Error::invalid("workspace", detail))
            }
            Err(error) => Err(error),
        }
    }

    fn complained(self, error: Error) -> Result<Self, PageError> {
        // There is one field, so any error is about it.
        let Error::Invalid { detail, .. } = error else { return Err(error.into()) };
        Ok(Self { complaint: Complaint::about_field("workspace", detail), ..self })
    }
}

#[derive(Deserialize)]
pub(crate) struct Sharing {
    #[serde(default)]
    with_all: Ticked,
    #[serde(default)]
    with_project: Ticked,
}

/// `POST …/settings/sharing`
pub(crate) async fn save_sharing(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<Sharing>,
) -> Result<Response, PageError> {
    let patch = WorkspacePatch {
        global_remote_state: Some(form.with_all.0),
        project_remote_state: Some(form.with_project.0),
        ..WorkspacePatch::default()
    };
    web.control_plane.update_workspace(&visitor.caller, &place.workspace(), patch).await?;
    Ok(place.done(Section::Sharing, Flash::says("Remote state sharing saved.")))
}

async fn change_consumers(
    web: &Web,
    visitor: &Visitor,
    place: &Place,
    form: OtherForm,
    change: ListChange,
) -> Result<Response, PageError> {
    let changed = match form.find(web, visitor, place).await {
        Ok(id) => {
            let named = BTreeSet::from([id]);
            web.control_plane.change_remote_state_consumers(&visitor.caller, &place.workspace(), named, change).await
        }
        Err(error) => Err(error),
    };
    match changed {
        Ok(()) => Ok(place.done(Section::Sharing, Flash::says("Remote state sharing saved."))),
        Err(error) => {
            let consumer = form.complained(error)?;
            Ok(SettingsPage::of(web, visitor, place, Section::Sharing).await?.again(|page| page.consumer = consumer))
        }
    }
}

/// `POST …/settings/consumers`
pub(crate) async fn add_consumer(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<OtherForm>,
) -> Result<Response, PageError> {
    change_consumers(&web, &visitor, &place, form, ListChange::Add).await
}

/// `POST …/settings/consumers/remove`
pub(crate) async fn remove_consumer(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<OtherForm>,
) -> Result<Response, PageError> {
    change_consumers(&web, &visitor, &place, form, ListChange::Remove).await
}

/// `POST …/settings/triggers`
pub(crate) async fn add_trigger(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<OtherForm>,
) -> Result<Response, PageError> {
    let made = match form.find(&web, &visitor, &place).await {
        Ok(source) => {
            let looks = form.only_when_outputs_changed;
            web.control_plane.create_run_trigger(&visitor.caller, &place.workspace(), source, looks).await
        }
        Err(error) => Err(error),
    };
    match made {
        Ok(_) => Ok(place.done(Section::Triggers, Flash::says("Run trigger added."))),
        Err(error) => {
            let source = form.complained(error)?;
            Ok(SettingsPage::of(&web, &visitor, &place, Section::Triggers).await?.again(|page| page.source = source))
        }
    }
}

/// `POST …/settings/triggers/{trigger}/delete`
pub(crate) async fn remove_trigger(
    State(web): State<Web>,
    Path((organization, workspace, trigger)): Path<(String, String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let trigger: RunTriggerId = trigger.parse().map_err(|_| PageError::not_found("run trigger"))?;
    web.control_plane.delete_run_trigger(&visitor.caller, trigger).await?;
    Ok(Place { organization, workspace }.done(Section::Triggers, Flash::says("Run trigger removed.")))
}

#[derive(Deserialize)]
pub(crate) struct KeyChoice {
    #[serde(default)]
    key: String,
}

/// `POST …/settings/ssh-key`
pub(crate) async fn choose_key(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<KeyChoice>,
) -> Result<Response, PageError> {
    let key = match form.key.as_str() {
        "" => None,
        id => Some(id.parse().map_err(|_| PageError::not_found("SSH key"))?),
    };
    web.control_plane.assign_ssh_key(&visitor.caller, &place.workspace(), key).await?;
    Ok(place.done(Section::Execution, Flash::says("SSH key saved.")))
}
