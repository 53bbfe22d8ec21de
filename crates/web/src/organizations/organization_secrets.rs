//! Forms of an organization's settings that hold secrets: its own tokens, and the keys with which runs fetch modules.

use axum::extract::{Path, State};
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use taco_control_plane::{NewToken, OrganizationSnapshot, OrganizationTokenKind, SshKeyPatch};

use taco_domain::ssh_key::SshKey;
use taco_domain::ssh_key::SshKeyId;
use taco_domain::token::Token;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, VisitorForm, typed};
use crate::organization_settings::{Part, SettingsPage, address_of, done};
use crate::text::Moment;
use crate::{Web, lifetimes, shown_once};

/// Room for one token, with or without one in it.
pub(crate) struct TokenSlot {
    pub(crate) kind: &'static str,
    pub(crate) title: &'static str,
    pub(crate) opens: &'static str,
    pub(crate) token: Option<TokenState>,
}

pub(crate) struct TokenState {
    pub(crate) id: String,
    pub(crate) created: Moment,
    pub(crate) last_used: Option<Moment>,
    pub(crate) expires: Option<Moment>,
    pub(crate) expired: bool,
}

impl TokenSlot {
    pub(crate) fn of(kind: OrganizationTokenKind, token: Option<Token>, now: Timestamp) -> Self {
        let (title, opens) = match kind {
            OrganizationTokenKind::Organization => (
                "Organization token",
                "Lets scripts manage workspaces, teams and variables. It cannot start runs or write states.",
            ),
            OrganizationTokenKind::AuditTrail => {
                ("Audit log token", "Reads the audit log through the API, and nothing else.")
            }
        };
        let token = token.map(|token| TokenState {
            id: token.id.to_string(),
            created: Moment(token.created_at),
            last_used: token.last_used_at.map(Moment),
            expires: token.expires_at.map(Moment),
            expired: token.check(now).is_err(),
        });
        Self { kind: word(kind), title, opens, token }
    }
}

fn word(kind: OrganizationTokenKind) -> &'static str {
    match kind {
        OrganizationTokenKind::Organization => "organization",
        OrganizationTokenKind::AuditTrail => "audit-trail",
    }
}

fn kind_of(text: &str) -> Result<OrganizationTokenKind, PageError> {
    let mut kinds = [OrganizationTokenKind::Organization, OrganizationTokenKind::AuditTrail].into_iter();
    kinds.find(|kind| word(*kind) == text).ok_or_else(|| PageError::not_found("token"))
}

#[derive(Deserialize)]
pub(crate) struct TokenForm {
    #[serde(default)]
    days: String,
}

/// `POST /app/{organization}/settings/tokens/{kind}`. The token that was there before ends. The page that it leads to is the
/// only one that ever shows the new one.
pub(crate) async fn make_token(
    State(web): State<Web>,
    Path((organization, kind)): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<TokenForm>,
) -> Result<Response, PageError> {
    let kind = kind_of(&kind)?;
    let expires_at = Some(lifetimes::chosen(&form.days, web.control_plane.now())?);
    let new = NewToken { description: None, expires_at };
    let issued = web.control_plane.create_organization_token(&visitor.caller, &organization, kind, new).await?;
    Ok(shown_once::redirect_to(&web, &visitor, &address_of(&organization, Part::Tokens), &issued.text.reveal()))
}

/// `POST /app/{organization}/settings/tokens/{kind}/revoke`
pub(crate) async fn revoke_token(
    State(web): State<Web>,
    Path((organization, kind)): Path<(String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    web.control_plane.delete_organization_token(&visitor.caller, &organization, kind_of(&kind)?).await?;
    Ok(done(&organization, Part::Tokens, Flash::says("Token revoked.")))
}

/// A key, as the list shows it. The key itself is never shown.
pub(crate) struct KeyRow {
    pub(crate) id: SshKeyId,
    pub(crate) name: String,
    /// Number of workspaces that use it.
    pub(crate) used_by: usize,
    /// Another name for it, as it was typed, and what is wrong with that.
    pub(crate) new_name: String,
    pub(crate) complaint: Complaint,
}

impl KeyRow {
    pub(crate) fn of(org: &OrganizationSnapshot, key: &SshKey) -> Self {
        Self {
            id: key.id,
            name: key.name.to_string(),
            used_by: org.workspaces_with_key(&key.id),
            new_name: key.name.to_string(),
            complaint: Complaint::default(),
        }
    }
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct KeyForm {
    pub(crate) name: String,
    value: String,
    #[serde(skip)]
    pub(crate) complaint: Complaint,
}

/// `POST /app/{organization}/settings/ssh-keys`
pub(crate) async fn add_key(
    State(web): State<Web>,
    Path(organization): Path<String>,
    VisitorForm(visitor, form): VisitorForm<KeyForm>,
) -> Result<Response, PageError> {
    let patch = SshKeyPatch { name: Some(form.name.trim().to_owned()), value: Some(typed(&form.value)) };
    match web.control_plane.create_ssh_key(&visitor.caller, &organization, patch).await {
        Ok(_) => Ok(done(&organization, Part::Keys, Flash::created("SSH key", form.name.trim()))),
        Err(error) => {
            // The key itself has to be pasted again.
            let complaint = Complaint::of(error, &["name", "value"])?;
            let key = KeyForm { complaint, value: String::new(), name: form.name };
            Ok(SettingsPage::of(&web, &visitor, &organization, Part::Keys).await?.again(|page| page.key = key))
        }
    }
}

/// `POST /app/{organization}/settings/ssh-keys/{key}`: another name for it.
pub(crate) async fn rename_key(
    State(web): State<Web>,
    Path((organization, id)): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<KeyForm>,
) -> Result<Response, PageError> {
    let id: SshKeyId = id.parse().map_err(|_| PageError::not_found("SSH key"))?;
    let patch = SshKeyPatch { name: Some(form.name.trim().to_owned()), value: None };
    match web.control_plane.update_ssh_key(&visitor.caller, id, patch).await {
        Ok(_) => Ok(done(&organization, Part::Keys, Flash::saved("SSH key", form.name.trim()))),
        Err(error) => {
            let complaint = Complaint::of(error, &["name"])?;
            Ok(SettingsPage::of(&web, &visitor, &organization, Part::Keys).await?.again(|page| {
                if let Some(row) = page.keys.iter_mut().find(|row| row.id == id) {
                    (row.new_name, row.complaint) = (form.name, complaint);
                }
            }))
        }
    }
}

/// `POST /app/{organization}/settings/ssh-keys/{key}/delete`
pub(crate) async fn delete_key(
    State(web): State<Web>,
    Path((organization, key)): Path<(String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let key: SshKeyId = key.parse().map_err(|_| PageError::not_found("SSH key"))?;
    web.control_plane.delete_ssh_key(&visitor.caller, key).await?;
    Ok(done(&organization, Part::Keys, Flash::says("SSH key deleted.")))
}
