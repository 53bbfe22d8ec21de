//! `/app/{organization}/agents/pools/{pool}`: for whom a pool works, its tokens, its agents, and how to start one.

use std::collections::BTreeSet;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use taco_control_plane::{AgentPoolPatch, AgentPoolView, AgentView, NewToken, PageRequest};
use taco_domain::id::{AgentPoolId, ProjectId, TokenId, WorkspaceId};
use taco_domain::permission::Action;
use taco_domain::token::Token;

use crate::agents::{pool_address, scope};
use crate::badge::Badge;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, VisitorForm};
use crate::lifetimes::{self, Lifetime};
use crate::navigation::{Section, organization_address, run_address};
use crate::page::Layout;
use crate::pictures::{self, Rows};
use crate::text::{Moment, plain};
use crate::visitor::Visitor;
use crate::{Web, page, shown_once};

/// In days.
const DEFAULT_LIFETIME_DAYS: i64 = 365;
/// So many agents and tokens are shown; a pool that has more has too many.
const MAX_SHOWN_ROWS: usize = PageRequest::LARGEST_SIZE;

/// Fields next to which the page can show an error.
const FIELDS: &[&str] = &["name", "workspaces", "typed-name"];

#[derive(Template)]
#[template(path = "agent_pool.html")]
struct PoolPage {
    layout: Layout,
    now: Timestamp,
    address: String,
    id: AgentPoolId,
    name: String,
    /// Workspaces that can use it, in words.
    reach: String,
    agents: Vec<AgentRow>,
    /// `None` for visitors who may not see them.
    tokens: Option<Vec<TokenRow>>,
    /// Reason why the visitor cannot change anything.
    refusal: Option<String>,
    form: PoolForm,
    projects: Vec<ProjectChoice>,
    complaint: Complaint,
    token_complaint: Complaint,
    /// The text of a token that was created just now.
    issued: Option<String>,
    lifetimes: Vec<Lifetime>,
    site: String,
    slots: Option<Rows>,
}

struct AgentRow {
    name: String,
    id: String,
    badge: Badge,
    version: String,
    address: String,
    last_heard: Option<Moment>,
    run: Option<(String, String)>,
}

struct TokenRow {
    id: TokenId,
    description: String,
    created: Moment,
    last_used: Option<Moment>,
    expires: Option<Moment>,
    expired: bool,
}

struct ProjectChoice {
    id: String,
    name: String,
    chosen: bool,
}

/// Content of the form for a pool.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PoolForm {
    name: String,
    /// `all` or `some`.
    scope: String,
    /// One name on each line.
    workspaces: String,
    project: Vec<String>,
}

impl PoolForm {
    fn of(view: &AgentPoolView) -> Self {
        Self {
            name: view.pool.name.to_string(),
            scope: if view.pool.organization_scoped { "all" } else { "some" }.to_owned(),
            workspaces: view.allowed_workspaces().map(|workspace| format!("{}\n", workspace.name)).collect(),
            project: view.pool.allowed_projects.iter().map(ToString::to_string).collect(),
        }
    }

    /// Requested change, or the name of a workspace that does not exist.
    fn patch(&self, visitor: &Visitor, view: &AgentPoolView) -> Result<AgentPoolPatch, String> {
        let names = self.workspaces.lines().map(str::trim).filter(|name| !name.is_empty());
        let id = |name: &str| {
            let found = view.org.visible_to(&visitor.caller).workspace_named(name);
            found.map(|workspace| workspace.id).ok_or_else(|| name.to_owned())
        };
        let workspaces = names.map(id).collect::<Result<BTreeSet<WorkspaceId>, String>>()?;
        let projects: BTreeSet<ProjectId> = self.project.iter().filter_map(|id| id.parse().ok()).collect();
        Ok(AgentPoolPatch {
            name: Some(self.name.trim().to_owned()),
            organization_scoped: Some(self.scope == "all"),
            allowed_workspaces: Some(workspaces),
            allowed_projects: Some(projects),
            excluded_workspaces: None,
        })
    }
}

