//! `/app/{organization}/search` and `/app/organizations/search`: everything that a visitor can go to or begin, found by
//! a few letters. The palette of every page shows the same results, as a part of the page.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{Found, OrganizationSnapshot, PageRequest, RunView, WorkspaceView};
use taco_domain::permission::Action;
use taco_domain::search::{Query as Words, Rank};

use crate::badge::Badge;
use crate::error::PageError;
use crate::navigation::{organization_address, run_address, variable_set_address, workspace_address};
use crate::page::Layout;
use crate::text::plain;
use crate::visitor::Visitor;
use crate::words::subject;
use crate::{Web, live, page};

/// Results of each kind in the palette, and on the page.
const IN_PALETTE: usize = 6;
const ON_PAGE: usize = 50;
/// Workspaces that "Start run" is offered for.
const STARTS: usize = 5;
/// Without an organization, so many of the visitor's are searched.
const SEARCHED_ORGANIZATIONS: usize = 20;

/// Words with which people begin a run.
const START_WORDS: [&str; 4] = ["start", "run", "new", "plan"];

/// Address of the search in an organization, or in all of them.
pub(crate) fn address(organization: Option<&str>) -> String {
    format!("{}/search", organization_address(organization.unwrap_or("organizations")))
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct SearchQuery {
    q: String,
    /// `workspace` leaves the other kinds out.
    kind: String,
}

#[derive(Template)]
#[template(path = "search.html", blocks = ["results"])]
struct SearchPage {
    layout: Layout,
    address: String,
    query: String,
    kind: String,
    groups: Vec<Group>,
}

/// Results of one kind.
struct Group {
    title: &'static str,
    hits: Vec<Hit>,
}

struct Hit {
    icon: &'static str,
    name: String,
    detail: String,
    badge: Option<Badge>,
    address: String,
}

impl Hit {
    fn new(icon: &'static str, name: impl Into<String>, detail: impl Into<String>, address: impl Into<String>) -> Self {
        Self { icon, name: name.into(), detail: detail.into(), badge: None, address: address.into() }
    }
}

/// `GET /app/{organization}/search`
pub(crate) async fn in_organization(
    State(web): State<Web>,
    visitor: Visitor,
    Path(organization): Path<String>,
    Query(wanted): Query<SearchQuery>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let limit = limit(&headers);
    let found = web.control_plane.search(&visitor.caller, &organization, &wanted.q, limit).await?;
    let groups = match wanted.kind.as_str() {
        "workspace" => vec![workspaces(&found, false)],
        _ => groups(&visitor, &found, &wanted.q, limit),
    };
    let layout = Layout::for_visitor(&web, &visitor).in_organization(&organization, None);
    Ok(answer(&headers, layout, address(Some(&organization)), wanted, groups))
}

/// `GET /app/organizations/search`
pub(crate) async fn everywhere(
    State(web): State<Web>,
    visitor: Visitor,
    Query(wanted): Query<SearchQuery>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let (limit, words) = (limit(&headers), Words::new(&wanted.q));
    let first = PageRequest::new(1, SEARCHED_ORGANIZATIONS);
    let organizations = web.control_plane.organizations(&visitor.caller, None, first).await?;
    let mut named = Vec::new();
    let mut within = Group { title: "Workspaces", hits: Vec::new() };
    for view in organizations.items {
        if words.rank(&view.name).is_some() {
            named.push(Hit::new("building-2", &view.name, "", organization_address(&view.name)));
        }
        let room = limit.saturating_sub(within.hits.len());
        if room > 0 && !words.is_empty() {
            let found = web.control_plane.search(&visitor.caller, &view.name, &wanted.q, room).await?;
            within.hits.extend(workspaces(&found, true).hits);
        }
    }
    named.truncate(limit);
    let account = ranked(&wanted.q, own_pages(&visitor), limit);
    let groups = vec![Group { title: "Organizations", hits: named }, within, Group { title: "Go to", hits: account }];
    let layout = Layout::for_visitor(&web, &visitor);
    Ok(answer(&headers, layout, address(None), wanted, groups))
}

fn limit(headers: &HeaderMap) -> usize {
    if live::wants_part(headers) { IN_PALETTE } else { ON_PAGE }
}

fn answer(headers: &HeaderMap, layout: Layout, address: String, wanted: SearchQuery, groups: Vec<Group>) -> Response {
    let groups = groups.into_iter().filter(|group| !group.hits.is_empty()).collect();
    let page = SearchPage { layout, address, query: plain(&wanted.q), kind: wanted.kind, groups };
    match live::wants_part(headers) {
        true => page::render(StatusCode::OK, &page.as_results()),
        false => page::render(StatusCode::OK, &page),
    }
}

fn groups(visitor: &Visitor, found: &Found, typed: &str, limit: usize) -> Vec<Group> {
    let words = &Words::new(typed);
    let organization = found.org.entry().name.as_str();
    let places = pages(organization).into_iter().chain(own_pages(visitor)).collect();
    let (places, commands) = (ranked(typed, places, limit), commands(visitor, found, typed, limit));
    let mut groups = vec![Group { title: "Commands", hits: commands }];
    let go_to = Group { title: "Go to", hits: places };
    if words.is_empty() {
        groups.insert(0, go_to);
        return groups;
    }
    let things = vec![
        workspaces(found, false),
        Group { title: "Runs", hits: found.runs.iter().map(run).collect() },
        Group {
            title: "Projects",
            hits: found
                .projects
                .iter()
                .map(|project| {
                    let address = format!("{}/projects/{}", organization_address(organization), project.id);
                    Hit::new("folder", project.name.as_str(), "", address)
                })
                .collect(),
        },
        Group {
            title: "Variable sets",
            hits: found
                .variable_sets
                .iter()
                .map(|set| Hit::new("layers", set.name.as_str(), "", variable_set_address(organization, set.id)))
                .collect(),
        },
        Group {
            title: "Agent pools",
            hits: found
                .agent_pools
                .iter()
                .map(|pool| {
                    let address = format!("{}/agents/pools/{}", organization_address(organization), pool.id);
                    Hit::new("server", pool.name.as_str(), "", address)
                })
                .collect(),
        },
        Group {
            title: "Teams",
            hits: found
                .teams
                .iter()
                .map(|team| {
                    let address = format!("{}/settings/teams/{}", organization_address(organization), team.id);
                    Hit::new("users", team.name.as_str(), "", address)
                })
                .collect(),
        },
    ];
    // Whoever types `run` or `start web` wants to do something; whoever types a name wants to go there.
    let at = if begins_run(words) { groups.len() } else { 0 };
    groups.splice(at..at, things);
    groups.push(go_to);
    groups
}

fn workspaces(found: &Found, with_organization: bool) -> Group {
    let hit = |view: &WorkspaceView| {
        let organization = view.org.entry().name.as_str();
        let name = view.workspace.name.as_str();
        let project = view.project().map(|project| project.name.to_string()).unwrap_or_default();
        let detail = if with_organization { organization.to_owned() } else { project };
        let icon = if view.workspace.lock.is_some() { "lock" } else { "box" };
        let badge = view.current_run().map(|run| Badge::of_run(run.status));
        Hit { badge, ..Hit::new(icon, name, detail, workspace_address(organization, name)) }
    };
    Group { title: "Workspaces", hits: found.workspaces.iter().map(hit).collect() }
}

fn run(view: &RunView) -> Hit {
    let (organization, workspace) = (view.org.entry().name.as_str(), view.workspace.name.as_str());
    let message = subject(&view.run.options.message);
    let name = if message.is_empty() { view.run.id.to_string() } else { message };
    let badge = Some(Badge::of_run(view.run.status));
    Hit { badge, ..Hit::new("play", name, workspace, run_address(organization, workspace, view.run.id)) }
}

/// Parts of an organization, with other words for them.
fn pages(organization: &str) -> Vec<(Hit, &'static str)> {
    let address = organization_address(organization);
    [
        ("layout-dashboard", "Dashboard", "", "home overview"),
        ("box", "Workspaces", "/workspaces", ""),
        ("play", "Runs", "/runs", "history plans applies"),
        ("list-ordered", "Queue", "/queue", "waiting pending"),
        ("folder", "Projects", "/projects", ""),
        ("layers", "Variable sets", "/variable-sets", "secrets"),
        ("server", "Agents", "/agents", "pools runners"),
        ("settings", "Organization settings", "/settings", "general"),
        ("key-round", "Organization tokens", "/settings/tokens", "api"),
        ("key-round", "SSH keys", "/settings/ssh-keys", ""),
        ("shield-check", "Policies", "/settings/policies", "opa rego"),
        ("user", "Members", "/settings/members", "people users invitations"),
        ("users", "Teams", "/settings/teams", "groups rights permissions access"),
        ("tag", "Tags", "/settings/tags", ""),
    ]
    .into_iter()
    .map(|(icon, name, path, other)| (Hit::new(icon, name, organization, format!("{address}{path}")), other))
    .collect()
}

/// A visitor's own pages.
fn own_pages(visitor: &Visitor) -> Vec<(Hit, &'static str)> {
    let admin = ("shield", "Site administration", "/app/admin", "admin users servers bucket");
    [
        ("building-2", "Organizations", "/app/organizations", "switch"),
        ("user", "Account", "/app/settings/account", "profile password email"),
        ("key-round", "Tokens", "/app/settings/tokens", "api"),
        ("monitor", "Sessions", "/app/settings/sessions", "log out"),
    ]
    .into_iter()
    .chain(visitor.user.site_admin.then_some(admin))
    .map(|(icon, name, address, other)| (Hit::new(icon, name, "", address), other))
    .collect()
}

/// What a visitor may begin.
fn commands(visitor: &Visitor, found: &Found, typed: &str, limit: usize) -> Vec<Hit> {
    let org = &found.org;
    let address = organization_address(org.entry().name.as_str());
    let may = |action| visitor.caller.may(action, org.resource()).allowed;
    let creates_workspaces = org
        .visible_to(&visitor.caller)
        .projects()
        .any(|project| org.visible_to(&visitor.caller).may_in_project(Action::CreateWorkspace, project).allowed);
    let offered = [
        (creates_workspaces, "New workspace", "/workspaces#new-workspace", "create add"),
        (may(Action::CreateProject), "New project", "/projects#new-project", "create add"),
        (may(Action::ManageVariableSets), "New variable set", "/variable-sets#new-set", "create add"),
        (may(Action::ManageAgentPools), "New agent pool", "/agents#new-pool", "create add"),
        (may(Action::ManageTeams), "New team", "/settings/teams/new", "create add"),
        (may(Action::ManageMembership), "Invite member", "/settings/members#invite", "add user person"),
    ];
    let offered = offered.into_iter().filter(|(allowed, ..)| *allowed);
    let offered = offered.map(|(_, name, path, other)| (Hit::new("plus", name, "", format!("{address}{path}")), other));
    let mut hits = starts(visitor, org, &Words::new(typed));
    hits.extend(ranked(typed, offered.collect(), limit));
    hits
}

/// True if one of the words begins a run.
fn begins_run(words: &Words) -> bool {
    START_WORDS.iter().any(|word| words.has_beginning_of(word))
}

/// "Start run" in the workspaces that fit the other words best.
fn starts(visitor: &Visitor, org: &OrganizationSnapshot, words: &Words) -> Vec<Hit> {
    if !begins_run(words) {
        return Vec::new();
    }
    let organization = org.entry().name.as_str();
    let wanted = words.without_beginnings_of(&START_WORDS);
    if wanted.is_empty() {
        return Vec::new();
    }
    let startable = org.visible_to(&visitor.caller).workspaces_for_runs(&wanted, STARTS);
    startable
        .into_iter()
        .map(|workspace| {
            let name = workspace.name.as_str();
            let address = format!("{}/runs/new", workspace_address(organization, name));
            Hit::new("play", format!("Start run in {name}"), "", address)
        })
        .collect()
}

/// True if a text has all words that were typed. Initials alone find no pages: they would find too many.
fn has_all(typed: &str, text: &str) -> bool {
    let text = text.to_lowercase();
    typed.to_lowercase().split_whitespace().all(|word| text.contains(word))
}

/// Those that fit by their name or another word for it, best first.
fn ranked(typed: &str, hits: Vec<(Hit, &'static str)>, limit: usize) -> Vec<Hit> {
    let words = &Words::new(typed);
    let rank = |hit: &Hit, other: &str| -> Option<(bool, Rank)> {
        let by_name = words.rank(&hit.name).map(|rank| (true, rank));
        by_name.or_else(|| words.rank(&format!("{} {other}", hit.name)).map(|rank| (false, rank)))
    };
    let fitting = hits.into_iter().filter(|(hit, other)| has_all(typed, &format!("{} {other}", hit.name)));
    let fitting = fitting.filter_map(|(hit, other)| Some((rank(&hit, other)?, hit)));
    let mut fitting: Vec<_> = fitting.collect();
    // Nothing typed leaves them in their own order.
    if !words.is_empty() {
        fitting.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
    }
    let room = if words.is_empty() { usize::MAX } else { limit };
    fitting.into_iter().map(|(_, hit)| hit).take(room).collect()
}
