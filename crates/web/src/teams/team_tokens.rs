//! Tokens of a team: created, shown once, revoked.

use axum::extract::{Path, State};
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use taco_control_plane::NewToken;
use taco_domain::id::{TeamId, TokenId};
use taco_domain::token::Token;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, VisitorForm};
use crate::team::{TeamPage, done, find};
use crate::teams::team_address;
use crate::text::{Moment, plain};
use crate::{Web, lifetimes, shown_once};

pub(crate) struct TokenRow {
    pub(crate) id: TokenId,
    pub(crate) description: String,
    pub(crate) created: Moment,
    pub(crate) last_used: Option<Moment>,
    pub(crate) expires: Option<Moment>,
    pub(crate) expired: bool,
}

impl TokenRow {
    pub(crate) fn of(token: Token, now: Timestamp) -> Self {
        Self {
            id: token.id,
            expired: token.check(now).is_err(),
            description: plain(&token.description.unwrap_or_default()),
            created: Moment(token.created_at),
            last_used: token.last_used_at.map(Moment),
            expires: token.expires_at.map(Moment),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct TokenForm {
    description: String,
    days: String,
}

/// `POST …/settings/teams/{team}/tokens`. The page that it leads to is the only one that ever shows the token.
pub(crate) async fn create(
    State(web): State<Web>,
    Path((organization, team)): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<TokenForm>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &organization, &team).await?;
    let description = form.description.trim();
    let new = NewToken {
        // A token without a description would replace the one before.
        description: Some(if description.is_empty() { "Created in the browser" } else { description }.to_owned()),
        expires_at: Some(lifetimes::chosen(&form.days, web.control_plane.now())?),
    };
    match web.control_plane.create_team_token(&visitor.caller, view.team.id, new).await {
        Ok(issued) => {
            let address = team_address(&organization, view.team.id);
            Ok(shown_once::redirect_to(&web, &visitor, &address, &issued.text.reveal()))
        }
        Err(error) => {
            let complaint = Complaint::of(error, &["description"])?;
            Ok(TeamPage::of(&web, &visitor, &view).await?.again(|page| page.token_complaint = complaint))
        }
    }
}

/// `POST …/settings/teams/{team}/tokens/{team_token}/revoke`
pub(crate) async fn revoke(
    State(web): State<Web>,
    Path((organization, team, token)): Path<(String, String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    web.control_plane.organization_named(&visitor.caller, &organization).await?;
    let team: TeamId = team.parse().map_err(|_| PageError::not_found("team"))?;
    let token: TokenId = token.parse().map_err(|_| PageError::not_found("token"))?;
    web.control_plane.revoke_token(&visitor.caller, token).await?;
    Ok(done(&organization, team, Flash::says("Token revoked.")))
}
