//! Audit log as people search it: the commits of a ledger, newest first, read back from the bucket until a page is full.
//!
//! A page costs what it looks at, and no more than [`MAX_COMMITS_PER_PAGE`]: where little matches, it ends early and says
//! from where to search on.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;
use taco_boxed::boxed;
use taco_domain::id::{OrganizationId, OrganizationPrefix, WorkspaceId};
use taco_domain::name::NameKey;
use taco_domain::organization::Organization;
use taco_domain::permission::{Action, Resource};
use taco_domain::user::User;
use taco_domain::{Author, OrganizationState, Site};
use taco_ledger::{Commit, Entry, Ledger};
use taco_tables::{Record as _, State};

use crate::audit_trail::{AuditEvent, first_after};
use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;

const WHAT: &str = "audit log";

/// Entries on a page. It ends with a whole commit, so it may have some more.
const PAGE_ENTRIES: usize = 50;

/// Commits that one page reads at most.
const MAX_COMMITS_PER_PAGE: u64 = 2_000;

/// Commits that are read at once. Pages without filters need few.
const COMMITS_PER_READ: u64 = 64;

/// What servers do for themselves. Left out unless it is asked for.
const HOUSEKEEPING: &[&str] = &[
    "configuration.give-up",
    "graph.echoes",
    "graph.examine",
    "history.archive",
    "history.restore",
    "history.sweep",
    "outputs.page",
    "outputs.take-in",
    "notification.deliver",
    "run.wait",
    "session.use",
    "site.make-key",
    "site.rewrap-key",
    "site.rewrap-secrets",
    "state.give-up",
    "token.use",
    "user.seal-password",
    "walk.advance",
    "walk.preview",
];

/// Entries that someone looks for. The default is all but housekeeping.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct AuditFilter {
    /// Name or id of whoever did it.
    pub actor: Option<String>,
    /// Actions, such as `run.cancel`, and nouns that actions begin with, such as `run`.
    pub actions: Option<&'static [&'static str]>,
    /// Name or id of what it was done to, or of what that belongs to.
    pub thing: Option<String>,
    pub from: Option<Timestamp>,
    /// The first moment that does not count any more.
    pub until: Option<Timestamp>,
    pub with_housekeeping: bool,
}

/// One entry of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEntry {
    pub event: AuditEvent,
    /// Name that the thing had then, or has now.
    pub name: Option<String>,
    /// Workspace that the thing belongs to, if it is still there, with its name.
    pub workspace: Option<(WorkspaceId, String)>,
    /// True if the thing was deleted with this action.
    pub deleted: bool,
}

/// Part of a log, newest first.
#[derive(Clone, Debug)]
pub struct AuditPage {
    pub entries: Vec<AuditEntry>,
    /// Commit before which the next page begins, if there is one.
    pub before: Option<u64>,
    /// Moment of the oldest commit that was looked at.
    pub searched_to: Option<Timestamp>,
}

impl AuditPage {
    fn empty() -> Self {
        Self { entries: Vec::new(), before: None, searched_to: None }
    }
}

/// A filter whose names are ids. `None` means that nothing can match: nobody and nothing has such a name.
struct Wanted {
    filter: AuditFilter,
    actors: Option<BTreeSet<String>>,
    things: Option<BTreeSet<String>>,
}

impl Wanted {
    /// `ids_of` finds everything that has a name; what looks like an id is one.
    fn of(filter: &AuditFilter, ids_of: impl Fn(&str) -> BTreeSet<String>) -> Option<Self> {
        let resolve = |text: &Option<String>| match text.as_deref().map(str::trim) {
            None | Some("") => Some(None),
            Some(text) => {
                let mut ids = ids_of(text);
                if is_id(text) {
                    ids.insert(text.to_owned());
                }
                (!ids.is_empty()).then_some(Some(ids))
            }
        };
        Some(Self { actors: resolve(&filter.actor)?, things: resolve(&filter.thing)?, filter: filter.clone() })
    }

    fn matches(&self, entry: &Entry) -> bool {
        let noun = entry.action.split('.').next().unwrap_or_default();
        let is_wanted = |actions: &[&str]| actions.contains(&noun) || actions.contains(&entry.action.as_str());
        self.filter.actions.is_none_or(is_wanted)
            && (self.filter.with_housekeeping || !HOUSEKEEPING.contains(&entry.action.as_str()))
            && self.actors.as_ref().is_none_or(|actors| actors.contains(&entry.actor))
            && self.things.as_ref().is_none_or(|things| things.iter().any(|thing| concerns(entry, thing)))
    }
}

fn is_id(text: &str) -> bool {
    OrganizationPrefix::of(text).is_some()
}

