//! Whose notifications a page is about: a workspace, a project or a team. All three have the same subpages.

use serde::Deserialize;
use taco_control_plane::{NotificationView, ProjectView, TeamView, WorkspaceRef, WorkspaceView};
use taco_domain::notification_configuration::Subscriber;

use crate::error::PageError;
use crate::navigation::{Section, WorkspaceSection, organization_address, workspace_address};
use crate::page::Layout;
use crate::rail::Rail;
use crate::teams::team_address;
use crate::visitor::Visitor;
use crate::{Web, team};

/// Parameters of an address, with a workspace, a project or a team.
#[derive(Deserialize, Debug)]
pub(crate) struct Place {
    organization: String,
    workspace: Option<String>,
    project: Option<String>,
    team: Option<String>,
    notification: Option<String>,
}

enum Subject {
    Workspace(Box<WorkspaceView>),
    Project(Box<ProjectView>),
    Team(Box<TeamView>),
}

/// A thing whose notifications are listed.
pub(crate) struct Holder {
    organization: String,
    subject: Subject,
    pub(crate) subscriber: Subscriber,
    /// Its name, for people.
    pub(crate) name: String,
    /// The page that lists its notifications.
    pub(crate) address: String,
}

impl Holder {
    pub(crate) async fn find(web: &Web, visitor: &Visitor, place: &Place) -> Result<Self, PageError> {
        let caller = &visitor.caller;
        let organization = place.organization.clone();
        if let Some(name) = &place.workspace {
            let wanted = WorkspaceRef::Named { organization: organization.clone(), name: name.clone() };
            let view = web.control_plane.workspace(caller, &wanted).await?;
            return Ok(Self {
                subscriber: Subscriber::Workspace(view.workspace.id),
                name: name.clone(),
                address: format!("{}/settings/notifications", workspace_address(&organization, name)),
                subject: Subject::Workspace(Box::new(view)),
                organization,
            });
        }
        if let Some(id) = &place.project {
            let unknown = || PageError::not_found("project");
            let view = web.control_plane.project(caller, id.parse().map_err(|_| unknown())?).await?;
            if view.org.entry().name.as_str() != organization {
                return Err(unknown());
            }
            return Ok(Self {
                subscriber: Subscriber::Project(view.project.id),
                name: view.project.name.to_string(),
                address: format!("{}/projects/{id}/notifications", organization_address(&organization)),
                subject: Subject::Project(Box::new(view)),
                organization,
            });
        }
        let id = place.team.as_deref().unwrap_or_default();
        let view = team::find(web, visitor, &organization, id).await?;
        Ok(Self {
            subscriber: Subscriber::Team(view.team.id),
            name: view.team.name.to_string(),
            address: format!("{}/notifications", team_address(&organization, view.team.id)),
            subject: Subject::Team(Box::new(view)),
            organization,
        })
    }

    /// The configuration that the address names, if it is one of this.
    pub(crate) async fn notification(
        &self,
        web: &Web,
        visitor: &Visitor,
        place: &Place,
    ) -> Result<NotificationView, PageError> {
        let unknown = || PageError::not_found("notification configuration");
        let id = place.notification.as_deref().unwrap_or_default().parse().map_err(|_| unknown())?;
        let view = web.control_plane.notification_configuration(&visitor.caller, id).await?;
        if view.configuration.subscriber == self.subscriber { Ok(view) } else { Err(unknown()) }
    }

    /// What they are about, in words.
    pub(crate) fn scope(&self) -> &'static str {
        match self.subject {
            Subject::Workspace(_) => "Tell people or programs about runs of this workspace.",
            Subject::Project(_) => "Tell people or programs about runs of all workspaces of this project.",
            Subject::Team(_) => "Tell a team about change requests.",
        }
    }

    pub(crate) fn layout(&self, web: &Web, visitor: &Visitor) -> Layout {
        let layout = Layout::for_visitor(web, visitor);
        match &self.subject {
            Subject::Workspace(view) => {
                layout.in_workspace(&self.organization, &view.workspace, WorkspaceSection::Settings)
            }
            Subject::Project(view) => {
                layout.in_organization(&self.organization, Section::Projects).called(view.project.id, &self.name)
            }
            Subject::Team(view) => {
                layout.in_organization(&self.organization, Section::Settings).called(view.team.id, &self.name)
            }
        }
    }

    pub(crate) fn rail(&self, visitor: &Visitor) -> Option<Rail> {
        match &self.subject {
            Subject::Workspace(_) => Some(Rail::of_workspace(&self.organization, &self.name, "/notifications")),
            Subject::Project(_) => None,
            Subject::Team(view) => Some(Rail::of_organization(&view.org, &visitor.caller, "/teams")),
        }
    }
}
