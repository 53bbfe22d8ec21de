//! What happened in an organization: the commits of its ledger, read back from the bucket page by page.

use jiff::Timestamp;
use taco_boxed::boxed;
use taco_domain::id::OrganizationId;
use taco_domain::permission::{Action, Actor};
use taco_domain::{Author, OrganizationState};
use taco_ledger::{Commit, Entry, Ledger};

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OpenOrganization};
use crate::error::Error;
use crate::page::{Listed, PageRequest};

const WHAT: &str = "audit trail";

/// What someone did. It tells of no value, only of what has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEvent {
    pub id: String,
    pub at: Timestamp,
    /// An id, or `taco`.
    pub actor: String,
    /// What people call the actor.
    pub actor_name: String,
    pub by_taco: bool,
    /// To find the request in the servers' logs.
    pub request: Option<String>,
    pub action: String,
    /// To what it was done: kind and id.
    pub thing: Option<(String, String)>,
    /// The number of the commit that has it, for whoever compares with `taco audit verify`.
    pub commit: u64,
}

/// One organization's trail.
#[derive(Clone, Debug)]
pub struct AuditTrail {
    pub organization: OrganizationId,
    /// Newest first. A page has so many commits, of which each holds what happened at the same time: so there may be
    /// more events on it than its size, and the total counts commits. To count events, all would have to be read.
    pub events: Listed<AuditEvent>,
}

#[boxed]
impl ControlPlane {
    /// What happened in an organization after a moment. Without a name it is the organization that the caller's token
    /// belongs to.
    pub async fn audit_trail(
        &self,
        caller: &Caller,
        organization: Option<&str>,
        since: Option<Timestamp>,
        page: PageRequest,
    ) -> Result<AuditTrail, Error> {
        let id = match (organization, &caller.actor) {
            (Some(name), _) => caller.site.organization_named(name).map(|entry| entry.id),
            (None, Actor::Organization(id) | Actor::AuditTrail(id)) => Some(*id),
            (None, _) => None,
        };
        // A token for the audit trail may know nothing else of the organization.
        let open = self.open_organization(&caller.site, id.ok_or(Error::NotFound(WHAT))?).await?;
        caller.require(Action::ReadAuditTrail, open.resource(), WHAT)?;
        let last = open.state.seq();
        let first = match since {
            Some(since) => first_after(&open.ledger, since, last).await?,
            None => 1,
        };
        let total = usize::try_from(last + 1 - first).unwrap_or(usize::MAX);
        let newest_first = (first..=last).rev().skip(page.skip()).take(page.size());
        let commits = open.ledger.history(newest_first).await?;
        let items = commits.iter().flat_map(|commit| events(commit, &open)).collect();
        Ok(AuditTrail { organization: open.id(), events: Listed { items, page, total } })
    }
}

/// The number of the first commit after a moment, or one more than the last. Halves what is left with each look:
/// commits follow each other in time, but for what the servers' clocks differ by.
async fn first_after(ledger: &Ledger<OrganizationState>, since: Timestamp, last: u64) -> Result<u64, Error> {
    let (mut low, mut high) = (1, last + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let is_later = ledger.history([middle]).await?.iter().any(|commit| commit.at > since);
        if is_later { high = middle } else { low = middle + 1 }
    }
    Ok(low)
}

/// What a commit tells, the last first.
fn events(commit: &Commit, open: &OpenOrganization) -> Vec<AuditEvent> {
    let event = |(place, entry): (usize, &Entry)| {
        let author = Author::spelled(&entry.actor);
        AuditEvent {
            id: format!("{}-{place}", commit.id),
            at: commit.at,
            actor: entry.actor.clone(),
            actor_name: author.map_or_else(|| entry.actor.clone(), |author| open.name_of(&author)),
            by_taco: author == Some(Author::Taco),
            request: entry.request.clone(),
            action: entry.action.clone(),
            thing: thing(entry),
            commit: commit.seq,
        }
    };
    commit.transactions.iter().enumerate().map(event).rev().collect()
}

/// Of all records that changed or were read, the one that the action speaks of: `workspace.lock` changes a workspace,
/// `state.write` a state version, `state.read` reads one. Notes about requests are nobody's deed.
fn thing(entry: &Entry) -> Option<(String, String)> {
    let puts = entry.puts.iter().map(|put| (put.kind.as_str(), put.id.as_str()));
    let deletes = entry.deletes.iter().map(|key| (key.kind.as_str(), key.id.as_str()));
    let reads = entry.reads.iter().map(|key| (key.kind.as_str(), key.id.as_str()));
    let changed: Vec<_> = puts.chain(deletes).chain(reads).filter(|(kind, _)| *kind != "done-request").collect();
    let noun = entry.action.split('.').next().unwrap_or_default();
    let spoken_of = changed.iter().find(|(kind, _)| *kind == noun);
    let related = || changed.iter().find(|(kind, _)| kind.starts_with(noun));
    let (kind, id) = spoken_of.or_else(related).or(changed.first())?;
    Some(((*kind).to_owned(), (*id).to_owned()))
}
