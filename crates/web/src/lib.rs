//! The door for people: pages that work as plain HTML, and the consent that `terraform login` needs.
//!
//! A handler asks a [`visitor`] for who they are, calls one verb of the control plane, and fills a template. What
//! surrounds each page is in [`page`], what happens when there is none in [`error`], and what keeps other sites from
//! sending our forms in [`form`].

mod app;
mod badge;
mod consent;
mod error;
mod form;
mod landing;
mod lifetimes;
mod login;
mod login_limit;
mod navigation;
mod notice;
pub mod oauth;
mod page;
mod password_link;
mod security_headers;
mod session_cookie;
mod static_files;
mod terraform;
mod text;
mod theme;
mod tokens;
mod visitor;

use std::sync::Arc;

use taco_control_plane::ControlPlane;
use url::Url;

use crate::login_limit::LoginLimit;

pub use password_link::address as password_link_address;
pub use terraform::{host_block, host_name};

/// The pages, and what every handler can reach.
#[derive(Clone, Debug)]
pub struct Web {
    pub(crate) control_plane: ControlPlane,
    /// Where people and terraform reach this server.
    pub(crate) address: Arc<Url>,
    /// Everyone is the first admin: for a laptop.
    pub(crate) without_login: bool,
    pub(crate) login_limit: Arc<LoginLimit>,
}

impl Web {
    pub fn new(control_plane: ControlPlane, address: &Url) -> Self {
        let address = Arc::new(address.clone());
        Self { control_plane, address, without_login: false, login_limit: Arc::default() }
    }

    /// Asks nobody who they are, and says so on every page.
    pub fn without_login(self) -> Self {
        Self { without_login: true, ..self }
    }
}
