//! Audit trail of an organization: the commits of its ledger, read back from the bucket page by page.

use jiff::Timestamp;
use taco_boxed::boxed;
use taco_domain::Author;
use taco_domain::id::OrganizationId;
use taco_domain::permission::{Action, Actor};
use taco_domain::run::Run;
use taco_domain::state_version::StateVersion;
use taco_ledger::Intent;
use taco_ledger::{Commit, Entry, Ledger};
use taco_tables::State;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::secret_reads::{RETRY_AFTER, Reader, SAME_READ_WITHIN, SecretRead};

const WHAT: &str = "audit trail";

/// One action of someone. It contains no values, only what has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEvent {
    pub id: String,
    pub at: Timestamp,
    /// An id, or `taco`.
    pub actor: String,
    /// Display name of the actor.
    pub actor_name: String,
    pub by_taco: bool,
    /// To find the request in the servers' logs.
    pub request: Option<String>,
    pub action: String,
    /// To what it was done: kind and id.
    pub thing: Option<(String, String)>,
    /// The number of the commit that has it, for comparison with `taco audit verify`.
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
    /// Events in an organization after a moment. Without a name it is the organization that the caller's token belongs
    /// to.
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
        let org = self.open_organization(&caller.site, id.ok_or(Error::NotFound(WHAT))?).await?;
        caller.require(Action::ReadAuditTrail, org.resource(), WHAT)?;
        let last = org.state.seq();
        let first = match since {
            Some(since) => first_after(&org.ledger, since, last).await?,
            None => 1,
        };
        let total = usize::try_from(last + 1 - first).unwrap_or(usize::MAX);
        let newest_first = (first..=last).rev().skip(page.skip()).take(page.size());
        let commits = org.ledger.history(newest_first).await?;
        let items = commits.iter().flat_map(|commit| events(commit, &org)).collect();
        Ok(AuditTrail { organization: org.id(), events: Listed { items, page, total } })
    }
}

/// The number of the first commit after a moment, or one more than the last. Halves what is left with each look:
/// commits follow each other in time, but for what the servers' clocks differ by.
pub(crate) async fn first_after<S: State>(ledger: &Ledger<S>, since: Timestamp, last: u64) -> Result<u64, Error> {
    let (mut low, mut high) = (1, last + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let is_later = ledger.history([middle]).await?.iter().any(|commit| commit.at > since);
        if is_later { high = middle } else { low = middle + 1 }
    }
    Ok(low)
}

/// Events of a commit, the last first.
fn events(commit: &Commit, org: &OrganizationSnapshot) -> Vec<AuditEvent> {
    let event = |(place, entry)| AuditEvent::of(commit, place, entry, |author| org.name_of(author));
    commit.transactions.iter().enumerate().map(event).rev().collect()
}

impl AuditEvent {
    /// Event of the transaction with this place in its commit. `name_of` gives the display name of an author.
    pub(crate) fn of(commit: &Commit, place: usize, entry: &Entry, name_of: impl Fn(&Author) -> String) -> Self {
        let author = Author::spelled(&entry.actor);
        Self {
            id: format!("{}-{place}", commit.id),
            at: commit.at,
            actor: entry.actor.clone(),
            actor_name: author.map_or_else(|| entry.actor.clone(), |author| name_of(&author)),
            by_taco: author == Some(Author::Taco),
            request: entry.request.clone(),
            action: entry.action.clone(),
            thing: thing(entry),
            commit: commit.seq,
        }
    }
}

/// Of all records that changed or were read, the one that the action speaks of: `workspace.lock` changes a workspace,
/// `state.write` a state version, `state.read` reads one. Notes about requests, and what is to be told of it, are no one's
/// action.
fn thing(entry: &Entry) -> Option<(String, String)> {
    let puts = entry.puts.iter().map(|put| (put.kind.as_str(), put.id.as_str()));
    let deletes = entry.deletes.iter().map(|key| (key.kind.as_str(), key.id.as_str()));
    let reads = entry.reads.iter().map(|key| (key.kind.as_str(), key.id.as_str()));
    let is_action = |(kind, _): &(&str, &str)| !matches!(*kind, "done-request" | "notification-delivery");
    let changed: Vec<_> = puts.chain(deletes).chain(reads).filter(is_action).collect();
    let noun = entry.action.split('.').next().unwrap_or_default();
    let spoken_of = changed.iter().find(|(kind, _)| *kind == noun);
    let related = || changed.iter().find(|(kind, _)| kind.starts_with(noun));
    let (kind, id) = spoken_of.or_else(related).or(changed.first())?;
    Some(((*kind).to_owned(), (*id).to_owned()))
}

impl ControlPlane {
    /// Writes into the audit trail that someone reads a secret. Await it before the secret is answered. A bucket that
    /// takes no writes must not keep people from their states: then the server's log has the event instead.
    pub(crate) async fn record_secret_read(
        &self,
        org: &OrganizationSnapshot,
        reader: impl Into<Reader>,
        read: SecretRead,
    ) {
        let (reader, now) = (reader.into(), self.now());
        let key = (reader.actor.clone(), reader.token, read);
        if self.shared.secret_reads.is_told(&key, now) {
            return;
        }
        let Reader { actor, request, .. } = reader;
        let intent = Intent { actor: actor.clone(), action: read.action(), request: request.clone() };
        let written = org.commit(intent, move |tx| {
            match read {
                SecretRead::State(id) | SecretRead::Outputs(id) => tx.record_read::<StateVersion>(&id),
                SecretRead::Plan(id) => tx.record_read::<Run>(&id),
            }
            Ok(())
        });
        let enough = match written.await {
            Ok(()) => SAME_READ_WITHIN,
            Err(error) => {
                tracing::warn!(
                    event = "audit_event_not_written", organization = %org.id(), actor, action = read.action(),
                    id = read.id(), request, %error, "someone read a secret, and the audit trail could not be told"
                );
                RETRY_AFTER
            }
        };
        self.shared.secret_reads.remember(key, now.checked_add(enough).unwrap_or(Timestamp::MAX));
    }
}
