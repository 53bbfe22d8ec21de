//! `/app/settings/account`: a person's name, address and password.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::AccountPatch;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, VisitorForm};
use crate::login::Client;
use crate::page::Layout;
use crate::rail::Rail;
use crate::visitor::Visitor;
use crate::{Web, page};

const PATH: &str = "/app/settings/account";

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Profile {
    username: String,
    email: String,
    #[serde(skip)]
    complaint: Complaint,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Passwords {
    current: String,
    password: String,
    repeated: String,
}

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage {
    layout: Layout,
    rail: Rail,
    id: String,
    profile: Profile,
    has_verified_email: bool,
    /// Error in the passwords; they themselves are never shown again.
    complaint: Complaint,
}

impl AccountPage {
    fn new(web: &Web, visitor: &Visitor) -> Self {
        Self {
            layout: Layout::for_visitor(web, visitor),
            rail: Rail::of_account("/account"),
            id: visitor.user.id.to_string(),
            profile: Profile {
                username: visitor.user.username.to_string(),
                email: visitor.user.email.to_string(),
                complaint: Complaint::default(),
            },
            has_verified_email: visitor.user.has_verified_email(),
            complaint: Complaint::default(),
        }
    }
}

/// `GET /app/settings/account`
pub(crate) async fn show(State(web): State<Web>, visitor: Visitor) -> Response {
    page::render(StatusCode::OK, &AccountPage::new(&web, &visitor))
}

/// `POST /app/settings/account`
pub(crate) async fn update(
    State(web): State<Web>,
    VisitorForm(visitor, form): VisitorForm<Profile>,
) -> Result<Response, PageError> {
    let patch =
        AccountPatch { username: Some(form.username.trim().to_owned()), email: Some(form.email.trim().to_owned()) };
    let Err(error) = web.control_plane.update_user(&visitor.caller, visitor.user.id, patch).await else {
        return Ok(Flash::says("Profile saved.").redirect_to(PATH));
    };
    let complaint = Complaint::of(error, &["username", "email"])?;
    let page = AccountPage { profile: Profile { complaint, ..form }, ..AccountPage::new(&web, &visitor) };
    Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

/// `POST /app/settings/account/password`. Someone who found an open browser must not be able to try passwords.
pub(crate) async fn change_password(
    State(web): State<Web>,
    client: Client,
    VisitorForm(visitor, form): VisitorForm<Passwords>,
) -> Result<Response, PageError> {
    let again = |complaint| {
        let page = AccountPage { complaint, ..AccountPage::new(&web, &visitor) };
        Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
    };
    if form.password != form.repeated {
        return again(Complaint::about_field("repeated", "The passwords do not match."));
    }
    if let Err(wait) = client.may_try_own(&web, visitor.user.id) {
        let detail = "Too many attempts. Wait a minute, then try again.";
        let complaint = Complaint::about_field("current-password", detail);
        let page = AccountPage { complaint, ..AccountPage::new(&web, &visitor) };
        return Ok(page::to_repeat_after(page::render(StatusCode::TOO_MANY_REQUESTS, &page), wait));
    }
    let kept = web.control_plane.session_of_cookie(&visitor.caller, &visitor.session);
    match web.control_plane.change_password(&visitor.caller, form.current, form.password, kept).await {
        Ok(_) => Ok(Flash::says("Password changed. Your other sessions have ended.").redirect_to(PATH)),
        Err(error) => again(Complaint::of(error, &["current-password", "password"])?),
    }
}
