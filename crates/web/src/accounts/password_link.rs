//! A link with which someone sets a password without having one. It works once.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{Error, PasswordLinkText};

use crate::error::PageError;
use crate::form::OwnForm;
use crate::login::{self, Client};
use crate::page::Layout;
use crate::{Web, page};

/// The whole address of a link, for the one who may see it.
pub fn address(site: &impl std::fmt::Display, link: &PasswordLinkText) -> String {
    format!("{site}/setup/{}", link.secret.reveal())
}

#[derive(Template)]
#[template(path = "password_link.html")]
struct PasswordPage<'a> {
    layout: Layout,
    username: &'a str,
    error: Option<&'a str>,
}

fn explained(error: Error) -> PageError {
    match error {
        Error::NotFound(_) => PageError::new(
            StatusCode::NOT_FOUND,
            "This link does not work",
            "It was already used, has expired, or is incomplete. If nobody has set a password yet, run \
             `taco admin setup-link` on the server's machine for a new one.",
        ),
        other => other.into(),
    }
}

/// `GET /setup/{secret}`
pub(crate) async fn show(State(web): State<Web>, Path(secret): Path<String>) -> Result<Response, PageError> {
    let user = web.control_plane.user_of_password_link(&secret).await.map_err(explained)?;
    let page = PasswordPage { layout: Layout::of(&web), username: user.username.as_str(), error: None };
    Ok(page::render(StatusCode::OK, &page))
}

#[derive(Deserialize)]
pub(crate) struct NewPassword {
    password: String,
    repeated: String,
}

/// `POST /setup/{secret}`. Only who knows the link can send it, so that it needs no other proof.
pub(crate) async fn set_password(
    State(web): State<Web>,
    Path(secret): Path<String>,
    client: Client,
    OwnForm(form): OwnForm<NewPassword>,
) -> Result<Response, PageError> {
    let user = web.control_plane.user_of_password_link(&secret).await.map_err(explained)?;
    let again = |error: &str| {
        let page = PasswordPage { layout: Layout::of(&web), username: user.username.as_str(), error: Some(error) };
        page::render(StatusCode::UNPROCESSABLE_ENTITY, &page)
    };
    if form.password != form.repeated {
        return Ok(again("The passwords do not match."));
    }
    match web.control_plane.set_password_by_link(&secret, form.password.clone()).await {
        Err(Error::Invalid { detail, .. }) => return Ok(again(&detail)),
        other => other.map_err(explained)?,
    };
    let session = client.open_session(&web, user.username.as_str(), form.password).await?;
    Ok(login::entered(&web, &session, "/app"))
}