/// True if an entry changed or read the thing with this id, or something that names it.
fn concerns(entry: &Entry, id: &str) -> bool {
    let quoted = format!("\"{id}\"");
    entry.puts.iter().any(|put| put.id == id || put.value.get().contains(&quoted))
        || entry.deletes.iter().chain(&entry.reads).any(|key| key.id == id)
}

/// Name within a record.
fn name_in(record: &Value) -> Option<String> {
    let text = |field: &str| record.get(field)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let serial = || record.get("serial")?.as_u64().map(|serial| serial.to_string());
    ["name", "username", "key", "email", "description"].into_iter().find_map(text).or_else(serial)
}

/// Workspace that a record belongs to.
fn workspace_in(record: &Value) -> Option<WorkspaceId> {
    let within = |field: &str| record.get(field)?.get("workspace");
    let owner = || within("owner").or_else(|| within("subscriber"));
    record.get("workspace").or_else(owner)?.as_str()?.parse().ok()
}

/// What `entry` says of its thing: the record as it was written, if it was.
fn thing_of(event: &AuditEvent, entry: &Entry) -> (Option<Value>, bool) {
    let Some((kind, id)) = &event.thing else { return (None, false) };
    let put = entry.puts.iter().find(|put| put.kind == *kind && put.id == *id);
    let deleted = entry.deletes.iter().any(|key| key.kind == *kind && key.id == *id);
    (put.and_then(|put| serde_json::from_str(put.value.get()).ok()), deleted && put.is_none())
}

/// One page of a ledger's log. `entry_of` makes an entry of a transaction that matches.
async fn look_back<S: State>(
    ledger: &Ledger<S>,
    last: u64,
    wanted: &Wanted,
    before: Option<u64>,
    entry_of: impl Fn(&Commit, usize, &Entry) -> AuditEntry,
) -> Result<AuditPage, Error> {
    let first = match wanted.filter.from {
        Some(from) => first_after(ledger, just_before(from), last).await?,
        None => 1,
    };
    let mut next = match (before, wanted.filter.until) {
        (Some(before), _) => last.min(before.saturating_sub(1)),
        (None, Some(until)) => first_after(ledger, just_before(until), last).await? - 1,
        (None, None) => last,
    };
    let enough = next.saturating_sub(MAX_COMMITS_PER_PAGE);
    let mut page = AuditPage::empty();
    while next >= first && next > enough && page.entries.len() < PAGE_ENTRIES {
        let oldest = first.max(enough + 1).max(next.saturating_sub(COMMITS_PER_READ - 1));
        for commit in ledger.history((oldest..=next).rev()).await? {
            if page.entries.len() >= PAGE_ENTRIES {
                break;
            }
            let matching = commit.transactions.iter().enumerate().rev().filter(|(_, entry)| wanted.matches(entry));
            page.entries.extend(matching.map(|(place, entry)| entry_of(&commit, place, entry)));
            page.searched_to = Some(commit.at);
            next = commit.seq - 1;
        }
    }
    page.before = (next >= first).then_some(next + 1);
    Ok(page)
}

fn just_before(moment: Timestamp) -> Timestamp {
    moment.checked_sub(jiff::SignedDuration::from_nanos(1)).unwrap_or(moment)
}

#[boxed]
impl ControlPlane {
    /// A page of an organization's log. `before` is where the page before it ended.
    pub async fn audit_log(
        &self,
        caller: &Caller,
        organization: &str,
        filter: &AuditFilter,
        before: Option<u64>,
    ) -> Result<AuditPage, Error> {
        let id: Option<OrganizationId> = caller.site.organization_named(organization).map(|entry| entry.id);
        let org = self.open_organization(&caller.site, id.ok_or(Error::NotFound(WHAT))?).await?;
        caller.require(Action::ReadAuditTrail, org.resource(), WHAT)?;
        let Some(wanted) = Wanted::of(filter, |name| ids_in_organization(&org, name)) else {
            return Ok(AuditPage::empty());
        };
        let entry_of = |commit: &Commit, place, entry: &Entry| {
            let event = AuditEvent::of(commit, place, entry, |author| org.name_of(author));
            let (record, deleted) = thing_of(&event, entry);
            let known = event.thing.as_ref().and_then(|(kind, id)| known_in(&org.state, kind, id));
            let (name, workspace) = known.unwrap_or_default();
            let name = match &event.thing {
                // Its own record does not have its name.
                Some((kind, _)) if kind == Organization::KIND => Some(org.entry().name.to_string()),
                _ => record.as_ref().and_then(name_in).or(name),
            };
            let workspace = record.as_ref().and_then(workspace_in).or(workspace);
            let workspace = workspace.and_then(|id| org.state.workspaces.get(&id));
            let workspace = workspace.map(|workspace| (workspace.id, workspace.name.to_string()));
            AuditEntry { event, name, workspace, deleted }
        };
        look_back(&org.ledger, org.state.seq(), &wanted, before, entry_of).await
    }

