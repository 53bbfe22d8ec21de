//! `/app/{organization}/settings` and two pages beside it: an organization's name and defaults, its own tokens, its SSH
//! keys, and its end.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{AgentPoolFilter, Error, OrganizationTokenKind, OrganizationView, PageRequest};
use taco_domain::graph::output_contract::DEFAULT_POLICY;
use taco_domain::organization::{Organization, OrganizationPatch};
use taco_domain::permission::{Action, Decision};

use crate::choice::Choice;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Ticked, VisitorForm};
use crate::lifetimes::{self, Lifetime};
use crate::navigation::{Section, organization_address};
use crate::organization_secrets::{KeyForm, KeyRow, TokenSlot};
use crate::page::Layout;
use crate::rail::Rail;
use crate::visitor::Visitor;
use crate::{Web, contract_choice, page};

/// In days.
const DEFAULT_LIFETIME_DAYS: i64 = 365;

/// The settings' own address.
pub(crate) fn address(organization: &str) -> String {
    format!("{}/settings", organization_address(organization))
}

/// One page of these settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    General,
    Tokens,
    Keys,
}

impl Part {
    /// End of its address.
    fn path(self) -> &'static str {
        match self {
            Self::General => "",
            Self::Tokens => "/tokens",
            Self::Keys => "/ssh-keys",
        }
    }
}

pub(crate) fn address_of(organization: &str, part: Part) -> String {
    format!("{}{}", address(organization), part.path())
}

