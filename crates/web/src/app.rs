//! All routes of this door.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Redirect;
use axum::routing::{any, get, post};
use tower_http::catch_panic::CatchPanicLayer;

use crate::error::{self, PageError};
use crate::static_files::STATIC_FILES;
use crate::{
    Web, account, admin, agent_pool, agents, configuration, configurations, consent, dashboard, invitations, login,
    new_run, oauth, organization_members, organization_secrets, organization_settings, organization_tags,
    organizations, output, password_link, projects, run, runs, security_headers, sessions, state, state_diff,
    state_upload, states, theme, tokens, variable_form, variable_import, variable_set, variable_sets, variables,
    workspace, workspace_control, workspace_general, workspace_lock, workspace_settings, workspace_sharing, workspaces,
};

impl Web {
    /// The routes as one service.
    pub fn into_router(self) -> Router {
        let pages = Router::new()
            .route("/", get(|| async { Redirect::to("/app") }))
            .route("/login", get(login::show).post(login::log_in))
            .route("/logout", post(login::log_out))
            .route("/theme", post(theme::choose))
            .route("/setup/{secret}", get(password_link::show).post(password_link::set_password))
            .route("/oauth/authorize", get(consent::show).post(consent::decide))
            .route("/oauth/token", post(oauth::token))
            .route("/app/settings/tokens", get(tokens::list).post(tokens::create))
            .route("/app/settings/tokens/{token_id}/revoke", post(tokens::revoke))
            .merge(workspace_pages())
            .merge(run_pages())
            .merge(account_pages())
            .merge(settings_pages())
            .merge(variable_pages())
            //
            // What no page is at. A star right behind `/app/` would leave no room for the names of organizations.
            .route("/app/{organization}/{workspace}/{*path}", any(no_such_page));
        let files = STATIC_FILES.all().into_iter();
        self.surround(files.fold(pages, |routes, file| routes.route(&file.path, file.serve())))
    }

    /// Gives routes what every page has.
    fn surround(self, routes: Router<Self>) -> Router {
        routes
            .method_not_allowed_fallback(error::no_such_method)
            .layer(CatchPanicLayer::custom(error::after_panic))
            .layer(from_fn_with_state(self.clone(), error::render))
            .layer(map_response(security_headers::add))
            .with_state(self)
    }
}

async fn no_such_page() -> PageError {
    PageError::not_found("page")
}

/// Organizations, their projects and workspaces, and the states of those.
fn workspace_pages() -> Router<Web> {
    Router::new()
        .route("/app", get(organizations::start))
        .route("/app/organizations", get(organizations::list).post(organizations::create))
        .route("/app/{organization}/workspaces", get(workspaces::list).post(workspaces::create))
        .route("/app/{organization}/{workspace}", get(workspace::redirect))
        .route("/app/{organization}/workspaces/{workspace}", get(workspace::show))
        .route("/app/{organization}/workspaces/{workspace}/lock", post(workspace_lock::lock))
        .route("/app/{organization}/workspaces/{workspace}/unlock", post(workspace_lock::unlock))
        .route("/app/{organization}/workspaces/{workspace}/force-unlock", post(workspace_lock::force_unlock))
        .route(
            "/app/{organization}/workspaces/{workspace}/states",
            get(states::list).post(state_upload::upload).layer(DefaultBodyLimit::max(state_upload::MAX_FORM_BYTES)),
        )
        .route("/app/{organization}/workspaces/{workspace}/states/{state}", get(state::show))
        .route("/app/{organization}/workspaces/{workspace}/states/{state}/diff", get(state_diff::show))
        .route("/app/{organization}/workspaces/{workspace}/states/{state}/download", get(state::download))
        .route("/app/{organization}/workspaces/{workspace}/states/{state}/restore", post(state::restore))
        .route("/app/{organization}/workspaces/{workspace}/states/{state}/data/{step}", post(state::change_data))
        .route(
            "/app/{organization}/workspaces/{workspace}/configurations/{configuration}",
            get(configuration::download),
        )
        .route("/app/{organization}/workspaces/{workspace}/configurations", get(configurations::list))
        .route(
            "/app/{organization}/workspaces/{workspace}/configurations/{configuration}/{step}",
            post(configurations::change),
        )
        .route("/app/{organization}/workspaces/{workspace}/outputs/{output}/reveal", post(output::reveal))
        .route("/app/{organization}/projects", get(projects::list).post(projects::create))
        .route("/app/{organization}/projects/{project}", get(projects::show).post(projects::update))
        .route("/app/{organization}/projects/{project}/delete", post(projects::delete))
}

