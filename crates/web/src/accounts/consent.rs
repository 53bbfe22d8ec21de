//! `/oauth/authorize`: someone lets a program on their machine act in their name. Nothing is granted without a click.

use askama::Template;
use axum::extract::{Query, RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use taco_control_plane::AuthorizationRequest;
use taco_domain::grant::{AuthorizationRefusal, CLIENT, check_authorization};
use url::Url;

use crate::error::PageError;
use crate::form::OwnForm;
use crate::lifetimes::{self, Lifetime};
use crate::page::Layout;
use crate::security_headers::CONSENT_POLICY;
use crate::visitor::Visitor;
use crate::{Web, login, page, terraform};

const PURPOSE: &str = "consent";

/// Display name of the only client: see [`CLIENT`].
const CLIENT_NAME: &str = "Terraform CLI";

/// In days. Who wants a longer one chooses it.
const DEFAULT_LIFETIME_DAYS: i64 = 90;

/// Request of a client. Missing parameters are empty, and refused as such.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(default)]
pub(crate) struct ConsentQuery {
    client_id: String,
    redirect_uri: String,
    response_type: String,
    state: String,
    code_challenge: String,
    code_challenge_method: String,
}

#[derive(Deserialize)]
pub(crate) struct Decision {
    #[serde(flatten)]
    query: ConsentQuery,
    #[serde(default)]
    proof: String,
    #[serde(default)]
    days: String,
    #[serde(default)]
    decision: String,
}

#[derive(Template)]
#[template(path = "consent.html")]
struct ConsentPage<'a> {
    layout: Layout,
    query: &'a ConsentQuery,
    /// Display name of the program.
    client: &'static str,
    username: &'a str,
    host: String,
    lifetimes: Vec<Lifetime>,
    proof: String,
}

/// Response to a request that cannot be granted.
#[derive(Debug)]
enum Refusal {
    /// We do not know who would get the response, so there is no redirect.
    Here(&'static str),
    /// The client is told.
    ToClient(&'static str, &'static str),
}

impl ConsentQuery {
    fn check(&self) -> Result<(), Refusal> {
        if self.client_id != CLIENT {
            return Err(Refusal::Here("The program that sent you here is not registered on this server."));
        }
        match check_authorization(&self.redirect_uri, &self.code_challenge) {
            Err(AuthorizationRefusal::Redirect) => Err(Refusal::Here(
                "The program that sent you here asked for a redirect to an address that is not allowed.",
            )),
            _ if self.response_type != "code" => {
                Err(Refusal::ToClient("unsupported_response_type", "response_type must be code"))
            }
            _ if self.state.is_empty() => Err(Refusal::ToClient("invalid_request", "state is missing")),
            _ if self.code_challenge_method != "S256" => {
                Err(Refusal::ToClient("invalid_request", "code_challenge_method must be S256"))
            }
            Err(AuthorizationRefusal::Challenge) => {
                Err(Refusal::ToClient("invalid_request", "code_challenge must be the base64url of a SHA-256 hash"))
            }
            Ok(()) => Ok(()),
        }
    }

    /// Sends the visitor back to the client. Only for a request whose redirect address was checked.
    fn answer(&self, pairs: &[(&str, &str)]) -> Result<Response, PageError> {
        let mut address = Url::parse(&self.redirect_uri).map_err(|error| PageError::bad_request(error.to_string()))?;
        address.query_pairs_mut().extend_pairs(pairs);
        if !self.state.is_empty() {
            address.query_pairs_mut().append_pair("state", &self.state);
        }
        Ok(Redirect::to(address.as_str()).into_response())
    }

    fn refuse(&self, refusal: &Refusal) -> Result<Response, PageError> {
        match refusal {
            Refusal::Here(why) => Err(PageError::new(StatusCode::BAD_REQUEST, "Login failed", *why)),
            Refusal::ToClient(error, why) => self.answer(&[("error", error), ("error_description", why)]),
        }
    }
}

/// `GET /oauth/authorize`
pub(crate) async fn show(
    State(web): State<Web>,
    RawQuery(raw_query): RawQuery,
    Query(query): Query<ConsentQuery>,
    visitor: Result<Visitor, PageError>,
) -> Result<Response, PageError> {
    if let Err(refusal) = query.check() {
        return query.refuse(&refusal);
    }
    let visitor = match visitor {
        Err(PageError::LogIn { .. }) => {
            let here = format!("/oauth/authorize?{}", raw_query.unwrap_or_default());
            return Ok(Redirect::to(&login::address(&here)).into_response());
        }
        other => other?,
    };
    let page = ConsentPage {
        layout: Layout::for_visitor(&web, &visitor),
        query: &query,
        client: CLIENT_NAME,
        username: visitor.user.username.as_str(),
        host: terraform::host_name(&web.address),
        lifetimes: lifetimes::offered(DEFAULT_LIFETIME_DAYS, web.control_plane.now()),
        proof: visitor.proof(PURPOSE),
    };
    let mut response = page::render(StatusCode::OK, &page);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONSENT_POLICY));
    Ok(response)
}

/// `POST /oauth/authorize`
pub(crate) async fn decide(
    State(web): State<Web>,
    visitor: Visitor,
    OwnForm(form): OwnForm<Decision>,
) -> Result<Response, PageError> {
    visitor.require_proof(PURPOSE, &form.proof)?;
    let query = form.query;
    if let Err(refusal) = query.check() {
        return query.refuse(&refusal);
    }
    if form.decision != "approve" {
        return query.answer(&[("error", "access_denied")]);
    }
    let now = web.control_plane.now();
    let token_expires_at = Some(match form.days.as_str() {
        "" => lifetimes::until(DEFAULT_LIFETIME_DAYS, now),
        days => lifetimes::chosen(days, now)?,
    });
    let request = AuthorizationRequest {
        client: query.client_id.clone(),
        redirect_uri: query.redirect_uri.clone(),
        code_challenge: query.code_challenge.clone(),
        token_expires_at,
    };
    let code = web.control_plane.grant(&visitor.caller, request).await?;
    query.answer(&[("code", code.reveal())])
}
