//! Verbs for the server itself, without permission checks: the scheduler hands out phases, servers look after ledgers
//! and keys. Doors for people and for terraform have a [`ControlPlane`] and cannot reach them.

use std::ops::Deref;
use std::sync::PoisonError;

use futures::future::join_all;
use taco_boxed::boxed;
use taco_domain::id::OrganizationId;
use taco_domain::{OrganizationState, Site};
use taco_ledger::{Changes, Environment, Ledger, LedgerName, View};

use crate::control_plane::{ControlPlane, OrganizationSnapshot, Settings};
use crate::error::Error;

/// All that a server may do. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Privileged(ControlPlane);

impl Deref for Privileged {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        &self.0
    }
}

#[boxed]
impl Privileged {
    /// Opens the site's ledger; organizations follow when they are asked for.
    pub async fn open(environment: Environment, settings: Settings) -> Result<Self, Error> {
        Ok(Self(ControlPlane::open(environment, settings).await?))
    }

    /// The handle for doors. Nothing leads from it back to this one.
    pub fn control_plane(&self) -> ControlPlane {
        self.0.clone()
    }

    /// Everything in an organization, for work on all of it.
    pub fn state<'a>(&self, org: &'a OrganizationSnapshot) -> &'a View<OrganizationState> {
        &org.state
    }

    /// The same as this server last saw it, at no cost: for hints, never for an answer.
    pub fn last_seen(&self, org: &OrganizationSnapshot) -> View<OrganizationState> {
        org.last_seen()
    }

    /// Writes the heads of all ledgers anew, so that their digests are made with the current master key.
    pub async fn renew_heads(&self) -> Result<usize, Error> {
        self.shared.site.renew_head().await?;
        let mut renewed = 1;
        for org in self.all_organizations().await? {
            org.ledger.renew_head().await?;
            renewed += 1;
        }
        Ok(renewed)
    }

    /// Packs old commits, at most one range of each ledger that this server has open. True if there may be more. A ledger
    /// that cannot be packed keeps no other from it; the first error is told when all had their turn.
    pub async fn pack_commits(&self) -> Result<bool, Error> {
        let mut outcome = self.shared.site.pack_settled().await;
        for org in self.organizations_in_memory() {
            let packed = org.ledger.pack_settled().await;
            outcome = outcome.and_then(|more| packed.map(|packed| more || packed));
        }
        Ok(outcome?)
    }

    /// Waits until the heads of all ledgers name the newest commits of this server: before the process ends.
    pub async fn flush(&self) {
        let opened: Vec<_> = {
            let organizations = self.shared.organizations.lock().unwrap_or_else(PoisonError::into_inner);
            organizations.values().filter_map(|cell| cell.get().cloned()).collect()
        };
        tokio::join!(self.shared.site.flush(), join_all(opened.iter().map(Ledger::flush)));
    }

    /// The ledgers that this server has opened, and how far it has read each.
    pub fn ledgers_seen(&self) -> Vec<(LedgerName, u64)> {
        let organizations = self.shared.organizations.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = organizations.values().filter_map(|cell| cell.get());
        let mut seen: Vec<_> = opened.map(|ledger| (ledger.name().clone(), ledger.last_seen().seq())).collect();
        seen.push((LedgerName::site(), self.shared.site.last_seen().seq()));
        seen
    }

    /// Looks again at what could not be read; true if some of it can be read now, or is gone.
    pub async fn look_at_unreadable(&self) -> bool {
        let before = self.unreadable_ledgers();
        if before.is_empty() {
            return false;
        }
        // Opening notes how it ended.
        let Ok(site) = self.read_site().await else { return false };
        for id in before.iter().filter_map(|ledger| ledger.organization) {
            if let Err(Error::NotFound(_)) = self.open_organization(&site, id).await {
                self.shared.unreadable.strike_off(Some(id));
            }
        }
        self.unreadable_ledgers().len() < before.len()
    }

    /// True if the organization could be read when this server last tried.
    pub fn is_readable(&self, organization: OrganizationId) -> bool {
        !self.shared.unreadable.contains(organization)
    }

    /// Wakes all who wait on it when this server has seen a change of the site: organizations come and go.
    pub fn site_changes(&self) -> Changes<Site> {
        self.shared.site.changes()
    }
}
