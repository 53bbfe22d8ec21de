//! Who belongs to an organization: a part of its settings.

use std::collections::BTreeSet;

use axum::extract::{Path, State};
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{Error, MembershipView};
use taco_domain::id::{MembershipId, TeamId};

use crate::Web;
use crate::error::PageError;
use crate::form::{Complaint, Nothing, VisitorForm};
use crate::organization_settings::{SettingsPage, done};
use crate::text::plain;
use crate::visitor::Visitor;

/// A member, or someone who was invited.
pub(crate) struct MemberRow {
    pub(crate) id: MembershipId,
    pub(crate) email: String,
    /// Nobody has an account with this address yet.
    pub(crate) username: Option<String>,
    pub(crate) teams: Vec<String>,
}

impl MemberRow {
    pub(crate) fn of(view: &MembershipView) -> Self {
        let MembershipView { membership, user, open } = view;
        let teams = membership.teams.iter().filter_map(|id| open.state.teams.get(id));
        Self {
            id: membership.id,
            email: plain(&membership.email.to_string()),
            username: user.as_ref().map(|user| user.username.to_string()),
            teams: teams.map(|team| team.name.to_string()).collect(),
        }
    }
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct MemberForm {
    pub(crate) email: String,
    pub(crate) team: String,
    #[serde(skip)]
    pub(crate) complaint: Complaint,
}

impl MemberForm {
    async fn invite(&self, web: &Web, visitor: &Visitor, organization: &str) -> Result<MembershipView, Error> {
        let team: TeamId = self.team.parse().map_err(|_| Error::invalid("teams", "Choose a team"))?;
        let teams = BTreeSet::from([team]);
        web.control_plane.create_membership(&visitor.caller, organization, self.email.trim(), teams).await
    }
}

/// `POST /app/{organization}/settings/members`
pub(crate) async fn invite(
    State(web): State<Web>,
    Path(organization): Path<String>,
    VisitorForm(visitor, form): VisitorForm<MemberForm>,
) -> Result<Response, PageError> {
    match form.invite(&web, &visitor, &organization).await {
        Ok(_) => Ok(done(&organization, "saved")),
        Err(error) => {
            let member = MemberForm { complaint: Complaint::of(error, &["email", "teams"])?, ..form };
            Ok(SettingsPage::of(&web, &visitor, &organization).await?.again(|page| page.member = member))
        }
    }
}

/// `POST /app/{organization}/settings/members/{member}/remove`
pub(crate) async fn remove(
    State(web): State<Web>,
    Path((organization, id)): Path<(String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let id = id.parse().map_err(|_| PageError::not_found("membership"))?;
    web.control_plane.delete_membership(&visitor.caller, id).await?;
    Ok(done(&organization, "deleted"))
}
