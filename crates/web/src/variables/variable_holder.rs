//! Owner of the variables on a page: a workspace or a variable set. Both have the same subpages.

use serde::Deserialize;
use taco_control_plane::{VariableRef, VariableSetView, WorkspaceRef, WorkspaceView};
use taco_domain::permission::{Action, Decision};
use taco_domain::variable::VariableOwner;

use crate::Web;
use crate::error::PageError;
use crate::navigation::{Section, WorkspaceSection, variable_set_address, workspace_address};
use crate::page::Layout;
use crate::visitor::Visitor;

/// Parameters of an address, with either a workspace or a set.
#[derive(Deserialize, Debug)]
pub(crate) struct Place {
    organization: String,
    workspace: Option<String>,
    variable_set: Option<String>,
    variable: Option<String>,
}

impl Place {
    /// The workspace in the address.
    pub(crate) fn workspace(&self) -> Result<WorkspaceRef, PageError> {
        let name = self.workspace.clone().ok_or_else(|| PageError::not_found("workspace"))?;
        Ok(WorkspaceRef::Named { organization: self.organization.clone(), name })
    }
}

/// Owner of variables, as of the visitor's request.
pub(crate) enum Subject {
    Workspace(Box<WorkspaceView>),
    VariableSet(Box<VariableSetView>),
}

/// A workspace or a variable set that the visitor may see the variables of.
pub(crate) struct Holder {
    pub(crate) organization: String,
    pub(crate) subject: Subject,
    pub(crate) owner: VariableOwner,
    /// Its name, for people.
    pub(crate) name: String,
    /// The page that lists the variables.
    pub(crate) page: String,
    /// Under which the pages of single variables are.
    pub(crate) variables: String,
    /// Decision about changing them.
    pub(crate) right: Decision,
}

impl Holder {
    pub(crate) async fn find(web: &Web, visitor: &Visitor, place: &Place) -> Result<Self, PageError> {
        let caller = &visitor.caller;
        let organization = place.organization.clone();
        if let Some(name) = &place.workspace {
            let wanted = WorkspaceRef::Named { organization: organization.clone(), name: name.clone() };
            let view = web.control_plane.workspace_with_variables(caller, &wanted).await?;
            let page = format!("{}/variables", workspace_address(&organization, name));
            return Ok(Self {
                organization,
                owner: VariableOwner::Workspace(view.workspace.id),
                name: name.clone(),
                variables: page.clone(),
                page,
                right: caller.may(Action::WriteVariables, view.resource()),
                subject: Subject::Workspace(Box::new(view)),
            });
        }
        let unknown = || PageError::not_found("variable set");
        let id = place.variable_set.as_deref().unwrap_or_default().parse().map_err(|_| unknown())?;
        let view = web.control_plane.variable_set(caller, id).await?;
        if view.org.entry().name.as_str() != organization {
            return Err(unknown());
        }
        let page = variable_set_address(&organization, id);
        Ok(Self {
            organization,
            owner: VariableOwner::VariableSet(id),
            name: view.set.name.to_string(),
            variables: format!("{page}/variables"),
            page,
            right: view.may_change(caller),
            subject: Subject::VariableSet(Box::new(view)),
        })
    }

    /// Refuses someone who may look but not change.
    pub(crate) fn require_right(&self) -> Result<(), PageError> {
        if self.right.allowed { Ok(()) } else { Err(PageError::denied(self.right.reason.clone())) }
    }

    /// The variable that the address names.
    pub(crate) fn variable(&self, place: &Place) -> Result<VariableRef, PageError> {
        let id = place.variable.as_deref().unwrap_or_default().parse();
        Ok(VariableRef { id: id.map_err(|_| PageError::not_found("variable"))?, owner: Some(self.owner) })
    }

    pub(crate) fn layout(&self, web: &Web, visitor: &Visitor) -> Layout {
        let layout = Layout::for_visitor(web, visitor);
        match &self.subject {
            Subject::Workspace(view) => {
                layout.in_workspace(&self.organization, &view.workspace, WorkspaceSection::Variables)
            }
            Subject::VariableSet(view) => {
                let layout = layout.in_organization(&self.organization, Section::VariableSets);
                layout.called(view.set.id, view.set.name.as_str())
            }
        }
    }
}
