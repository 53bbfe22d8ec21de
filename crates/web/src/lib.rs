//! The door for people: pages that work as plain HTML, and the consent that `terraform login` needs.
//!
//! A handler asks a [`visitor`] for who they are, calls one verb of the control plane, and fills a template. What
//! surrounds each page is in [`page`], what happens when there is none in [`error`], and what keeps other sites from
//! sending our forms in [`form`].

mod account;
mod admin;
mod agent_pool;
mod agents;
mod ansi;
mod app;
mod badge;
mod choice;
mod configuration;
mod configurations;
mod consent;
mod dashboard;
mod engine_line;
mod error;
mod form;
mod invitations;
mod lifetimes;
mod live;
mod login;
mod login_limit;
mod markdown;
mod navigation;
mod new_run;
mod notice;
pub mod oauth;
mod organization_members;
mod organization_secrets;
mod organization_settings;
mod organization_tags;
mod organizations;
mod output;
mod page;
mod pagination;
mod password_link;
mod plan_cache;
mod plan_view;
mod projects;
mod run;
mod run_query;
mod runs;
mod security_headers;
mod session_cookie;
mod sessions;
mod state;
mod state_diff;
mod state_parts;
mod state_upload;
mod states;
mod static_files;
mod tag_lines;
mod terraform;
mod text;
mod text_diff;
mod theme;
mod tokens;
mod variable_form;
mod variable_holder;
mod variable_import;
mod variable_set;
mod variable_sets;
mod variables;
mod visitor;
mod words;
mod workspace;
mod workspace_control;
mod workspace_general;
mod workspace_lock;
mod workspace_query;
mod workspace_settings;
mod workspace_sharing;
mod workspaces;

use std::sync::Arc;

use taco_control_plane::ControlPlane;
use url::Url;

use crate::login_limit::LoginLimit;
use crate::plan_cache::PlanCache;
use crate::run::log_lines::LineCache;

pub use form::Sender;
pub use password_link::address as password_link_address;
pub use terraform::{host_block, host_name};

/// The pages, and what every handler can reach.
#[derive(Clone, Debug)]
pub struct Web {
    pub(crate) control_plane: ControlPlane,
    /// Where people and terraform reach this server.
    pub(crate) address: Arc<Url>,
    /// Where the bucket is, for the site's admins.
    pub(crate) bucket: Arc<str>,
    /// Everyone is the first admin: for a laptop.
    pub(crate) without_login: bool,
    pub(crate) login_limit: Arc<LoginLimit>,
    /// Plans that were looked at lately.
    pub(crate) plans: Arc<PlanCache>,
    /// Logs of which the lines were counted lately.
    pub(crate) lines: Arc<LineCache>,
}

impl Web {
    pub fn new(control_plane: ControlPlane, address: &Url) -> Self {
        let address = Arc::new(address.clone());
        Self {
            control_plane,
            address,
            bucket: Arc::default(),
            without_login: false,
            login_limit: Arc::default(),
            plans: Arc::default(),
            lines: Arc::default(),
        }
    }

    /// Tells the site's admins where the bucket is. An address with credentials is not for this.
    pub fn with_bucket(self, address: &str) -> Self {
        Self { bucket: address.into(), ..self }
    }

    /// Asks nobody who they are, and says so on every page.
    pub fn without_login(self) -> Self {
        Self { without_login: true, ..self }
    }
}