    /// A page of the site's log: users, sessions, tokens and organizations. For site admins.
    pub async fn site_audit_log(
        &self,
        caller: &Caller,
        filter: &AuditFilter,
        before: Option<u64>,
    ) -> Result<AuditPage, Error> {
        caller.require(Action::ManageSite, Resource::Site, WHAT)?;
        let site = &caller.site;
        let Some(wanted) = Wanted::of(filter, |name| ids_in_whole_site(site, name)) else {
            return Ok(AuditPage::empty());
        };
        let entry_of = |commit: &Commit, place, entry: &Entry| {
            let event = AuditEvent::of(commit, place, entry, |author| name_in_site(site, author));
            let (record, deleted) = thing_of(&event, entry);
            let known = event.thing.as_ref().and_then(|(_, id)| known_in_site(site, id));
            AuditEntry { name: record.as_ref().and_then(name_in).or(known), workspace: None, deleted, event }
        };
        look_back(&self.shared.site, site.seq(), &wanted, before, entry_of).await
    }
}

/// Ids of everyone and everything in an organization that has this name.
fn ids_in_organization(org: &OrganizationSnapshot, name: &str) -> BTreeSet<String> {
    let (state, key) = (&*org.state, NameKey::of(name));
    // Who else has an account on this site is not for the organization to know.
    let is_known = |user: &User| user.site_admin || state.memberships.by().user.first(&user.id).is_some();
    let mut ids = ids_in_site(org.site(), name, is_known);
    ids.extend(state.workspaces.by().name.get(&key).map(|record| record.id.to_string()));
    ids.extend(state.projects.by().name.get(&key).map(|record| record.id.to_string()));
    ids.extend(state.teams.by().name.get(&key).map(|record| record.id.to_string()));
    ids.extend(state.agent_pools.by().name.get(&key).map(|record| record.id.to_string()));
    ids.extend(state.memberships.by().email.get(&key).map(|record| record.id.to_string()));
    ids
}

/// Ids of the users and organizations that have this name or address, for a site admin.
fn ids_in_whole_site(site: &Site, name: &str) -> BTreeSet<String> {
    let mut ids = ids_in_site(site, name, |_| true);
    ids.extend(site.organizations.by().name.get(&NameKey::of(name)).map(|entry| entry.id.to_string()));
    ids
}

/// Ids of those users with this name or address who may be known, and of taco itself.
fn ids_in_site(site: &Site, name: &str, is_known: impl Fn(&User) -> bool) -> BTreeSet<String> {
    let key = NameKey::of(name);
    let users = site.users.by().username.get(&key).chain(site.users.by().email.get(&key));
    let mut ids: BTreeSet<_> = users.filter(|user| is_known(user)).map(|user| user.id.to_string()).collect();
    if name.eq_ignore_ascii_case("taco") {
        ids.insert(Author::Taco.to_string());
    }
    ids
}

/// Name and workspace of a record that is still there.
fn known_in(state: &OrganizationState, kind: &str, id: &str) -> Option<(Option<String>, Option<WorkspaceId>)> {
    let found = match kind {
        "workspace" => (Some(state.workspaces.get(&id.parse().ok()?)?.name.to_string()), None),
        "project" => (Some(state.projects.get(&id.parse().ok()?)?.name.to_string()), None),
        "team" => (Some(state.teams.get(&id.parse().ok()?)?.name.to_string()), None),
        "agent-pool" => (Some(state.agent_pools.get(&id.parse().ok()?)?.name.to_string()), None),
        "run" => (None, Some(state.runs.get(&id.parse().ok()?)?.workspace)),
        "state-version" => {
            let version = state.state_versions.get(&id.parse().ok()?)?;
            (Some(version.serial.to_string()), Some(version.workspace))
        }
        _ => return None,
    };
    Some(found)
}

fn name_in_site(site: &Site, author: &Author) -> String {
    let name = match author {
        Author::User(id) => site.users.get(id).map(|user| user.username.to_string()),
        Author::Organization(id) => site.organizations.get(id).map(|entry| entry.name.to_string()),
        Author::Team(_) | Author::Run(_) | Author::AgentPool(_) | Author::Taco => None,
    };
    name.unwrap_or_else(|| author.to_string())
}

fn known_in_site(site: &Site, id: &str) -> Option<String> {
    let user = || site.users.get(&id.parse().ok()?).map(|user| user.username.to_string());
    let organization = || site.organizations.get(&id.parse().ok()?).map(|entry| entry.name.to_string());
    user().or_else(organization)
}