/// The answer to a form of a part that was fine.
pub(crate) fn done(organization: &str, part: Part, flash: Flash) -> Response {
    flash.redirect_to(&address_of(organization, part))
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct OrganizationForm {
    name: String,
    email: String,
    mode: String,
    agent_pool: String,
    user_tokens: Ticked,
    force_delete: Ticked,
    /// Absent where the form does not have it.
    output_contract: Option<String>,
    #[serde(skip)]
    complaint: Complaint,
}

impl OrganizationForm {
    fn of(name: &str, organization: &Organization) -> Self {
        let execution = organization.default_execution;
        Self {
            name: name.to_owned(),
            email: organization.email.to_string(),
            mode: execution.mode.to_string(),
            agent_pool: execution.agent_pool.map(|pool| pool.to_string()).unwrap_or_default(),
            user_tokens: Ticked(organization.user_tokens_enabled),
            force_delete: Ticked(organization.allow_force_delete_workspaces),
            output_contract: Some(organization.output_contract.unwrap_or(DEFAULT_POLICY).to_string()),
            complaint: Complaint::default(),
        }
    }

    fn patch(&self) -> Result<OrganizationPatch, Error> {
        let pool = match (self.mode.as_str(), self.agent_pool.as_str()) {
            ("agent", id) if !id.is_empty() => {
                let unknown = |_| Error::invalid("default-agent-pool-id", "There is no such agent pool");
                Some(id.parse().map_err(unknown)?)
            }
            _ => None,
        };
        Ok(OrganizationPatch {
            name: Some(self.name.trim().to_owned()),
            email: Some(self.email.trim().to_owned()),
            default_execution_mode: Some(self.mode.clone()),
            default_agent_pool: Some(pool),
            user_tokens_enabled: Some(self.user_tokens.0),
            allow_force_delete_workspaces: Some(self.force_delete.0),
            output_contract: contract_choice::asked(self.output_contract.as_ref()),
            ..OrganizationPatch::default()
        })
    }
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DeletionForm {
    /// The organization's name, typed by hand.
    confirmation: String,
    #[serde(skip)]
    complaint: Complaint,
}

#[derive(Template)]
#[template(path = "organization_settings.html")]
pub(crate) struct SettingsPage {
    layout: Layout,
    rail: Rail,
    part: Part,
    address: String,
    name: String,
    id: String,
    right: Decision,
    general: OrganizationForm,
    contracts: Vec<Choice>,
    pools: Vec<Choice>,
    token_right: Decision,
    tokens: Vec<TokenSlot>,
    lifetimes: Vec<Lifetime>,
    /// The text of a token that was created just now.
    issued: Option<String>,
    key_right: Decision,
    pub(crate) keys: Vec<KeyRow>,
    pub(crate) key: KeyForm,
    deletion_right: Decision,
    workspaces: usize,
    resources: u64,
    deletion: DeletionForm,
}

impl SettingsPage {
    pub(crate) async fn of(web: &Web, visitor: &Visitor, name: &str, part: Part) -> Result<Self, PageError> {
        let (caller, control_plane) = (&visitor.caller, &web.control_plane);
        let view = control_plane.organization(caller, name).await?;
        let OrganizationView { organization, org, .. } = &view;
        let may = |action| caller.may(action, org.resource());
        let all = PageRequest::new(1, PageRequest::LARGEST_SIZE);
        let token_right = may(Action::ManageOrganizationToken);
        let slot = async |kind| -> Result<TokenSlot, Error> {
            let token = match control_plane.organization_token(caller, name, kind).await {
                Err(Error::NotFound(_) | Error::Denied(_)) => None,
                other => Some(other?),
            };
            Ok(TokenSlot::of(kind, token, control_plane.now()))
        };
        // At once, so that they share one look at the bucket.
        let every_pool = AgentPoolFilter::default();
        let (pools, keys, own_token, audit_token) = tokio::try_join!(
            control_plane.agent_pools(caller, name, &every_pool, all),
            control_plane.ssh_keys(caller, name, all),
            slot(OrganizationTokenKind::Organization),
            slot(OrganizationTokenKind::AuditTrail),
        )?;
        let general = OrganizationForm::of(name, organization);
        Ok(Self {
            layout: Layout::for_visitor(web, visitor).in_organization(name, Section::Settings),
            rail: Rail::of_organization(org, caller, part.path()),
            part,
            address: address(name),
            name: name.to_owned(),
            id: organization.id.to_string(),
            right: may(Action::UpdateOrganization),
            contracts: contract_choice::offered(general.output_contract.as_deref(), None),
            pools: pools
                .items
                .iter()
                .map(|view| Choice::new(view.pool.id, &view.pool.name, &general.agent_pool))
                .collect(),
            token_right,
            tokens: vec![own_token, audit_token],
            lifetimes: lifetimes::offered(DEFAULT_LIFETIME_DAYS, control_plane.now()),
            issued: visitor.shown_once.clone(),
            key_right: may(Action::ManageVcsSettings),
            keys: keys.items.iter().map(|key| KeyRow::of(org, key)).collect(),
            key: KeyForm::default(),
            deletion_right: may(Action::DeleteOrganization),
            workspaces: org.workspace_count(),
            resources: org.resource_count(),
            deletion: DeletionForm::default(),
            general,
        })
    }

    /// The page again, after a form with a mistake, which `put` puts in its place.
    pub(crate) fn again(mut self, put: impl FnOnce(&mut Self)) -> Response {
        put(&mut self);
        page::render(StatusCode::UNPROCESSABLE_ENTITY, &self)
    }
}

/// `GET /app/{organization}/settings`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(organization): Path<String>,
) -> Result<Response, PageError> {
    let page = SettingsPage::of(&web, &visitor, &organization, Part::General).await?;
    Ok(page::render(StatusCode::OK, &page))
}

/// `GET /app/{organization}/settings/tokens`
pub(crate) async fn show_tokens(
    State(web): State<Web>,
    visitor: Visitor,
    Path(organization): Path<String>,
) -> Result<Response, PageError> {
    let page = SettingsPage::of(&web, &visitor, &organization, Part::Tokens).await?;
    Ok(page::render(StatusCode::OK, &page))
}

/// `GET /app/{organization}/settings/ssh-keys`
pub(crate) async fn show_keys(
    State(web): State<Web>,
    visitor: Visitor,
    Path(organization): Path<String>,
) -> Result<Response, PageError> {
    let page = SettingsPage::of(&web, &visitor, &organization, Part::Keys).await?;
    Ok(page::render(StatusCode::OK, &page))
}

/// `POST /app/{organization}/settings`. The organization may have another name afterwards.
pub(crate) async fn save(
    State(web): State<Web>,
    Path(organization): Path<String>,
    VisitorForm(visitor, form): VisitorForm<OrganizationForm>,
) -> Result<Response, PageError> {
    let saved = match form.patch() {
        Ok(patch) => web.control_plane.update_organization(&visitor.caller, &organization, &patch).await,
        Err(error) => Err(error),
    };
    match saved {
        Ok(view) => Ok(done(&view.name, Part::General, Flash::says("Settings saved."))),
        Err(error) => {
            let fields = ["name", "email", "default-execution-mode", "default-agent-pool-id", "taco-output-contract"];
            let general = OrganizationForm { complaint: Complaint::of(error, &fields)?, ..form };
            Ok(SettingsPage::of(&web, &visitor, &organization, Part::General)
                .await?
                .again(|page| page.general = general))
        }
    }
}

/// `POST /app/{organization}/settings/delete`
pub(crate) async fn delete(
    State(web): State<Web>,
    Path(organization): Path<String>,
    VisitorForm(visitor, form): VisitorForm<DeletionForm>,
) -> Result<Response, PageError> {
    if form.confirmation.trim() != organization {
        let page = SettingsPage::of(&web, &visitor, &organization, Part::General).await?;
        let detail = format!("Type {organization} to confirm");
        let deletion = DeletionForm { complaint: Complaint::about_field("confirmation", detail), ..form };
        return Ok(page.again(|page| page.deletion = deletion));
    }
    web.control_plane.delete_organization(&visitor.caller, &organization).await?;
    Ok(Flash::deleted("Organization", &organization).redirect_to("/app/organizations"))
}
