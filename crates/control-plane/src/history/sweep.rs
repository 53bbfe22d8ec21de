//! Removing objects of history that nothing names: what a move that broke off has left, and what a merge has replaced.
//!
//! Nothing is decided by the times of objects. A server remembers what it has found unnamed, and since when. After a while it
//! commits that it sweeps: whoever wrote an object before that commit and has not named it, cannot name it any more. Only
//! then does it look once more and remove what nothing names.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::history::HistorySweep;
use taco_domain::id::OrganizationId;
use taco_ledger::{Key, Transaction, layout};

use super::parts::{Part, PartName, unavailable};
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;

/// What nothing names is removed when this server has known it for so long: whoever wrote it would have named it by then,
/// and whoever reads from an older state is done.
const ABANDONED_AFTER: SignedDuration = SignedDuration::from_hours(1);
/// How often a server looks.
const LOOK_EVERY: SignedDuration = SignedDuration::from_mins(30);

/// Objects that nothing names, as far as this server has seen.
#[derive(Default)]
pub(crate) struct Leftovers(Mutex<HashMap<OrganizationId, Found>>);

#[derive(Default)]
struct Found {
    looked_at: Option<Timestamp>,
    /// Since when each is known.
    since: BTreeMap<Key, Timestamp>,
}

impl Leftovers {
    fn is_due(&self, organization: OrganizationId, now: Timestamp) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let looked_at = all.get(&organization).and_then(|found| found.looked_at);
        looked_at.is_none_or(|at| now.duration_since(at) >= LOOK_EVERY)
    }

    /// Remembers what nothing names now, and tells what nothing has named for long.
    fn note(&self, organization: OrganizationId, unnamed: &BTreeSet<Key>, now: Timestamp) -> Vec<Key> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.entry(organization).or_default();
        found.looked_at = Some(now);
        found.since.retain(|key, _| unnamed.contains(key));
        for key in unnamed {
            found.since.entry(key.clone()).or_insert(now);
        }
        let old = found.since.iter().filter(|(_, since)| now.duration_since(**since) >= ABANDONED_AFTER);
        old.map(|(key, _)| key.clone()).collect()
    }
}

#[boxed]
impl ControlPlane {
    /// Removes what has been left behind, if it is time to look for it.
    pub(super) async fn sweep_history(&self, org: &OrganizationSnapshot) -> Result<(), Error> {
        let now = self.now();
        if !self.shared.leftovers.is_due(org.id(), now) {
            return Ok(());
        }
        let unnamed = self.unnamed_objects(org).await?;
        let abandoned = self.shared.leftovers.note(org.id(), &unnamed, now);
        if abandoned.is_empty() {
            return Ok(());
        }
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            let before = tx.state().history_sweep().map_or(0, |sweep| sweep.number);
            tx.put(&HistorySweep::new(before + 1, now));
            Ok(())
        };
        org.commit(Self::own_intent("history.sweep"), decide).await?;
        let unnamed = self.unnamed_objects(org).await?;
        for key in abandoned.iter().filter(|key| unnamed.contains(key)) {
            self.bucket().delete(key).await.map_err(unavailable)?;
            metrics::counter!("taco_history_objects_removed_total").increment(1);
        }
        Ok(())
    }

    /// The objects of history that the newest state does not name.
    async fn unnamed_objects(&self, org: &OrganizationSnapshot) -> Result<BTreeSet<Key>, Error> {
        // Before the state is read: what is written afterwards is none of ours.
        let listed = self.bucket().list(&layout::history(org.ledger.name()), None).await.map_err(unavailable)?;
        let mut listed: BTreeSet<Key> = listed.into_iter().collect();
        if listed.is_empty() {
            return Ok(listed);
        }
        let now = self.organization_unchecked(org.id().organization_prefix(), "organization").await?;
        for segment in now.state.history_segments.iter() {
            let id = segment.id.to_string();
            for name in PartName::ALL {
                listed.remove(&layout::history_part(org.ledger.name(), &id, name.as_str()));
            }
        }
        for page in self.named_pages(&now).await? {
            listed.remove(&layout::history_page(org.ledger.name(), &page));
        }
        Ok(listed)
    }

    async fn named_pages(&self, org: &OrganizationSnapshot) -> Result<BTreeSet<String>, Error> {
        let reader = self.history_of(org);
        let mut pages = BTreeSet::new();
        for segment in org.state.history_segments.iter() {
            pages.extend(segment.pages.iter().cloned());
            if !segment.pages.is_empty() {
                continue;
            }
            // Older servers did not tell: then its catalogs do.
            for name in [PartName::Runs, PartName::StateVersions, PartName::ConfigurationVersions] {
                if let Some(Part::Catalog(catalog)) = reader.part(segment, name).await? {
                    pages.extend(catalog.pages().iter().cloned());
                }
            }
        }
        Ok(pages)
    }
}
