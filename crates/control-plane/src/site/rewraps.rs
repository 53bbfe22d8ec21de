//! A new master key: what an older one wrapped is wrapped anew, so that the older one can be forgotten. Only headers
//! change; readers are not disturbed, and after an interruption one begins again and skips what is done.

use futures::{StreamExt, stream};
use taco_boxed::boxed;
use taco_domain::{OrganizationState, Site};
use taco_ledger::{BucketErrorKind, LedgerName, Transaction, layout};
use taco_tables::{Holds, Record, State, Table, Tables, VisitTable};

use crate::blob_error::blob_error;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::passwords::is_plain;
use crate::privileged::Privileged;

/// So many secrets change in one commit.
const SECRETS_PER_COMMIT: usize = 100;

/// So many blobs are looked at together.
const CONCURRENT_BLOBS: usize = 8;

/// Result of rewrapping sealed values.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Rewrapped {
    /// They are under the current master key now.
    pub renewed: usize,
    /// There was nothing to do.
    pub left: usize,
    /// Values that no key of this process opens, and why.
    pub unreadable: Vec<String>,
}

/// A sealed text of a record, and the same under the current master key.
#[derive(Clone)]
struct Fresh {
    kind: &'static str,
    id: String,
    old: String,
    new: String,
}

/// Verbs without permission checks, for the server itself.
#[boxed]
impl Privileged {
    /// Brings all secrets that records declare ([`Record::sealed_mut`]) under the current master key, also those that an
    /// older version did not seal. The site's own key was brought there when the control plane was opened.
    pub async fn rewrap_secrets(&self) -> Result<Rewrapped, Error> {
        let mut all = Rewrapped::default();
        for batch in self.to_rewrap::<Site>(&*self.read_site().await?, &mut all)?.chunks(SECRETS_PER_COMMIT) {
            let fresh = batch.to_vec();
            let decide = move |tx: &mut Transaction<Site>| Ok(replace(tx, &fresh));
            all.renewed += self.commit_site(ControlPlane::own_intent("site.rewrap-secrets"), decide).await?;
        }
        let survey = self.survey_organizations().await?;
        if let Some(error) = survey.transient_failure() {
            return Err(error.clone());
        }
        let damaged = self.unreadable_ledgers().into_iter();
        all.unreadable.extend(damaged.map(|ledger| format!("{} {}", ledger.object, ledger.why)));
        for mut org in survey.readable {
            self.restore_sealed(&org).await?;
            org.state = org.last_seen();
            for batch in self.to_rewrap::<OrganizationState>(&org.state, &mut all)?.chunks(SECRETS_PER_COMMIT) {
                let fresh = batch.to_vec();
                let decide = move |tx: &mut Transaction<OrganizationState>| Ok(replace(tx, &fresh));
                all.renewed += org.commit(ControlPlane::own_intent("site.rewrap-secrets"), decide).await?;
            }
        }
        Ok(all)
    }

    /// The sealed texts of a state that need the current master key. `all` learns of the others.
    fn to_rewrap<S: Tables>(&self, state: &S, all: &mut Rewrapped) -> Result<Vec<Fresh>, Error> {
        let mut sealed = SealedTexts { state, found: Vec::new() };
        S::visit_tables(&mut sealed);
        let mut fresh = Vec::new();
        for (name, found) in sealed.found {
            let renewed = match is_plain(&found.old) {
                true => Ok(Some(self.seal(&name, &found.old))),
                false => self.rewrap(&name, &found.old),
            };
            match renewed {
                Ok(Some(new)) => fresh.push(Fresh { new, ..found }),
                Ok(None) => all.left += 1,
                Err(Error::Sealed(why)) => all.unreadable.push(why),
                Err(error) => return Err(error),
            }
        }
        Ok(fresh)
    }

    /// Rewraps all that is sealed in the bucket outside of the ledgers with the current master key: states, plans and
    /// configurations. Logs are not sealed.
    pub async fn rewrap_blobs(&self) -> Result<Rewrapped, Error> {
        let unavailable = |error: taco_ledger::BucketError| blob_error(error.into());
        let bucket = self.bucket();
        let mut all = Rewrapped::default();
        for folder in bucket.folders(&layout::ledgers()).await.map_err(unavailable)? {
            let Ok(ledger) = folder.parse::<LedgerName>() else { continue };
            let mut keys = bucket.list(&layout::blobs(&ledger), None).await.map_err(unavailable)?;
            let logs = layout::logs(&ledger);
            keys.retain(|key| !key.as_str().starts_with(&logs));
            let one = |key| async move { self.blobs().rewrap(&key).await };
            let mut outcomes = stream::iter(keys).map(one).buffer_unordered(CONCURRENT_BLOBS);
            while let Some(outcome) = outcomes.next().await {
                match outcome {
                    Ok(true) => all.renewed += 1,
                    Ok(false) => all.left += 1,
                    Err(error) if error.kind == BucketErrorKind::Refused => {
                        all.unreadable.push(format!("{} {}", error.key, error.why));
                    }
                    Err(error) => return Err(unavailable(error)),
                }
            }
        }
        Ok(all)
    }
}

/// Finds every sealed text of a state, with the name that it is sealed under.
struct SealedTexts<'a, S> {
    state: &'a S,
    found: Vec<(String, Fresh)>,
}

impl<S: State> VisitTable<S> for SealedTexts<'_, S> {
    fn visit<R: Record>(&mut self)
    where
        S: Holds<R>,
    {
        let table: &Table<R> = self.state.table();
        for record in table.iter() {
            for (name, sealed) in record.clone().sealed_mut() {
                let (id, old) = (record.id().to_string(), std::mem::take(sealed));
                self.found.push((name, Fresh { kind: R::KIND, id, old, new: String::new() }));
            }
        }
    }
}

/// Puts fresh texts in the place of old ones, and says how many. What changed meanwhile is under the new key already.
fn replace<S: Tables>(tx: &mut Transaction<S>, fresh: &[Fresh]) -> usize {
    let mut replacement = Replacement { tx, fresh, replaced: 0 };
    S::visit_tables(&mut replacement);
    replacement.replaced
}

struct Replacement<'a, S> {
    tx: &'a mut Transaction<S>,
    fresh: &'a [Fresh],
    replaced: usize,
}

impl<S: State> VisitTable<S> for Replacement<'_, S> {
    fn visit<R: Record>(&mut self)
    where
        S: Holds<R>,
    {
        for fresh in self.fresh.iter().filter(|fresh| fresh.kind == R::KIND) {
            let table: &Table<R> = self.tx.state().table();
            let Some(mut record) = fresh.id.parse().ok().and_then(|id| table.get(&id)).cloned() else { continue };
            let mut sealed = record.sealed_mut().into_iter().map(|(_, sealed)| sealed);
            if let Some(sealed) = sealed.find(|sealed| **sealed == fresh.old) {
                sealed.clone_from(&fresh.new);
                self.tx.put(&record);
                self.replaced += 1;
            }
        }
    }
}
