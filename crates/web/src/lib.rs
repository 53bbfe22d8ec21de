//! The door for people: pages that work as plain HTML, and the consent that `terraform login` needs.
//!
//! A handler asks a [`visitor`] for who they are, calls one verb of the control plane, and fills a template. What
//! surrounds each page is in [`page`], what happens when there is none in [`error`], and what keeps other sites from
//! sending our forms in [`form`].

mod accounts;
mod admin;
mod agents;
mod app;
mod configurations;
mod error;
mod form;
#[doc(hidden)]
pub mod fuzzing;
mod graph;
mod html;
mod live;
mod navigation;
mod notifications;
mod organizations;
mod page;
mod pictures;
mod policies;
mod projects;
mod rail;
mod registry;
mod retention;
pub mod routes;
mod run_tasks;
mod runs;
mod search;
mod security_headers;
mod shown_once;
mod states;
mod static_files;
mod teams;
mod terraform;
mod theme;
mod variables;
mod visitor;
mod walks;
mod workspaces;

// Modules are called by their own names wherever their files are.
pub use accounts::oauth;
use accounts::{account, consent, lifetimes, login, login_limit, password_link, session_cookie, sessions, tokens};
use admin::admin_users;
use agents::agent_pool;
use configurations::configuration;
use graph::{contract_choice, dependencies, dependency_forms, output_history};
use html::{ansi, badge, choice, flash, list_page, markdown, pagination, text, text_diff, words};
use notifications::notification_form;
use organizations::{
    audit_log, audit_words, dashboard, invitations, organization_members, organization_secrets, organization_settings,
    organization_tags,
};
use policies::{policy, policy_set};
use registry::{registry_module, registry_provider};
use run_tasks::{run_task_form, workspace_run_tasks};
use runs::{choose_workspace, engine_line, new_run, plan_cache, plan_view, run, run_query};
use states::{output, state, state_diff, state_parts, state_resource, state_restore, state_upload};
use teams::{access_roles, member, organization_rights, team, team_access, team_tokens};
use variables::{bindings, variable_form, variable_holder, variable_import, variable_set, variable_sets};
use workspaces::{
    tag_lines, workspace, workspace_control, workspace_general, workspace_lock, workspace_query, workspace_settings,
    workspace_sharing,
};

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
    /// Address at which people and terraform reach this server.
    pub(crate) address: Arc<Url>,
    /// Location of the bucket, for the site's admins.
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

    /// Disables authentication, and says so on every page.
    pub fn without_login(self) -> Self {
        Self { without_login: true, ..self }
    }
}
