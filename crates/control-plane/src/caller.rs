use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use taco_domain::id::{OrganizationId, OrganizationPrefix, TokenId};
use taco_domain::idempotency_record::IdempotencyKey;
use taco_domain::permission::{Action, Actor, Decision, Resource, allow};
use taco_domain::{Author, OrganizationState, Site};
use taco_ledger::{Intent, View};

use crate::error::Error;

/// Facts about a request that are known before its sender is authenticated.
#[derive(Clone, Default, Debug)]
pub struct RequestInfo {
    /// To find the request in the servers' logs; it is part of the audit trail.
    pub id: Option<String>,
    /// The client's address and what it calls itself, for people who wonder who holds a lock.
    pub from: Option<String>,
    /// The client's address, for limits.
    pub address: Option<IpAddr>,
    /// Idempotency key, with which the client can retry the request.
    pub key: Option<IdempotencyKey>,
}

/// The organization that a request seems to be about, from its path alone.
#[derive(Clone, Debug)]
pub enum RequestTarget {
    Named(String),
    /// It has something with an id that begins so.
    At(OrganizationPrefix),
}

/// An organization that was looked at while the caller was recognised. It serves once: before a second read, the
/// request may have changed it.
#[derive(Clone, Default)]
pub(crate) struct PrefetchedOrganization(Arc<Mutex<Option<Seen>>>);

type Seen = (OrganizationId, View<OrganizationState>);

impl PrefetchedOrganization {
    pub(crate) fn of(id: OrganizationId, state: View<OrganizationState>) -> Self {
        Self(Arc::new(Mutex::new(Some((id, state)))))
    }

    pub(crate) fn take(&self, id: OrganizationId) -> Option<View<OrganizationState>> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        seen.filter(|(seen, _)| *seen == id).map(|(_, state)| state)
    }
}

/// Authenticated caller, and the snapshot of the site when they were authenticated. That moment is within the request,
/// so verbs may rely on it instead of reading the bucket again.
#[derive(Clone)]
pub struct Caller {
    pub actor: Actor,
    /// The token by which they came, if it is one that can be revoked.
    pub token: Option<TokenId>,
    pub request: RequestInfo,
    pub(crate) site: View<Site>,
    pub(crate) prefetched: PrefetchedOrganization,
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Caller")
            .field("actor", &self.actor)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

impl Caller {
    /// As records remember the caller.
    pub fn author(&self) -> Author {
        self.actor.author()
    }

    /// Audit entry to record with a change.
    pub fn intent(&self, action: &'static str) -> Intent {
        Intent { actor: self.author().to_string(), action, request: self.request.id.clone() }
    }

    /// May they? With the reason, for pages that show what is out of reach and why.
    pub fn may(&self, action: Action, resource: Resource<'_>) -> Decision {
        allow(&self.actor, action, resource)
    }

    /// True if they may see the runs of every workspace, because of a right in the whole organization. Otherwise they
    /// may still see those of some, or of all, one by one.
    pub(crate) fn reads_all_runs(&self, state: &OrganizationState) -> bool {
        let is_role =
            matches!(self.actor, Actor::User { .. } | Actor::Team { .. } | Actor::Organization(_) | Actor::Taco);
        is_role && self.may(Action::ReadRuns, Resource::Organization(state)).allowed
    }

    /// May they? If not, the error tells no more than they may know. `what` names the thing that is not found then.
    pub fn require(&self, action: Action, resource: Resource<'_>, what: &'static str) -> Result<(), Error> {
        let decision = self.may(action, resource);
        if decision.allowed {
            return Ok(());
        }
        tracing::debug!(actor = %self.author(), ?action, reason = %decision.reason, "denied");
        let reason = decision.reason.into_owned();
        Err(match () {
            () if !decision.credential_accepted || self.actor == Actor::Anonymous => Error::Unauthorized(reason),
            () if !decision.visible => Error::NotFound(what),
            () => Error::Denied(reason),
        })
    }
}