/// The variables of workspaces, sets of variables and theirs.
fn variable_pages() -> Router<Web> {
    Router::new()
        .route("/app/{organization}/workspaces/{workspace}/variables", get(variables::list).post(variable_form::create))
        .route("/app/{organization}/workspaces/{workspace}/variables/import", post(variable_import::preview))
        .route("/app/{organization}/workspaces/{workspace}/variables/import/confirm", post(variable_import::confirm))
        .route(
            "/app/{organization}/workspaces/{workspace}/variables/{variable}",
            get(variable_form::show).post(variable_form::update),
        )
        .route("/app/{organization}/workspaces/{workspace}/variables/{variable}/delete", post(variable_form::delete))
        //
        .route("/app/{organization}/variable-sets", get(variable_sets::list).post(variable_sets::create))
        .route("/app/{organization}/variable-sets/{variable_set}", get(variable_set::show).post(variable_set::update))
        .route("/app/{organization}/variable-sets/{variable_set}/apply", post(variable_set::apply))
        .route("/app/{organization}/variable-sets/{variable_set}/withdraw", post(variable_set::withdraw))
        .route("/app/{organization}/variable-sets/{variable_set}/delete", post(variable_set::delete))
        .route("/app/{organization}/variable-sets/{variable_set}/variables", post(variable_form::create))
        .route("/app/{organization}/variable-sets/{variable_set}/variables/import", post(variable_import::preview))
        .route(
            "/app/{organization}/variable-sets/{variable_set}/variables/import/confirm",
            post(variable_import::confirm),
        )
        .route(
            "/app/{organization}/variable-sets/{variable_set}/variables/{variable}",
            get(variable_form::show).post(variable_form::update),
        )
        .route(
            "/app/{organization}/variable-sets/{variable_set}/variables/{variable}/delete",
            post(variable_form::delete),
        )
}

/// Settings pages of organizations and workspaces.
fn settings_pages() -> Router<Web> {
    Router::new()
        .route("/app/{organization}/settings", get(organization_settings::show).post(organization_settings::save))
        .route("/app/{organization}/settings/tags", get(organization_tags::list))
        .route("/app/{organization}/settings/tags/delete", post(organization_tags::delete))
        .route("/app/{organization}/settings/delete", post(organization_settings::delete))
        .route(
            "/app/{organization}/settings/members",
            get(organization_members::list).post(organization_members::invite),
        )
        .route("/app/{organization}/settings/members/{member}/remove", post(organization_members::remove))
        .route("/app/{organization}/settings/members/{member}/link", post(organization_members::renew_link))
        .route("/app/{organization}/settings/tokens/{kind}", post(organization_secrets::make_token))
        .route("/app/{organization}/settings/tokens/{kind}/revoke", post(organization_secrets::revoke_token))
        .route("/app/{organization}/settings/ssh-keys", post(organization_secrets::add_key))
        .route("/app/{organization}/settings/ssh-keys/{key}", post(organization_secrets::rename_key))
        .route("/app/{organization}/settings/ssh-keys/{key}/delete", post(organization_secrets::delete_key))
        //
        .route("/app/{organization}/workspaces/{workspace}/settings", get(workspace_settings::show))
        .route("/app/{organization}/workspaces/{workspace}/settings/general", post(workspace_general::save_general))
        .route("/app/{organization}/workspaces/{workspace}/settings/execution", post(workspace_general::save_execution))
        .route("/app/{organization}/workspaces/{workspace}/settings/sharing", post(workspace_sharing::save_sharing))
        .route("/app/{organization}/workspaces/{workspace}/settings/consumers", post(workspace_sharing::add_consumer))
        .route(
            "/app/{organization}/workspaces/{workspace}/settings/consumers/remove",
            post(workspace_sharing::remove_consumer),
        )
        .route("/app/{organization}/workspaces/{workspace}/settings/triggers", post(workspace_sharing::add_trigger))
        .route(
            "/app/{organization}/workspaces/{workspace}/settings/triggers/{trigger}/delete",
            post(workspace_sharing::remove_trigger),
        )
        .route("/app/{organization}/workspaces/{workspace}/settings/ssh-key", post(workspace_sharing::choose_key))
        .route("/app/{organization}/workspaces/{workspace}/settings/teams", post(workspace_control::add_team))
        .route(
            "/app/{organization}/workspaces/{workspace}/settings/teams/{access}",
            post(workspace_control::change_team),
        )
        .route(
            "/app/{organization}/workspaces/{workspace}/settings/teams/{access}/remove",
            post(workspace_control::remove_team),
        )
        .route("/app/{organization}/workspaces/{workspace}/settings/delete", post(workspace_control::delete))
}

