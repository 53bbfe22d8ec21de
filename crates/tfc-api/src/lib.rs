//! The door for terraform, tofu, go-tfe and the tfe provider: the API of Terraform Cloud as JSON:API, discovery, and
//! the `http` backend.
//!
//! Handlers are thin: they extract, call one verb of the control plane, and shape the answer. All routes are rows of
//! one table, [`routes`]; a handler that is not in it cannot be reached.

mod accounts;
mod admin;
mod agents;
mod configuration_versions;
mod crud;
mod discovery;
#[doc(hidden)]
pub mod fuzzing;
mod graph;
mod http;
mod not_implemented;
mod notification_configurations;
mod organizations;
mod ping;
mod policies;
mod projects;
mod registry;
mod request;
mod resource;
mod retention;
pub mod routes;
mod run_tasks;
mod runs;
mod ssh_keys;
mod states;
mod teams;
mod variables;
mod vcs;
mod versions;
mod walks;
mod workspaces;

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use axum::middleware::from_fn_with_state;
use axum::routing::any;
use taco_control_plane::ControlPlane;
use tower::util::MapResponseLayer;

use crate::rate_limit::RateLimit;
use crate::response_cache::ResponseCache;
use crate::summary_cache::SummaryCache;

// Modules are called by their own names wherever their files are.
use accounts::{account, admin_users, authentication_tokens, user_tokens, users};
use graph::{dependencies, output_commits};
use http::{
    address, body, caller, client, document, error, headers, path, query, rate_limit, response_cache, signed_url,
};
use organizations::{
    audit_trails, explorer, invitations, organization_memberships, organization_tags, organization_tokens,
    subscriptions, token_lifetimes,
};
use policies::{policy_evaluations, policy_parameters, policy_set_versions, policy_sets, policy_stages};
use registry::{
    gpg_keys, module_protocol, provider_platforms, provider_protocol, provider_versions, registry_files,
    registry_modules, registry_providers,
};
use run_tasks::{task_results, task_stages, workspace_run_tasks};
use runs::{comments, cost_estimates, log_stream, phases, run_events, run_triggers};
use states::{base64_text, http_backend, inline_state, state_version_outputs, state_versions, summary_cache};
use teams::{team_members, team_projects, team_workspaces};
use variables::{bindings, variable_sets};
use vcs::{oauth_clients, oauth_tokens};
use workspaces::{reserved_tag_keys, tag_bindings, tags, workspace_includes, workspace_resources};

/// State that every handler can reach.
#[derive(Clone, Debug)]
pub struct Api {
    pub(crate) control_plane: ControlPlane,
    /// Origin by which people and terraform reach this server, without a slash at the end.
    pub(crate) public_address: Arc<str>,
    /// Everyone is the first admin: for a laptop.
    pub(crate) without_login: bool,
    pub(crate) responses: ResponseCache,
    pub(crate) summaries: SummaryCache,
    rate_limit: Option<RateLimit>,
}

impl Api {
    pub fn new(control_plane: ControlPlane, public_address: &str) -> Self {
        let public_address = public_address.trim_end_matches('/').into();
        Self {
            control_plane,
            public_address,
            without_login: false,
            responses: ResponseCache::default(),
            summaries: SummaryCache::default(),
            rate_limit: None,
        }
    }

    /// Disables authentication.
    pub fn without_login(self) -> Self {
        Self { without_login: true, ..self }
    }

    /// Each token may make so many requests in a second; 0 is no limit.
    pub fn with_rate_limit(self, per_second: u16) -> Self {
        Self { rate_limit: (per_second > 0).then(|| RateLimit::new(per_second.into())), ..self }
    }

    /// The routes of the table, as one service.
    pub fn into_router(self) -> Router {
        let mut router = Router::new();
        for route in routes::all() {
            router = router.route(route.path, route.into_service());
        }
        router = router
            .route("/api", any(error::no_such_path))
            .route("/api/{*path}", any(error::no_such_path))
            .method_not_allowed_fallback(error::no_such_method);
        if let Some(limit) = &self.rate_limit {
            router = router.layer(from_fn_with_state(limit.clone(), rate_limit::enforce));
        }
        router.layer(MapResponseLayer::new(headers::add)).with_state(self)
    }
}

impl FromRef<Api> for ControlPlane {
    fn from_ref(api: &Api) -> Self {
        api.control_plane.clone()
    }
}
