//! Light or dark. The choice is in a cookie, so that the server's first answer has the right colours already.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{COOKIE, HeaderValue, SET_COOKIE};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use crate::error::PageError;
use crate::form::OwnForm;
use crate::{Web, login};

const COOKIE_NAME: &str = "taco-theme";

/// Colour scheme that a visitor wants.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) enum Theme {
    /// Those of the visitor's system.
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    pub(crate) const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The choice that a request brings.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let chosen = pairs.find(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value);
        Self::ALL.into_iter().find(|theme| Some(theme.word()) == chosen).unwrap_or_default()
    }
}

#[derive(Deserialize)]
pub(crate) struct Choice {
    #[serde(default)]
    theme: String,
    #[serde(default)]
    next: String,
}

/// `POST /theme`. It changes nothing but this browser, so that anyone may send it.
pub(crate) async fn choose(State(web): State<Web>, OwnForm(form): OwnForm<Choice>) -> Result<Response, PageError> {
    let theme = Theme::ALL.into_iter().find(|theme| theme.word() == form.theme);
    let theme = theme.ok_or_else(|| PageError::bad_request("The theme is system, light or dark."))?;
    let secure = if web.address.scheme() == "https" { "; Secure" } else { "" };
    let cookie = format!("{COOKIE_NAME}={}; Path=/; HttpOnly; SameSite=Lax; Max-Age=31536000{secure}", theme.word());
    let cookie = HeaderValue::try_from(cookie).expect("letters and punctuation");
    Ok(([(SET_COOKIE, cookie)], Redirect::to(login::place_to_return_to(&form.next))).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_tells_the_theme_and_anything_else_means_the_systems() {
        for (line, expected) in [
            ("taco-theme=dark", Theme::Dark),
            ("a=b; taco-theme=light; c=d", Theme::Light),
            ("taco-theme=system", Theme::System),
            ("taco-theme=\"><script>", Theme::System),
            ("theme=dark", Theme::System),
        ] {
            let headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(line).expect("a value"))]);
            assert_eq!(Theme::of(&headers), expected, "{line}");
        }
    }
}