/// A person's own account, and those of everyone for site admins.
fn account_pages() -> Router<Web> {
    Router::new()
        .route("/app/settings/account", get(account::show).post(account::update))
        .route("/app/settings/account/password", post(account::change_password))
        .route("/app/settings/sessions", get(sessions::list))
        .route("/app/settings/sessions/close-others", post(sessions::close_others))
        .route("/app/settings/sessions/{session}/revoke", post(sessions::revoke))
        .route("/app/settings/invitations/{invitation}", get(invitations::show))
        .route("/app/settings/invitations/{invitation}/accept", post(invitations::accept))
        .route("/app/settings/invitations/{invitation}/decline", post(invitations::decline))
        .route("/app/admin", get(admin::show))
        .route("/app/admin/users", post(admin::create_user))
        .route("/app/admin/users/{user}/suspend", post(admin::suspend))
        .route("/app/admin/users/{user}/resume", post(admin::resume))
        .route("/app/admin/users/{user}/password-link", post(admin::renew_link))
        .route("/app/admin/users/{user}/verify-email", post(admin::verify_email))
}

/// Workload pages of an organization: runs, the queue, and the agents that execute them.
fn run_pages() -> Router<Web> {
    Router::new()
        .route("/app/{organization}", get(dashboard::show))
        .route("/app/{organization}/queue", get(dashboard::queue))
        .route("/app/{organization}/runs", get(runs::of_organization))
        .route("/app/{organization}/workspaces/{workspace}/runs", get(runs::of_workspace))
        .route("/app/{organization}/workspaces/{workspace}/runs/new", get(new_run::show).post(new_run::start))
        //
        .route("/app/{organization}/{workspace}/runs/{run}", get(run::page::redirect))
        .route("/app/{organization}/workspaces/{workspace}/runs/{run}", get(run::page::show))
        .route("/app/{organization}/workspaces/{workspace}/runs/{run}/events", get(run::events::follow))
        .route("/app/{organization}/workspaces/{workspace}/runs/{run}/log/{phase}", get(run::log::whole))
        .route("/app/{organization}/workspaces/{workspace}/runs/{run}/log/{phase}/part", get(run::log::earlier))
        .route("/app/{organization}/workspaces/{workspace}/runs/{run}/plan/{form}", get(run::plan::download))
        .route("/app/{organization}/workspaces/{workspace}/runs/{run}/comments", post(run::actions::comment))
        .route("/app/{organization}/workspaces/{workspace}/runs/{run}/decisions/{decision}", post(run::actions::decide))
        //
        .route("/app/{organization}/agents", get(agents::list).post(agents::create))
        .route("/app/{organization}/agents/pools/{pool}", get(agent_pool::show).post(agent_pool::update))
        .route("/app/{organization}/agents/pools/{pool}/delete", post(agent_pool::delete))
        .route("/app/{organization}/agents/pools/{pool}/tokens", post(agent_pool::create_token))
        .route("/app/{organization}/agents/pools/{pool}/tokens/{token}/revoke", post(agent_pool::revoke_token))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::{Body, to_bytes};
    use axum::http::{Request, StatusCode};
    use taco_control_plane::{Privileged, Settings};
    use taco_ledger::{Environment, MasterKey, MasterKeys, ObjectBucket, Options, Peers, SharedRng, SystemClock};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn a_handler_that_panics_leaves_a_page_that_names_the_request_and_no_more() {
        let rng = SharedRng::from_seed(1);
        let environment = Environment {
            bucket: Arc::new(ObjectBucket::in_memory()),
            clock: Arc::new(SystemClock),
            rng: rng.clone(),
            server: "server".to_owned(),
            peers: Peers::none(),
        };
        let key = MasterKey::from_secret("a master key with more than enough characters").expect("long enough");
        let settings = Settings {
            master_keys: Arc::new(MasterKeys::new(key, Vec::new(), rng)),
            site_token: None,
            ledger: Options::default(),
            timeouts: Default::default(),
            limits: Default::default(),
            history: Default::default(),
        };
        let control_plane = Privileged::open(environment, settings).await.expect("a control plane");
        let address = "http://taco.test".parse().expect("an address");
        let routes = Router::new().route("/panics", get(|| async { assert_eq!("a secret", "", "never") }));
        let request = Request::get("/panics").header("x-request-id", "request-1").body(Body::empty());
        let answer = Web::new(control_plane.control_plane(), &address)
            .surround(routes)
            .oneshot(request.expect("a request"))
            .await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(answer.headers().contains_key("content-security-policy"));
        assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8");
        let text = to_bytes(answer.into_body(), 1 << 20).await.expect("a whole page");
        let text = String::from_utf8(text.to_vec()).expect("text");
        assert!(text.contains("Internal error") && text.contains("request-1"), "{text}");
        assert!(!text.contains("secret") && !text.contains("never"), "{text}");
    }
}
