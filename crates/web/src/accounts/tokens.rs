//! `/app/settings/tokens`: a person's own API tokens.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use taco_control_plane::{Error, NewToken};
use taco_domain::id::TokenId;
use taco_domain::token::Token;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Nothing, VisitorForm};
use crate::lifetimes::{self, Lifetime};
use crate::page::Layout;
use crate::rail::Rail;
use crate::text::Moment;
use crate::visitor::Visitor;
use crate::{Web, page, shown_once, terraform};

const PATH: &str = "/app/settings/tokens";

/// In days.
const DEFAULT_LIFETIME_DAYS: i64 = 90;

#[derive(Template)]
#[template(path = "tokens.html")]
struct TokensPage {
    layout: Layout,
    rail: Rail,
    now: Timestamp,
    host: String,
    tokens: Vec<Row>,
    /// The text of a token that was created just now.
    issued: Option<String>,
    form: FormContent,
    lifetimes: Vec<Lifetime>,
}

struct Row {
    id: TokenId,
    description: String,
    created: Moment,
    last_used: Option<Moment>,
    expires: Option<Moment>,
    expired: bool,
}

/// Content of the form for a new token.
#[derive(Default)]
struct FormContent {
    description: String,
    error: Option<String>,
}

impl Row {
    fn of(token: Token, now: Timestamp) -> Self {
        Self {
            id: token.id,
            expired: token.check(now).is_err(),
            description: token.description.unwrap_or_default(),
            created: Moment(token.created_at),
            last_used: token.last_used_at.map(Moment),
            expires: token.expires_at.map(Moment),
        }
    }
}

async fn page(web: &Web, visitor: &Visitor, form: FormContent) -> Result<TokensPage, Error> {
    let mut tokens = web.control_plane.user_tokens(&visitor.caller, visitor.user.id).await?;
    tokens.reverse();
    let now = web.control_plane.now();
    Ok(TokensPage {
        layout: Layout::for_visitor(web, visitor),
        rail: Rail::of_account("/tokens"),
        now,
        host: terraform::host_name(&web.address),
        tokens: tokens.into_iter().map(|token| Row::of(token, now)).collect(),
        issued: visitor.shown_once.clone(),
        form,
        lifetimes: lifetimes::offered(DEFAULT_LIFETIME_DAYS, now),
    })
}

/// `GET /app/settings/tokens`
pub(crate) async fn list(State(web): State<Web>, visitor: Visitor) -> Result<Response, PageError> {
    let page = page(&web, &visitor, FormContent::default()).await?;
    Ok(page::render(StatusCode::OK, &page))
}

#[derive(Deserialize)]
pub(crate) struct Create {
    #[serde(default)]
    description: String,
    #[serde(default)]
    days: String,
}

/// `POST /app/settings/tokens`. The page that it leads to is the only one that ever shows the token.
pub(crate) async fn create(
    State(web): State<Web>,
    VisitorForm(visitor, form): VisitorForm<Create>,
) -> Result<Response, PageError> {
    let expires_at = Some(lifetimes::chosen(&form.days, web.control_plane.now())?);
    let description = form.description.trim().to_owned();
    let new = NewToken { description: Some(description.clone()), expires_at };
    let issued = match web.control_plane.create_user_token(&visitor.caller, visitor.user.id, new).await {
        Err(Error::Invalid { detail, .. }) => {
            let form = FormContent { description, error: Some(detail) };
            let page = page(&web, &visitor, form).await?;
            return Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page));
        }
        other => other?,
    };
    Ok(shown_once::redirect_to(&web, &visitor, PATH, &issued.text.reveal()))
}

/// `POST /app/settings/tokens/{token_id}/revoke`
pub(crate) async fn revoke(
    State(web): State<Web>,
    Path(id): Path<String>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let id: TokenId = id.parse().map_err(|_| PageError::not_found("token"))?;
    web.control_plane.revoke_token(&visitor.caller, id).await?;
    Ok(Flash::says("Token revoked.").redirect_to(PATH))
}