impl TokenRow {
    fn of(token: Token, now: Timestamp) -> Self {
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

impl AgentRow {
    fn of(visitor: &Visitor, view: &AgentPoolView, found: AgentView) -> Self {
        let agent = found.agent;
        let organization = view.org.entry().name.as_str();
        let run =
            view.org.visible_to(&visitor.caller).run_executed_by(agent.id).map(|(run, workspace)| {
                (run.id.to_string(), run_address(organization, workspace.name.as_str(), run.id))
            });
        Self {
            name: plain(&agent.name),
            id: agent.id.to_string(),
            badge: Badge::of_agent(found.status),
            version: plain(&agent.version),
            address: plain(&agent.address.unwrap_or_default()),
            last_heard: found.last_heard_at.map(Moment),
            run,
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct PoolPath {
    pool: String,
}

impl PoolPath {
    fn id(&self) -> Result<AgentPoolId, PageError> {
        self.pool.parse().map_err(|_| PageError::not_found("agent pool"))
    }
}

/// Submitted form to show again with its errors.
#[derive(Default)]
struct Again {
    form: Option<PoolForm>,
    complaint: Complaint,
    token_complaint: Complaint,
}

async fn render(
    web: &Web,
    visitor: &Visitor,
    id: AgentPoolId,
    again: Again,
    status: StatusCode,
) -> Result<Response, PageError> {
    let (control_plane, caller) = (&web.control_plane, &visitor.caller);
    let view = control_plane.agent_pool(caller, id).await?;
    let all = PageRequest::new(1, MAX_SHOWN_ROWS);
    let now = control_plane.now();
    let right = caller.may(Action::ManageAgentPools, view.org.resource());
    let tokens = match right.allowed {
        true => Some(control_plane.agent_pool_tokens(caller, id, all).await?.items),
        false => None,
    };
    let agents = control_plane.agents(caller, id, all).await?.items;
    let organization = view.org.entry().name.as_str();
    let form = again.form.unwrap_or_else(|| PoolForm::of(&view));
    let projects = view.org.visible_to(caller).projects().map(|project| ProjectChoice {
        id: project.id.to_string(),
        name: project.name.to_string(),
        chosen: form.project.contains(&project.id.to_string()),
    });
    let page = PoolPage {
        layout: Layout::for_visitor(web, visitor)
            .in_organization(organization, Section::Agents)
            .called(id, view.pool.name.as_str()),
        now,
        address: pool_address(organization, id),
        id,
        name: view.pool.name.to_string(),
        reach: scope(&view),
        agents: agents.into_iter().map(|agent| AgentRow::of(visitor, &view, agent)).collect(),
        tokens: tokens.map(|tokens| tokens.into_iter().map(|token| TokenRow::of(token, now)).collect()),
        refusal: (!right.allowed).then(|| right.reason.into_owned()),
        projects: projects.collect(),
        form,
        complaint: again.complaint,
        token_complaint: again.token_complaint,
        issued: visitor.shown_once.clone(),
        lifetimes: lifetimes::offered(DEFAULT_LIFETIME_DAYS, now),
        site: web.address.as_str().trim_end_matches('/').to_owned(),
        slots: pictures::pages::agents_of_pool(web, id),
    };
    Ok(page::render(status, &page))
}

/// `GET …/agents/pools/{pool}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<PoolPath>,
) -> Result<Response, PageError> {
    render(&web, &visitor, path.id()?, Again::default(), StatusCode::OK).await
}

/// `POST …/agents/pools/{pool}`
pub(crate) async fn update(
    State(web): State<Web>,
    Path(path): Path<PoolPath>,
    VisitorForm(visitor, form): VisitorForm<PoolForm>,
) -> Result<Response, PageError> {
    let id = path.id()?;
    let view = web.control_plane.agent_pool(&visitor.caller, id).await?;
    let updated = match form.patch(&visitor, &view) {
        Ok(patch) => web.control_plane.update_agent_pool(&visitor.caller, id, patch).await,
        Err(name) => {
            Err(taco_control_plane::Error::invalid("workspaces", format!("There is no workspace {}", plain(&name))))
        }
    };
    match updated {
        Ok(view) => {
            let address = pool_address(view.org.entry().name.as_str(), id);
            Ok(Flash::saved("Agent pool", view.pool.name.as_str()).redirect_to(&address))
        }
        Err(error) => {
            let again = Again { complaint: Complaint::of(error, FIELDS)?, form: Some(form), ..Again::default() };
            render(&web, &visitor, id, again, StatusCode::UNPROCESSABLE_ENTITY).await
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct NewPoolToken {
    #[serde(default)]
    description: String,
    #[serde(default)]
    days: String,
}

/// `POST …/agents/pools/{pool}/tokens`. The page that it leads to is the only one that ever shows the token.
pub(crate) async fn create_token(
    State(web): State<Web>,
    Path(path): Path<PoolPath>,
    VisitorForm(visitor, form): VisitorForm<NewPoolToken>,
) -> Result<Response, PageError> {
    let id = path.id()?;
    let expires_at = Some(lifetimes::chosen(&form.days, web.control_plane.now())?);
    let new = NewToken { description: Some(form.description.trim().to_owned()), expires_at };
    match web.control_plane.create_agent_pool_token(&visitor.caller, id, new).await {
        Ok(issued) => {
            let view = web.control_plane.agent_pool(&visitor.caller, id).await?;
            let address = pool_address(view.org.entry().name.as_str(), id);
            Ok(shown_once::redirect_to(&web, &visitor, &address, &issued.text.reveal()))
        }
        Err(error) => {
            let again = Again { token_complaint: Complaint::of(error, &[])?, ..Again::default() };
            render(&web, &visitor, id, again, StatusCode::UNPROCESSABLE_ENTITY).await
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct PoolTokenPath {
    organization: String,
    token: String,
}

/// `POST …/agents/pools/{pool}/tokens/{token}/revoke`
pub(crate) async fn revoke_token(
    State(web): State<Web>,
    Path(path): Path<PoolPath>,
    Path(PoolTokenPath { organization, token }): Path<PoolTokenPath>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let id = path.id()?;
    let token: TokenId = token.parse().map_err(|_| PageError::not_found("token"))?;
    web.control_plane.revoke_token(&visitor.caller, token).await?;
    Ok(Flash::says("Token revoked.").redirect_to(&pool_address(&organization, id)))
}

#[derive(Deserialize)]
pub(crate) struct DeletePool {
    #[serde(default)]
    typed_name: String,
}

/// `POST …/agents/pools/{pool}/delete`
pub(crate) async fn delete(
    State(web): State<Web>,
    Path(path): Path<PoolPath>,
    VisitorForm(visitor, form): VisitorForm<DeletePool>,
) -> Result<Response, PageError> {
    let id = path.id()?;
    let view = web.control_plane.agent_pool(&visitor.caller, id).await?;
    if form.typed_name.trim() != view.pool.name.as_str() {
        let complaint = taco_control_plane::Error::invalid("typed-name", "Type the pool's name to confirm");
        let again = Again { complaint: Complaint::of(complaint, FIELDS)?, ..Again::default() };
        return render(&web, &visitor, id, again, StatusCode::UNPROCESSABLE_ENTITY).await;
    }
    web.control_plane.delete_agent_pool(&visitor.caller, id).await?;
    let address = format!("{}/agents", organization_address(view.org.entry().name.as_str()));
    Ok(Flash::deleted("Agent pool", view.pool.name.as_str()).redirect_to(&address))
}
