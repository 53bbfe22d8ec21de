//! A new master key: what an older one wrapped is wrapped anew, so that the older one can be forgotten. Only headers
//! change; readers are not disturbed, and after an interruption one begins again and skips what is done.

use std::collections::HashMap;

use futures::{StreamExt, stream};
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::run::{Run, RunVariable};
use taco_domain::ssh_key::SshKey;
use taco_domain::user::User;
use taco_domain::variable::{StoredValue, Variable};
use taco_ledger::{BucketErrorKind, LedgerName, Transaction, layout};

use crate::blob_error::blob_error;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::passwords::{is_plain, sealed_name};
use crate::privileged::Privileged;

/// So many secrets change in one commit.
const BATCH: usize = 100;

/// So many blobs are looked at together.
const AT_ONCE: usize = 8;

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

#[boxed]
impl ControlPlane {
    async fn rewrap_passwords(&self) -> Result<Rewrapped, Error> {
        let mut all = Rewrapped::default();
        let mut fresh = HashMap::new();
        for user in self.read_site().await?.users.iter() {
            let Some(stored) = &user.password else { continue };
            let name = sealed_name(user.id);
            let renewed = match is_plain(stored) {
                true => Ok(Some(self.seal(&name, stored))),
                false => self.rewrap(&name, stored),
            };
            match renewed {
                Ok(Some(renewed)) => {
                    fresh.insert(stored.clone(), (user.id, renewed));
                }
                Ok(None) => all.left += 1,
                Err(Error::Sealed(why)) => all.unreadable.push(why),
                Err(error) => return Err(error),
            }
        }
        if fresh.is_empty() {
            return Ok(all);
        }
        all.renewed += self
            .commit_site(Self::own_intent("site.rewrap-secrets"), move |tx| {
                let changed: Vec<User> = (fresh.iter())
                    .filter_map(|(old, (id, renewed))| {
                        // What changed meanwhile is under the new key already.
                        let user = tx.state().users.get(id).filter(|user| user.password.as_ref() == Some(old))?;
                        Some(User { password: Some(renewed.clone()), ..user.clone() })
                    })
                    .collect();
                changed.iter().for_each(|user| tx.put(user));
                Ok::<_, Error>(changed.len())
            })
            .await?;
        Ok(all)
    }
}

/// Verbs without permission checks, for the server itself.
#[boxed]
impl Privileged {
    /// Brings secrets that records hold under the current master key: variables, those of runs, SSH keys, and hashes of
    /// passwords, also those that an older version did not seal. The site's own key was brought there when the control
    /// plane was opened.
    pub async fn rewrap_secrets(&self) -> Result<Rewrapped, Error> {
        let mut all = self.rewrap_passwords().await?;
        let survey = self.survey_organizations().await?;
        if let Some(error) = survey.transient_failure() {
            return Err(error.clone());
        }
        let damaged = self.unreadable_ledgers().into_iter();
        all.unreadable.extend(damaged.map(|ledger| format!("{} {}", ledger.object, ledger.why)));
        for mut org in survey.readable {
            self.restore_sealed(&org).await?;
            org.state = org.last_seen();
            let mut fresh = Vec::new();
            for (name, sealed) in secrets_of(&org.state) {
                match self.rewrap(&name, sealed) {
                    Ok(Some(renewed)) => fresh.push((sealed.to_owned(), renewed)),
                    Ok(None) => all.left += 1,
                    Err(Error::Sealed(why)) => all.unreadable.push(why),
                    Err(error) => return Err(error),
                }
            }
            for batch in fresh.chunks(BATCH) {
                let fresh: HashMap<String, String> = batch.iter().cloned().collect();
                let decide = move |tx: &mut Transaction<OrganizationState>| Ok::<_, Error>(replace(tx, &fresh));
                all.renewed += org.commit(ControlPlane::own_intent("site.rewrap-secrets"), decide).await?;
            }
        }
        Ok(all)
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
            let mut outcomes = stream::iter(keys).map(one).buffer_unordered(AT_ONCE);
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

/// Every sealed text of an organization, and the name that it is sealed under.
fn secrets_of(state: &OrganizationState) -> impl Iterator<Item = (String, &str)> {
    let variables = state.variables.iter().filter_map(|variable| match &variable.value {
        StoredValue::Sealed(sealed) => Some((variable.id.to_string(), sealed.as_str())),
        StoredValue::Plain(_) => None,
    });
    let keys = state.ssh_keys.iter().map(|key| (key.id.to_string(), key.sealed_value.as_str()));
    let of_runs = state.runs.iter().flat_map(|run| {
        let variables = run.options.variables.iter();
        variables.map(|variable| (RunVariable::seal_name(run.id, &variable.key), variable.sealed.as_str()))
    });
    variables.chain(keys).chain(of_runs)
}

/// Puts fresh texts in the place of old ones, and says how many. What changed meanwhile is under the new key already.
fn replace(tx: &mut Transaction<OrganizationState>, fresh: &HashMap<String, String>) -> usize {
    let state = tx.state();
    let variables: Vec<Variable> = (state.variables.iter())
        .filter_map(|variable| {
            let StoredValue::Sealed(old) = &variable.value else { return None };
            Some(Variable { value: StoredValue::Sealed(fresh.get(old)?.clone()), ..variable.clone() })
        })
        .collect();
    let keys: Vec<SshKey> = (state.ssh_keys.iter())
        .filter_map(|key| Some(SshKey { sealed_value: fresh.get(&key.sealed_value)?.clone(), ..key.clone() }))
        .collect();
    let mut of_runs = 0;
    let runs: Vec<Run> = (state.runs.iter())
        .filter(|run| run.options.variables.iter().any(|variable| fresh.contains_key(&variable.sealed)))
        .map(|run| {
            let mut run = run.clone();
            for variable in &mut run.options.variables {
                if let Some(renewed) = fresh.get(&variable.sealed) {
                    variable.sealed.clone_from(renewed);
                    of_runs += 1;
                }
            }
            run
        })
        .collect();
    variables.iter().for_each(|variable| tx.put(variable));
    keys.iter().for_each(|key| tx.put(key));
    runs.iter().for_each(|run| tx.put(run));
    variables.len() + keys.len() + of_runs
}
