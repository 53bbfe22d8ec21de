//! Every page, and where to look at it once there is something to see: see [`crate::sample_site`].

use std::sync::LazyLock;

use taco_web::routes;

#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Name of its pictures.
    pub name: &'static str,
    /// As `crates/web/src/routes/table.rs` has it, or nothing if there is no page to be found.
    pub route: &'static str,
    /// Placeholders in braces are ids that only the sample site knows.
    pub address: &'static str,
}

impl Page {
    /// True if the page only says that there is nothing.
    pub fn is_missing(&self) -> bool {
        self.route.is_empty()
    }

    /// True if it can be seen without a login.
    pub fn is_for_everyone(&self) -> bool {
        self.route == "/login" || self.route.starts_with("/setup/")
    }
}

/// Width of a phone, in pixels.
pub const PHONE: u32 = 390;

pub const DESK: u32 = 1280;

/// All pages that the table of routes has.
pub static PAGES: LazyLock<Vec<Page>> = LazyLock::new(|| {
    let routes = routes::all();
    let is_there = |page: &&Page| page.is_missing() || routes.iter().any(|route| route.path == page.route);
    LISTED.iter().filter(is_there).copied().collect()
});

#[rustfmt::skip]
pub const LISTED: &[Page] = &[
    page("login", "/login", "/login"),
    page("password-link", "/setup/{secret}", "{setup}"),
    page("consent", "/oauth/authorize", "/oauth/authorize?{consent}"),
    page("tokens", "/app/settings/tokens", "/app/settings/tokens"),
    page("sessions", "/app/settings/sessions", "/app/settings/sessions"),
    page("account", "/app/settings/account", "/app/settings/account"),
    page("invitation", "/app/settings/invitations/{invitation}", "{invitation}"),
    page("admin", "/app/admin", "/app/admin"),
    page("admin-users", "/app/admin/users", "/app/admin/users"),
    page("admin-audit", "/app/admin/audit", "/app/admin/audit"),
    page("organizations", "/app/organizations", "/app/organizations"),

    page("search-everywhere", "/app/organizations/search", "/app/organizations/search?q=network"),

    page("search", "/app/{organization}/search", "/app/acme/search?q=prod"),
    page("search-empty", "/app/{organization}/search", "/app/acme/search"),
    page("not-found", "", "/app/acme/workspaces/none"),
    page("dashboard", "/app/{organization}", "/app/acme"),
    page("dashboard-empty", "/app/{organization}", "/app/empty"),
    page("runs", "/app/{organization}/runs", "/app/acme/runs"),
    page("runs-empty", "/app/{organization}/runs", "/app/empty/runs"),
    page("choose-workspace", "/app/{organization}/runs/new", "/app/acme/runs/new"),
    page("queue", "/app/{organization}/queue", "/app/acme/queue"),
    page("queue-empty", "/app/{organization}/queue", "/app/empty/queue"),
    page("walks", "/app/{organization}/walks", "/app/acme/walks"),
    page("walk", "/app/{organization}/walks/{walk}", "/app/acme/walks/{walk}"),
    page("agents", "/app/{organization}/agents", "/app/acme/agents"),
    page("agents-empty", "/app/{organization}/agents", "/app/empty/agents"),
    page("agent-pool", "/app/{organization}/agents/pools/{pool}", "/app/acme/agents/pools/{pool}"),
    page("registry", "/app/{organization}/registry", "/app/acme/registry"),
    page("registry-empty", "/app/{organization}/registry", "/app/empty/registry"),
    page("registry-providers", "/app/{organization}/registry/providers", "/app/acme/registry/providers"),
    page("registry-module", "/app/{organization}/registry/modules/{module}", "/app/acme/registry/modules/{module}"),
    page("registry-provider", "/app/{organization}/registry/providers/{provider}", "/app/acme/registry/providers/{provider}"),
    page("graph", "/app/{organization}/graph", "/app/acme/graph"),
    page("graph-around", "/app/{organization}/graph", "/app/acme/graph?around=warehouse-prod&hops=1"),
    page("graph-stale", "/app/{organization}/graph", "/app/acme/graph?stale=1"),
    page("graph-projects", "/app/{organization}/graph", "/app/acme/graph?group=projects"),
    page("graph-nothing", "/app/{organization}/graph", "/app/acme/graph?tag=nothing"),
    page("graph-empty", "/app/{organization}/graph", "/app/empty/graph"),
    page("projects", "/app/{organization}/projects", "/app/acme/projects"),
    page("project", "/app/{organization}/projects/{project}", "/app/acme/projects/{project}"),
    page("variable-sets", "/app/{organization}/variable-sets", "/app/acme/variable-sets"),
    page("variable-sets-empty", "/app/{organization}/variable-sets", "/app/empty/variable-sets"),
    page("variable-set", "/app/{organization}/variable-sets/{variable_set}", "/app/acme/variable-sets/{variable-set}"),
    page("set-variable", "/app/{organization}/variable-sets/{variable_set}/variables/{variable}", "/app/acme/variable-sets/{variable-set}/variables/{set-variable}"),
    page("organization-settings", "/app/{organization}/settings", "/app/acme/settings"),
    page("organization-tokens", "/app/{organization}/settings/tokens", "/app/acme/settings/tokens"),
    page("organization-ssh-keys", "/app/{organization}/settings/ssh-keys", "/app/acme/settings/ssh-keys"),
    page("policies", "/app/{organization}/settings/policies", "/app/acme/settings/policies"),
    page("policies-empty", "/app/{organization}/settings/policies", "/app/empty/settings/policies"),
    page("policy", "/app/{organization}/settings/policies/{policy}", "/app/acme/settings/policies/{policy}"),
    page("policy-set", "/app/{organization}/settings/policies/sets/{policy_set}", "/app/acme/settings/policies/sets/{policy-set}"),
    page("organization-audit", "/app/{organization}/settings/audit", "/app/acme/settings/audit"),
    page("organization-audit-found", "/app/{organization}/settings/audit", "/app/acme/settings/audit?kind=runs&thing=network"),
    page("organization-audit-empty", "/app/{organization}/settings/audit", "/app/acme/settings/audit?who=nobody"),
    page("run-tasks", "/app/{organization}/settings/run-tasks", "/app/acme/settings/run-tasks"),
    page("run-tasks-empty", "/app/{organization}/settings/run-tasks", "/app/empty/settings/run-tasks"),
    page("new-run-task", "/app/{organization}/settings/run-tasks/new", "/app/acme/settings/run-tasks/new"),
    page("run-task", "/app/{organization}/settings/run-tasks/{task}", "/app/acme/settings/run-tasks/{run-task}"),
    page("organization-retention", "/app/{organization}/settings/retention", "/app/acme/settings/retention"),
    page("organization-members", "/app/{organization}/settings/members", "/app/acme/settings/members"),
    page("member", "/app/{organization}/settings/members/{member}", "/app/acme/settings/members/{member}"),
    page("teams", "/app/{organization}/settings/teams", "/app/acme/settings/teams"),
    page("new-team", "/app/{organization}/settings/teams/new", "/app/acme/settings/teams/new"),
    page("team", "/app/{organization}/settings/teams/{team}", "/app/acme/settings/teams/{team}"),
    page("organization-tags", "/app/{organization}/settings/tags", "/app/acme/settings/tags"),
    page("organization-tags-empty", "/app/{organization}/settings/tags", "/app/empty/settings/tags"),

    page("workspaces", "/app/{organization}/workspaces", "/app/acme/workspaces"),
    page("workspaces-found", "/app/{organization}/workspaces", "/app/acme/workspaces?search=prod"),
    page("workspaces-empty", "/app/{organization}/workspaces", "/app/empty/workspaces"),
    page("workspace", "/app/{organization}/workspaces/{workspace}", "/app/acme/workspaces/network"),
    page("workspace-empty", "/app/{organization}/workspaces/{workspace}", "/app/acme/workspaces/mail-dev"),
    page("workspace-locked", "/app/{organization}/workspaces/{workspace}", "/app/acme/workspaces/billing-prod"),
    page("workspace-runs", "/app/{organization}/workspaces/{workspace}/runs", "/app/acme/workspaces/network/runs"),
    page("workspace-runs-empty", "/app/{organization}/workspaces/{workspace}/runs", "/app/acme/workspaces/mail-dev/runs"),
    page("new-run", "/app/{organization}/workspaces/{workspace}/runs/new", "/app/acme/workspaces/network/runs/new"),
    page("configurations", "/app/{organization}/workspaces/{workspace}/configurations", "/app/acme/workspaces/network/configurations"),
    page("configurations-empty", "/app/{organization}/workspaces/{workspace}/configurations", "/app/acme/workspaces/mail-dev/configurations"),
    page("run-planned", "/app/{organization}/workspaces/{workspace}/runs/{run}", "/app/acme/workspaces/network/runs/{run-planned}"),
    page("run-console", "/app/{organization}/workspaces/{workspace}/runs/{run}", "/app/acme/workspaces/network/runs/{run-planned}?view=console"),
    page("run-applied", "/app/{organization}/workspaces/{workspace}/runs/{run}", "/app/acme/workspaces/network/runs/{run-applied}"),
    page("run-pending", "/app/{organization}/workspaces/{workspace}/runs/{run}", "/app/acme/workspaces/network/runs/{run-pending}"),
    page("run-errored", "/app/{organization}/workspaces/{workspace}/runs/{run}", "/app/acme/workspaces/cache/runs/{run-errored}"),
    page("run-plan-only", "/app/{organization}/workspaces/{workspace}/runs/{run}", "/app/acme/workspaces/website/runs/{run-plan-only}"),
    page("run-discarded", "/app/{organization}/workspaces/{workspace}/runs/{run}", "/app/acme/workspaces/website/runs/{run-discarded}"),
    page("run-applying", "/app/{organization}/workspaces/{workspace}/runs/{run}", "/app/acme/workspaces/release/runs/{run-applying}"),
    page("states", "/app/{organization}/workspaces/{workspace}/states", "/app/acme/workspaces/network/states"),
    page("states-empty", "/app/{organization}/workspaces/{workspace}/states", "/app/acme/workspaces/mail-dev/states"),
    page("state", "/app/{organization}/workspaces/{workspace}/states/{state}", "/app/acme/workspaces/network/states/{state}"),
    page("state-diff", "/app/{organization}/workspaces/{workspace}/states/{state}/diff", "/app/acme/workspaces/network/states/{state}/diff?against={state-first}"),
    page("state-diff-json", "/app/{organization}/workspaces/{workspace}/states/{state}/diff", "/app/acme/workspaces/network/states/{state}/diff?against={state-first}&view=json"),
    page("state-restore", "/app/{organization}/workspaces/{workspace}/states/{state}/restore", "/app/acme/workspaces/network/states/{state-first}/restore"),
    page("state-resource", "/app/{organization}/workspaces/{workspace}/states/{state}/resources", "/app/acme/workspaces/network/states/{state}/resources?address=terraform_data.subnet"),
    page("state-old", "/app/{organization}/workspaces/{workspace}/states/{state}", "/app/acme/workspaces/network/states/{state-first}"),
    page("dependencies", "/app/{organization}/workspaces/{workspace}/dependencies", "/app/acme/workspaces/media-prod/dependencies"),
    page("dependencies-producer", "/app/{organization}/workspaces/{workspace}/dependencies", "/app/acme/workspaces/warehouse-prod/dependencies"),
    page("dependencies-declared", "/app/{organization}/workspaces/{workspace}/dependencies", "/app/acme/workspaces/search-prod/dependencies"),
    page("dependencies-empty", "/app/{organization}/workspaces/{workspace}/dependencies", "/app/acme/workspaces/mail-dev/dependencies"),
    page("output-history", "/app/{organization}/workspaces/{workspace}/outputs/history", "/app/acme/workspaces/warehouse-prod/outputs/history?from=1&to=2&commit=1"),
    page("output-history-empty", "/app/{organization}/workspaces/{workspace}/outputs/history", "/app/acme/workspaces/mail-dev/outputs/history"),
    page("variables", "/app/{organization}/workspaces/{workspace}/variables", "/app/acme/workspaces/network/variables"),
    page("variables-empty", "/app/{organization}/workspaces/{workspace}/variables", "/app/acme/workspaces/mail-dev/variables"),
    page("variable", "/app/{organization}/workspaces/{workspace}/variables/{variable}", "/app/acme/workspaces/network/variables/{variable}"),
    page("workspace-settings", "/app/{organization}/workspaces/{workspace}/settings", "/app/acme/workspaces/network/settings"),
    page("workspace-execution", "/app/{organization}/workspaces/{workspace}/settings/execution", "/app/acme/workspaces/network/settings/execution"),
    page("workspace-run-tasks", "/app/{organization}/workspaces/{workspace}/settings/run-tasks", "/app/acme/workspaces/network/settings/run-tasks"),
    page("workspace-retention", "/app/{organization}/workspaces/{workspace}/settings/retention", "/app/acme/workspaces/network/settings/retention?days=30"),
    page("workspace-locking", "/app/{organization}/workspaces/{workspace}/settings/locking", "/app/acme/workspaces/billing-prod/settings/locking"),
    page("workspace-sharing", "/app/{organization}/workspaces/{workspace}/settings/sharing", "/app/acme/workspaces/network/settings/sharing"),
    page("workspace-triggers", "/app/{organization}/workspaces/{workspace}/settings/triggers", "/app/acme/workspaces/network/settings/triggers"),
    page("notifications", "/app/{organization}/workspaces/{workspace}/settings/notifications", "/app/acme/workspaces/network/settings/notifications"),
    page("notifications-empty", "/app/{organization}/workspaces/{workspace}/settings/notifications", "/app/acme/workspaces/mail-dev/settings/notifications"),
    page("new-notification", "/app/{organization}/workspaces/{workspace}/settings/notifications/new", "/app/acme/workspaces/network/settings/notifications/new"),
    page("notification", "/app/{organization}/workspaces/{workspace}/settings/notifications/{notification}", "/app/acme/workspaces/network/settings/notifications/{notification}"),
    page("project-notifications", "/app/{organization}/projects/{project}/notifications", "/app/acme/projects/{project}/notifications"),
    page("project-new-notification", "/app/{organization}/projects/{project}/notifications/new", "/app/acme/projects/{project}/notifications/new"),
    page("project-notification", "/app/{organization}/projects/{project}/notifications/{notification}", "/app/acme/projects/{project}/notifications/{project-notification}"),
    page("team-notifications", "/app/{organization}/settings/teams/{team}/notifications", "/app/acme/settings/teams/{team}/notifications"),
    page("team-new-notification", "/app/{organization}/settings/teams/{team}/notifications/new", "/app/acme/settings/teams/{team}/notifications/new"),
    page("team-notification", "/app/{organization}/settings/teams/{team}/notifications/{notification}", "/app/acme/settings/teams/{team}/notifications/{team-notification}"),
    page("workspace-teams", "/app/{organization}/workspaces/{workspace}/settings/teams", "/app/acme/workspaces/network/settings/teams"),
    page("workspace-deletion", "/app/{organization}/workspaces/{workspace}/settings/delete", "/app/acme/workspaces/network/settings/delete"),
];

const fn page(name: &'static str, route: &'static str, address: &'static str) -> Page {
    Page { name, route, address }
}

/// Routes that answer with no page of their own.
pub const NO_PAGES: &[&str] = &[
    // Lead to others.
    "/",
    "/app/{organization}/{workspace}",
    "/app/{organization}/{workspace}/runs/{run}",
    // Leads to the visitor's only organization, or to all of them.
    "/app",
    // Streams, parts and files.
    "/app/admin/audit/export.csv",
    "/app/admin/audit/export.jsonl",
    "/app/{organization}/settings/audit/export.csv",
    "/app/{organization}/settings/audit/export.jsonl",
    "/app/{organization}/workspaces/{workspace}/runs/{run}/events",
    "/app/{organization}/workspaces/{workspace}/runs/{run}/log/{phase}",
    "/app/{organization}/workspaces/{workspace}/runs/{run}/log/{phase}/part",
    "/app/{organization}/workspaces/{workspace}/runs/{run}/plan/{form}",
    "/app/{organization}/workspaces/{workspace}/states/{state}/download",
    "/app/{organization}/workspaces/{workspace}/configurations/{configuration}",
];
